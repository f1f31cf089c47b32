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
