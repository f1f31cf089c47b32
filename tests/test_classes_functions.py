"""Function objects as values: attributes, live ``__dict__``, functools.wraps."""
from __future__ import annotations

import functools
import threading

import torch

from minidynamo.testing import check

X = torch.arange(3.0)


def marked(**fields):
    def decorate(function):
        function.__dict__.update(fields)
        return function
    return decorate


def test_attributes_written_through_the_dict():
    def fn(x):
        @marked(author="me", number=3)
        def inner(a):
            return a + inner.number
        return inner(x), inner.author, dict(inner.__dict__), inner
    check(fn, X, graphs=1)


def test_wraps_keeps_everything():
    def fn(x):
        def decorate(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args) + 1
            wrapper.extra = 5
            return wrapper

        @decorate
        def inner(a):
            "doc"
            return a * 2
        return inner(x), inner.__name__, inner.__doc__, inner.extra, inner.__wrapped__(x), sorted(inner.__dict__)
    check(fn, X, graphs=1)


def test_dict_is_live_both_ways():
    def fn(x):
        def inner():
            return x
        inner.a = 1
        space = inner.__dict__
        space["b"] = 2
        del inner.a
        inner.a = 4
        del space["b"]
        return space, inner.a, list(space), hasattr(inner, "b"), x + 1
    check(fn, X, graphs=1)


def test_attributes_survive_a_break():
    def fn(x):
        def inner(a):
            return a + inner.shift
        inner.shift = 2
        inner.__name__ = "renamed"
        print("break")
        return inner(x), inner.__name__, inner.shift
    check(fn, X, min_graphs=1)


class WithMethods:
    def method(self, a=1):
        """doc"""
        return a

    @classmethod
    def of_class(cls):
        return cls


HOLDER = WithMethods()


def method_parts(x):
    method = HOLDER.method
    return (x + 1, method.__name__, method.__doc__, method.__defaults__, method.__func__ is WithMethods.method,
            method.__eq__(HOLDER.method), method.__ne__(3), method.__call__(4), type(method.__call__).__name__,
            method.__reduce__()[1][1], method.__reduce_ex__(2)[1][1], WithMethods.of_class.__reduce_ex__(2)[1][1])


def test_a_methods_own_slots_come_before_its_functions():
    check(method_parts, torch.ones(2), graphs=1)


def test_a_class_made_by_c_on_the_heap_is_not_one_of_pythons():
    """What it shows of itself is its own (a lock is no plain object with an address)."""
    lock = threading.Lock()

    def f(x):
        return x + 1, str(lock), repr(lock), f"{lock}", lock == lock, bool(lock)

    check(f, torch.ones(2), min_graphs=1)
