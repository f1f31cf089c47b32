"""Lowering: the rules that write neutral ops as real instructions, and those all versions share.

A rule is ``rule(e, op)``; ``e`` is the assembler's emitter.  What a version lacks is spelled
with other instructions, or by calling a small function held as a constant.
"""
from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any

from minidynamo.code.program import Op
from minidynamo.code.readers import BINARY_SYMBOLS, CONVERSIONS, COUNTED, NAMED, SAME

Emitter = Any
Rule = Callable[[Emitter, Op], None]

INVERSE = {"true": "FALSE", "false": "TRUE", "none": "NOT_NONE", "not_none": "NONE"}


# ---- vocabulary
def bare(real: str) -> Rule:
    """An instruction without argument."""
    def rule(e: Emitter, op: Op) -> None:
        e.emit(real)
    return rule


def count(real: str) -> Rule:
    """The argument is written as the number it is."""
    def rule(e: Emitter, op: Op) -> None:
        e.emit(real, int(op.arg))
    return rule


def by_name(real: str, shift: int = 0, bits: int = 0) -> Rule:
    """The argument is an index into co_names, with flag bits below it."""
    def rule(e: Emitter, op: Op) -> None:
        e.emit(real, e.name(op.arg) << shift | bits)
    return rule


def by_local(real: str) -> Rule:
    def rule(e: Emitter, op: Op) -> None:
        e.emit(real, e.local(op.arg))
    return rule


def by_cell(real: str) -> Rule:
    def rule(e: Emitter, op: Op) -> None:
        e.emit(real, e.cell(op.arg))
    return rule


def by_deref(real: str) -> Rule:
    def rule(e: Emitter, op: Op) -> None:
        e.emit(real, e.deref(op.arg))
    return rule


def const(e: Emitter, value: object) -> None:
    e.emit("LOAD_CONST", e.const(value))


def call_with_top(e: Emitter, function: Callable[..., object]) -> None:
    """Replace the top of the stack by ``function(top)``."""
    e.need(2)
    if e.null_first:
        const(e, function)
        e.emit("PUSH_NULL")
    else:
        e.emit("PUSH_NULL")
        const(e, function)
    e.emit("SWAP", 3)
    e.rule("CALL", (1, ()))


def call_with(e: Emitter, function: Callable[..., object], n: int) -> None:
    """Replace the ``n`` top entries, as one tuple, by ``function(tuple)``."""
    e.emit("BUILD_TUPLE", n)
    call_with_top(e, function)


# ---- rules that need more than one instruction
def twice_not(e: Emitter, op: Op) -> None:
    """The truth of the top, where TO_BOOL does not exist."""
    e.emit("UNARY_NOT")
    e.emit("UNARY_NOT")


def jump(e: Emitter, op: Op) -> None:
    e.jump_to(op.target)


def jump_if_forward_only(e: Emitter, op: Op) -> None:
    """3.12 and later: a conditional jump backward hops over an unconditional one."""
    if op.target > e.index:
        e.emit(f"POP_JUMP_IF_{op.arg.upper()}", label=op.target)
        return
    over = ("over", e.index)
    e.emit(f"POP_JUMP_IF_{INVERSE[op.arg]}", label=over)
    e.jump_to(op.target)
    e.mark(over)


def for_iter(e: Emitter, op: Op) -> None:
    if op.target > e.index and not (e.FOR_TAIL and e.falls_in(op.target)):
        e.emit("FOR_ITER", label=("end", op.target) if e.FOR_TAIL else op.target)
        return
    end = ("end of", e.index)
    e.emit("FOR_ITER", label=end)

    def tail() -> None:
        e.handler = e.ops[op.target].handler
        e.mark(end)
        for name in e.FOR_TAIL:
            e.emit(name)
        e.jump_to(op.target)
    e.later(tail)


def send(e: Emitter, op: Op) -> None:
    target = e.ops[op.target]
    straight = op.target > e.index
    if straight and (not e.SEND_POPS or target.name == "END_SEND"):
        e.emit("SEND", label=("sent", op.target) if e.SEND_POPS else op.target)
        return
    label = ("sent by", e.index)
    e.emit("SEND", label=label)

    def tail() -> None:
        e.handler = target.handler
        e.mark(label)
        if e.SEND_POPS:             # the receiver is gone; None stands in for it
            const(e, None)
            e.emit("SWAP", 2)
        e.jump_to(op.target)
    e.later(tail)


def raise_(e: Emitter, op: Op) -> None:
    e.emit("RAISE_VARARGS", int(op.arg))


def unpack_ex(e: Emitter, op: Op) -> None:
    before, after = op.arg
    e.emit("UNPACK_EX", before | after << 8)


def binary(e: Emitter, op: Op) -> None:
    if op.arg == "[]":
        e.emit("BINARY_SUBSCR")
    else:
        e.emit("BINARY_OP", BINARY_SYMBOLS.index(op.arg))


def format_value(e: Emitter, op: Op) -> None:
    conversion, has_spec = op.arg
    e.emit("FORMAT_VALUE", CONVERSIONS.index(conversion) | bool(has_spec) << 2)


CONVERT: dict[object, Callable[..., object]] = {"s": str, "r": repr, "a": ascii}


def convert_value(e: Emitter, op: Op) -> None:
    call_with_top(e, CONVERT[op.arg])


def intrinsic(n: int, known: tuple[str, ...]) -> Rule:
    """``CALL_INTRINSIC_n``; ``known`` lists this version's, by number."""
    def rule(e: Emitter, op: Op) -> None:
        if op.arg in known:
            e.emit(f"CALL_INTRINSIC_{n}", known.index(op.arg))
        else:
            call_with(e, EMULATED[op.arg], n)
    return rule


def from_dict_or(load: Rule) -> Rule:
    """3.11: ``d[name]`` if the dict on top has it, else ``load``."""
    def rule(e: Emitter, op: Op) -> None:
        absent, done = ("absent", e.index), ("found", e.index)
        e.need(2)
        const(e, op.arg)
        e.emit("COPY", 2)
        e.emit("CONTAINS_OP", 0)
        e.emit("POP_JUMP_FORWARD_IF_FALSE", label=absent)
        const(e, op.arg)
        e.emit("BINARY_SUBSCR")
        e.emit("JUMP_FORWARD", label=done)
        e.mark(absent)
        e.emit("POP_TOP")
        load(e, op)
        e.mark(done)
    return rule


def cell_contents(e: Emitter, op: Op) -> None:
    e.need(2)
    const(e, op.arg)
    call_with(e, _contents, 2)


def new_cell(e: Emitter, op: Op) -> None:
    for part in ("PUSH_NULL", "LOAD_CONST") if e.null_first else ("LOAD_CONST", "PUSH_NULL"):
        e.rule(part, types.CellType if part == "LOAD_CONST" else None)
    e.need(1)
    e.rule("CALL", (0, ()))


# ---- functions that stand in for what a version lacks; each takes one tuple
def _contents(pair: Any) -> object:
    """What LOAD_DEREF gives (format_exc_unbound in ceval.c)."""
    try:
        return pair[0].cell_contents
    except ValueError:
        pass
    raise UnboundLocalError(f"cannot access local variable '{pair[1]}' where it is not associated with a value")


def _stop_iteration_error(one: Any) -> object:
    if isinstance(one[0], (StopIteration, StopAsyncIteration)):
        error = RuntimeError(f"generator raised {type(one[0]).__name__}")
        error.__cause__ = error.__context__ = one[0]
        return error
    return one[0]


def _type_params(pair: Any) -> object:
    pair[0].__type_params__ = pair[1]
    return pair[0]


def _unsupported(values: Any) -> object:
    raise NotImplementedError("this Python cannot run an operation of a newer one")


EMULATED: dict[object, Callable[[Any], object]] = {
    "STOPITERATION_ERROR": _stop_iteration_error,
    "TYPEVAR": lambda one: typing.TypeVar(one[0]),
    "PARAMSPEC": lambda one: typing.ParamSpec(one[0]),
    "TYPEVARTUPLE": lambda one: typing.TypeVarTuple(one[0]),
    "SUBSCRIPT_GENERIC": lambda one: typing.Generic[one[0]],    # type: ignore[index]
    "TYPEALIAS": _unsupported,
    "TYPEVAR_WITH_BOUND": lambda two: typing.TypeVar(two[0], bound=two[1]()),
    "TYPEVAR_WITH_CONSTRAINTS": lambda two: typing.TypeVar(two[0], *two[1]()),
    "SET_FUNCTION_TYPE_PARAMS": _type_params,
    "SET_TYPEPARAM_DEFAULT": _unsupported,
}


# ---- rules that 3.11, 3.12 and 3.13 share
COMMON: dict[str, Rule] = {
    **{name: bare(name) for name in SAME},
    **{name: count(name) for name in (*COUNTED, "IS_OP", "CONTAINS_OP", "CALL_FUNCTION_EX")},
    **{name: by_name(name) for name in NAMED},
    "LOAD_CONST": lambda e, op: const(e, op.arg),
    "POP": bare("POP_TOP"),
    "RETURN": bare("RETURN_VALUE"),
    "STORE_LOCAL": by_local("STORE_FAST"),
    "DELETE_LOCAL": by_local("DELETE_FAST"),
    "MAKE_CELL": by_cell("MAKE_CELL"),
    "NEW_CELL": new_cell,
    "CELL_CONTENTS": cell_contents,
    "LOAD_CELL": by_cell("LOAD_CLOSURE"),
    "LOAD_DEREF": by_deref("LOAD_DEREF"),
    "STORE_DEREF": by_deref("STORE_DEREF"),
    "DELETE_DEREF": by_deref("DELETE_DEREF"),
    "LOAD_GLOBAL": by_name("LOAD_GLOBAL", shift=1),
    "BINARY": binary,
    "UNPACK_EX": unpack_ex,
    "FORMAT_VALUE": format_value,
    "CONVERT_VALUE": convert_value,
    "MAKE_FUNCTION": count("MAKE_FUNCTION"),
    "RAISE": raise_,
    "JUMP": jump,
    "FOR_ITER": for_iter,
    "SEND": send,
}
