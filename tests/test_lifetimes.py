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


# ---------------------------------------------------------------- weak references
class Named:
    def __init__(self, name):
        self.name = name


class Holder:
    def __init__(self, item):
        self.item = item


class WithReference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.reference = weakref.ref(self.inner)

    def forward(self, x):
        return self.reference()(x)


KEPT = Named("kept")
TO_KEPT = weakref.ref(KEPT)
SEEN: weakref.WeakSet = weakref.WeakSet()


@minidynamo.disable
def told(value):
    SEEN.add(value)


def reference_to_an_argument(x):
    reference = weakref.ref(x)
    return reference() * 2, reference() is x, reference is weakref.ref(x)


def reference_to_a_global(x):
    reference = weakref.ref(KEPT)
    return x * 2, reference().name, reference is TO_KEPT, reference == TO_KEPT, hash(reference) == hash(KEPT)


def reference_leaves(x):
    found = {"reference": weakref.ref(KEPT)}
    return x * len(found["reference"]().name), found


def refused(x):
    try:
        weakref.ref(3)
    except TypeError as error:
        return x + 1, str(error)


@pytest.mark.parametrize("program", [reference_to_an_argument, reference_to_a_global, reference_leaves, refused])
def test_a_weak_reference_to_what_exists_is_captured(program):
    assert not check(program, X, graphs=1).breaks


def test_a_module_behind_a_weak_reference_is_captured():
    model = WithReference()
    assert not check(lambda x: model(x), X, graphs=1).breaks


def its_own_object(x):
    value = Named("a")
    reference = weakref.ref(value)
    length = len(reference().name)
    del value
    return x * length, reference() is None


def its_own_tensor(x):
    y = x + 1
    reference = weakref.ref(y)
    same = reference() is y
    y = None
    return x * 2, same, reference() is None


def called_back(x):
    found = []
    value = Named("a")
    reference = weakref.ref(value, lambda _: found.append("gone"))
    del value
    return x * 2, found, reference() is None


def finalized(x):
    found = []
    value = Named("a")
    end = weakref.finalize(value, found.append, "gone")
    del value
    return x * 2, found, end.alive


def key_of_a_weak_dict(x):
    known = weakref.WeakKeyDictionary()
    value = Named("a")
    known[value] = 1
    before = len(known)
    del value
    return x * 2, before, len(known)


@pytest.mark.parametrize("program", [its_own_object, its_own_tensor, called_back, finalized, key_of_a_weak_dict])
def test_a_frame_that_refers_weakly_to_what_it_makes_is_left_alone(program):
    found = check(program, X, cached=False)
    assert "MD0510" in found.skips or "MD0507" in found.skips


def dropped_behind_a_break(x):
    value = Named("a")
    print("break")
    reference = weakref.ref(value)
    del value
    return x * 2, reference() is None


def test_a_break_does_not_lengthen_lives_that_are_watched():
    assert "MD0507" in check(dropped_behind_a_break, X, cached=False).skips


def given_away(x):
    value = Named("a")
    told(value)
    y = x + 1
    return y, len(SEEN)


def part_given_away(x):
    holder = Holder(Named("a"))
    told(holder.item)
    y = x + 1
    return y, len(SEEN)


def watched():
    SEEN.clear()
    return (X.clone(),)


@pytest.mark.parametrize("program", [given_away, part_given_away])
def test_an_object_given_away_at_a_break_lives_as_long_as_its_variable(program):
    check(program, make=watched, min_graphs=1, cached=False)
