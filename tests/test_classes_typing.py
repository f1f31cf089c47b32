"""Typing objects as values, isinstance and issubclass."""
from __future__ import annotations

import abc
import collections.abc
from typing import Dict, List, Optional, Union  # noqa: UP035

import pytest
import torch

from minidynamo.testing import check

X = torch.ones(2)


def test_aliases_survive_a_break():
    def fn(x, alias):
        a, b = Optional[int], List[int]                                         # noqa: UP006, UP045
        c = list[int]()
        c.append(1)
        print("break")
        return a, b, c, alias, alias.__args__, Union[int, str] == Union[str, int], list[int] == list[int], x + 1  # noqa: UP007
    check(fn, X, list[int], min_graphs=1)


def test_alias_guard_is_by_value():
    def fn(x, alias):
        return x + len(alias.__args__), alias.__origin__ is dict
    for alias in (list[int], dict[str, int], Optional[int], Dict[str, int]):   # noqa: UP006, UP045
        check(fn, X, alias, graphs=1)


def test_unions_and_isinstance():
    def fn(x):
        either = int | None
        return (isinstance(3, int | str), isinstance(3, (list, str | None)), isinstance(None, either), either,
                isinstance(3, Union[int, str]), issubclass(bool, int | str), x + 1)   # noqa: UP007
    check(fn, X, graphs=1)


@pytest.mark.parametrize("cls", [int, list[int], 3, (int, 3)])
def test_isinstance_of_what_is_no_class(cls):
    def fn(x):
        try:
            return isinstance("a", cls), x + 1
        except TypeError as error:
            return str(error), x + 1
    check(fn, X, min_graphs=1)


def test_claimed_class_and_abstract_bases():
    def fn(x):
        class Proxy:
            @property
            def __class__(self):
                return int

        class Loose:
            def __init__(self, *bases):
                self.__bases__ = bases

        root = Loose()
        leaf = Loose(root)
        return (isinstance(Proxy(), int), isinstance(Proxy(), str), isinstance(Proxy(), Proxy), issubclass(leaf, root),
                issubclass(root, leaf), x + 1)
    check(fn, X, graphs=1)


class Sized(abc.ABC):
    """Accepts what is registered."""


class Late:
    pass


def test_registering_is_noticed():
    def fn(x):
        return x + (1 if isinstance(LATE, Sized) else 2), isinstance(LATE, collections.abc.Hashable)
    check(fn, X, graphs=1)
    Sized.register(Late)
    check(fn, X, graphs=1)


LATE = Late()


def test_metaclass_checks_run_as_code():
    def fn(x):
        calls = []

        class M(type):
            def __instancecheck__(cls, obj):
                calls.append("i")
                return obj == 3

            def __subclasscheck__(cls, other):
                calls.append("s")
                return other is int

        class C(metaclass=M):
            pass
        return isinstance(3, C), isinstance(C(), C), isinstance(4, (str, C)), issubclass(int, C), calls, x + 1
    check(fn, X, graphs=1)
