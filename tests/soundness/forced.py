"""Running a program of the corpus eagerly, and compiled with a break forced somewhere."""
from __future__ import annotations

import contextlib
import io
import pathlib
from types import CodeType
from typing import Any, NamedTuple

import minidynamo
from minidynamo.compiler.preserve import preserved
from minidynamo.observe.describe import Described, describe, difference

CORPUS = pathlib.Path(__file__).with_name("corpus.py")
PLAIN = (int, str, list, type(None), float)


class Ran(NamedTuple):
    """What one run did."""

    seen: Described
    trace: list[tuple[str, int, str]]      # file, line, function of the traceback
    raised: BaseException | None


def corpus_code() -> CodeType:
    return compile(CORPUS.read_text(encoding="utf-8"), str(CORPUS), "exec")


def namespace(code: CodeType) -> dict[str, Any]:
    """A fresh module."""
    space: dict[str, Any] = {"__name__": "soundness_corpus"}
    exec(code, space)
    return space


def run(space: dict[str, Any], name: str, **options: Any) -> Ran:
    """Call one program; with `options`, compiled under these settings of the configuration."""
    fn = space[name]
    out = io.StringIO()
    value = raised = None
    with contextlib.ExitStack() as stack:
        stack.enter_context(preserved())
        stack.enter_context(contextlib.redirect_stdout(out))
        if options:
            stack.enter_context(minidynamo.config.patch(
                rewrite_frames_without_graph=True, error_on_internal=True, **options))
            fn = minidynamo.optimize(fn)
        try:
            value = fn()
        except Exception as error:
            raised = error
    state = {key: item for key, item in space.items() if type(item) in PLAIN and not key.startswith("__")}
    return Ran(describe([value, raised, state, out.getvalue()]), frames_of(raised), raised)


def frames_of(error: BaseException | None) -> list[tuple[str, int, str]]:
    """The traceback from the program's own frame on."""
    tb = error.__traceback__ if error is not None else None
    found = []
    while tb is not None:
        code = tb.tb_frame.f_code
        found.append((pathlib.Path(code.co_filename).name, tb.tb_lineno, code.co_qualname))
        tb = tb.tb_next
    while found and found[0][0] != CORPUS.name:
        found.pop(0)
    return found


def part(eager: Ran, ours: Ran) -> str | None:
    """Where two runs part."""
    where = difference(eager.seen, ours.seen)
    if where is None and eager.trace != ours.trace:
        where = f"the traceback: eager {eager.trace}, compiled {ours.trace}"
    return where
