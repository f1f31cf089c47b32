"""Handlers: operators, comparisons, subscripts, text, truth."""
from __future__ import annotations

import operator
from typing import Any

from minidynamo.interp.assumptions import assumed
from minidynamo.interp.loop import handles
from minidynamo.interp.stack_ops import peek, pop, popn
from minidynamo.interp.state import Frame
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import numbers, text
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.tensors import TensorVariable

FOLD_BINARY = {**numbers.BINARY, **numbers.INPLACE, "[]": operator.getitem}


@handles("BINARY")
def binary(tx: Any, frame: Frame, op: Any) -> None:
    right, left = pop(tx, frame), pop(tx, frame)
    if left.__class__ is ConstantVariable and right.__class__ is ConstantVariable:
        try:
            result = FOLD_BINARY[op.arg](left.value, right.value)
        except Exception as error:
            tx.raise_real(error)
        frame.stack.append(ConstantVariable(result))
        return
    frame.stack.append(numbers.binary(tx, op.arg, left, right))


@handles("UNARY")
def unary(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    if op.arg == "truth":
        jump = frame.ops[frame.pc]                  # 3.13 asks for the truth first
        known = None
        if jump.name == "JUMP_IF" and value.__class__ is TensorVariable:
            known = assumed(tx, frame, jump, value, frame.pc + 1)
        frame.stack.append(truth_value(tx, value) if known is None else ConstantVariable(known))
    elif op.arg == "not":
        frame.stack.append(logical_not(tx, value))
    else:
        frame.stack.append(numbers.unary(tx, op.arg, value))


def truth_value(tx: Any, value: Any) -> Any:
    result = value.nb_bool(tx)
    return tx.wrap(True) if result is None else result


def logical_not(tx: Any, value: Any) -> Any:
    result = value.nb_bool(tx)
    if result is None:
        return tx.wrap(False)
    negated = result.logical_not(tx) if hasattr(result, "logical_not") else None
    return tx.wrap(not result.as_constant()) if negated is None else negated


@handles("COMPARE")
def compare(tx: Any, frame: Frame, op: Any) -> None:
    right, left = pop(tx, frame), pop(tx, frame)
    symbol, to_bool = op.arg
    if left.__class__ is ConstantVariable and right.__class__ is ConstantVariable:
        try:
            frame.stack.append(ConstantVariable(cmp.COMPARE[symbol](left.value, right.value)))
        except TypeError as error:
            tx.raise_real(error)
        return
    result = cmp.compare(tx, symbol, left, right)
    frame.stack.append(truth_value(tx, result) if to_bool else result)


@handles("IS_OP")
def is_op(tx: Any, frame: Frame, op: Any) -> None:
    right, left = pop(tx, frame), pop(tx, frame)
    frame.stack.append(tx.wrap(cmp.is_same(tx, left, right) is not op.arg))


@handles("CONTAINS_OP")
def contains_op(tx: Any, frame: Frame, op: Any) -> None:
    container, item = pop(tx, frame), pop(tx, frame)
    result = truth_value(tx, cmp.contains(tx, container, item))
    frame.stack.append(logical_not(tx, result) if op.arg else result)


@handles("STORE_SUBSCR")
def store_subscr(tx: Any, frame: Frame, op: Any) -> None:
    value, owner, key = popn(tx, frame, 3)
    owner.mp_ass_subscript(tx, key, value)


@handles("DELETE_SUBSCR")
def delete_subscr(tx: Any, frame: Frame, op: Any) -> None:
    owner, key = popn(tx, frame, 2)
    owner.mp_ass_subscript(tx, key, None)


@handles("FORMAT_VALUE")
def format_value(tx: Any, frame: Frame, op: Any) -> None:
    conversion, has_spec = op.arg
    spec = pop(tx, frame).as_constant() if has_spec else ""
    value = text.convert(tx, pop(tx, frame), conversion)
    frame.stack.append(text.to_format(tx, value, spec))


@handles("CONVERT_VALUE")
def convert_value(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(text.convert(tx, pop(tx, frame), op.arg))


@handles("BUILD_STRING")
def build_string(tx: Any, frame: Frame, op: Any) -> None:
    parts = popn(tx, frame, op.arg)
    frame.stack.append(tx.join_text(parts))


@handles("GET_LEN")
def get_len(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(cmp.length(tx, peek(tx, frame, 1)))
