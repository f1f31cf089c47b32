"""list.sort and sorted: order of comparisons, exceptions, mutation meanwhile."""
from __future__ import annotations

import functools
import string

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


class Noted:
    """Notes each comparison, and may raise in one of them."""

    def __init__(self, value, log, fail=None):
        self.value, self.log, self.fail = value, log, fail

    def __lt__(self, other):
        self.log.append((self.value, other.value))
        if len(self.log) == self.fail:
            raise RuntimeError("no")
        return self.value < other.value


def sort(values, fail, reverse):
    log = []
    items = [Noted(v, log, fail) for v in values]
    try:
        items.sort(reverse=reverse)
    except RuntimeError as e:
        log.append(str(e))
    return [i.value for i in items], log


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=12), st.none() | st.integers(1, 9), st.booleans())
def test_comparisons_and_failures(values, fail, reverse):
    compiled = minidynamo.optimize(sort)
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True):
        assert compiled(values, fail, reverse) == sort(values, fail, reverse)
    minidynamo.reset()


def test_mutation_meanwhile():
    def fn(x):
        out = []
        items = [3, 1, 2]

        def key(v):
            out.append(list(items))
            if v == 1:
                items.append(9)
            return v
        try:
            items.sort(key=key)
        except ValueError as e:
            out.append(str(e))
        mixed = [3, "a", 1]
        try:
            mixed.sort()
        except TypeError as e:
            out.append(str(e))
        return out, items, mixed, sorted("hello", reverse=True), sorted([(1, x), (0, x)], key=lambda p: p[0])
    assert not check(fn, X, graphs=0).breaks


def test_cmp_to_key_ascii_and_formatter():
    def fn(x):
        seen = []

        def compare(a, b):
            seen.append((a, b))
            return a - b
        key = functools.cmp_to_key(compare)
        text = string.Formatter().format("{0} {name!r:>5} {2[a].real}", 1, 2, {"a": 3}, name="z")
        return sorted([3, 1, 2], key=key), seen, max([1, 5, 2], key=key), key(1) < key(2), key(4).obj, ascii("é"), text, x + 1
    assert not check(fn, X, graphs=1).breaks


def test_a_list_that_is_put_back_as_it_was_while_it_is_sorted():
    """What the key or comparison puts in and takes out again is seen all the same."""
    def f(x):
        texts = []
        for change in (lambda items: (items.append(3), items.pop()), lambda items: (items.append(3), items.clear()),
                       lambda items: (items.insert(0, 1), items.__delitem__(0)), lambda items: items.extend([]),
                       lambda items: items.clear(), lambda items: (items.extend([1, 2]), items.clear())):
            items = [2, 1]
            try:
                items.sort(key=lambda value: (change(items), value)[1])
            except ValueError as error:
                texts.append(str(error))
            texts.append(list(items))
        return x + 1, texts

    check(f, torch.ones(2), graphs=1)
