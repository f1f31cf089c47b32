"""Python 3.12: how to read each real opcode, how to write back what is particular to it."""
from __future__ import annotations

from minidynamo.code import lowering, readers
from minidynamo.code.lowering import Emitter, Rule, bare, by_deref, by_local, by_name
from minidynamo.code.program import Op
from minidynamo.code.readers import Pairs, Row, View, constant, fixed, jump, name_of, read, slot

null_first = True           # stack: NULL, callable, arguments
FOR_TAIL: tuple[str, ...] = ("END_FOR",)
SEND_POPS = False
# internal to the interpreter, never in a code object's bytes
ABSENT = frozenset({"INTERPRETER_EXIT", "RESERVED"})
# modules whose static types of 3.11 are heap types
NO_LONGER_STATIC = frozenset({
    "collections", "_collections", "itertools", "zoneinfo", "_io", "_pickle", "_ctypes", "_socket", "_multiprocessing",
    "_asyncio", "_elementtree", "xml.etree.ElementTree"})

# by number; the row names drop the prefix, except of PRINT
INTRINSICS_1 = ("INVALID", "INTRINSIC_PRINT", "IMPORT_STAR", "STOPITERATION_ERROR",
                "ASYNC_GEN_WRAP", "UNARY_POSITIVE", "LIST_TO_TUPLE", "TYPEVAR", "PARAMSPEC",
                "TYPEVARTUPLE", "SUBSCRIPT_GENERIC", "TYPEALIAS")
INTRINSICS_2 = ("INVALID", "PREP_RERAISE_STAR", "TYPEVAR_WITH_BOUND", "TYPEVAR_WITH_CONSTRAINTS",
                "SET_FUNCTION_TYPE_PARAMS")
UNARY_POSITIVE = INTRINSICS_1.index("UNARY_POSITIVE")


def resume_bits(shallow: bool) -> int:
    return 0


def intrinsic_1(view: View, arg: int) -> Pairs:
    name = INTRINSICS_1[arg]
    return (("UNARY", "+"),) if arg == UNARY_POSITIVE else (("INTRINSIC_1", name),)


READ: dict[str, Row] = {
    **readers.COMMON,
    **readers.plain("END_SEND", "CLEANUP_THROW", "LOAD_LOCALS"),
    "END_FOR": Row(readers.END_FOR),
    "BINARY_SLICE": fixed(("BUILD_SLICE", 2), ("BINARY", "[]")),
    "STORE_SLICE": fixed(("BUILD_SLICE", 2), "STORE_SUBSCR"),
    **{f"POP_JUMP_IF_{condition.upper()}": jump("JUMP_IF", condition)
       for condition in ("true", "false", "none", "not_none")},
    "COMPARE_OP": read(lambda view, arg: (
        ("COMPARE", (readers.COMPARE_SYMBOLS[arg >> 4], False)),)),
    "RETURN_CONST": constant("RETURN"),
    "LOAD_FAST_CHECK": slot("LOAD_LOCAL"),
    "LOAD_FAST_AND_CLEAR": slot("LOAD_LOCAL_CLEAR"),
    "LOAD_CLOSURE": slot("LOAD_CELL"),
    "LOAD_GLOBAL": read(readers.global_null_first),
    "LOAD_ATTR": read(readers.attr_or_method),
    "LOAD_SUPER_ATTR": read(readers.super_attr),
    "LOAD_FROM_DICT_OR_GLOBALS": name_of("LOAD_FROM_DICT_OR_GLOBALS"),
    "LOAD_FROM_DICT_OR_DEREF": slot("LOAD_FROM_DICT_OR_DEREF"),
    "FORMAT_VALUE": read(readers.format_value),
    "MAKE_FUNCTION": readers.number("MAKE_FUNCTION"),
    "CALL_INTRINSIC_1": read(intrinsic_1),
    "CALL_INTRINSIC_2": readers.choice("INTRINSIC_2", INTRINSICS_2),
    "KW_NAMES": Row(readers.KW_NAMES),
}


# ---- writing
COMPARE_MASKS = (2, 2 | 8, 8, 1 | 2 | 4, 4, 4 | 8)      # what specialised compares test
_UNARY = {"-": ("UNARY_NEGATIVE",), "~": ("UNARY_INVERT",), "not": ("UNARY_NOT",),
          "truth": ("UNARY_NOT", "UNARY_NOT")}


def _unary(e: Emitter, op: Op) -> None:
    if op.arg == "+":
        e.emit("CALL_INTRINSIC_1", UNARY_POSITIVE)
        return
    for name in _UNARY[op.arg]:
        e.emit(name)


def _compare(e: Emitter, op: Op) -> None:
    symbol, to_bool = op.arg
    index = readers.COMPARE_SYMBOLS.index(symbol)
    e.emit("COMPARE_OP", index << 4 | COMPARE_MASKS[index])
    if to_bool:
        lowering.twice_not(e, op)


def _call(e: Emitter, op: Op) -> None:
    n, names = op.arg
    if names:
        e.emit("KW_NAMES", e.const(names))
    e.emit("CALL", n)


def load_local(e: Emitter, op: Op) -> None:
    """Plain LOAD_FAST does not look whether the local is bound."""
    e.emit("LOAD_FAST" if e.surely_bound() else "LOAD_FAST_CHECK", e.local(op.arg))


def load_super_attr(e: Emitter, op: Op) -> None:
    name, is_method, two_args = op.arg
    e.emit("LOAD_SUPER_ATTR", e.name(name) << 2 | bool(two_args) << 1 | bool(is_method))


def load_class_deref(e: Emitter, op: Op) -> None:
    """Class locals first, then the cell."""
    e.emit("LOAD_LOCALS")
    e.emit("LOAD_FROM_DICT_OR_DEREF", e.deref(op.arg))


def _yield(e: Emitter, op: Op) -> None:
    """The argument is the number of handlers around; close() asks whether it is 1."""
    e.emit("YIELD_VALUE", 1 if e.shallow(op) else 2)


WRITE: dict[str, Rule] = {
    "LOAD_LOCAL": load_local,
    "LOAD_LOCAL_CLEAR": by_local("LOAD_FAST_AND_CLEAR"),
    "LOAD_CLASSDEREF": load_class_deref,
    "LOAD_FROM_DICT_OR_DEREF": by_deref("LOAD_FROM_DICT_OR_DEREF"),
    "LOAD_FROM_DICT_OR_GLOBALS": by_name("LOAD_FROM_DICT_OR_GLOBALS"),
    "LOAD_LOCALS": bare("LOAD_LOCALS"),
    "LOAD_ATTR": by_name("LOAD_ATTR", shift=1),
    "LOAD_METHOD": by_name("LOAD_ATTR", shift=1, bits=1),
    "LOAD_SUPER_ATTR": load_super_attr,
    "UNARY": _unary,
    "COMPARE": _compare,
    "CALL": _call,
    "JUMP_IF": lowering.jump_if_forward_only,
    "INTRINSIC_1": lowering.intrinsic(1, INTRINSICS_1),
    "INTRINSIC_2": lowering.intrinsic(2, INTRINSICS_2),
    "YIELD": _yield,
    "END_SEND": bare("END_SEND"),
    "CLEANUP_THROW": bare("CLEANUP_THROW"),
}
