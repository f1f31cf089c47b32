"""``__class__`` assignment and SimpleNamespace."""
from __future__ import annotations

import types

import torch

from minidynamo.testing import check

X = torch.ones(2)


class A:
    def who(self):
        return "A"


class B:
    def who(self):
        return "B"


class C:
    __slots__ = ("a",)


def test_class_of_an_argument_changes():
    def fn(x, a):
        before = a.who()
        a.__class__ = B
        return before, a.who(), type(a) is B, isinstance(a, A), a, x + 1
    check(fn, X, graphs=1, make=lambda: (X, A()))


def test_class_of_a_new_object_changes():
    def fn(x):
        a = A()
        a.n = 3
        a.__class__ = B
        print("break")
        return a.who(), type(a).__name__, a.n, x + a.n
    check(fn, X, min_graphs=1)


def test_refused_classes():
    def fn(x):
        texts = []
        for cls in (C, int, 3):
            try:
                A().__class__ = cls
            except TypeError as error:
                texts.append(str(error))
        try:
            del A().__class__
        except TypeError as error:
            texts.append(str(error))
        return texts, x + 1
    check(fn, X, graphs=1)


def test_simple_namespace():
    def fn(x, given):
        made = types.SimpleNamespace(a=1, b="t")
        made.c = made
        given.n += 1
        del given.gone
        texts = []
        for bad in (lambda: hash(made), lambda: types.SimpleNamespace(1), lambda: made.zz):
            try:
                bad()
            except (TypeError, AttributeError) as error:
                texts.append(str(error))
        return (repr(made), made == types.SimpleNamespace(a=1), types.SimpleNamespace(a=1) == types.SimpleNamespace(a=1),
                vars(given), given, texts, x + given.n)
    check(fn, X, graphs=1, make=lambda: (X, types.SimpleNamespace(n=3, gone=1)))


class Slotted:
    __slots__ = ("a", "b")


def test_attribute_set_and_deleted_again():
    def fn(x, a, s):
        a.n = 1
        del a.n
        s.a = 1
        del s.a
        s.b = 2
        return hasattr(a, "n"), hasattr(s, "a"), s.b, x + 1
    check(fn, X, graphs=1, make=lambda: (X, A(), Slotted()))


def test_descriptor_with_set_only():
    def fn(x):
        class D:
            def __set__(self, obj, value):
                obj.__dict__["d"] = value + 1

        class K:
            d = D()
        k = K()
        before = type(k.d).__name__
        k.d = 42
        return before, k.d, x + k.d
    check(fn, X, graphs=1)


def test_stand_ins_are_not_found():
    def fn(x):
        class Inside:
            pass

        class Child(Inside):
            pass
        print("break")
        return [k.__name__ for k in Inside.__subclasses__()], Child.__name__, x + 1
    check(fn, X, min_graphs=1, cached=False)
