"""Operators, conversions, formats and regular expressions over literals, subclasses and objects of unknown C types."""
from __future__ import annotations

import array
import cmath
import collections
import decimal
import fractions
import math
import operator
import re
import string
import warnings

import pytest
import torch

from minidynamo.testing import check

X = torch.ones(2)


def guarded(text: str):
    """``text`` of `d` inside a handler: an error that we were to make up would be caught there, and seen."""
    space: dict = {}
    exec(f"def fn(d, x):\n try: r = {text}\n except Exception as e: r = type(e).__name__, str(e)\n return r, x + 1", space)
    return space["fn"]


DECIMAL = ("int(d)", "float(d)", "-d", "abs(d)", "d + 1", "1 + d", "divmod(d, 1)", "d ** 2", "d == 2.5", "3 > d", "'%d' % d",
           "complex(d)", "round(d)", "sum([d, d])", "max(d, 3)")
VIEW = ("int(d)", "float(d)", "b'x' + d", "bytes.fromhex('aa') + d", "d == b'12'", "49 in d", "d[1:].tobytes()", "b'12'.startswith(d)")
ARRAY = ("(d + d).tolist()", "(d * 2).tolist()", "(2 * d).tolist()", "float(d)", "d == d[:]", "d.append(4)", "[] + d", "d + [1]")


@pytest.mark.parametrize("make, text", [
    *[(lambda: decimal.Decimal("2.5"), t) for t in DECIMAL],
    *[(lambda: memoryview(b"12"), t) for t in VIEW],
    *[(lambda: array.array("i", [1, 2]), t) for t in ARRAY]])
def test_operators_of_unknown_types_are_their_own(make, text):
    check(guarded(text), make=lambda: (make(), X), min_graphs=1)


@pytest.mark.parametrize("base", [list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float, complex, collections.deque,
                                  collections.OrderedDict, collections.defaultdict, collections.Counter])
def test_texts_of_a_subclass(base):
    def fn(x):
        class Sub(base):
            pass
        plain = base in (int, float, complex, collections.defaultdict, str, bytes, bytearray)
        value = Sub() if plain else Sub([(1, 2)])
        return str(value), repr(value), f"{value}", "%s" % (value,), x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_formats_of_a_subclass():
    class Number(int):
        def __str__(self):
            return "number"

    class Text(str):
        def __str__(self):
            return "text"

    class Float(float):
        def __repr__(self):
            return "float"

    def fn(x):
        out = []
        for value in (Number(5), Text("x"), Float(2.5), collections.deque()):
            for spec in ("", ">5"):
                try:
                    out.append(format(value, spec))
                except TypeError as error:
                    out.append(str(error))
            out.append((f"{value}", f"{value!r}", "%s" % (value,), "{}".format(value)))
        return out, x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_items_assigned_leave_a_deque_iterator_alive():
    def fn(walker, items):
        items[1] = 7
        return list(walker)

    def make():
        items = collections.deque(range(3))
        return iter(items), items
    check(fn, make=make)


def test_substitution_by_a_function():
    pattern = re.compile(r"(\d+)|(b)")

    def fn(x):
        out = []
        for act in (lambda: pattern.sub(lambda m: str(int(m[0]) * 2) if m[1] else None, "a1b22c3", 2),
                    lambda: pattern.subn(lambda m: m.group(0) * 2, "a1b22c3"), lambda: pattern.sub(r"<\1>", "a1b2"),
                    lambda: pattern.sub(r"<\9>", "a1b2"), lambda: pattern.sub(lambda m: 3, "a1b2"), lambda: re.compile("["),
                    lambda: pattern.sub(lambda m: "", "xyz"), lambda: re.sub("x*", lambda m: "-", "abxd"),
                    lambda: [m.span() for m in pattern.finditer("1 2 b")], lambda: [m[0] for m in pattern.finditer("1 2 b", 1, 3)],
                    lambda: string.Template("$a ${b} $$ $z").safe_substitute(a=1, b=2)):
            try:
                out.append(act())
            except Exception as error:
                out.append((type(error).__name__, str(error), getattr(error, "pos", None)))
        return out, x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_matches_leave_the_trace():
    def fn(x):
        walker = re.finditer("[ab]", "abcab")
        first = next(walker)
        print("break")
        return first.span(), [m.span() for m in walker], x + 1
    check(fn, X, min_graphs=1)


class AsFloat:
    def __float__(self):
        return 2.5


class AsIndex:
    def __index__(self):
        return 12


class AsComplex:
    def __complex__(self):
        return 1 + 2j


class AsBytes:
    def __bytes__(self):
        return b"\x01"


class Rounds:
    def __trunc__(self):
        return "trunc"

    def __floor__(self):
        return "floor"


class FloatSub(float):
    def __float__(self):
        return 9.0


class IntSub(int):
    pass


CONVERSIONS = (
    lambda: math.sqrt(AsFloat()), lambda: math.sqrt(AsIndex()), lambda: math.sqrt(FloatSub(4)), lambda: math.gcd(AsIndex(), IntSub(8)),
    lambda: math.factorial(AsIndex()), lambda: math.trunc(Rounds()), lambda: math.floor(Rounds()), lambda: math.ceil(Rounds()),
    lambda: math.ceil(AsFloat()), lambda: math.trunc(AsFloat()), lambda: math.sin(object()), lambda: cmath.sqrt(AsComplex()),
    lambda: cmath.acos(AsFloat()), lambda: cmath.isclose(AsComplex(), 1 + 2j, rel_tol=AsFloat()), lambda: math.gcd(AsFloat(), 1),
    lambda: math.isclose(AsFloat(), 2.5, abs_tol=AsIndex()), lambda: math.fsum([AsFloat(), AsIndex(), 1]),
    lambda: math.hypot(AsFloat(), AsIndex()), lambda: math.dist([AsFloat()], [1]), lambda: math.log(AsFloat(), AsIndex()),
    lambda: slice(AsIndex(), None, IntSub(2)).indices(AsIndex()), lambda: slice(0, AsFloat(), 1).indices(3),
    lambda: slice(0, 1, 0).indices(3), lambda: slice(1, 2).indices(-1), lambda: (2.5).__ceil__(), lambda: FloatSub(2.5).__floor__(),
    lambda: IntSub(3).__trunc__(), lambda: math.trunc(fractions.Fraction(-11, 10)), lambda: math.comb(AsIndex(), 2),
    lambda: float.__round__(FloatSub(2.567), 1), lambda: complex(AsFloat()), lambda: complex(AsFloat(), 2), lambda: complex(1, AsIndex()),
    lambda: complex(object()), lambda: complex(1, object()), lambda: complex(real=AsFloat(), imag=1), lambda: bytes(AsBytes()),
    lambda: int.from_bytes([1, 2], "big"), lambda: int.from_bytes(AsBytes(), "big"), lambda: type(IntSub.from_bytes(b"a", "big")),
    lambda: int.from_bytes([256], "big"), lambda: int.from_bytes("a", "big"), lambda: int.from_bytes(bytearray(b"ab"), "little"),
)


def test_c_functions_ask_objects_for_numbers():
    def fn(x):
        out = []
        for act in CONVERSIONS:
            try:
                out.append(act())
            except Exception as error:
                out.append((type(error).__name__, str(error)))
        return out, x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_a_number_of_a_subclass_is_deprecated_and_made_exact():
    def made(name: str, value: object):
        return type("Odd", (), {name: lambda self: value})()

    cases = ((operator.index, made("__index__", True)), (hex, made("__index__", True)), (int, made("__int__", IntSub(3))),
             (float, made("__float__", FloatSub(2.5))), (float, made("__index__", True)), (complex, made("__float__", FloatSub(2))),
             (complex, made("__complex__", type("ComplexSub", (complex,), {})(1j))), ([1, 2].__getitem__, made("__index__", True)))

    def fn(act, odd, x):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = act(odd)
        return type(result), result, [str(each.message) for each in said], x + 1

    for act, odd in cases:
        check(fn, act, odd, X)
