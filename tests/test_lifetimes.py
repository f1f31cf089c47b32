"""Objects that run code when they die do so at CPython's moment: such frames are left to Python."""
from __future__ import annotations

import weakref

import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.arange(3.0)
LOG: list = []


class Dies:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        LOG.append(self.name)


class DiesToo(Dies, dict):
    pass


def guarded(x):
    try:
        yield x + 1
        yield x + 2
    finally:
        LOG.append("closed")


def without_grad(x):
    with torch.no_grad():
        yield x + 1
        yield x + 2


def object_is_deleted(x):
    x = x * 2
    value = Dies("a")
    x = x + 1
    del value
    LOG.append("after")
    return x, list(LOG)


def object_is_replaced(x):
    y = x + 1
    value = Dies("a")
    value = DiesToo("b")
    LOG.append("between")
    value = None
    return y, value, list(LOG)


def object_dies_in_a_call(x):
    def inner(y):
        value = Dies("inner")
        return y + len(value.name)
    x = x * 2
    y = inner(x)
    return y * 2, list(LOG)


def loop_over_generator_is_left(x):
    x = x * 2
    for value in guarded(x):
        break
    LOG.append("after")
    return value, list(LOG)


def generator_is_asked_once(x):
    x = x * 2
    value = next(guarded(x))
    return value + 1, list(LOG)


def grad_mode_comes_back(x):
    x = x * 2
    for value in without_grad(x):
        break
    return value, x * 3, torch.is_grad_enabled()


def generator_in_a_call(x):
    def first(y):
        for value in guarded(y):
            return value
    x = x * 2
    y = first(x)
    return y + 1, list(LOG)


IN_THE_FRAME = [object_is_deleted, object_is_replaced, loop_over_generator_is_left, generator_is_asked_once,
                grad_mode_comes_back]
IN_A_CALL = [object_dies_in_a_call, generator_in_a_call]


def fresh():
    LOG.clear()
    return (X.clone().requires_grad_(),)


@pytest.mark.parametrize("program", IN_THE_FRAME)
def test_a_frame_that_may_free_them_is_left_alone(program):
    found = check(program, make=fresh, cached=False)
    assert "MD0509" in found.skips


@pytest.mark.parametrize("program", IN_A_CALL)
def test_a_caller_goes_on_after_a_break(program):
    found = check(program, make=fresh, cached=False, min_graphs=2)
    assert "MD0323" in found.breaks and "MD0509" in found.skips


def generator_runs_out(x):
    return [value * 2 for value in guarded(x)], list(LOG)


def generator_is_closed(x):
    values = guarded(x)
    first = next(values)
    values.close()
    return first, list(LOG)


def generator_without_a_block(x):
    values = (x + i for i in range(3))
    return next(values) * 2


@pytest.mark.parametrize("program", [generator_runs_out, generator_is_closed, generator_without_a_block])
def test_what_ends_by_itself_needs_no_break(program):
    assert not check(program, make=fresh, graphs=1).breaks


# ---------------------------------------------------------------- variables that are not read again
@minidynamo.disable
def made_by_python():
    return Dies("a")


@minidynamo.disable
def begun():
    values = without_grad(X)
    next(values)
    return values


def object_stays(x):
    x = x * 2
    value = made_by_python()
    print("break")
    x = x + 1
    print("and again")
    return x + 1, list(LOG)


def generator_stays(x):
    x = x * 2
    values = begun()
    print("break")
    return x + 1, torch.is_grad_enabled()


def weak_reference_stays(x):
    x = x + 1
    value = made_by_python()
    reference = weakref.ref(value)
    print("break")
    x = x * 2
    return x * 2, reference() is None, list(LOG)


def stays_on_one_way_only(x):
    x = x * 2
    value = made_by_python()
    if x.sum() > 100:
        return x + len(value.name)
    print("break")
    return x + 1, list(LOG)


def stays_in_a_loop(x):
    seen = []
    for i in range(3):
        x = x + i
        value = made_by_python()
        print("break")
        seen.append(len(LOG))
    return x * 2, seen


@pytest.mark.parametrize("program", [object_stays, generator_stays, weak_reference_stays, stays_on_one_way_only,
                                     stays_in_a_loop])
def test_a_variable_that_is_not_read_again_keeps_its_object(program):
    check(program, make=fresh, min_graphs=2)


class Numbers:
    """As collections.abc.Sequence iterates: an except clause that has nothing to do with closing."""

    def __iter__(self):
        i = 0
        try:
            while True:
                yield i
                i += 1
        except (IndexError, KeyError):
            return


def test_a_generator_left_where_closing_runs_nothing_is_captured():
    def fn(x):
        for n in Numbers():
            if n == 2:
                break
        return x + n

    assert not check(fn, torch.ones(2), graphs=1).breaks
