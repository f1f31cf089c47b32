"""Operators: ``binary_op1``, ``PyNumber_InPlace*``, unary operators (Objects/abstract.c)."""
from __future__ import annotations

import collections
import operator
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.model.slots import BINARY_DUNDER
from minidynamo.model.variable import VariableTracker, defines, is_subtype

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}
INPLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "<<=": operator.ilshift,
    ">>=": operator.irshift, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
}
UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": operator.abs, "index": operator.index,
         "int": int, "float": float, "complex": complex}


def binary(tx: Any, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """``left symbol right``; `symbol` may be an in-place one."""
    if symbol == "[]":
        return left.mp_subscript(tx, right)
    plain = symbol
    if symbol in INPLACE:
        result = left.nb_inplace(tx, symbol, right)
        if result is not NotImplemented:
            return result
        plain = symbol[:-1]
    result = binary_op1(tx, plain, left, right)
    if result is NotImplemented:
        tx.raise_(TypeError, operand_error(symbol, left, right))
    return result


def binary_op1(tx: Any, symbol: str, left: VariableTracker, right: VariableTracker) -> Any:
    """CPython's binary_op1 and SLOT1BINFULL: a right operand of a subclass goes first."""
    left_type, right_type = left.py_type(), right.py_type()
    if left_type is right_type:
        result = left.nb_binary(tx, symbol, right, False)
        if result is NotImplemented and type(left) is not type(right):      # one of the two numbers is symbolic
            result = right.nb_binary(tx, symbol, left, True)
        return result
    first = is_subtype(right_type, left_type) and overrides_reflected(symbol, left_type, right_type)
    if first:
        result = right.nb_binary(tx, symbol, left, True)
        if result is not NotImplemented:
            return result
    elif symbol in "+*" and is_plain_sequence(left_type, symbol) and not is_plain_sequence(right_type, symbol):
        first = True
        result = right.nb_binary(tx, symbol, left, True)
        if result is not NotImplemented:
            return result
    result = left.nb_binary(tx, symbol, right, False)
    if result is NotImplemented and not first:
        result = right.nb_binary(tx, symbol, left, True)
    return result


def divide(tx: Any, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """PyNumber_Divmod: numbers are divided for real, ``__divmod__`` and ``__rdivmod__`` are called."""
    pair = stand_in(left), stand_in(right)
    if None not in pair:
        try:
            return tx.wrap_tuple([tx.wrap(part) for part in divmod(pair[0][0], pair[1][0])])  # type: ignore[index]
        except Exception as error:
            tx.raise_real(error)
    left_type, right_type = left.py_type(), right.py_type()
    order = [(left, "__divmod__", right), (right, "__rdivmod__", left)]
    if left_type is right_type:
        order.pop()
    elif is_subtype(right_type, left_type) and getattr(right_type, "__rdivmod__", 0) is not getattr(left_type, "__rdivmod__", 0):
        order.reverse()
    for value, name, other in order:
        method = tx.special_method(value, name)
        if method is None and defines(value.py_type(), name):
            tx.unsupported(value, name)
        if method is not None:
            result = tx.not_implemented(tx.call(method, [other]))
            if result is not NotImplemented:
                return result
    raise tx.raise_(TypeError, f"unsupported operand type(s) for divmod(): '{tp_name(left_type)}' and '{tp_name(right_type)}'")


def overrides_reflected(symbol: str, left_type: type, right_type: type) -> bool:
    """Whether the subclass has its own reflected method (method_is_overloaded in typeobject.c)."""
    name = f"__r{BINARY_DUNDER[symbol]}__"
    mine, theirs = getattr(right_type, name, None), getattr(left_type, name, None)
    return mine is not None and mine is not theirs


def operand_error(symbol: str, left: VariableTracker, right: VariableTracker) -> str:
    """CPython's own text, had from the operator itself on stand-ins: builtins as they are, others by an inert namesake."""
    values = [inert(left), inert(right)]
    try:
        ({**BINARY, **INPLACE}[symbol])(*values)
    except TypeError as error:
        return str(error)
    except Exception:             # the operator got as far as working on a stand-in
        pass
    name = "** or pow()" if symbol == "**" else symbol
    return (f"unsupported operand type(s) for {name}: '{tp_name(left.py_type())}' "
            f"and '{tp_name(right.py_type())}'")


def inert(value: VariableTracker) -> Any:
    """A value of the same builtin type, or of a class of the same name that has no operators."""
    known = stand_in(value)
    if known is not None:
        return known[0]
    cls = value.py_type()
    for base in SEQUENCES:
        if issubclass(cls, base):
            return type(tp_name(cls), (base,), {})()
    return type(tp_name(cls), (), {})()


def stand_in(value: VariableTracker) -> tuple[Any] | None:
    """An instance of the value's builtin type, or None for other types."""
    cls = value.py_type()
    try:
        return (value.as_constant(),)
    except Exception:
        if cls in (list, tuple, dict, set, frozenset, bytearray, collections.deque, collections.OrderedDict):
            return (cls(),)
    return None


SEQUENCES = (list, tuple, str, bytes, bytearray, collections.deque)


def is_plain_sequence(cls: type, symbol: str) -> bool:
    """Whether ``+`` and ``*`` of the type are sq_concat and sq_repeat, which come behind the number slots."""
    for base in SEQUENCES:
        if issubclass(cls, base):
            name = f"__{BINARY_DUNDER[symbol]}__"
            return getattr(cls, name) is getattr(base, name)
    return False


def unary(tx: Any, symbol: str, value: VariableTracker) -> VariableTracker:
    """``- + ~`` and the conversions named in UNARY."""
    result = value.nb_unary(tx, symbol)
    if result is NotImplemented:
        name = tp_name(value.py_type())
        texts = {"abs": f"bad operand type for abs(): '{name}'",
                 "index": f"'{name}' object cannot be interpreted as an integer",
                 "int": f"int() argument must be a string, a bytes-like object or a real number, not '{name}'",
                 "float": f"float() argument must be a string or a real number, not '{name}'"}
        tx.raise_(TypeError, texts.get(symbol, f"bad operand type for unary {symbol}: '{name}'"))
    return result


def index(tx: Any, value: VariableTracker) -> int:
    """``operator.index`` as a Python int; stops on a symbolic one through ``as_constant``."""
    return unary(tx, "index", value).as_constant()
