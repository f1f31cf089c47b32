"""lru_cache, cache and cached_property: results are the cache's own objects, effects happen once."""
from __future__ import annotations

import functools

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, check

CALLS: list[int] = []


@functools.lru_cache
def pure(n):
    return n * 2


@functools.cache
def listed(n, *, k=1):
    return [n, k]


@functools.lru_cache(maxsize=None)
def tensor(n):
    return torch.arange(n)


@functools.lru_cache
def noting(n):
    CALLS.append(n)
    return n


class Thing:
    def __init__(self):
        self.n = 3

    @functools.lru_cache
    def method(self, k):
        return (self.n, k)

    @functools.cached_property
    def prop(self):
        return self.n + 1


THING = Thing()


@pytest.mark.parametrize("fn", [
    lambda x: x + pure(3) + pure(n=4),
    lambda x: (x + listed(1)[0], listed(1) is listed(1), listed(1, k=2)),
    lambda x: x * tensor(2),
    lambda x: (x + THING.method(5)[0], THING.method(5)),
    lambda x: x + pure.__wrapped__(3),
    lambda x: (x + 1, [pure(i) for i in range(3)]),
], ids=lambda fn: None)
def test_calls(fn):
    check(fn, torch.ones(2), graphs=1)


def test_cached_property():
    def f(t, x):
        return x + t.prop, t.prop, "prop" in t.__dict__
    check(f, Thing(), torch.ones(2), graphs=1)


def test_the_kept_object_is_given():
    kept = listed(7)
    got = minidynamo.optimize(lambda x: (x + 1, listed(7)))(torch.ones(1))[1]
    assert got is kept
    assert minidynamo.optimize(lambda x: (x + 1, tensor(4)))(torch.ones(1))[1] is tensor(4)


def test_effects_happen_on_a_miss_only():
    CALLS.clear()
    noting.cache_clear()
    compiled = minidynamo.optimize(lambda x: (x + 1) * noting(5))
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 10
    assert CALLS == [5]


def test_cleared_and_filled_anew():
    counter = CompileCounter()
    compiled = minidynamo.optimize(lambda x: (x + 1, listed(9)), backend=counter)
    first = compiled(torch.ones(1))[1]
    listed.cache_clear()
    assert compiled(torch.ones(1))[1] is listed(9)
    assert listed(9) is not first


def test_a_cache_around_a_partial():
    cached = functools.lru_cache(functools.partial(max, 3))
    check(lambda x: x + cached(5), torch.ones(2), graphs=1)


def test_sizes_of_views_whose_base_is_dynamic():
    counter = CompileCounter()
    compiled = minidynamo.optimize(lambda x: (x.view(-1) * x.shape[0], x.shape[0] * 2), backend=counter)
    for n in (2, 3, 5, 7):
        x = torch.ones(n, 4)[:, :4].transpose(0, 1).transpose(0, 1)
        got = compiled(x)
        assert torch.equal(got[0], x.reshape(-1) * n) and got[1] == 2 * n
    assert counter.frame_count <= 2


def test_effects_of_an_earlier_call_do_not_break():
    noting.cache_clear()
    noting(8)
    CALLS.clear()
    counter = CompileCounter()
    compiled = minidynamo.optimize(lambda x: (x + 1) * noting(8) + 1, backend=counter)
    assert compiled(torch.ones(1)).item() == 17
    assert CALLS == [] and counter.frame_count == 1
    noting.cache_clear()
    assert compiled(torch.ones(1)).item() == 17
    assert CALLS == [8]
