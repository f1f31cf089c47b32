"""Readers: the vocabulary in which each version's READ table is written.

A row says which neutral ops one real instruction stands for.  ``FIXED`` rows do not look at
the argument, ``READ`` rows compute from it, ``JUMP`` rows add a target; the rest are the few
instructions that only exist for CPython's own machinery.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

Pair = tuple[str, object]
Pairs = tuple[Pair, ...]

FIXED, READ, JUMP, DROP, RESUME, MAKE_CELL, END_FOR, CALL, CALL_KW, KW_NAMES, ATTRIBUTE = range(11)

# BINARY_OP's symbols, in CPython's order: the in-place forms are the plain ones plus "="
_PLAIN = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")
BINARY_SYMBOLS = _PLAIN + tuple(symbol + "=" for symbol in _PLAIN)
COMPARE_SYMBOLS = ("<", "<=", "==", "!=", ">", ">=")
CONVERSIONS = ("", "s", "r", "a")


class View(NamedTuple):
    """What readers look names up in."""

    consts: tuple[object, ...]
    names: tuple[str, ...]
    slots: tuple[str, ...]          # locals, cells and free variables: CPython's "localsplus"
    cells: frozenset[int]           # the slots that hold a cell


class Row(NamedTuple):
    """How to read one real opcode."""

    kind: int
    ops: Pairs = ()                                         # FIXED: all; JUMP: before the jump
    read: Callable[[View, int], Pairs] | None = None        # READ
    jump: Pair = ("", None)                                 # JUMP
    after: Pairs = ()                                       # JUMP: on falling through
    sign: int = 0                                           # JUMP: 1 forward, -1 backward


def _pairs(ops: Iterable[str | Pair]) -> Pairs:
    return tuple(op if isinstance(op, tuple) else (op, None) for op in ops)


def fixed(*ops: str | Pair) -> Row:
    """The same ops whatever the argument."""
    return Row(FIXED, ops=_pairs(ops))


def plain(*names: str) -> dict[str, Row]:
    """Opcodes without argument that keep their name."""
    return {name: fixed(name) for name in names}


def read(function: Callable[[View, int], Pairs]) -> Row:
    """Ops computed from the tables and the argument."""
    return Row(READ, read=function)


def number(name: str) -> Row:
    """The argument is a plain number."""
    return read(lambda view, arg: ((name, arg),))


def numbers(*names: str) -> dict[str, Row]:
    return {name: number(name) for name in names}


def flag(name: str) -> Row:
    """The argument is a truth value."""
    return read(lambda view, arg: ((name, bool(arg)),))


def choice(name: str, values: tuple[object, ...]) -> Row:
    """The argument is an index into a fixed table."""
    return read(lambda view, arg: ((name, values[arg]),))


def name_of(name: str) -> Row:
    """The argument is an index into co_names."""
    return read(lambda view, arg: ((name, view.names[arg]),))


def names_of(*names: str) -> dict[str, Row]:
    return {name: name_of(name) for name in names}


def slot(name: str) -> Row:
    """The argument is a slot of the frame."""
    return read(lambda view, arg: ((name, view.slots[arg]),))


def slots(*names: str) -> dict[str, Row]:
    return {name: slot(name) for name in names}


def constant(*after: str | Pair) -> Row:
    """A constant, then fixed ops."""
    rest = _pairs(after)
    return read(lambda view, arg: (("LOAD_CONST", view.consts[arg]), *rest))


def jump(name: str, arg: object = None, *, sign: int = 1,
         before: tuple[str | Pair, ...] = (), after: tuple[str | Pair, ...] = ()) -> Row:
    return Row(JUMP, ops=_pairs(before), jump=(name, arg), after=_pairs(after), sign=sign)


def unpack_ex(view: View, arg: int) -> Pairs:
    return (("UNPACK_EX", (arg & 0xFF, arg >> 8)),)


def format_value(view: View, arg: int) -> Pairs:
    return (("FORMAT_VALUE", (CONVERSIONS[arg & 3], bool(arg & 4))),)


def global_null_first(view: View, arg: int) -> Pairs:
    load = ("LOAD_GLOBAL", view.names[arg >> 1])
    return (("PUSH_NULL", None), load) if arg & 1 else (load,)


def global_null_last(view: View, arg: int) -> Pairs:
    load = ("LOAD_GLOBAL", view.names[arg >> 1])
    return (load, ("PUSH_NULL", None)) if arg & 1 else (load,)


def attr_or_method(view: View, arg: int) -> Pairs:
    return (("LOAD_METHOD" if arg & 1 else "LOAD_ATTR", view.names[arg >> 1]),)


def super_attr(view: View, arg: int) -> Pairs:
    return (("LOAD_SUPER_ATTR", (view.names[arg >> 2], bool(arg & 1), bool(arg & 2))),)


# ---- rows that 3.11, 3.12 and 3.13 share
# Ops that are called the same there and here: without an argument, with a number, with a name.
SAME = ("NOP", "PUSH_NULL", "GET_ITER", "GET_YIELD_FROM_ITER", "GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_KEYS",
        "PUSH_EXC_INFO", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "WITH_EXCEPT_START", "GET_AITER", "GET_ANEXT",
        "BEFORE_ASYNC_WITH", "BEFORE_WITH", "END_ASYNC_FOR", "STORE_SUBSCR", "DELETE_SUBSCR", "LOAD_BUILD_CLASS",
        "LOAD_ASSERTION_ERROR", "RETURN_GENERATOR", "SETUP_ANNOTATIONS", "POP_EXCEPT")
COUNTED = ("COPY", "SWAP", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_STRING",
           "BUILD_SLICE", "LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE",
           "UNPACK_SEQUENCE", "MATCH_CLASS", "RERAISE", "GET_AWAITABLE")
NAMED = ("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "STORE_ATTR", "DELETE_ATTR",
         "IMPORT_NAME", "IMPORT_FROM")
COMMON: dict[str, Row] = {
    **plain(*SAME),
    **numbers(*COUNTED),
    **names_of(*NAMED),
    **slots("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"),
    "POP_TOP": fixed("POP"),
    "RETURN_VALUE": fixed("RETURN"),
    "YIELD_VALUE": fixed(("YIELD", 1)),
    "UNARY_NEGATIVE": fixed(("UNARY", "-")),
    "UNARY_INVERT": fixed(("UNARY", "~")),
    "UNARY_NOT": fixed(("UNARY", "not")),
    "BINARY_SUBSCR": fixed(("BINARY", "[]")),
    "BINARY_OP": choice("BINARY", BINARY_SYMBOLS),
    "IS_OP": flag("IS_OP"),
    "CONTAINS_OP": flag("CONTAINS_OP"),
    "CALL_FUNCTION_EX": flag("CALL_FUNCTION_EX"),
    "RAISE_VARARGS": number("RAISE"),
    "UNPACK_EX": read(unpack_ex),
    "LOAD_CONST": constant(),
    "LOAD_FAST": slot("LOAD_LOCAL"),
    "STORE_FAST": slot("STORE_LOCAL"),
    "DELETE_FAST": slot("DELETE_LOCAL"),
    "CALL": Row(CALL),
    "JUMP_FORWARD": jump("JUMP"),
    "JUMP_BACKWARD": jump("JUMP", sign=-1),
    "JUMP_BACKWARD_NO_INTERRUPT": jump("JUMP", sign=-1),
    "FOR_ITER": jump("FOR_ITER"),
    "SEND": jump("SEND"),
    "CACHE": Row(DROP),
    "EXTENDED_ARG": Row(DROP),      # decode folds it into the next argument
    "COPY_FREE_VARS": Row(DROP),
    "MAKE_CELL": Row(MAKE_CELL),
    "RESUME": Row(RESUME),
}
