"""functools.singledispatch with classes of all kinds, the weak dictionary behind it, and what abstract classes say."""
from __future__ import annotations

import abc
import collections.abc as c
import functools
import sys
import weakref

import torch

from minidynamo.testing import check

X = torch.arange(3.)


def err(f, *a, **k):
    try:
        return f(*a, **k)
    except Exception as e:
        return type(e), str(e), type(e.__context__)


def dispatched(x):
    @functools.singledispatch
    def g(a):
        return "base"

    @g.register(int)
    def _(a):
        return "int"

    @g.register
    def _(a: list):
        return "list"

    @g.register(c.Mapping)
    def _(a):
        return "mapping"

    class A:
        pass

    class B(A):
        pass
    g.register(A, lambda a: "A")
    out = [g(1), g(True), g([]), g({}), g("a"), g(B()), g(A()), g.dispatch(int)(3), len(g.registry), g(1)]

    class M:
        @functools.singledispatchmethod
        def m(self, a):
            return "m"

        @m.register
        def _(self, a: int):
            return "mi"

        @m.register(str)
        def _(self, a):
            return "ms"
    out += [M().m(1), M().m("a"), M().m(2.0), err(g), err(g.register, 3)]

    @g.register(c.Sized)
    def _(a):
        return "s"

    @g.register(c.Iterable)
    def _(a):
        return "i"
    out.append(err(g, {1}))
    out.append([k.__name__ for k in A.__subclasses__()])
    return out, B.__name__, x + 1


def abstract_by_a_property(x):
    class Abstract(abc.ABC):
        @functools.singledispatchmethod
        @abc.abstractmethod
        def add(self, a):
            pass
    return err(Abstract)[:2], Abstract.add.__isabstractmethod__, x + 1


def test_an_abstract_method_that_says_so_itself():
    assert check(abstract_by_a_property, X, cached=False).result[1] is True


def weak_keys(x):
    class A:
        pass
    d = weakref.WeakKeyDictionary()
    d[int] = 1
    d[A] = 2
    out = [d[int], d[A], len(d), int in d, str in d, d.get(str, 5)]
    try:
        d[str]
    except KeyError:
        out.append("missing")
    del d[int]
    out.append(len(d))
    d.clear()
    return out, len(d), x + 1


def test_dispatch():
    found = check(dispatched, X, cached=False)
    assert sys.version_info >= (3, 13) or found.graphs and not found.breaks


def test_weak_keys():
    assert not check(weak_keys, X).breaks


def test_a_dictionary_of_weak_keys_that_leaves_the_trace():
    def fn(x):
        d = weakref.WeakKeyDictionary()
        d[int] = [3]
        return d, x + 1
    result = check(fn, X).result
    assert result[0][int] == [3]


class Thing:
    pass


THING = Thing()


def test_other_keys_are_left_to_python():
    def dies(x):
        d = weakref.WeakKeyDictionary()
        d[Thing()] = 1
        return len(d), x + 1

    def lives(x):
        d = weakref.WeakKeyDictionary()
        d[THING] = 1
        return len(d), d[THING], x + 1
    found = check(dies, X, cached=False)
    assert found.result[0] == 0 and found.breaks + found.skips
    assert check(lives, X, cached=False).graphs


class Registered:
    pass


class Late(c.Sized):
    def __len__(self):
        return 1


@functools.singledispatch
def late(a):
    return "base"


@late.register(Late)
def _(a):
    return "late"


def test_a_class_registered_later_is_seen():
    def fn(x, a):
        return late(a), issubclass(Registered, Late), x + 1
    first = check(fn, X, make=lambda: (X, Registered()), cached=False).result
    Late.register(Registered)
    second = check(fn, X, make=lambda: (X, Registered()), cached=False).result
    assert first[0] == "base" and second[0] == "late"


def test_subclasses_are_guarded():
    class Base:
        pass

    def fn(x):
        return [k.__name__ for k in Base.__subclasses__()], x + 1
    assert not check(fn, X).breaks

    class One(Base):
        pass
    assert check(fn, X).result[0] == ["One"]
