"""emit(): the code that replaces a frame's."""
from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import CellType, CodeType
from typing import Any

import torch

from minidynamo.code import Label, assemble, live_locals
from minidynamo.code.ops import JUMP_EFFECT, NO_FALL_THROUGH
from minidynamo.codegen import rerun
from minidynamo.codegen.restore import Restore
from minidynamo.codegen.resume import FIRST_COPY, Tail, first_and_rest, info_of, resume_code
from minidynamo.codegen.snapshot import emit_forget, emit_keep, what_to_keep
from minidynamo.codegen.stack import after, jumped, letters, push_stack, run_op, take_stack
from minidynamo.interp.breaks import uses_super
from minidynamo.interp.state import PreviousException
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import Local


def emit(trace: Any, lowered: Any, call: Any) -> CodeType:
    """Code for the whole trace: graph, restored values, effects, exit."""
    tx, plan = trace.tracer, trace.plan
    out = Restore(tx, plan)
    out.pos = trace.program.ops[0].pos
    original, failed, kept = check_entry(out, tx), None, None
    compute_numbers(out)
    if call is not None:
        kept = what_to_keep(tx)
        if kept is not None:
            original = original or out.label()
            emit_keep(out, kept)
        if kept is not None or rerun.switched(tx):
            failed = out.label()
        run_graph(out, lowered, call, failed)
        if tx.assumptions:
            check_assumptions(out, tx.assumptions, failed)
        if kept is not None:
            emit_forget(out, kept)
    ambient(out, tx)
    if hasattr(trace.exit, "value"):
        if plan.effects:
            settle_all(out, tx)
            replay(out, tx)
        out.load(trace.exit.value)
        out.op("RETURN")
    else:
        break_exit(out, trace)
    if failed is not None:
        out.mark(failed)
        rerun.graph_failed(out, tx, original, kept, set_state)
    if original is not None:
        out.mark(original)
        rerun.original_code(out, trace.program)
    return assemble(out.finish(trace.program))


def check_entry(out: Restore, tx: Any) -> Label | None:
    """What guards cannot see of a frame; else the original code runs.

    Its globals are those that were read (functions may share code), paths that led to one of its own cells still do,
    and others still do not.
    """
    tx.settle_aliases()
    scope = tx.root.scope
    if not tx.entry_checks and not scope.seen and not scope.written:
        return None
    original = out.label()
    if scope.seen or scope.written:
        out.begin_call_of(globals)
        out.call(0)
        out.load_object_unchecked(scope.mapping)
        out.op("IS_OP", False)
        out.op("JUMP_IF", "false", original)
    for name, source, same in dict.fromkeys(tx.entry_checks):
        out.op("LOAD_CELL", name)
        out.load_source(source)
        out.op("IS_OP", not same)
        out.op("JUMP_IF", "false", original)
    return original


def run_graph(out: Restore, lowered: Any, call: Any, failed: Label | None) -> None:
    """Call the compiled graph and keep its results in locals; its errors go to `failed`."""
    with out.protected(failed, 0) if failed is not None else contextlib.nullcontext():
        call_graph(out, lowered, call)
    if not out.plan.outputs:
        out.op("POP")
        return
    out.op("UNPACK_SEQUENCE", len(out.plan.outputs))
    for at, node in enumerate(out.plan.outputs):
        name = out.outputs[node] = f"___g{at}"
        out.op("STORE_LOCAL", name)


def call_graph(out: Restore, lowered: Any, call: Any) -> None:
    out.share_steps([node.source for node in lowered.inputs if node.source is not None])
    out.begin_call_of(call)
    for node in lowered.inputs:
        if node.meta and node.meta.get("float_as_tensor"):
            out.begin_call_of(scalar_tensor)
            out.load_source(node.source)
            out.call(1)
        else:
            out.load_source(node.source)
    out.call(len(lowered.inputs))
    out.steps = {step: name for step, name in out.steps.items() if name in out.written}


def check_assumptions(out: Restore, assumptions: list[Any], failed: Label | None) -> None:
    """Branches that were taken to go on are looked at before anything else is done."""
    assert failed is not None
    with out.protected(failed, 0):
        out.begin_call_of(rerun.check_assumptions)
        out.load_const(tuple(assumption.truth for assumption in assumptions))
        for assumption in assumptions:
            out.graph_output(assumption.value.node)
        out.call(1 + len(assumptions))
        out.op("POP")


def compute_numbers(out: Restore) -> None:
    """Sizes and numbers of the inputs that the new code needs, read before anything can change them."""
    for at, (expr, formula) in enumerate(out.plan.numbers.items()):
        out.begin_call_of(formula.function)
        for source, accessor in formula.reads:
            reader = READERS.get(accessor[0])
            if reader is None:
                out.load_source(source)
                continue
            out.begin_call_of(reader)
            out.load_source(source)
            for part in accessor[1:]:
                out.load_const(part)
            out.call(len(accessor))
        out.call(len(formula.reads))
        name = out.numbers[expr] = f"___k{at}"
        out.op("STORE_LOCAL", name)


READERS = {"size": torch.Tensor.size, "stride": torch.Tensor.stride, "storage_offset": torch.Tensor.storage_offset}


def scalar_tensor(value: float) -> Any:
    """A Python float as graphs take it."""
    return torch.tensor(value, dtype=torch.float64)


def ambient(out: Restore, tx: Any) -> None:
    """Torch state that the trace leaves other than it found it (a graph may have been compiled without the switch)."""
    set_state(out, tx.at_exit)


def set_state(out: Restore, settings: list[Any]) -> None:
    for setter, args in settings:
        out.begin_call_of(setter)
        for part in args:
            out.load_object_unchecked(part)
        out.call(len(args))
        out.op("POP")


# ---------------------------------------------------------------- effects
def settle_all(out: Restore, tx: Any) -> None:
    """Everything effects and exit need is loaded before the first effect changes the places it is loaded from."""
    plan = out.plan
    values: list[VariableTracker] = [*plan.stack, *plan.local.values()]
    for entry in plan.stack:
        if isinstance(entry, PreviousException):
            values.remove(entry)
    if tx.handled is not None:
        values.append(tx.handled)
    for value in plan.effects:
        if isinstance(value, VariableTracker):
            values.append(value)
        values.extend(value.effect_children(tx))
    for value in values:
        out.settle(value)


def replay(out: Restore, tx: Any) -> None:
    for value in out.plan.effects:
        value.replay(out)


# ---------------------------------------------------------------- breaks
def break_exit(out: Restore, trace: Any) -> None:
    """Restore the stack, run the op that broke, hand over to a resume function for each way it can go."""
    tx, plan, leave, program = trace.tracer, trace.plan, trace.exit, trace.program
    op = program.ops[leave.index]
    out.pos = op.pos
    settle_all(out, tx)
    replay(out, tx)
    locals_ = keep_locals(out, plan)
    put_locals(out, program, op, locals_)
    push_stack(out, plan.stack, leave.handled)
    stack = letters(plan.stack)
    if not leave.run_op:
        hand_over(out, trace, leave.index, stack, locals_)
        return
    let_go(out, trace, locals_)
    failed, landed = out.label(), out.label()
    handler = op.handler
    if op.name in ("LOAD_DEREF", "DELETE_DEREF") and op.arg in program.memo.get("own_cells", ()):
        check_bound(out, op.arg, contextlib.nullcontext() if handler is None
                    else out.protected(failed, handler.depth, handler.push_lasti))
    run_op(out, op, landed, contextlib.nullcontext() if handler is None
           else out.protected(failed, handler.depth, handler.push_lasti))
    if op.name not in NO_FALL_THROUGH:
        unbound = op.arg not in locals_ if op.name == "LOAD_LOCAL_CLEAR" else False
        hand_over(out, trace, leave.index + 1, after(stack, op, unbound), locals_after(op, stack, locals_))
    if op.name in JUMP_EFFECT:
        out.mark(landed)
        hand_over(out, trace, op.target, jumped(stack, op), locals_)
    if handler is not None:
        out.mark(failed)
        caught = stack[:handler.depth] + ("l" if handler.push_lasti else "") + "v"
        hand_over(out, trace, handler.target, caught, locals_)


def let_go(out: Restore, trace: Any, locals_: dict[str, str]) -> None:
    """What the op meets on the stack is held by the stack alone: an op that drops it drops the object.

    Left are the locals to hand over, what the op finds by name, and parameters that still are what they were.
    """
    program, local = trace.program, trace.exit.local
    names = dict.fromkeys(out.stored_locals())
    for name in program.varnames[:program.nargs()]:
        if getattr(local.get(name), "source", None) != Local(name) and name not in program.cellvars:
            names[name] = None
    kept = {*locals_.values(), *read_by_name(program, program.ops[trace.exit.index])}
    empty(out, [name for name in names if name not in kept])


def check_bound(out: Restore, name: str, protect: Any) -> None:
    """In a resume function the frame's own cell is a free variable: CPython's words for an empty one would be others."""
    bound = out.label()
    out.begin_call_of(unbound_error)
    out.op("LOAD_CELL", name)
    out.load_const(name)
    out.call(2)
    out.op("COPY", 1)
    out.op("JUMP_IF", "none", bound)
    with protect:
        out.op("RAISE", 1)
    out.mark(bound)
    out.op("POP")


def unbound_error(cell: CellType, name: str) -> UnboundLocalError | None:
    """What reading an empty cell raises (format_exc_unbound in ceval.c); the caller raises it, so no frame of ours shows."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        pass
    else:
        return None
    return UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")


def keep_locals(out: Restore, plan: Any) -> dict[str, str]:
    """Live locals in temporaries, by their own name."""
    kept = {}
    for name, value in plan.local.items():
        out.load(value)
        kept[name] = f"___l_{name}"
        out.op("STORE_LOCAL", kept[name])
    return kept


def put_locals(out: Restore, program: Any, op: Any, locals_: dict[str, str]) -> None:
    """What the op finds by name rather than on the stack: its own local, and the first one for a bare ``super()``."""
    for name in read_by_name(program, op):
        if name in program.cellvars or name in program.freevars:
            continue
        if name in locals_:
            out.op("LOAD_LOCAL", locals_[name])
        else:
            out.op("PUSH_NULL")
        out.op("STORE_LOCAL", name)


def read_by_name(program: Any, op: Any) -> list[str]:
    names = [op.arg] if op.name in READ_LOCAL else []
    if op.name == "CALL" and uses_super(program):
        names.append(program.first_argument())
    return names


def locals_after(op: Any, stack: str, locals_: dict[str, str]) -> dict[str, str]:
    """Where the locals are once the op has run."""
    if op.name == "STORE_LOCAL" and stack[-1] == "v":
        return {**locals_, op.arg: op.arg}
    if op.name in ("STORE_LOCAL", "DELETE_LOCAL", "LOAD_LOCAL_CLEAR"):
        return {name: place for name, place in locals_.items() if name != op.arg}
    return locals_


READ_LOCAL = frozenset({"LOAD_LOCAL", "LOAD_LOCAL_CLEAR", "DELETE_LOCAL"})


def hand_over(out: Restore, trace: Any, index: int, stack: str, locals_: dict[str, str]) -> None:
    """The stack holds what `stack` says; go on at op `index` of the program."""
    program = trace.program
    out.pos = program.ops[trace.exit.index].pos
    names = take_stack(out, stack)
    index = follow(program, index)
    live = live_names(trace, index, locals_)
    code = resume_code(program, index, stack, live, trace.exit.plain(trace.tracer.tape))
    info = info_of(program)
    root = program if info is None else info.root
    first, rest = first_and_rest(root, live)
    load_resume(out, program, code)
    for name in first:
        if name == FIRST_COPY:
            out.op("LOAD_DEREF", root.varnames[0])
        else:
            out.op("LOAD_LOCAL", locals_[name])
    for name in names:
        out.op("LOAD_LOCAL", name)
    for name in rest:
        out.op("LOAD_LOCAL", locals_[name])
    out.op("BUILD_TUPLE", len(first) + len(names) + len(rest))
    forget_locals(out, program)
    if info is not None:
        make_tail(out)
    else:
        drive(out)


def follow(program: Any, index: int) -> int:
    """Past jumps that only lead elsewhere."""
    while program.ops[index].name in ("NOP", "JUMP"):
        index = program.ops[index].target if program.ops[index].name == "JUMP" else index + 1
    return index


def live_names(trace: Any, index: int, locals_: dict[str, str]) -> tuple[str, ...]:
    live, kept = live_locals(trace.program)[index], trace.plan.kept
    return tuple(name for name in locals_ if (name in live or name in kept) and name != FIRST_COPY)


def load_resume(out: Restore, program: Any, code: CodeType) -> None:
    """A resume function with this frame's globals, and its cells as closure."""
    cells = (*program.cellvars, *program.freevars) if info_of(program) is None else program.freevars
    for name in cells:
        out.op("LOAD_CELL", name)
    if cells:
        out.op("BUILD_TUPLE", len(cells))
    out.load_object_unchecked(code)
    out.op("MAKE_FUNCTION", 8 if cells else 0)


def make_tail(out: Restore) -> None:
    """Stack: function, arguments.  Return them as a Tail."""
    out.op("BUILD_TUPLE", 2)
    out.op("STORE_LOCAL", "___tail")
    out.begin_call_of(Tail)
    out.op("LOAD_LOCAL", "___tail")
    out.call(1)
    empty(out, ["___tail"])
    out.op("RETURN")


def forget_locals(out: Restore, program: Any) -> None:
    """The resume function has taken over: nothing else may be kept alive by this frame (graph outputs, for one).

    Stack: function, arguments, left as they are.
    """
    names = dict.fromkeys(n for n in program.varnames[:program.nargs()] if n not in program.cellvars)
    names.update(dict.fromkeys(out.stored_locals()))
    empty(out, names)


def empty(out: Restore, names: Iterable[str]) -> None:
    """A traceback may keep this frame, as one that it shows or as the caller of one; nothing else must live by it."""
    for name in names:
        out.op("PUSH_NULL")
        out.op("STORE_LOCAL", name)


def drive(out: Restore) -> None:
    """Stack: function, arguments.  Call, and go on calling while a Tail comes back; return the rest.

    To the user this frame and the resume functions are one: an exception shows the one it left from only.
    """
    again, done, failed = out.label(), out.label(), out.label()
    out.op("STORE_LOCAL", "___args")
    out.op("STORE_LOCAL", "___fn")
    out.mark(again)
    out.begin_call()
    out.op("LOAD_LOCAL", "___fn")
    out.callable_done()
    out.op("LOAD_LOCAL", "___args")
    with out.protected(failed, 0):
        out.op("CALL_FUNCTION_EX", False)
    out.op("STORE_LOCAL", "___r")
    out.begin_call_of(type)
    out.op("LOAD_LOCAL", "___r")
    out.call(1)
    out.load_object_unchecked(Tail)
    out.op("IS_OP", False)
    out.op("JUMP_IF", "false", done)
    out.op("LOAD_LOCAL", "___r")
    out.op("PUSH_NULL")
    out.op("STORE_LOCAL", "___r")
    out.op("UNPACK_SEQUENCE", 2)
    out.op("STORE_LOCAL", "___fn")
    out.op("STORE_LOCAL", "___args")
    out.op("JUMP", target=again)
    out.mark(done)
    out.op("LOAD_LOCAL", "___r")
    empty(out, ("___args", "___fn", "___r"))
    out.op("RETURN")
    out.mark(failed)
    empty(out, ("___args", "___fn"))
    rerun.leave_by_error(out)

