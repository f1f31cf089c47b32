"""itertools: values, types, laziness, state after a break; properties against CPython."""
from __future__ import annotations

import itertools as it
import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)

MAKERS = {
    "count": lambda: it.count(3, 2), "count float": lambda: it.count(0.5), "cycle": lambda: it.cycle([1, 2, 3]),
    "repeat": lambda: it.repeat("a", 4), "repeat for ever": lambda: it.repeat("a"),
    "chain": lambda: it.chain([1, 2], "ab", (), {3: 4}), "from_iterable": lambda: it.chain.from_iterable([[1], [2, 3], "ab"]),
    "islice": lambda: it.islice(it.count(), 2, 11, 2), "islice stop": lambda: it.islice("abcdef", 4),
    "islice open": lambda: it.islice("abcdefgh", 1, None, 3), "starmap": lambda: it.starmap(pow, [(1, 2), (3, 4), (2, 2), [5, 1]]),
    "takewhile": lambda: it.takewhile(lambda v: v < 4, [1, 3, 2, 5, 1]), "dropwhile": lambda: it.dropwhile(lambda v: v < 3, [1, 2, 3, 1, 5]),
    "filterfalse": lambda: it.filterfalse(lambda v: v % 2, range(9)), "filterfalse none": lambda: it.filterfalse(None, [0, 1, "", (), 3]),
    "compress": lambda: it.compress("abcdef", [1, 0, 1, 1, 0, 1]), "pairwise": lambda: it.pairwise("abcd"),
    "accumulate": lambda: it.accumulate([1, 2, 3, 4]), "accumulate function": lambda: it.accumulate([3, 1, 4], max, initial=2),
    "zip_longest": lambda: it.zip_longest("ab", "cdef", (), fillvalue="-"), "product": lambda: it.product("ab", [1, 2]),
    "product repeat": lambda: it.product("ab", repeat=2), "product none": lambda: it.product(),
    "permutations": lambda: it.permutations([1, 2, 3], 2), "permutations all": lambda: it.permutations("abc"),
    "combinations": lambda: it.combinations("abcd", 2), "with replacement": lambda: it.combinations_with_replacement("abc", 2),
    "groupby": lambda: ((k, list(g)) for k, g in it.groupby("aabbbca")),
    "groupby key": lambda: ((k, list(g)) for k, g in it.groupby([1, 3, 2, 4, 5], lambda v: v % 2)),
    "tee": lambda: zip(*it.tee(iter([1, 2, 3, 4]))),
}


@pytest.mark.parametrize("name", MAKERS)
def test_values_and_state(name):
    make = MAKERS[name]

    def fn(x, n):
        first = make()
        out = [next(first, "end") for _ in range(n)]
        rest = make()
        next(rest, None)
        return out, type(first) is type(rest), list(it.islice(rest, 5)), x + 1
    for n in (0, 2, 7):
        assert not check(fn, X, n, graphs=1).breaks


@pytest.mark.parametrize("name", [n for n in MAKERS if "groupby" not in n])
@pytest.mark.parametrize("n", [0, 1, 3, 9])
def test_half_used_across_a_break(name, n):
    make = MAKERS[name]

    def fn(x):
        iterator = make()
        for _ in range(n):
            next(iterator, None)
        y = x + 1
        print("break")
        return list(it.islice(iterator, 6)), y * 2
    check(fn, X, graphs=2)


def test_results_leave_lazily():
    def fn(x):
        seen = []
        m = it.starmap(lambda a, b: seen.append(a) or a + b, [(1, x), (2, x)])
        return next(m), seen, it.count(4), it.repeat(x, 2), it.pairwise([1, 2]), it.product([1], [2]), repr(it.count(2)), repr(it.repeat(1, 2))
    assert not check(fn, X, graphs=1).breaks


def test_tees_share():
    def fn(x):
        a, b = it.tee(iter([1, 2, x]))
        next(a)
        c = a.__copy__() if hasattr(a, "__copy__") else a
        return list(b), next(a), list(c), list(it.tee(a)[0]), x + 1
    assert not check(fn, X, graphs=1).breaks


def test_tees_are_no_buffers():
    def fn(x):
        a, b = it.tee(iter([1, 2]))
        try:
            return float(a), x + 1
        except TypeError as error:
            return str(error), x + 1
    assert not check(fn, X, graphs=1).breaks


def test_groups_end_when_the_next_is_asked_for():
    def fn(x):
        groups = it.groupby([1, 1, 2, 2, 3])
        _, first = next(groups)
        next(first)
        _, second = next(groups)
        return list(first), list(second), [k for k, _ in groups], x + 1
    assert not check(fn, X, graphs=1).breaks


def test_count_from_outside():
    compiled = minidynamo.optimize(lambda c, x: (next(c), next(c), x + 1))
    a, b = it.count(5, 3), it.count(5, 3)
    for _ in range(3):
        assert compiled(a, X)[:2] == (next(b), next(b))
    assert next(a) == next(b)


def text_of(thunk):
    try:
        return thunk()
    except Exception as error:
        return type(error), str(error)


def test_errors():
    def fn(x):
        return [text_of(f) for f in (
            lambda: it.count("a"), lambda: it.cycle(1), lambda: it.repeat(1, "a"), lambda: it.islice([1], -1),
            lambda: it.islice([], 0, 1, 0), lambda: it.combinations([1], -1), lambda: it.permutations([1], "a"),
            lambda: it.product([1], repeat=-1), lambda: it.tee([1], -1), lambda: it.zip_longest([1], foo=1), lambda: it.groupby(1),
            lambda: next(it.starmap(max, [1])), lambda: it.chain.from_iterable(1), lambda: operator.length_hint(it.repeat(1)),
            lambda: operator.length_hint(iter([1, 2])), lambda: it.combinations("ab"), lambda: it.pairwise())], x + 1
    assert not check(fn, X, graphs=1).breaks


INTS = st.lists(st.integers(0, 3), max_size=5)
FUNCTIONS = st.sampled_from([
    lambda a, b: it.chain(a, b), lambda a, b: it.zip_longest(a, b), lambda a, b: it.compress(a, b), lambda a, b: it.product(a, b),
    lambda a, b: it.permutations(a[:4]), lambda a, b: it.combinations(a, len(b) % 4), lambda a, b: it.accumulate(a),
    lambda a, b: it.islice(a, len(b)), lambda a, b: it.pairwise(a), lambda a, b: it.takewhile(bool, a),
    lambda a, b: it.dropwhile(bool, a), lambda a, b: it.filterfalse(None, a), lambda a, b: it.islice(it.cycle(a), 2 * len(b)),
    lambda a, b: ((k, list(g)) for k, g in it.groupby(a)), lambda a, b: zip(*it.tee(iter(a), 3))])


@settings(max_examples=80, deadline=None)
@given(FUNCTIONS, INTS, INTS, st.integers(0, 4))
def test_as_in_cpython(make, a, b, n):
    def fn(a, b):
        iterator = make(a, b)
        return [next(iterator, None) for _ in range(n)], list(iterator), next(iterator, "over")
    compiled = minidynamo.optimize(fn)
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True):
        assert compiled(list(a), list(b)) == fn(list(a), list(b))
    minidynamo.reset()
