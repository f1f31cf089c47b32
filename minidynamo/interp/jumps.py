"""Handlers: jumps, loops, pattern matching, return."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.interp.assumptions import assumed
from minidynamo.interp.loop import RETURNED, handles
from minidynamo.interp.stack_ops import peek, pop
from minidynamo.interp.state import Frame
from minidynamo.model.variable import NotConstant
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.tensors import TensorVariable


@handles("JUMP")
def jump(tx: Any, frame: Frame, op: Any) -> None:
    frame.pc = op.target


@handles("JUMP_IF")
def jump_if(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    condition = op.arg
    if condition in ("none", "not_none"):
        taken = (value.__class__ is ConstantVariable and value.value is None) is (condition == "none")
    else:
        truth = assumed(tx, frame, op, value, frame.pc) if value.__class__ is TensorVariable else None
        taken = (decide(tx, value) if truth is None else truth) is (condition == "true")
    if taken:
        frame.pc = op.target


def decide(tx: Any, value: Any) -> bool:
    """The branch a condition takes; data-dependent ones stop with the branch as the reason."""
    if value.__class__ is ConstantVariable:
        return bool(value.value)
    result = value.nb_bool(tx)
    if result is None:
        return True
    try:
        return result.as_constant()
    except NotConstant:
        tx.stop(reasons.DATA_DEPENDENT_BRANCH, text=tx.where().text())


@handles("GET_ITER")
def get_iter(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(pop(tx, frame).tp_iter(tx))


@handles("FOR_ITER")
def for_iter(tx: Any, frame: Frame, op: Any) -> None:
    iterator = pop(tx, frame)
    frame.stack.append(iterator)
    item = iterator.tp_iternext(tx)
    if item is None:
        frame.stack.pop()
        frame.pc = op.target
    else:
        frame.stack.append(item)


@handles("RETURN")
def return_value(tx: Any, frame: Frame, op: Any) -> str:
    frame.result = frame.stack.pop()
    return RETURNED


@handles("MATCH_MAPPING")
def match_mapping(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    frame.stack.append(value)
    frame.stack.append(tx.wrap(bool(value.py_type().__flags__ & (1 << 6))))


@handles("MATCH_SEQUENCE")
def match_sequence(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    frame.stack.append(value)
    frame.stack.append(tx.wrap(bool(value.py_type().__flags__ & (1 << 5))))


@handles("MATCH_KEYS")
def match_keys(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(tx.match_keys(peek(tx, frame, 2), peek(tx, frame, 1)))


@handles("MATCH_CLASS")
def match_class(tx: Any, frame: Frame, op: Any) -> None:
    names, cls, subject = pop(tx, frame), pop(tx, frame), pop(tx, frame)
    frame.stack.append(tx.match_class(subject, cls, op.arg, names))
