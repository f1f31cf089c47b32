"""Builtin iterators as inputs: guarded where they stand, advanced for the caller to see."""
from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


def take_two(it, x):
    a = next(it)
    b = next(it, None)
    return a, b, x + 1


def take_all(it, x):
    out = []
    for i in it:
        out.append(i)
    return out, next(it, "done"), x + 1


def take_one_and_break(it, x):
    a = next(it)
    print("break")
    b = next(it)
    return a, b, x + 1


def started(iterator, count=1):
    for _ in range(count):
        next(iterator)
    return iterator


D = {"a": 1, "b": 2, "c": 3, "d": 4}
MAKERS = {
    "range": lambda: started(iter(range(2, 20, 3))),
    "long range": lambda: started(iter(range(0, 1 << 70, 1 << 68))),
    "list": lambda: started(iter([1, 2, 3, 4])),
    "tuple": lambda: started(iter((1, 2, 3, 4))),
    "str": lambda: started(iter("abcdé")),
    "bytes": lambda: started(iter(b"abcd")),
    "dict": lambda: started(iter(dict(D))),
    "dict values": lambda: started(iter(dict(D).values())),
    "dict items": lambda: started(iter(dict(D).items())),
    "set": lambda: started(iter({1, 2, 3, 4})),
    "reversed list": lambda: started(reversed([1, 2, 3, 4])),
    "reversed tuple": lambda: started(reversed((1, 2, 3, 4))),
    "zip": lambda: started(zip([1, 2, 3, 4], "abcd")),
    "map": lambda: started(map(abs, [-1, -2, -3, -4])),
    "filter": lambda: started(filter(None, [1, 0, 2, 3, 4])),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("fn", [take_two, take_all, take_one_and_break])
def test_iterators(fn, name):
    found = check(fn, make=lambda: (MAKERS[name](), X), graphs=1)
    assert set(found.breaks) <= {"MD0101"}


@pytest.mark.parametrize("make", [lambda: started(enumerate("abcd")), lambda: iter(iter([1, 2, 3]).__next__, 9)])
def test_what_cannot_be_set_breaks(make):
    assert check(take_two, make=lambda: (make(), X), graphs=1).breaks


def test_advancing_is_seen_on_every_call():
    compiled = minidynamo.optimize(take_two)
    it, plain = iter(range(9)), iter(range(9))
    for _ in range(4):
        assert compiled(it, X)[:2] == take_two(plain, X)[:2]
    assert list(it) == list(plain) == [8]


def test_iterator_and_its_list():
    def fn(it, items, x):
        items.append(x)
        items[1] = 7
        return list(it), items
    def make():
        items = [1, 2, 3]
        return iter(items), items, X
    assert not check(fn, make=make, graphs=0).breaks


@settings(max_examples=60, deadline=None)
@given(st.integers(-5, 30), st.integers(-5, 30), st.sampled_from([-3, -2, -1, 1, 2, 5]), st.integers(0, 4), st.integers(0, 6))
def test_range_iterators(start, stop, step, before, taken):
    def fn(it, n):
        out = []
        for _ in range(n):
            out.append(next(it, None))
        return out
    compiled = minidynamo.optimize(fn)
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True):
        a, b = iter(range(start, stop, step)), iter(range(start, stop, step))
        for it in (a, b):
            for _ in range(before):
                next(it, None)
        assert compiled(a, taken) == fn(b, taken)
        assert list(a) == list(b)
    minidynamo.reset()


def test_reversed_at_its_end_is_not_exhausted():
    """One that gave its last item goes on when its list grows again from outside; one that said so does not."""
    def fn(asked, x):
        items = [1, 2]
        walker = reversed(items)
        next(walker), next(walker)
        if asked:
            next(walker, None)
        print("break")
        return walker.__reduce__(), x + 1
    for asked in (False, True):
        check(fn, asked, X, min_graphs=1)


def test_reversed_of_the_caller_at_its_end():
    def fn(walker, times):
        return [next(walker, None) for _ in range(times)]
    for times in (2, 3):
        walkers = [reversed([1, 2]) for _ in range(2)]
        minidynamo.optimize(fn)(walkers[0], times)
        fn(walkers[1], times)
        assert walkers[0].__reduce__() == walkers[1].__reduce__()
