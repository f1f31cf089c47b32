"""Neutral ops: one instruction set for Python 3.11, 3.12 and 3.13.

Each row is ``NAME: (arg, pops, pushes)``.  ``arg`` says in words what ``Op.arg`` holds.
``pops`` and ``pushes`` are integers, or functions of ``Op.arg``; they describe the path that
falls through.  Ops that jump also list the effect on the jump in ``JUMP_EFFECT``.

Names are CPython's wherever one real opcode stands behind the row.  Operators carry the
symbol a reader knows: ``BINARY "+"``, ``BINARY "+="``, ``BINARY "[]"``, ``UNARY "truth"``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Count = int | Callable[[Any], int]


def _call(arg: Any) -> int:
    return arg[0] + 2


def _ex(arg: Any) -> int:
    return 3 + bool(arg)


def _function(flags: int) -> int:
    return 1 + sum(bool(flags & bit) for bit in (1, 2, 4, 8))


ROWS: dict[str, tuple[str, Count, Count]] = {
    # ---- stack and constants
    "NOP": ("", 0, 0),
    "POP": ("never of a NULL, which crashes CPython; STORE_LOCAL takes one", 1, 0),
    "COPY": ("depth, 1 = top", 0, 1),
    "SWAP": ("depth", 0, 0),
    "PUSH_NULL": ("", 0, 1),
    "LOAD_CONST": ("the constant itself", 0, 1),
    # ---- names
    "LOAD_LOCAL": ("name; unbound raises UnboundLocalError", 0, 1),
    "LOAD_LOCAL_CLEAR": ("name; pushes NULL when unbound, then unbinds (PEP 709)", 0, 1),
    "STORE_LOCAL": ("name; a NULL on the stack unbinds", 1, 0),
    "DELETE_LOCAL": ("name", 0, 0),
    "MAKE_CELL": ("name; puts the slot's value in a fresh cell (a comprehension over a name that is both a cell and "
                  "free; the cells made at function entry are implied)", 0, 0),
    "NEW_CELL": ("pushes an empty cell (inlined comprehensions)", 0, 1),
    "CELL_CONTENTS": ("name for the error when the cell is empty; pops the cell", 1, 1),
    "LOAD_CELL": ("name of a cell or free variable; pushes the cell object", 0, 1),
    "LOAD_DEREF": ("name", 0, 1),
    "STORE_DEREF": ("name", 1, 0),
    "DELETE_DEREF": ("name", 0, 0),
    "LOAD_CLASSDEREF": ("name; class body: locals first, then the cell", 0, 1),
    "LOAD_FROM_DICT_OR_DEREF": ("name; pops the dict", 1, 1),
    "LOAD_FROM_DICT_OR_GLOBALS": ("name; pops the dict", 1, 1),
    "LOAD_GLOBAL": ("name", 0, 1),
    "STORE_GLOBAL": ("name", 1, 0),
    "DELETE_GLOBAL": ("name", 0, 0),
    "LOAD_NAME": ("name", 0, 1),
    "STORE_NAME": ("name", 1, 0),
    "DELETE_NAME": ("name", 0, 0),
    "LOAD_LOCALS": ("", 0, 1),
    "LOAD_BUILD_CLASS": ("", 0, 1),
    "LOAD_ASSERTION_ERROR": ("", 0, 1),
    "SETUP_ANNOTATIONS": ("", 0, 0),
    # ---- attributes
    "LOAD_ATTR": ("name", 1, 1),
    "LOAD_METHOD": ("name; pushes a callable pair, NULL in the slot `null_first` says", 1, 2),
    "LOAD_SUPER_ATTR": ("(name, is_method, two_args); pops self, class, super", 3,
                        lambda arg: 2 if arg[1] else 1),
    "STORE_ATTR": ("name; stack: value, owner", 2, 0),
    "DELETE_ATTR": ("name", 1, 0),
    # ---- operators
    "UNARY": ("one of + - ~ not truth", 1, 1),
    "BINARY": ("operator symbol, `+`, `+=`, `[]` ...", 2, 1),
    "COMPARE": ("(operator symbol, to_bool)", 2, 1),
    "IS_OP": ("invert: bool", 2, 1),
    "CONTAINS_OP": ("invert: bool", 2, 1),
    "STORE_SUBSCR": ("stack: value, owner, key", 3, 0),
    "DELETE_SUBSCR": ("stack: owner, key", 2, 0),
    # ---- building
    "BUILD_TUPLE": ("count", lambda n: n, 1),
    "BUILD_LIST": ("count", lambda n: n, 1),
    "BUILD_SET": ("count", lambda n: n, 1),
    "BUILD_MAP": ("pairs", lambda n: 2 * n, 1),
    "BUILD_CONST_KEY_MAP": ("count; keys tuple on top", lambda n: n + 1, 1),
    "BUILD_STRING": ("count", lambda n: n, 1),
    "BUILD_SLICE": ("2 or 3", lambda n: n, 1),
    "LIST_APPEND": ("depth of the list after the pop", 1, 0),
    "SET_ADD": ("depth of the set after the pop", 1, 0),
    "MAP_ADD": ("depth of the dict after the pops; stack: key, value", 2, 0),
    "LIST_EXTEND": ("depth after the pop", 1, 0),
    "SET_UPDATE": ("depth after the pop", 1, 0),
    "DICT_UPDATE": ("depth after the pop", 1, 0),
    "DICT_MERGE": ("depth after the pop; duplicate keys raise, naming the callable 2 below", 1, 0),
    "UNPACK_SEQUENCE": ("count", 1, lambda n: n),
    "UNPACK_EX": ("(before, after)", 1, lambda arg: arg[0] + 1 + arg[1]),
    "FORMAT_VALUE": ("(conversion: '', 's', 'r' or 'a'; has_spec)", lambda arg: 1 + arg[1], 1),
    "CONVERT_VALUE": ("'s', 'r' or 'a'", 1, 1),
    # ---- calls and functions
    "CALL": ("(argument count without NULL and callable, tuple of keyword names)", _call, 1),
    "CALL_FUNCTION_EX": ("has_kwargs; stack: NULL/callable pair, args, [kwargs]", _ex, 1),
    "MAKE_FUNCTION": ("bits 1 defaults, 2 kwdefaults, 4 annotations, 8 closure", _function, 1),
    "INTRINSIC_1": ("name: INTRINSIC_PRINT, LIST_TO_TUPLE, IMPORT_STAR, STOPITERATION_ERROR, "
                    "ASYNC_GEN_WRAP, TYPEVAR, PARAMSPEC, TYPEVARTUPLE, SUBSCRIPT_GENERIC, TYPEALIAS", 1, 1),
    "INTRINSIC_2": ("name: PREP_RERAISE_STAR, TYPEVAR_WITH_BOUND, TYPEVAR_WITH_CONSTRAINTS, "
                    "SET_FUNCTION_TYPE_PARAMS, SET_TYPEPARAM_DEFAULT", 2, 1),
    # ---- control flow
    "JUMP": ("", 0, 0),
    "JUMP_IF": ("'true', 'false', 'none' or 'not_none'; pops", 1, 0),
    "GET_ITER": ("", 1, 1),
    "FOR_ITER": ("falls through with the item above the iterator; jumps with the iterator popped", 0, 1),
    "GET_LEN": ("", 0, 1),
    "MATCH_MAPPING": ("", 0, 1),
    "MATCH_SEQUENCE": ("", 0, 1),
    "MATCH_KEYS": ("", 0, 1),
    "MATCH_CLASS": ("count; stack: subject, class, names", 3, 1),
    "RETURN": ("", 1, 0),
    # ---- exceptions and with
    "RAISE": ("0, 1 or 2 arguments", lambda n: n, 0),
    "RERAISE": ("depth of lasti below the exception, 0 = none", 1, 0),
    "PUSH_EXC_INFO": ("stack: exc -> previous exc, exc", 1, 2),
    "POP_EXCEPT": ("", 1, 0),
    "CHECK_EXC_MATCH": ("stack: exc, type -> exc, bool", 2, 2),
    "CHECK_EG_MATCH": ("stack: exc, type -> rest, match", 2, 2),
    "WITH_EXCEPT_START": ("stack: exit, lasti, prev, exc -> the same and exit's result", 0, 1),
    "BEFORE_WITH": ("stack: manager -> exit, value of enter", 1, 2),
    # ---- generators and coroutines
    "RETURN_GENERATOR": ("", 0, 1),
    "YIELD": ("where: 1 yield, 2 yield from, 3 await; None is 1", 1, 1),
    "GET_YIELD_FROM_ITER": ("", 1, 1),
    "SEND": ("falls through with receiver, yielded; jumps with receiver, result (3.11: result only, "
             "normalised so that END_SEND always follows)", 1, 1),
    "END_SEND": ("stack: receiver, value -> value", 2, 1),
    "CLEANUP_THROW": ("", 3, 2),
    "GET_AWAITABLE": ("where", 1, 1),
    "GET_AITER": ("", 1, 1),
    "GET_ANEXT": ("", 0, 1),
    "END_ASYNC_FOR": ("", 2, 0),
    "BEFORE_ASYNC_WITH": ("", 1, 2),
    # ---- imports
    "IMPORT_NAME": ("name; stack: level, fromlist", 2, 1),
    "IMPORT_FROM": ("name", 0, 1),
}

JUMP_EFFECT: dict[str, int] = {"JUMP": 0, "JUMP_IF": -1, "FOR_ITER": -1, "SEND": 0}
NO_FALL_THROUGH = frozenset({"JUMP", "RETURN", "RAISE", "RERAISE"})


def pops(name: str, arg: object) -> int:
    """How many stack entries the op takes."""
    count = ROWS[name][1]
    return count if isinstance(count, int) else count(arg)


def pushes(name: str, arg: object) -> int:
    """How many stack entries the op leaves when it falls through."""
    count = ROWS[name][2]
    return count if isinstance(count, int) else count(arg)
