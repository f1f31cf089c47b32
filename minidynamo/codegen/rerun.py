"""The original code again: when a frame is not what its entry was made for, and when its graph raises.

An op may accept its inputs when traced and refuse their values when the graph runs (an index out of range, a
matrix that is not positive definite).  No effect has been replayed by then, so the original code can run from the
start: it raises where Python raises, after what Python does before, inside the user's own ``try`` blocks.  For a graph
that writes to its inputs or draws random numbers `snapshot` keeps what a second run needs.  One that calls anything
but torch's own ops, or writes to large inputs, is not run twice; its error leaves the frame, with torch's state as on
entry.
"""
from __future__ import annotations

import inspect
import sys
import types
import weakref
from typing import Any

from minidynamo.code import Label, Program
from minidynamo.codegen.snapshot import Kept, emit_restore
from minidynamo.graph.ambient import is_switch
from minidynamo.model import marks

def switched(tx: Any) -> list[Any]:
    """Entry settings of the state that the graph switches."""
    setters = {node.target for node in tx.tape.nodes if is_switch(node.target)}
    return [(setter, args) for setter, args in tx.on_entry if setter in setters]


def must_be_error(error: BaseException) -> None:
    """Only errors start the frame again, not the user's Ctrl-C."""
    if not isinstance(error, Exception):
        raise error


class WronglyAssumed(Exception):
    """A branch goes where the graph did not go on; the frame starts again, so nobody sees this."""


def check_assumptions(wanted: tuple[bool, ...], *conditions: Any) -> None:
    for truth, condition in zip(wanted, conditions):
        if bool(condition) is not truth:
            raise WronglyAssumed


def graph_failed(out: Any, tx: Any, original: Label | None, kept: Kept | None, set_state: Any) -> None:
    """The handler of the graph call; the stack holds the exception."""
    set_state(out, switched(tx))
    if original is None or kept is None:
        out.op("RERAISE", 0)
        return
    out.op("STORE_LOCAL", "___error")
    out.begin_call_of(must_be_error)
    out.op("LOAD_LOCAL", "___error")
    out.op("DELETE_LOCAL", "___error")      # or the error would hold the frame that holds it
    out.call(1)
    out.op("POP")
    emit_restore(out, kept)
    out.op("JUMP", target=original)


# ---------------------------------------------------------------- calling the original code
class Original:
    """Calls a code object as it was before it was rewritten, from a frame that has only begun.

    The code is not held: the entry that holds this is held by it.  It runs as a copy that the hook leaves alone.
    """

    def __init__(self, code: types.CodeType) -> None:
        self.code = weakref.ref(code)
        self.copy: types.CodeType | None = None

    def __call__(self, cells: tuple[types.CellType, ...], values: tuple[Any, ...]) -> Any:
        """`values` are the parameters in the order of the code's variables, ``*args`` and ``**kwargs`` last."""
        if self.copy is None:
            code = self.code()
            if code is None:
                raise RuntimeError("the function was deleted while it ran")
            self.copy = code.replace()
            marks.SKIPPED_CODE.add(self.copy, True)
        code = self.copy
        function = types.FunctionType(code, sys._getframe(1).f_globals, code.co_name, None, cells)
        count, only = code.co_argcount, code.co_kwonlyargcount
        names = dict(zip(code.co_varnames[count:count + only], values[count:]))
        rest = list(values[count + only:])
        extra = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ()
        try:
            return function(*values[:count], *extra, **names, **(rest[0] if rest else {}))
        except BaseException as error:
            forget_frame(error)
            raise


def forget_frame(error: BaseException) -> None:
    """Take the outermost frame out of a traceback: to the user, a frame and those that go on for it are one."""
    traceback = BaseException.__dict__["__traceback__"].__get__(error)
    BaseException.with_traceback(error, traceback.tb_next)


def leave_by_error(out: Any) -> None:
    """The stack holds an exception that a frame standing for this one raised."""
    out.op("STORE_LOCAL", "___error")
    out.begin_call_of(forget_frame)
    out.op("LOAD_LOCAL", "___error")
    out.call(1)
    out.op("POP")
    out.op("LOAD_LOCAL", "___error")
    out.op("DELETE_LOCAL", "___error")
    out.op("RERAISE", 0)


def original_code(out: Any, program: Program) -> None:
    """Call the original code with what the parameters hold, and return what it returns."""
    code = program.code or program.memo["assembled"]()
    out.begin_call_of(Original(code))
    for name in program.freevars:
        out.op("LOAD_CELL", name)
    out.op("BUILD_TUPLE", len(program.freevars))
    parameters = program.varnames[:program.nargs()]
    for name in parameters:
        out.op("LOAD_DEREF" if name in program.cellvars else "LOAD_LOCAL", name)
    out.op("BUILD_TUPLE", len(parameters))
    failed = out.label()
    with out.protected(failed, 0):
        out.call(2)
    out.op("RETURN")
    out.mark(failed)
    leave_by_error(out)
