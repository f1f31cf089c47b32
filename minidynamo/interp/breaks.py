"""Breaks: whether a frame can be split at all, and which steps a test wants it split at."""
from __future__ import annotations

import types
import weakref
from typing import Any

from minidynamo import reasons
from minidynamo.code import Program
from minidynamo.interp.state import Frame
from minidynamo.reasons import Stop
from minidynamo.sources import Cell
from minidynamo.variables.weakrefs import WATCHERS

# Functions that look at the caller's frame: a rewritten frame has other locals than the user's.
READ_FRAME = frozenset({"locals", "eval", "exec", "_getframe", "currentframe"})
READ_FRAME_WITHOUT_ARGUMENTS = frozenset({"vars", "dir"})
NAMES = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME"})
GLOBAL_ONLY = frozenset({"locals", "eval", "exec"})


def why_unbreakable(tx: Any, frame: Frame, index: int, stop: Stop) -> Stop | None:
    """A Stop that leaves the whole frame alone where no resume function could go on, else None."""
    if stop.reason in (reasons.RUNS_WHEN_DROPPED, reasons.WATCHED_DEATH, reasons.TRACE_FUNCTION):
        return stop
    program = frame.program
    why = None
    if index < tx.options.first:
        why = "it was only being entered"
    elif reads_frame(program):
        why = "it looks at its own variables as a namespace"
    elif watches_deaths(program, frame.scope.mapping):
        why = "it drops variables and uses weak references, and what a resume function is given lives as long as it"
    elif any(cell.source != Cell(name) for name, cell in frame.cells.items()):
        why = "a comprehension in it has cells of its own"
    elif uses_super(program) and not first_is_kept(frame):
        why = "super() needs its first argument, which is gone or captured and assigned again"
    if why is None:
        return None
    return Stop(reasons.UNBREAKABLE_FRAME, {"title": stop.reason.title, "name": program.qualname, "why": why},
                stop.where)


def reads_frame(program: Program) -> bool:
    """Whether the body names a function that reads its variables through the frame."""
    found = program.memo.get("reads_frame")
    if found is None:
        found = program.memo["reads_frame"] = _reads_frame(program)
    return bool(found)


def _reads_frame(program: Program) -> bool:
    for index, op in enumerate(program.ops):
        if op.name not in NAMES:
            continue
        if op.arg in READ_FRAME and (op.name == "LOAD_GLOBAL" or op.arg not in GLOBAL_ONLY):
            return True
        if op.arg in READ_FRAME_WITHOUT_ARGUMENTS and op.name == "LOAD_GLOBAL":
            after = [o for o in program.ops[index + 1:index + 3] if o.name != "PUSH_NULL"]
            if after and after[0].name == "CALL" and after[0].arg == (0, ()):
                return True
    return False


def watches_deaths(program: Program, scope: dict[str, Any]) -> bool:
    """Whether the body names weakref or something of it, and lets go of a variable with ``del x`` or ``x = None``."""
    found = program.memo.get("watches_deaths")
    if found is None:
        found = program.memo["watches_deaths"] = _drops_variables(program) and any(
            _is_weak(scope.get(op.arg)) for op in program.ops if op.name == "LOAD_GLOBAL")
    return bool(found)


def _drops_variables(program: Program) -> bool:
    pairs = zip(program.ops, program.ops[1:])
    return any(op.name == "DELETE_LOCAL" or op.name == "STORE_LOCAL" and before.name == "LOAD_CONST" and before.arg is None
               for before, op in pairs)


def _is_weak(value: Any) -> bool:
    return value is weakref or type(value) in (type, types.FunctionType, types.BuiltinFunctionType) \
        and value.__module__ in WATCHERS


def uses_super(program: Program) -> bool:
    """Whether a bare ``super()`` may find its arguments in the frame."""
    found = program.memo.get("uses_super")
    if found is None:
        found = program.memo["uses_super"] = program.first_argument() is not None and any(
            op.name == "LOAD_GLOBAL" and op.arg == "super" for op in program.ops)
    return bool(found)


def first_is_kept(frame: Frame) -> bool:
    """A bare ``super()`` reads the first local; one in a cell is passed on as a copy, so it must not change."""
    program = frame.program
    first = program.first_argument()
    if first in frame.cells:
        return not any(op.name in ("STORE_DEREF", "DELETE_DEREF") and op.arg == first for op in program.ops)
    return first in frame.local
