"""Python 3.13: how to read each real opcode, how to write back what is particular to it."""
from __future__ import annotations

from minidynamo.code import lowering, readers, v312
from minidynamo.code.lowering import Emitter, Rule, by_cell, const
from minidynamo.code.program import Op
from minidynamo.code.readers import Pairs, Row, View, fixed, read

null_first = False          # stack: callable, NULL, arguments
FOR_TAIL: tuple[str, ...] = ("END_FOR", "POP_TOP")
SEND_POPS = False
# internal to the interpreter, never in a code object's bytes
ABSENT = frozenset({"INTERPRETER_EXIT", "RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK"})
NO_LONGER_STATIC = v312.NO_LONGER_STATIC | {"decimal", "datetime"}

INTRINSICS_1 = v312.INTRINSICS_1
INTRINSICS_2 = (*v312.INTRINSICS_2, "SET_TYPEPARAM_DEFAULT")
_DEPTH_1 = 4                # RESUME's bit: close() need not throw into the generator


def resume_bits(shallow: bool) -> int:
    return _DEPTH_1 if shallow else 0


def _load(view: View, slot: int) -> tuple[str, object]:
    """LOAD_FAST of a cell's slot pushes the cell itself."""
    return "LOAD_CELL" if slot in view.cells else "LOAD_LOCAL", view.slots[slot]


def _load_load(view: View, arg: int) -> Pairs:
    return _load(view, arg >> 4), _load(view, arg & 15)


def _store_load(view: View, arg: int) -> Pairs:
    return ("STORE_LOCAL", view.slots[arg >> 4]), _load(view, arg & 15)


def _store_store(view: View, arg: int) -> Pairs:
    return ("STORE_LOCAL", view.slots[arg >> 4]), ("STORE_LOCAL", view.slots[arg & 15])


def _compare_op(view: View, arg: int) -> Pairs:
    return (("COMPARE", (readers.COMPARE_SYMBOLS[arg >> 5], bool(arg & 16))),)


READ: dict[str, Row] = {
    **{name: row for name, row in v312.READ.items()
       if name not in ("FORMAT_VALUE", "LOAD_CLOSURE", "KW_NAMES")},
    "LOAD_FAST": read(lambda view, arg: (_load(view, arg),)),
    "LOAD_FAST_LOAD_FAST": read(_load_load),
    "STORE_FAST_LOAD_FAST": read(_store_load),
    "STORE_FAST_STORE_FAST": read(_store_store),
    "LOAD_GLOBAL": read(readers.global_null_last),
    "COMPARE_OP": read(_compare_op),
    "TO_BOOL": fixed(("UNARY", "truth")),
    "CALL_KW": Row(readers.CALL_KW),
    "MAKE_FUNCTION": fixed(("MAKE_FUNCTION", 0)),
    "SET_FUNCTION_ATTRIBUTE": Row(readers.ATTRIBUTE),
    "FORMAT_SIMPLE": fixed(("FORMAT_VALUE", ("", False))),
    "FORMAT_WITH_SPEC": fixed(("FORMAT_VALUE", ("", True))),
    "CONVERT_VALUE": readers.choice("CONVERT_VALUE", readers.CONVERSIONS),
    "CALL_INTRINSIC_2": readers.choice("INTRINSIC_2", INTRINSICS_2),
}


# ---- writing
_UNARY = {"-": "UNARY_NEGATIVE", "~": "UNARY_INVERT", "truth": "TO_BOOL"}
_EXACT_BOOL = frozenset({"IS_OP", "CONTAINS_OP", "MATCH_MAPPING", "MATCH_SEQUENCE",
                         "CHECK_EXC_MATCH"})


def _bool_on_top(e: Emitter) -> bool:
    """Whether the top is a bool of exact type, as jumps and UNARY_NOT need it here."""
    match e.straight_from(3):
        case [Op(name="UNARY", arg="truth" | "not"), *_]:
            return True
        case [Op(name="COMPARE", arg=(_, True)), *_]:
            return True
        case [Op(name="LOAD_CONST", arg=bool()), *_]:
            return True
        case [Op(name="COMPARE"), Op(name="LOAD_CONST", arg=int()), Op(name="GET_LEN")]:
            return True                             # int against int: sequence patterns
        case [Op(name=name), *_]:
            return name in _EXACT_BOOL
    return False


def _unary(e: Emitter, op: Op) -> None:
    if op.arg == "+":
        e.emit("CALL_INTRINSIC_1", v312.UNARY_POSITIVE)
    elif op.arg == "not":
        if not _bool_on_top(e):
            e.emit("TO_BOOL")
        e.emit("UNARY_NOT")
    else:
        e.emit(_UNARY[op.arg])


def _jump_if(e: Emitter, op: Op) -> None:
    if op.arg in ("true", "false") and not _bool_on_top(e):
        e.emit("TO_BOOL")
    lowering.jump_if_forward_only(e, op)


def _compare(e: Emitter, op: Op) -> None:
    symbol, to_bool = op.arg
    index = readers.COMPARE_SYMBOLS.index(symbol)
    e.emit("COMPARE_OP", index << 5 | bool(to_bool) << 4 | v312.COMPARE_MASKS[index])


def _call(e: Emitter, op: Op) -> None:
    n, names = op.arg
    if names:
        e.need(1)
        const(e, names)
    e.emit("CALL_KW" if names else "CALL", n)


def _format_value(e: Emitter, op: Op) -> None:
    conversion, has_spec = op.arg
    if conversion:
        for step in ("SWAP", "CONVERT_VALUE", "SWAP") if has_spec else ("CONVERT_VALUE",):
            e.emit(step, 2 if step == "SWAP" else readers.CONVERSIONS.index(conversion))
    e.emit("FORMAT_WITH_SPEC" if has_spec else "FORMAT_SIMPLE")


def _convert_value(e: Emitter, op: Op) -> None:
    e.emit("CONVERT_VALUE", readers.CONVERSIONS.index(op.arg))


def _make_function(e: Emitter, op: Op) -> None:
    """One SET_FUNCTION_ATTRIBUTE for each flag, topmost entry first."""
    e.emit("MAKE_FUNCTION")
    for bit in (8, 4, 2, 1):
        if op.arg & bit:
            e.emit("SET_FUNCTION_ATTRIBUTE", bit)


def _yield(e: Emitter, op: Op) -> None:
    """The argument says whether it waits for another iterator."""
    e.emit("YIELD_VALUE", int((op.arg or 1) > 1))


WRITE: dict[str, Rule] = {
    **v312.WRITE,
    "LOAD_CELL": by_cell("LOAD_FAST"),
    "UNARY": _unary,
    "JUMP_IF": _jump_if,
    "COMPARE": _compare,
    "CALL": _call,
    "FORMAT_VALUE": _format_value,
    "CONVERT_VALUE": _convert_value,
    "MAKE_FUNCTION": _make_function,
    "INTRINSIC_2": lowering.intrinsic(2, INTRINSICS_2),
    "YIELD": _yield,
}
