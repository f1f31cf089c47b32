"""Handlers: building and unpacking containers."""
from __future__ import annotations

from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.code import null_first
from minidynamo.interp.loop import handles
from minidynamo.interp.stack_ops import peek, pop, popn, popn_raw
from minidynamo.interp.state import Frame
from minidynamo.model.variable import real
from minidynamo.protocol import iters
from minidynamo.variables.exception_groups import prepare_reraise
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.ranges import SliceVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable
from minidynamo.variables.sets import SetVariable


@handles("BUILD_TUPLE")
def build_tuple(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(TupleVariable(popn_raw(frame, op.arg)))


@handles("BUILD_LIST")
def build_list(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(ListVariable(popn_raw(frame, op.arg)))


@handles("BUILD_SET")
def build_set(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(SetVariable.of_items(tx, popn(tx, frame, op.arg)))


@handles("BUILD_MAP")
def build_map(tx: Any, frame: Frame, op: Any) -> None:
    items = popn(tx, frame, 2 * op.arg)
    frame.stack.append(DictVariable.of_pairs(tx, list(zip(items[::2], items[1::2]))))


@handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(tx: Any, frame: Frame, op: Any) -> None:
    keys = pop(tx, frame)
    values = popn(tx, frame, op.arg)
    frame.stack.append(DictVariable.of_pairs(tx, list(zip([real(tx, k) for k in keys.items], values))))


@handles("BUILD_SLICE")
def build_slice(tx: Any, frame: Frame, op: Any) -> None:
    parts = popn(tx, frame, op.arg)
    frame.stack.append(SliceVariable(*parts, *[tx.wrap(None)] * (3 - op.arg)))


@handles("LIST_APPEND")
def list_append(tx: Any, frame: Frame, op: Any) -> None:
    value = frame.stack.pop()
    peek(tx, frame, op.arg).append(tx, value)


@handles("SET_ADD")
def set_add(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    peek(tx, frame, op.arg).add(tx, value)


@handles("MAP_ADD")
def map_add(tx: Any, frame: Frame, op: Any) -> None:
    value, key = pop(tx, frame), pop(tx, frame)
    peek(tx, frame, op.arg).set_item(tx, key, value)


@handles("LIST_EXTEND")
def list_extend(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    if not iters.has_iter(value):
        tx.raise_(TypeError, f"Value after * must be an iterable, not {tp_name(value.py_type())}")
    peek(tx, frame, op.arg).extend(tx, value)


@handles("SET_UPDATE")
def set_update(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    peek(tx, frame, op.arg).update(tx, value)


@handles("DICT_UPDATE")
def dict_update(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    if not hasattr(value.py_type(), "keys"):
        tx.raise_(TypeError, f"'{tp_name(value.py_type())}' object is not a mapping")
    peek(tx, frame, op.arg).update(tx, value)


@handles("DICT_MERGE")
def dict_merge(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    target, function = peek(tx, frame, op.arg), peek(tx, frame, op.arg + (2 if null_first else 3))
    if not hasattr(value.py_type(), "keys"):
        tx.raise_(TypeError, f"{function.shown_name()} argument after ** must be a mapping, not {tp_name(value.py_type())}")
    target.merge(tx, value, function)


@handles("UNPACK_SEQUENCE")
def unpack_sequence(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.extend(reversed(iters.unpack(tx, pop(tx, frame), op.arg)))


@handles("UNPACK_EX")
def unpack_ex(tx: Any, frame: Frame, op: Any) -> None:
    before, middle, after = iters.unpack_ex(tx, pop(tx, frame), *op.arg)
    frame.stack.extend(reversed([*before, ListVariable(middle), *after]))


@handles("INTRINSIC_1")
def intrinsic_1(tx: Any, frame: Frame, op: Any) -> None:
    if op.arg == "LIST_TO_TUPLE":
        frame.stack.append(TupleVariable(list(pop(tx, frame).items)))
    elif op.arg == "STOPITERATION_ERROR":
        stop_iteration_error(tx, frame)
    else:
        tx.stop_op(op)


def stop_iteration_error(tx: Any, frame: Frame) -> None:
    """gen_close and PEP 479: StopIteration inside a generator becomes RuntimeError."""
    exc = pop(tx, frame)
    if not issubclass(exc.py_type(), StopIteration):
        frame.stack.append(exc)
        return
    frame.stack.append(tx.generator_raised_stop(exc))


@handles("INTRINSIC_2")
def intrinsic_2(tx: Any, frame: Frame, op: Any) -> None:
    if op.arg != "PREP_RERAISE_STAR":
        tx.stop_op(op)
    raised, original = pop(tx, frame), pop(tx, frame)
    frame.stack.append(prepare_reraise(tx, original, [real(tx, e) for e in raised.items]))
