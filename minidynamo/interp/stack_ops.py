"""Handlers: stack, constants, locals, cells."""
from __future__ import annotations

from typing import Any

from minidynamo.code import plain_name
from minidynamo.interp.loop import handles
from minidynamo.interp.state import NULL, Frame
from minidynamo.model.variable import LazyVariable, VariableTracker
from minidynamo.variables.cells import CellVariable


def pop(tx: Any, frame: Frame) -> VariableTracker:
    """The top of the stack, built."""
    value = frame.stack.pop()
    return value.real(tx) if value.__class__ is LazyVariable else value


def peek(tx: Any, frame: Frame, depth: int) -> VariableTracker:
    """The entry at `depth` (1 = top), built, left where it is."""
    value = frame.stack[-depth]
    if value.__class__ is LazyVariable:
        value = frame.stack[-depth] = value.real(tx)
    return value


def popn(tx: Any, frame: Frame, count: int) -> list[VariableTracker]:
    """The `count` topmost values, lowest first, built."""
    if not count:
        return []
    stack = frame.stack
    values = stack[-count:]
    del stack[-count:]
    return [v.real(tx) if v.__class__ is LazyVariable else v for v in values]


def popn_raw(frame: Frame, count: int) -> list[VariableTracker]:
    """As `popn`, lazy values left alone."""
    if not count:
        return []
    values = frame.stack[-count:]
    del frame.stack[-count:]
    return values


@handles("NOP")
def nop(tx: Any, frame: Frame, op: Any) -> None:
    pass


@handles("POP")
def pop_top(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.pop()


@handles("COPY")
def copy(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(frame.stack[-op.arg])


@handles("SWAP")
def swap(tx: Any, frame: Frame, op: Any) -> None:
    stack = frame.stack
    stack[-1], stack[-op.arg] = stack[-op.arg], stack[-1]


@handles("PUSH_NULL")
def push_null(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(NULL)


@handles("LOAD_CONST")
def load_const(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(tx.literal(op))


@handles("LOAD_LOCAL")
def load_local(tx: Any, frame: Frame, op: Any) -> None:
    value = frame.local.get(op.arg)
    if value is None:
        unbound_local(tx, op.arg)
    frame.stack.append(value)


def unbound_local(tx: Any, name: str) -> None:
    tx.raise_(UnboundLocalError,
              f"cannot access local variable '{plain_name(name)}' where it is not associated with a value")


@handles("LOAD_LOCAL_CLEAR")
def load_local_clear(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(frame.local.pop(op.arg, NULL))


@handles("STORE_LOCAL")
def store_local(tx: Any, frame: Frame, op: Any) -> None:
    value = frame.stack.pop()
    if value is NULL:
        frame.local.pop(op.arg, None)
    else:
        frame.local[op.arg] = value


@handles("DELETE_LOCAL")
def delete_local(tx: Any, frame: Frame, op: Any) -> None:
    if op.arg not in frame.local:
        unbound_local(tx, op.arg)
    del frame.local[op.arg]


@handles("LOAD_CELL")
def load_cell(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(frame.cells[op.arg])


def unbound_cell(tx: Any, frame: Frame, name: str) -> None:
    """format_exc_unbound in ceval.c; a resume function's cells are still the frame's own."""
    if name in frame.program.freevars and name not in frame.program.memo.get("own_cells", ()):
        tx.raise_(NameError, f"cannot access free variable '{name}' where it is not associated with a value"
                             " in enclosing scope")
    unbound_local(tx, name)


@handles("LOAD_DEREF")
def load_deref(tx: Any, frame: Frame, op: Any) -> None:
    value = frame.cells[op.arg].get(tx)
    if value is None:
        unbound_cell(tx, frame, op.arg)
    frame.stack.append(value)


@handles("STORE_DEREF")
def store_deref(tx: Any, frame: Frame, op: Any) -> None:
    frame.cells[op.arg].set(tx, frame.stack.pop())


@handles("DELETE_DEREF")
def delete_deref(tx: Any, frame: Frame, op: Any) -> None:
    cell = frame.cells[op.arg]
    if cell.get(tx) is None:
        unbound_cell(tx, frame, op.arg)
    cell.set(tx, None)


@handles("MAKE_CELL")
def make_cell(tx: Any, frame: Frame, op: Any) -> None:
    """CPython 3.12 puts the name's own cell in the new one, and forgets it."""
    frame.cells[op.arg] = CellVariable(frame.cells[op.arg], None)


@handles("CELL_CONTENTS")
def cell_contents(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame).get(tx)          # type: ignore[attr-defined]
    if value is None:
        unbound_local(tx, op.arg)
    frame.stack.append(value)


@handles("NEW_CELL")
def new_cell(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(CellVariable(None, None))
