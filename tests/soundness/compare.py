"""Running a written program eagerly and compiled, call by call, and comparing all that can be seen of both."""
from __future__ import annotations

import contextlib
import gc
import io
import linecache
import re
import resource
import signal
import threading
from collections.abc import Iterator
from typing import Any

import torch

import minidynamo
from minidynamo.compiler.preserve import STATE
from minidynamo.observe.describe import Snapshot, describe, difference
from tests.soundness.programs import PRELUDE

FILE = "<soundness program>"
MODULE = "written"
WATCHED = ("LOG", "G", "N", "D", "T")
SECONDS = 2                     # of processor time that a program may take eagerly
MEMORY = 4 << 30                # bytes that a program may take


class TooLong(BaseException):
    """The program is not one to compare: it takes too long, or too much."""


# ------------------------------------------------------------------ what changes from call to call
def arguments(turn: int) -> tuple[Any, ...]:
    """What the turn-th call is given: values and types change from call to call."""
    shared = [1]
    made: list[tuple[Any, ...]] = [
        (1, 2, [1, 2], torch.ones(3), {"a": 0}),
        (1, 2, [1, 2], torch.ones(3), {"a": 0}),
        (2, 2.5, shared, torch.full((3,), 2.0), {"a": shared}),
        (True, 7, (1, 2), torch.arange(4.0), {"b": 1}),
        (0, "b", {1: 2}, torch.arange(3), {"a": torch.ones(2)}),
        (3, 2, [1, 2, 3], torch.ones(2, 2, requires_grad=True), {}),
    ]
    return made[turn]


def method(self: Any, v: Any = 1, *rest: Any, **more: Any) -> Any:
    return "another method"


def between(space: dict[str, Any], turn: int) -> None:
    """What happens to the globals before a call."""
    if turn == 2:
        space["N"] = 4
        space["G"] = [7, 8]
    if turn == 3:
        space["P"].k = 9
        space["D"] = {"z": 1}
    if turn == 4:
        space["P"].m = method
        space["T"] = torch.arange(3, dtype=torch.float64)
        space["R"].__len__ = lambda self: 5
    if turn == 5:
        space["len"] = lambda obj: 1
        space["brk"] = lambda v=None: v
        del space["P"].__eq__
        space["T"] = None


def module(source: str) -> dict[str, Any]:
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    space: dict[str, Any] = {"__name__": MODULE}
    exec(compile(source, FILE, "exec", dont_inherit=True), space)
    return space


# ------------------------------------------------------------------ one call
def one_call(fn: Any, space: dict[str, Any], turn: int) -> tuple[Any, list[tuple[int, str]]]:
    args = arguments(turn)
    out = io.StringIO()
    value: Any = None
    raised: BaseException | None = None
    torch.manual_seed(turn)
    with contextlib.redirect_stdout(out):
        try:
            value = fn(*args)
        except minidynamo.exc.InternalError:
            raise
        except Exception as error:
            raised = error
        lines = lines_of(raised)
        forget_frames(raised)
        gc.collect()
        state = {name: read() for name, (read, _) in STATE.items()}
        torch.set_grad_enabled(True)
        watched = {name: space.get(name) for name in WATCHED}
        seen = [value, raised, args, watched, state]
        first = describe(seen, MODULE)
        more = drained(seen)
        second = describe([more, seen], MODULE) if more else describe(out.getvalue())
    return (first, second, describe(out.getvalue())), lines


def drained(root: Any) -> list[Any]:
    """What the iterators among the results still give: they are used, since nothing else shows where they stand."""
    found: list[Any] = []
    seen: dict[int, Any] = {}
    stack = [root]
    while stack and len(seen) < 300:
        obj = stack.pop(0)
        if id(obj) in seen or isinstance(obj, (type, torch.Tensor)):
            continue
        seen[id(obj)] = obj
        if isinstance(obj, dict):
            stack.extend(dict.values(obj))
        elif type(obj) in (list, tuple, set, frozenset):
            stack.extend(obj)
        elif type(obj).__name__ in USED:
            for _ in range(4):
                try:
                    found.append(next(obj))
                except Exception as error:
                    found.append(error)
                    break
        elif hasattr(type(obj), "__dict__") and type(getattr(obj, "__dict__", None)) is dict:
            stack.extend(vars(obj).values())
    return found


# A class (or C wrapper) that a call makes is another one each time, and what was compiled for the last does not fit it; nor does a
# text that shows where an iterator is.
MAKES_CLASSES = re.compile(r"class |type\('K'|lru_cache|id\(o|logged|str\((it|gen)")
USED = {"zip", "map", "filter", "enumerate", "generator", "chain", "islice", "callable_iterator", "accumulate", "I", "iterator",
        "reversed", "repeat", "zip_longest", "product"}


def forget_frames(error: BaseException | None) -> None:
    """When a variable that is not read again lets go of its object is seen by no program; tracebacks would show it."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__context__


def lines_of(error: BaseException | None) -> list[tuple[int, str]]:
    """The traceback's entries in the program."""
    tb, found = error.__traceback__ if error is not None else None, []
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == FILE:
            found.append((tb.tb_lineno, tb.tb_frame.f_code.co_qualname))
        tb = tb.tb_next
    return found


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """`TooLong` for a program that takes more than its time or memory."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise TooLong

    old = signal.signal(signal.SIGVTALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as now:
        room = int(now.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (room, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ------------------------------------------------------------------ comparing
@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Cycles are collected after each call only: generators in them would be closed, and log it, at any time."""
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@uncollected()
def mismatch(source: str, calls: int = 6, **options: Any) -> str | None:
    """Where compiled and plain Python part, or None.  `options` are settings of the configuration."""
    plain, ours = module(source), module(source)
    with bounded():
        eager = []
        for turn in range(calls):
            between(plain, turn)
            eager.append(one_call(plain["f"], plain, turn))
    minidynamo.reset()
    compiled = minidynamo.optimize(ours["f"])
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True, **options):
        for turn, (seen, lines) in enumerate(eager):
            between(ours, turn)
            before = Before(ours) if turn == calls - 1 and not MAKES_CLASSES.search(source, len(PRELUDE)) else None
            try:
                our_seen, our_lines = one_call(compiled, ours, turn)
            except minidynamo.exc.InternalError as error:
                return f"call {turn + 1}: {error}"
            where = next(filter(None, map(difference_of, seen, our_seen)), None)
            if where is None and lines != our_lines:
                where = f"the traceback: eager {lines}, compiled {our_lines}"
            if where is not None:
                return f"call {turn + 1}: {where}"
            if before is not None:
                return compiled_again(compiled, ours, before, turn)
    return None


def compiled_again(compiled: Any, space: dict[str, Any], before: Before, turn: int) -> str | None:
    """The last call over again, from the state it started from: nothing has changed, so nothing is compiled.

    The second time may still meet the first's more general entries, and go other ways from there.
    """
    for _ in range(2):
        before.restore()
        count = minidynamo.counters["frames"]["ok"]
        one_call(compiled, space, turn)
    found = minidynamo.counters["frames"]["ok"] - count
    return f"the last call again: {found} frames were compiled, though nothing had changed" if found else None


class Before:
    """A program's globals, what they reach, and the attributes of its classes, to be put back."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space, self.names = space, dict(space)
        self.contents = Snapshot()
        self.classes = [(value, dict(vars(value))) for value in space.values()
                        if isinstance(value, type) and value.__module__ == MODULE]
        for name, value in space.items():
            if name != "__builtins__":
                self.contents.keep(value)

    def restore(self) -> None:
        for name in [name for name in self.space if name not in self.names]:
            del self.space[name]
        self.space.update(self.names)
        self.contents.restore()
        for cls, own in self.classes:
            for name in [name for name in vars(cls) if name not in own]:
                type.__delattr__(cls, name)
            for name, value in own.items():
                if vars(cls).get(name) is not value:
                    type.__setattr__(cls, name, value)


def difference_of(eager: Any, ours: Any) -> str | None:
    where = difference(eager, ours)
    return None if where is None or only_addresses(where) else where


def only_addresses(where: str) -> bool:
    """Whether the two sides differ in the addresses that default reprs show."""
    eager, _, ours = re.sub(r"0x[0-9a-f]{6,}", "0x", where).partition("eager ")[2].partition(", compiled ")
    return eager == ours
