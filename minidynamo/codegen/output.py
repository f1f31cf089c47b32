"""emit(): the code that replaces a frame's."""
from __future__ import annotations

import sys
from types import CodeType
from typing import Any

import torch

from minidynamo.code import Label, assemble, live_locals
from minidynamo.code.ops import JUMP_EFFECT, NO_FALL_THROUGH, pops, pushes
from minidynamo.codegen.plan import effect_children
from minidynamo.codegen.restore import Restore
from minidynamo.codegen.resume import Tail, info_of, letters, resume_code
from minidynamo.interp.state import PreviousException, Scope
from minidynamo.model.variable import VariableTracker


def emit(trace: Any, lowered: Any, call: Any) -> CodeType:
    """Code for the whole trace: graph, restored values, effects, exit."""
    tx, plan = trace.tracer, trace.plan
    out = Restore(tx, plan)
    out.pos = trace.program.ops[0].pos
    original = check_cells(out, tx)
    if call is not None:
        run_graph(out, lowered, call)
    ambient(out, tx)
    if hasattr(trace.exit, "value"):
        if plan.effects:
            settle_all(out, tx)
            replay(out, tx)
        out.load(trace.exit.value)
        out.op("RETURN")
    else:
        break_exit(out, trace)
    if original is not None:
        original.index = out.include(trace.program.ops)[0].index
    return assemble(out.finish(trace.program))


def check_cells(out: Restore, tx: Any) -> Label | None:
    """Paths that led to one of the frame's own cells still do, others still do not; else the original code runs."""
    tx.settle_aliases()
    if not tx.entry_checks:
        return None
    original = out.label()
    for name, source, same in dict.fromkeys(tx.entry_checks):
        out.op("LOAD_CELL", name)
        source.load(out)
        out.op("IS_OP", not same)
        out.op("JUMP_IF", "false", original)
    return original


def run_graph(out: Restore, lowered: Any, call: Any) -> None:
    """Call the compiled graph and keep its results in locals."""
    out.begin_call()
    out.load_object_unchecked(call)
    out.callable_done()
    for node in lowered.inputs:
        if node.meta and node.meta.get("float_as_tensor"):
            out.begin_call()
            out.load_object_unchecked(scalar_tensor)
            out.callable_done()
            node.source.load(out)
            out.call(1)
        else:
            node.source.load(out)
    out.call(len(lowered.inputs))
    if not out.plan.outputs:
        out.op("POP")
        return
    out.op("UNPACK_SEQUENCE", len(out.plan.outputs))
    for at, node in enumerate(out.plan.outputs):
        name = out.outputs[node] = f"___g{at}"
        out.op("STORE_LOCAL", name)


def scalar_tensor(value: float) -> Any:
    """A Python float as graphs take it."""
    return torch.tensor(value, dtype=torch.float64)


def ambient(out: Restore, tx: Any) -> None:
    """Torch state that the trace leaves other than it found it (a graph may have been compiled without the switch)."""
    for setter, value in tx.ambient_changes():
        out.begin_call()
        out.load_object_unchecked(setter)
        out.callable_done()
        for part in value:
            out.load_object_unchecked(part)
        out.call(len(value))
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
        if not isinstance(value, Scope):
            values.append(value)
        values.extend(effect_children(tx, value))
    for value in values:
        out.settle(value)


def replay(out: Restore, tx: Any) -> None:
    for value in out.plan.effects:
        if isinstance(value, Scope):
            replay_scope(out, value)
        else:
            value.replay(out)


def replay_scope(out: Restore, scope: Scope) -> None:
    """Global writes: by name in the frame's own globals, by item elsewhere."""
    for name, value in scope.written.items():
        if scope.is_root:
            if value is not None:
                out.load(value)
                out.op("STORE_GLOBAL", name)
            elif name in scope.mapping:
                out.op("DELETE_GLOBAL", name)
            continue
        if value is None and name not in scope.mapping:
            continue
        if value is not None:
            out.load(value)
        out.load_object_unchecked(scope.mapping)
        out.load_const(name)
        out.op("STORE_SUBSCR" if value is not None else "DELETE_SUBSCR")


# ---------------------------------------------------------------- breaks
def break_exit(out: Restore, trace: Any) -> None:
    """Restore the stack, run the op that broke, hand over to a resume function for each way it can go."""
    tx, plan, leave, program = trace.tracer, trace.plan, trace.exit, trace.program
    op = program.ops[leave.index]
    out.pos = op.pos
    settle_all(out, tx)
    replay(out, tx)
    locals_ = keep_locals(out, plan)
    push_stack(out, plan.stack, leave.handled)
    stack = letters(plan.stack)
    if not leave.run_op:
        hand_over(out, trace, leave.index, stack, locals_)
        return
    failed, jumped = out.label(), out.label()
    if op.handler is not None:
        with out.protected(failed, op.handler.depth, op.handler.push_lasti):
            run_op(out, op, jumped)
    else:
        run_op(out, op, jumped)
    if op.name not in NO_FALL_THROUGH:
        hand_over(out, trace, leave.index + 1, after(stack, op), locals_)
    if op.name in JUMP_EFFECT:
        out.mark(jumped)
        effect = JUMP_EFFECT[op.name]
        hand_over(out, trace, op.target, stack[:len(stack) + effect] if effect < 0 else stack, locals_)
    if op.handler is not None:
        out.mark(failed)
        depth = op.handler.depth
        caught = stack[:depth] + ("v" if op.handler.push_lasti else "") + "v"
        hand_over(out, trace, op.handler.target, caught, locals_, lasti=op.handler.push_lasti)


def run_op(out: Restore, op: Any, jumped: Any) -> None:
    if op.name == "LOAD_CONST":
        out.load_object_unchecked(op.arg)
    else:
        out.op(op.name, op.arg, jumped if op.name in JUMP_EFFECT else None)


def after(stack: str, op: Any) -> str:
    """Stack letters once the op has fallen through."""
    taken = pops(op.name, op.arg)
    rest = stack[:len(stack) - taken]
    made = pushes(op.name, op.arg)
    special = AFTER.get(op.name)
    return rest + (special(stack, op) if special else "v" * made)


AFTER = {"PUSH_EXC_INFO": lambda stack, op: "ev", "PUSH_NULL": lambda stack, op: "n"}


def keep_locals(out: Restore, plan: Any) -> dict[str, str]:
    """Live locals in temporaries, by their own name."""
    kept = {}
    for name, value in plan.local.items():
        out.load(value)
        kept[name] = f"___l_{name}"
        out.op("STORE_LOCAL", kept[name])
    return kept


def push_stack(out: Restore, stack: list[VariableTracker], handled: VariableTracker | None) -> None:
    """The stack as it stood, exceptions being handled included."""
    active = active_exceptions(stack, handled)
    for entry in stack:
        if isinstance(entry, PreviousException):
            out.load(active.pop(0))
            out.op("PUSH_EXC_INFO")
            out.op("POP")
        else:
            out.load(entry)


def active_exceptions(stack: list[VariableTracker], handled: VariableTracker | None) -> list[VariableTracker]:
    """For each exception-info entry, the exception that was being handled above it."""
    entries = [e for e in stack if isinstance(e, PreviousException)]
    return [e.previous for e in entries[1:]] + ([handled] if entries else [])  # type: ignore[misc,list-item]


def hand_over(out: Restore, trace: Any, index: int, stack: str, locals_: dict[str, str], lasti: bool = False) -> None:
    """The stack holds what `stack` says; go on at op `index` of the program."""
    program = trace.program
    out.pos = trace.program.ops[trace.exit.index].pos
    names = take_stack(out, stack)
    index = follow(program, index)
    live = live_names(program, index, locals_)
    code = resume_code(program, index, stack, live)
    is_resume = info_of(program) is not None
    arguments = [n for n in names if n is not None]
    load_resume(out, program, code)
    for name in arguments:
        out.op("LOAD_LOCAL", name)
    for name in live:
        out.op("LOAD_LOCAL", locals_[name])
    count = len(arguments) + len(live)
    out.op("BUILD_TUPLE", count)
    if is_resume:
        make_tail(out)
    else:
        drive(out)


def follow(program: Any, index: int) -> int:
    """Past jumps that only lead elsewhere."""
    while program.ops[index].name in ("NOP", "JUMP"):
        index = program.ops[index].target if program.ops[index].name == "JUMP" else index + 1
    return index


def live_names(program: Any, index: int, locals_: dict[str, str]) -> tuple[str, ...]:
    live = live_locals(program)[index]
    return tuple(name for name in locals_ if name in live)


def take_stack(out: Restore, stack: str) -> list[str | None]:
    """Move the stack into temporaries, top first; exception info goes back to the thread."""
    names: list[str | None] = []
    for at in range(len(stack) - 1, -1, -1):
        letter = stack[at]
        name = f"___s{at}"
        if letter == "n":
            out.op("STORE_LOCAL", name)
            names.append(None)
        elif letter == "e":
            out.begin_call()
            out.load_object_unchecked(current_exception)
            out.callable_done()
            out.call(0)
            out.op("STORE_LOCAL", name)
            out.op("POP_EXCEPT")
            names.append(name)
        else:
            out.op("STORE_LOCAL", name)
            names.append(name)
    return names[::-1]


def current_exception() -> BaseException | None:
    return sys.exc_info()[1]


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
    out.begin_call()
    out.load_object_unchecked(Tail)
    out.callable_done()
    out.op("LOAD_LOCAL", "___tail")
    out.call(1)
    out.op("RETURN")


def drive(out: Restore) -> None:
    """Stack: function, arguments.  Call, and go on calling while a Tail comes back; return the rest."""
    again, done = out.label(), out.label()
    out.op("STORE_LOCAL", "___args")
    out.op("STORE_LOCAL", "___fn")
    out.mark(again)
    out.begin_call()
    out.op("LOAD_LOCAL", "___fn")
    out.callable_done()
    out.op("LOAD_LOCAL", "___args")
    out.op("CALL_FUNCTION_EX", False)
    out.op("STORE_LOCAL", "___r")
    out.begin_call()
    out.load_object_unchecked(type)
    out.callable_done()
    out.op("LOAD_LOCAL", "___r")
    out.call(1)
    out.load_object_unchecked(Tail)
    out.op("IS_OP", False)
    out.op("JUMP_IF", "false", done)
    out.op("LOAD_LOCAL", "___r")
    out.op("UNPACK_SEQUENCE", 2)
    out.op("STORE_LOCAL", "___fn")
    out.op("STORE_LOCAL", "___args")
    out.op("JUMP", target=again)
    out.mark(done)
    out.op("LOAD_LOCAL", "___r")
    out.op("RETURN")

