"""Running a written program eagerly and compiled, call by call, and comparing all that can be seen of both."""
from __future__ import annotations

import contextlib
import io
import linecache
import re
from typing import Any

import torch

import minidynamo
from minidynamo.compiler.preserve import STATE
from minidynamo.observe.describe import difference, describe

FILE = "<soundness program>"
WATCHED = ("LOG", "G", "N", "D", "T")


def arguments(turn: int) -> tuple[Any, ...]:
    """What the turn-th call is given: values and types change from call to call."""
    shared = [1]
    made: list[tuple[Any, ...]] = [
        (1, 2, [1, 2], torch.ones(3), {"a": 0}),
        (1, 2, [1, 2], torch.ones(3), {"a": 0}),
        (2, 2.5, shared, torch.full((3,), 2.0), {"a": shared}),
        (True, 7, (1, 2), torch.arange(4.0), {"b": 1}),
    ]
    return made[turn]


def between(space: dict[str, Any], turn: int) -> None:
    """What happens to the globals before a call."""
    if turn == 2:
        space["N"] = 4
        space["G"] = [7, 8]
    if turn == 3:
        space["P"].k = 9
        space["D"] = {"z": 1}


def module(source: str) -> dict[str, Any]:
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    space: dict[str, Any] = {"__name__": "written"}
    exec(compile(source, FILE, "exec"), space)
    return space


def one_call(fn: Any, space: dict[str, Any], turn: int) -> tuple[Any, list[tuple[int, str]]]:
    args = arguments(turn)
    between(space, turn)
    out = io.StringIO()
    value: Any = None
    raised: BaseException | None = None
    torch.manual_seed(turn)
    with contextlib.redirect_stdout(out):
        try:
            value = fn(*args)
        except Exception as error:
            raised = error
    state = {name: read() for name, (read, _) in STATE.items()}
    torch.set_grad_enabled(True)
    watched = {name: space.get(name) for name in WATCHED}
    return describe([value, raised, args, watched, out.getvalue(), state]), lines_of(raised)


def lines_of(error: BaseException | None) -> list[tuple[int, str]]:
    """The traceback's entries in the program."""
    tb, found = error.__traceback__ if error is not None else None, []
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == FILE:
            found.append((tb.tb_lineno, tb.tb_frame.f_code.co_qualname))
        tb = tb.tb_next
    return found


def mismatch(source: str, calls: int = 4, **options: Any) -> str | None:
    """Where compiled and plain Python part, or None.  `options` are settings of the configuration."""
    plain, ours = module(source), module(source)
    minidynamo.reset()
    compiled = minidynamo.optimize(ours["f"])
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True, **options):
        for turn in range(calls):
            eager, eager_lines = one_call(plain["f"], plain, turn)
            seen, seen_lines = one_call(compiled, ours, turn)
            where = difference(eager, seen)
            if where is None and eager_lines != seen_lines:
                where = f"the traceback: eager {eager_lines}, compiled {seen_lines}"
            if where is not None and not only_addresses(where):
                return f"call {turn + 1}: {where}"
    return None


def only_addresses(where: str) -> bool:
    """Whether the two sides differ in the addresses that default reprs show."""
    eager, _, ours = re.sub(r"0x[0-9a-f]{6,}", "0x", where).partition("eager ")[2].partition(", compiled ")
    return eager == ours
