"""super() in all its forms, and slot look-ups that raise."""
from __future__ import annotations

import torch

from minidynamo.testing import check

X = torch.ones(2)


class Base:
    def who(self):
        return "base"

    @classmethod
    def made(cls):
        return cls.__name__


class Kept(Base):
    def who(self):
        return "kept" + self._up.who()


Kept._up = super(Kept)


def test_unbound_super_as_attribute():
    def fn(x):
        class Leaf(Base):
            def who(self):
                return "leaf" + self._up.who()
        Leaf._up = super(Leaf)
        return Kept().who(), Leaf().who(), super(Kept, Kept).made(), super(Kept, Kept()).who(), x + 1
    check(fn, X, graphs=1)


def test_parts_of_super():
    def fn(x):
        k = Kept()
        s = super(Kept, k)
        return s.__self__ is k, s.__thisclass__ is Kept, s.__self_class__ is Kept, s.who(), x + 1
    check(fn, X, graphs=1)


def test_wrong_super():
    def fn(x):
        texts = []
        for args in ((Kept, 3), (3,), (Kept, object)):
            try:
                super(*args).who()
            except TypeError as error:
                texts.append(str(error))
        return texts, x + 1
    check(fn, X, graphs=1)


def test_class_cell_of_inherited_method():
    def fn(x):
        class A:
            def __init__(self, n):
                self.n = n

        class B(A):
            def __init__(self, n):
                super().__init__(n + 1)

            @property
            def twice(self):
                return super().__getattribute__("n") * 2

        class C(B):
            pass
        return C(1).twice, x + C(2).n
    check(fn, X, graphs=1)


def test_comparison_slot_swallows_what_its_look_up_raises():
    def fn(x):
        class E:
            @property
            def __eq__(self):
                raise AttributeError("no")
            __hash__ = None
        a = E()
        return a == a, a == E(), x + 1
    check(fn, X, graphs=1)
