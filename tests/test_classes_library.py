"""The standard library's own classes: dataclasses, enums, inspect.signature, copy, mappingproxy, generic aliases."""
from __future__ import annotations

import copy
import enum
import inspect
import sys
import types
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace

import torch

from minidynamo.testing import check

X = torch.ones(2)


def shown(a, b=2, *c, d: int = 3, **e):
    """A signature with everything."""


def test_signature():
    def fn(x):
        class C:
            def __init__(self, a, b="x"): ...
        s = inspect.signature(shown)
        bound = s.bind(1, d=4)
        return str(s), list(s.parameters), str(inspect.signature(C)), bound.arguments, x + 1
    check(fn, X, graphs=1)


def test_dataclass():
    def fn(x):
        @dataclass
        class P:
            a: int
            b: list = field(default_factory=list)

            def __post_init__(self):
                self.c = self.a + 1
        p, q = P(1), P(1, [2])
        return p == q, repr(q), p.a, p.c, x + p.c, P.__doc__, p.b is q.b
    check(fn, X, graphs=1)


def test_frozen_ordered_dataclass():
    def fn(x):
        @dataclass(frozen=True, order=True)
        class P:
            a: int
            b: str = "z"
        p = P(1)
        q = replace(p, a=5)
        try:
            p.a = 3
        except FrozenInstanceError as error:
            text = str(error)
        return p < q, hash(p) == hash(P(1)), asdict(q), astuple(q), [f.name for f in fields(P)], text, x + q.a
    check(fn, X, graphs=1)


def test_slots_dataclass():
    def fn(x):
        @dataclass(slots=True)
        class P:
            a: int
            b: int = 3
        p = P(1)
        try:
            p.c = 1
        except AttributeError as error:
            return str(error), p.a + p.b, x + p.b
    check(fn, X, graphs=1)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Bits(enum.Flag):
    A = 1
    B = 2


def test_enum_members():
    def fn(x):
        return (Color.RED.name, Color(2) is Color.BLUE, Color["RED"], [c.name for c in Color], len(Color),
                Color.RED == Color.BLUE, Color.RED in Color, {Color.RED: 1}[Color.RED], repr(Color.RED), str(Color.BLUE),
                x + Color.BLUE.value)
    check(fn, X, graphs=1)


def test_enum_value_that_does_not_exist():
    def fn(x):
        try:
            return Color(7)
        except ValueError as error:
            return str(error), x + 1
    check(fn, X, graphs=1)


def test_flags():
    def fn(x):
        both = Bits.A | Bits.B
        return both, Bits.A in both, both.value, ~Bits.A, bool(Bits.A & Bits.B), [f.name for f in both], x + both.value
    check(fn, X, graphs=1)


def test_enum_class_made_inside():
    def fn(x):
        class E(enum.Enum):
            P = 1
            Q = "q"
        return E.P.value, [m.name for m in E], E("q").name, x + E.P.value
    check(fn, X, graphs=1)


class Point:
    def __init__(self, a):
        self.a = a


class Slotted:
    __slots__ = ("a", "b")


def test_copy():
    def fn(x):
        p, s = Point([1, 2]), Slotted()
        s.a = [3]
        q, r, t = copy.copy(p), copy.deepcopy(p), copy.copy(s)
        return q.a is p.a, r.a is p.a, r.a, t.a is s.a, hasattr(t, "b"), copy.deepcopy({"k": [1, (2, 3)]}), x + 1
    check(fn, X, graphs=1, cached=False)      # copyreg writes __slotnames__ into the class, once


def test_copy_protocol_methods():
    def fn(x):
        class C:
            def __init__(self, v):
                self.v = v

            def __getstate__(self):
                return {"v": self.v + 1}

            def __setstate__(self, state):
                self.w = state["v"]

            def __deepcopy__(self, memo):
                return ("deep", len(memo))
        c = C(1)
        d = copy.copy(c)
        return vars(d), copy.deepcopy(c), x + d.w
    check(fn, X, graphs=1)


def test_mappingproxy():
    def fn(x, proxy):
        made = types.MappingProxyType({"a": 1})
        try:
            made["b"] = 2
        except TypeError as error:
            text = str(error)
        return made["a"], list(made.items()), repr(made), text, proxy["k"], len(proxy), "z" in proxy, made, x + proxy["k"]
    check(fn, X, graphs=1, make=lambda: (X, types.MappingProxyType({"k": 3})))


def test_generic_alias_call():
    def fn(x):
        alias = types.GenericAlias(list, (int,))
        made = alias((1, 2))
        return alias, made, alias == list[int], len(alias.__args__), hash(alias) == hash(list[int]), x + 1
    check(fn, X, graphs=1)


def test_exc_info():
    def fn(x):
        before = sys.exc_info()
        try:
            raise KeyError("k")
        except KeyError as error:
            inside = sys.exc_info()[:2] == (KeyError, error)
        return before, inside, sys.exc_info(), x + 1
    check(fn, X, graphs=1)


def test_method_objects():
    def fn(x):
        class C:
            def __hash__(self):
                return "no"
        m = types.MethodType(lambda self, a: (self, a), 3)
        texts = []
        for bad in (lambda: types.MethodType(3, 4), lambda: types.MethodType(len, None), lambda: hash(C())):
            try:
                bad()
            except TypeError as error:
                texts.append(str(error))
        return m(4), m.__self__, texts, x + 1
    check(fn, X, graphs=1)
