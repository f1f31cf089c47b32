"""The step loop: dispatch, marks and rewinds in the frame being traced, inlining, unwinding."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo import reasons
from minidynamo.interp.breaks import why_unbreakable
from minidynamo.interp.state import Frame
from minidynamo.model.services import service
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import LazyVariable, NotConstant, VariableTracker, real
from minidynamo.observe import say, wants
from minidynamo.protocol.calls import bind
from minidynamo.reasons import Stop
from minidynamo.sources import Cell, Local
from minidynamo.variables import tracebacks
from minidynamo.variables.cells import CellVariable
from minidynamo.variables.constants import ConstantVariable

Handler = Callable[[Any, Frame, Any], Any]

HANDLERS: dict[str, Handler] = {}
RETURNED = "returned"
YIELDED = "yielded"
CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Declare the handler ``(tx, frame, op)`` of neutral ops; it returns None, RETURNED or YIELDED."""
    def enter(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"two handlers for {name}")
            HANDLERS[name] = handler
        return handler
    return enter


def unknown(tx: Any, frame: Frame, op: Any) -> None:
    tx.stop(reasons.UNSUPPORTED_OP, opcode=op.name)


def prepare(program: Any) -> None:
    """Put each op's handler beside it, once per program."""
    told = wants("instructions")
    if program.memo.get("told") is not told:
        program.memo["told"] = told
        for op in program.ops:
            handler = HANDLERS.get(op.name, unknown)
            op.cache = telling(handler) if told else handler


def telling(handler: Handler) -> Handler:
    """The handler, with a line of log before it."""
    def run_told(tx: Any, frame: Frame, op: Any) -> Any:
        say("instructions", f"{'  ' * frame.depth}{frame.program.name}:{op.pos.lineno}  {op!r}  {frame.stack[-4:]}")
        return handler(tx, frame, op)
    return run_told


# ---------------------------------------------------------------- the frame being traced
def enter_root(tx: Any) -> Frame:
    """Entry state: arguments as lazy values, cells with their contents."""
    frame, program = tx.root, tx.program
    prepare(program)
    tx.frame = frame
    frame.is_root = True
    values = tx.entry_locals
    own_cells = set(program.cellvars) | set(program.freevars)
    for name in program.varnames[:program.nargs()]:
        if name in values and name not in own_cells:
            frame.local[name] = LazyVariable(values[name], Local(name))
    for name in own_cells:
        contents = LazyVariable(values[name], Local(name, is_cell=True)) if name in values else None
        frame.cells[name] = CellVariable(contents, Cell(name))
    for name, cell in zip(program.freevars, tx.options.closure):
        tx.enter(cell, frame.cells[name])
    return frame


def run_root(tx: Any, Return: Any, Break: Any, Skip: Any) -> Any:
    """Run the traced frame to its exit; a Stop rewinds the one instruction it happened in."""
    frame = enter_root(tx)
    ops, journal = frame.ops, tx.journal
    heads = tx.options.resume_loops
    while True:
        index = frame.pc
        op = frame.op = ops[index]
        frame.pc = index + 1
        tx.root_step += 1
        mark, guard_mark, saved, handled = journal.mark(), tx.guards.mark(), frame.stack[:], tx.handled
        try:
            if tx.stop_at and tx.root_step in tx.stop_at:
                raise tx.stop_at[tx.root_step]
            if index in heads:
                raise Stop(reasons.LOOP_HEAD, {}, tx.where())
            tx.steps += 1
            if tx.steps > tx.last_step:
                tx.out_of_steps()
            result = op.cache(tx, frame, op)
        except Raised as raised:
            tx.frame = frame
            note_passage(tx, frame, op, raised)
            if op.handler is not None:
                unwind(tx, frame, op, raised)
                continue
            stop = Stop(reasons.UNCAUGHT_EXCEPTION, describe(raised.exc), tx.where())
        except Stop as caught:
            stop = caught.with_traceback(None)     # its frames would keep the user's objects alive
        except RecursionError:
            stop = Stop(reasons.RECURSION_DEPTH, {"depth": "Python's own limit"}, None)
        except NotConstant as unknown:         # a meaning needed the very value of something that has none yet
            value, where = unknown.args[0], tx.where()
            if value.kind == "symbolic number":
                stop = Stop(reasons.DATA_DEPENDENT_SHAPE_TEST, {"text": where.text(), "guard": str(value.value)}, where)
            else:
                kind = f"{value.kind} ({value.py_type().__name__})"
                stop = Stop(reasons.OPAQUE_VALUE, {"text": "its value", "kind": kind}, where)
        else:
            if result is None:
                continue
            if result is RETURNED:
                return Return(frame.result)
            stop = Stop(reasons.UNSUPPORTED_OP, {"opcode": op.name}, tx.where())
        unbreakable = why_unbreakable(tx, frame, index, stop)
        if unbreakable is not None:
            return Skip(unbreakable)
        journal.rewind(mark)
        tx.guards.rewind(guard_mark)           # what only the abandoned op asked is no fact of this trace
        frame.stack[:], frame.pc, tx.handled, tx.frame = saved, index, handled, frame
        run_op = not (stop.reason is reasons.LOOP_HEAD and op.name != "FOR_ITER")
        return Break(stop, index, list(frame.stack), dict(frame.local), tx.handled, run_op)


def describe(exc: Any) -> dict[str, str]:
    return {"type": exc.py_type().__name__, "message": ", ".join(map(repr, exc.shown_args()))}


# ---------------------------------------------------------------- inlined frames
def run(tx: Any, frame: Frame) -> str:
    """Run an inlined frame until it returns or yields; user exceptions leave as Raised."""
    ops = frame.ops
    caller, tx.frame = tx.frame, frame
    try:
        while True:
            op = frame.op = ops[frame.pc]
            frame.pc += 1
            tx.steps += 1
            try:
                result = op.cache(tx, frame, op)
            except Raised as raised:
                tx.frame = frame
                note_passage(tx, frame, op, raised)
                if op.handler is None:
                    if raised.exc.source is not None:
                        tx.stop(reasons.RAISE_EXISTING, type=raised.exc.py_type().__name__)
                    raise
                unwind(tx, frame, op, raised)
                continue
            if result is not None:
                return result
            if tx.steps > tx.last_step:
                tx.out_of_steps()
    finally:
        tx.frame = caller


def note_passage(tx: Any, frame: Frame, op: Any, raised: Raised) -> None:
    """The ``error`` label of ceval.c: the traceback grows, unless an exception is only passed on."""
    if op.name != "RERAISE" and not (op.name == "RAISE" and op.arg == 0):
        tracebacks.passed(tx, raised.exc, frame, op.pos.lineno)


def unwind(tx: Any, frame: Frame, op: Any, raised: Raised) -> None:
    """exception_unwind in ceval.c: cut the stack, push lasti if asked, push the exception, jump."""
    target, depth, push_lasti = op.handler
    del frame.stack[depth:]
    if push_lasti:
        frame.stack.append(LastInstruction(frame.op))
    frame.stack.append(raised.exc)
    frame.pc = target


class LastInstruction(ConstantVariable):
    """The offset that lies below an exception on the stack, for RERAISE; the op at it."""

    __slots__ = ("op",)

    def __init__(self, op: Any) -> None:
        super().__init__(0)
        self.op = op


def inline(tx: Any, fn: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """Call a Python function inside the trace; generators give a generator value."""
    if tx.frame.depth >= tx.config.max_inline_depth:
        tx.stop(reasons.RECURSION_DEPTH, depth=tx.frame.depth)
    frame = make_frame(tx, fn, args, kwargs)
    flags = frame.program.flags
    if flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        tx.stop(reasons.ASYNC_CODE, text=fn.name)
    if flags & CO_GENERATOR:
        return tx.make_generator(frame, fn, args, kwargs)
    handled = tx.handled
    run(tx, frame)
    tx.handled = handled
    return real(tx, frame.result)


@service
def run_generator(tx: Any, frame: Frame, error: Raised | None, fresh: bool) -> str:
    """Go on with a suspended frame; `error` is raised at the point where it stands."""
    frame.caller = tx.frame
    frame.depth = tx.frame.depth + 1
    if frame.depth >= tx.config.max_inline_depth:
        tx.stop(reasons.RECURSION_DEPTH, depth=frame.depth)
    if error is not None:
        if frame.handled is not None:           # gen_send_ex2: in an except clause of the generator's own
            tx.chain(error.exc)
        tracebacks.passed(tx, error.exc, frame, frame.program.firstlineno if frame.op is None else frame.op.pos.lineno)
        if fresh or frame.op is None or frame.op.handler is None:
            raise error
        unwind(tx, frame, frame.op, error)
    return run(tx, frame)


def make_frame(tx: Any, fn: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> Frame:
    program = tx.program_of(fn.code)
    prepare(program)
    frame = Frame(program, fn.scope(tx), tx.frame, fn)
    local = bind(tx, fn, args, kwargs)
    for name in program.cellvars:
        frame.cells[name] = CellVariable(local.pop(name, None), None)
    frame.local = local
    frame.cells.update(zip(program.freevars, fn.closure(tx)))
    return frame
