"""Closure cells: shared between functions, written across breaks, reached by two paths."""
from __future__ import annotations

import weakref

import torch

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


def test_cell_filled_after_a_break_is_seen_through_the_closure():
    def fn(x):
        def apply():
            return x * factor

        x = x + 1
        minidynamo.graph_break()
        factor = 4
        first = apply()
        factor = 5
        return first, apply()

    check(fn, X, min_graphs=2)


def test_sibling_closure_shares_the_cell_that_the_frame_writes():
    n = 1

    def inc():
        nonlocal n
        n += 1
        return n

    def fn(x):
        nonlocal n
        a = inc()
        n = n * 10
        return x + inc(), a, n

    check(fn, X, min_graphs=1, cached=False)


def test_same_code_with_another_frames_cell_runs_the_original():
    """Guards cannot see the frame's own cells; the output code checks them itself."""
    def make():
        n = 1

        def inc():
            nonlocal n
            n += 1
            return n

        def fn(x, other):
            nonlocal n
            a = other()
            n = n * 10
            return x + n, a, other()

        return fn, inc

    fn, inc = make()
    _, foreign = make()
    backend = minidynamo.testing.CompileCounter()
    compiled = minidynamo.optimize(fn, backend=backend)
    ref, ref_inc = make()
    _, ref_foreign = make()
    for ours, theirs in ((inc, ref_inc), (foreign, ref_foreign), (inc, ref_inc)):
        got, want = compiled(X, ours), ref(X, theirs)
        assert minidynamo.testing.same(got, want)
    assert backend.frame_count >= 1


def test_a_frame_that_handed_over_keeps_nothing_alive():
    """After a break the first frame only waits: what the user deletes is gone, as in CPython."""
    class Thing:
        pass

    def fn(x, make):
        thing = make()
        gone = weakref.ref(thing)
        y = x + 1
        minidynamo.graph_break()
        del thing
        minidynamo.graph_break()
        return y, gone() is None

    compiled = minidynamo.optimize(fn)
    for _ in range(2):
        assert compiled(X, Thing)[1] is fn(X, Thing)[1] is True
