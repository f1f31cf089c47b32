"""Python 3.11: how to read each real opcode, and the facts the assembler asks for."""
from __future__ import annotations

from minidynamo.code import lowering, readers
from minidynamo.code.lowering import Emitter, Rule, by_deref, by_local, by_name, const
from minidynamo.code.program import Op
from minidynamo.code.readers import Row, choice, fixed, jump, names_of, read, slot

null_first = True           # stack: NULL, callable, arguments
FOR_TAIL: tuple[str, ...] = ()
SEND_POPS = True            # SEND's jump leaves the result only: an END_SEND is implied
ABSENT: frozenset[str] = frozenset()
NO_LONGER_STATIC: frozenset[str] = frozenset()


def resume_bits(shallow: bool) -> int:
    return 0


_CONDITIONS = {"TRUE": "true", "FALSE": "false", "NONE": "none", "NOT_NONE": "not_none"}

READ: dict[str, Row] = {
    **readers.COMMON,
    **names_of("LOAD_ATTR", "LOAD_METHOD"),
    **{f"POP_JUMP_{way}_IF_{real}": jump("JUMP_IF", neutral, sign=sign)
       for real, neutral in _CONDITIONS.items()
       for way, sign in (("FORWARD", 1), ("BACKWARD", -1))},
    "JUMP_IF_FALSE_OR_POP": jump("JUMP_IF", "false", before=(("COPY", 1),), after=("POP",)),
    "JUMP_IF_TRUE_OR_POP": jump("JUMP_IF", "true", before=(("COPY", 1),), after=("POP",)),
    "UNARY_POSITIVE": fixed(("UNARY", "+")),
    "COMPARE_OP": choice("COMPARE", tuple((s, False) for s in readers.COMPARE_SYMBOLS)),
    "LOAD_GLOBAL": read(readers.global_null_first),
    "LOAD_CLOSURE": slot("LOAD_CELL"),
    "LOAD_CLASSDEREF": slot("LOAD_CLASSDEREF"),
    "FORMAT_VALUE": read(readers.format_value),
    "MAKE_FUNCTION": readers.number("MAKE_FUNCTION"),
    "PRINT_EXPR": fixed(("INTRINSIC_1", "INTRINSIC_PRINT"), "POP"),
    "IMPORT_STAR": fixed(("INTRINSIC_1", "IMPORT_STAR"), "POP"),
    "LIST_TO_TUPLE": fixed(("INTRINSIC_1", "LIST_TO_TUPLE")),
    "ASYNC_GEN_WRAP": fixed(("INTRINSIC_1", "ASYNC_GEN_WRAP")),
    "PREP_RERAISE_STAR": fixed(("INTRINSIC_2", "PREP_RERAISE_STAR")),
    "PRECALL": Row(readers.DROP),
    "KW_NAMES": Row(readers.KW_NAMES),
}


# ---- writing
_UNARY = {"+": ("UNARY_POSITIVE",), "-": ("UNARY_NEGATIVE",), "~": ("UNARY_INVERT",),
          "not": ("UNARY_NOT",), "truth": ("UNARY_NOT", "UNARY_NOT")}


def _unary(e: Emitter, op: Op) -> None:
    for name in _UNARY[op.arg]:
        e.emit(name)


def _compare(e: Emitter, op: Op) -> None:
    symbol, to_bool = op.arg
    e.emit("COMPARE_OP", readers.COMPARE_SYMBOLS.index(symbol))
    if to_bool:
        lowering.twice_not(e, op)


def _call(e: Emitter, op: Op) -> None:
    n, names = op.arg
    if names:
        e.emit("KW_NAMES", e.const(names))
    e.emit("PRECALL", n)
    e.emit("CALL", n)


def _jump_if(e: Emitter, op: Op) -> None:
    way = "FORWARD" if op.target > e.index else "BACKWARD"
    e.emit(f"POP_JUMP_{way}_IF_{op.arg.upper()}", label=op.target)


def _load_local_clear(e: Emitter, op: Op) -> None:
    """An unbound local is found by the error its load raises."""
    if e.surely_bound():
        e.emit("LOAD_FAST", e.local(op.arg))
        e.emit("DELETE_FAST", e.local(op.arg))
        return
    unbound, done = ("unbound", e.index), ("cleared", e.index)
    outer = e.handler
    e.handler = e.handler_at(unbound)
    e.emit("LOAD_FAST", e.local(op.arg))
    e.handler = outer
    e.emit("DELETE_FAST", e.local(op.arg))
    e.emit("JUMP_FORWARD", label=done)
    e.mark(unbound)
    e.emit("POP_TOP")
    e.emit("PUSH_NULL")
    e.mark(done)


def _load_locals(e: Emitter, op: Op) -> None:
    e.emit("PUSH_NULL")
    const(e, locals)
    e.need(1)
    e.rule("CALL", (0, ()))


def _load_super_attr(e: Emitter, op: Op) -> None:
    name, is_method, two_args = op.arg
    e.need(1)
    if two_args:
        e.emit("PUSH_NULL")
        for depth in (4, 3, 2):                     # super, class, self, NULL -> NULL first
            e.emit("SWAP", depth)
    else:                                           # a bare super() reads the frame
        e.emit("POP_TOP")
        e.emit("POP_TOP")
        e.emit("PUSH_NULL")
        e.emit("SWAP", 2)
    e.rule("CALL", (2 if two_args else 0, ()))
    e.rule("LOAD_METHOD" if is_method else "LOAD_ATTR", name)


_INTRINSICS = {"LIST_TO_TUPLE": "LIST_TO_TUPLE", "ASYNC_GEN_WRAP": "ASYNC_GEN_WRAP"}
_STATEMENTS = {"INTRINSIC_PRINT": "PRINT_EXPR", "IMPORT_STAR": "IMPORT_STAR"}


def _intrinsic_1(e: Emitter, op: Op) -> None:
    if op.arg in _INTRINSICS:
        e.emit(_INTRINSICS[op.arg])
    elif op.arg in _STATEMENTS:
        e.emit(_STATEMENTS[op.arg])
        if not e.swallow_pop():
            const(e, None)
    else:
        lowering.call_with(e, lowering.EMULATED[op.arg], 1)


def _intrinsic_2(e: Emitter, op: Op) -> None:
    if op.arg == "PREP_RERAISE_STAR":
        e.emit("PREP_RERAISE_STAR")
    else:
        lowering.call_with(e, lowering.EMULATED[op.arg], 2)


def _end_send(e: Emitter, op: Op) -> None:
    """SEND's own jump lands behind it: there the receiver is gone already."""
    if e.falls_in(e.index) or e.reached_by_others(e.index, "SEND"):
        e.emit("SWAP", 2)
        e.emit("POP_TOP")
    e.mark(("sent", e.index))


def _cleanup_throw(e: Emitter, op: Op) -> None:
    """receiver, sent, StopIteration -> None, its value; anything else is raised again."""
    other, done = ("thrown", e.index), ("cleaned", e.index)
    e.need(1)
    const(e, StopIteration)
    e.emit("CHECK_EXC_MATCH")
    e.emit("POP_JUMP_FORWARD_IF_FALSE", label=other)
    e.emit("LOAD_ATTR", e.name("value"))
    e.emit("SWAP", 3)
    e.emit("POP_TOP")
    e.emit("POP_TOP")
    const(e, None)
    e.emit("SWAP", 2)
    e.emit("JUMP_FORWARD", label=done)
    e.mark(other)
    e.emit("RERAISE", 0)
    e.mark(done)


WRITE: dict[str, Rule] = {
    "LOAD_LOCAL": by_local("LOAD_FAST"),
    "LOAD_LOCAL_CLEAR": _load_local_clear,
    "LOAD_CLASSDEREF": by_deref("LOAD_CLASSDEREF"),
    "LOAD_FROM_DICT_OR_DEREF": lowering.from_dict_or(by_deref("LOAD_DEREF")),
    "LOAD_FROM_DICT_OR_GLOBALS": lowering.from_dict_or(by_name("LOAD_GLOBAL", shift=1)),
    "LOAD_LOCALS": _load_locals,
    "LOAD_ATTR": by_name("LOAD_ATTR"),
    "LOAD_METHOD": by_name("LOAD_METHOD"),
    "LOAD_SUPER_ATTR": _load_super_attr,
    "UNARY": _unary,
    "COMPARE": _compare,
    "CALL": _call,
    "JUMP_IF": _jump_if,
    "INTRINSIC_1": _intrinsic_1,
    "INTRINSIC_2": _intrinsic_2,
    "YIELD": lowering.bare("YIELD_VALUE"),
    "END_SEND": _end_send,
    "CLEANUP_THROW": _cleanup_throw,
}
