"""Containers as properties: any sequence of operations on a container leaves it, and everybody who sees it, as CPython does."""
from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict, deque

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import minidynamo
from minidynamo.observe.describe import describe, difference
from minidynamo.testing import check


class Lst(list):
    def append(self, value):
        self.count = getattr(self, "count", 0) + 1
        super().append(value)

    def __getitem__(self, at):
        return super().__getitem__(at)

    def __len__(self):
        return 99


class Dct(dict):
    def __missing__(self, key):
        return ("missing", key)

    def __setitem__(self, key, value):
        self.last = key
        super().__setitem__(key, value)

    def keys(self):
        return ["not", "the", "keys"]


class Odd(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)


class Set(set):
    def add(self, item):
        self.added = item
        super().add(item)


class Deq(deque):
    def append(self, value):
        super().append(value)


def attempt(out, call):
    try:
        out.append(call())
    except (IndexError, KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        out.append((type(error), str(error)))


def stop_here():
    return print(end="")


LIST_OPS = {
    "append": lambda c, a, b: c.append(a), "extend": lambda c, a, b: c.extend([a, b]), "insert": lambda c, a, b: c.insert(a, b),
    "pop": lambda c, a, b: c.pop(), "pop at": lambda c, a, b: c.pop(a), "remove": lambda c, a, b: c.remove(a),
    "set": lambda c, a, b: list.__setitem__(c, a, b), "del": lambda c, a, b: list.__delitem__(c, a),
    "slice": lambda c, a, b: list.__setitem__(c, slice(0, a), [b, b]), "reverse": lambda c, a, b: c.reverse(),
    "sort": lambda c, a, b: c.sort(), "clear": lambda c, a, b: c.clear(), "attr": lambda c, a, b: setattr(c, "tag", a),
    "read": lambda c, a, b: (c[a], len(c), list(c), a in c, c.count(a)), "iadd": lambda c, a, b: c.__iadd__([a]),
    "imul": lambda c, a, b: c.__imul__(2), "index": lambda c, a, b: c.index(a), "break": lambda c, a, b: stop_here(),
}
DICT_OPS = {
    "set": lambda c, a, b: c.__setitem__(a, b), "del": lambda c, a, b: c.__delitem__(a), "get": lambda c, a, b: c.get(a, b),
    "read": lambda c, a, b: c[a], "pop": lambda c, a, b: c.pop(a, "none"), "popitem": lambda c, a, b: c.popitem(),
    "setdefault": lambda c, a, b: c.setdefault(a, b), "update": lambda c, a, b: c.update({a: b, b: a}), "attr": lambda c, a, b: setattr(c, "tag", a),
    "items": lambda c, a, b: list(c.items()), "iterate": lambda c, a, b: [k for k in c], "contains": lambda c, a, b: a in c,
    "clear": lambda c, a, b: c.clear(), "copy": lambda c, a, b: c.copy(), "reversed": lambda c, a, b: list(reversed(c)),
    "or": lambda c, a, b: c | {a: b}, "break": lambda c, a, b: stop_here(), "to_end": lambda c, a, b: c.move_to_end(a, last=bool(b % 2)),
}
SET_OPS = {
    "add": lambda c, a, b: c.add(a), "discard": lambda c, a, b: c.discard(a), "remove": lambda c, a, b: c.remove(a),
    "update": lambda c, a, b: c.update([a, b]), "iand": lambda c, a, b: c.intersection_update({a, b, 1}),
    "isub": lambda c, a, b: c.difference_update([a]), "ixor": lambda c, a, b: c.symmetric_difference_update({a, b}),
    "or": lambda c, a, b: c | {a, b}, "and": lambda c, a, b: c & {a, b}, "sub": lambda c, a, b: c - {a}, "le": lambda c, a, b: c <= {a, b},
    "contains": lambda c, a, b: (a in c, frozenset([a]) in c), "attr": lambda c, a, b: setattr(c, "tag", a), "sorted": lambda c, a, b: sorted(c),
    "copy": lambda c, a, b: c.copy(), "clear": lambda c, a, b: c.clear(), "frozen": lambda c, a, b: frozenset(c), "break": lambda c, a, b: stop_here(),
}
DEQUE_OPS = {
    "append": lambda c, a, b: c.append(a), "left": lambda c, a, b: c.appendleft(a), "pop": lambda c, a, b: c.pop(),
    "popleft": lambda c, a, b: c.popleft(), "rotate": lambda c, a, b: c.rotate(a - b), "extend": lambda c, a, b: c.extend([a, b]),
    "extendleft": lambda c, a, b: c.extendleft([a, b]), "insert": lambda c, a, b: c.insert(a, b), "remove": lambda c, a, b: c.remove(a),
    "index": lambda c, a, b: c.index(a), "set": lambda c, a, b: c.__setitem__(a, b), "del": lambda c, a, b: c.__delitem__(a),
    "reverse": lambda c, a, b: c.reverse(), "read": lambda c, a, b: (list(c), c.maxlen, c.count(a)), "break": lambda c, a, b: stop_here(),
    "copy": lambda c, a, b: c.copy(), "clear": lambda c, a, b: c.clear(),
}
STARTS = {
    "list": (lambda: [1, 2, 3], LIST_OPS), "list subclass": (lambda: Lst([3, 1, 2]), LIST_OPS),
    "dict": (lambda: {1: 2, 3: 4}, DICT_OPS), "dict subclass": (lambda: Dct({1: 2, 3: 4}), DICT_OPS),
    "OrderedDict": (lambda: OrderedDict({1: 2, 3: 4, 0: 1}), DICT_OPS), "OrderedDict subclass": (lambda: Odd({1: 2, 3: 4}), DICT_OPS),
    "defaultdict": (lambda: defaultdict(list, {1: 2}), DICT_OPS), "set": (lambda: {1, 2, 3}, SET_OPS), "set subclass": (lambda: Set([1, 2]), SET_OPS),
    "deque": (lambda: deque([1, 2, 3], 4), DEQUE_OPS), "deque subclass": (lambda: Deq([1, 2, 3]), DEQUE_OPS),
}
SMALL = st.integers(0, 5)


def run(c, steps, table, x):
    out = []
    other = c
    for name, a, b in steps:
        op = table[name]
        attempt(out, lambda: op(c, a, b))
    return out, other, c, x + 1


@pytest.mark.parametrize("start", STARTS)
@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_any_sequence_of_operations(start, data):
    make, table = STARTS[start]
    steps = data.draw(st.lists(st.tuples(st.sampled_from(sorted(table)), SMALL, SMALL), max_size=7))
    compiled = minidynamo.optimize(run)
    x = torch.ones(1)
    with minidynamo.config.patch(error_on_internal=True):
        for _ in range(2):
            mine, theirs = make(), make()
            ours = describe((compiled(mine, copy.copy(steps), table, x), mine))
            eager = describe((run(theirs, copy.copy(steps), table, x), theirs))
            assert difference(eager, ours) is None, steps
            assert type(mine) is not set or list(mine) == list(theirs)
    minidynamo.reset()


ITEMS = st.frozensets(st.one_of(st.integers(-2, 2), st.text(max_size=1), st.none(), st.floats(allow_nan=False, width=16),
                                st.tuples(st.integers(0, 1))), max_size=4)


@settings(max_examples=20, deadline=None)
@given(ITEMS, ITEMS)
def test_frozensets(a, b):
    """Frozensets as arguments and made inside; equal arguments hit the cache, others are not taken for them."""
    def fn(a, b, x):
        made = frozenset([*a, 1])
        return a | b, a & b, a - b, made, a == b, hash(a) == hash(frozenset(b)), {a: 1}.get(b), x + 1
    compiled = minidynamo.optimize(fn)
    x = torch.ones(1)
    with minidynamo.config.patch(error_on_internal=True):
        for pair in ((a, b), (b, a), (a, b)):
            assert compiled(*pair, x)[:7] == fn(*pair, x)[:7]
    minidynamo.reset()


def test_a_frozenset_of_tensors_is_never_frozen():
    """The items are read from the argument on every call."""
    def fn(s):
        (t,) = s
        return t + 1
    compiled = minidynamo.optimize(fn)
    for value in (1.0, 5.0, 7.0):
        assert compiled(frozenset([torch.tensor(value)])).item() == value + 1


# ---------------------------------------------------------------- lists that grow
SEEN: list = []


class Remembers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.seen = []

    def forward(self, x):
        y = self.inner(x)
        self.seen.append(y.detach())
        return y


def test_a_list_that_is_only_appended_to_may_have_any_length():
    def fn(x):
        SEEN.append(x.sum())
        SEEN.extend([1, x])
        return x + 1

    model, x = Remembers(), torch.ones(4)
    minidynamo.reset()
    compiled, forward = minidynamo.optimize(fn), minidynamo.optimize(model)
    SEEN.clear()
    for turn in range(5):
        assert torch.equal(compiled(x), x + 1) and torch.equal(forward(x), model.inner(x))
        assert len(SEEN) == 3 * turn + 3 and SEEN[-2] == 1 and SEEN[-1] is x and len(model.seen) == turn + 1
    assert minidynamo.counters["frames"]["total"] == 2


def appended_then_read(x, a):
    a.append(x + 1)
    count = len(a)
    a.append(count)
    return a[-2] * 2, count, a[0]


def appended_by_two_names(x, a):
    b = a
    a.append(1)
    b.append(2)
    return x * 2, b is a, a == [0, 1, 2]


def appended_to_itself(x, a):
    a.append(a)
    a.extend(a)
    return x + len(a)


def appended_at_a_break(x, a):
    a.append(x + 1)
    print("break")
    a.append(x + 2)
    return x + 3


def appended_in_vain(x, a):
    try:
        a.append(1)
        a.append([][1])
    except IndexError:
        return x + 1


@pytest.mark.parametrize("program", [appended_then_read, appended_by_two_names, appended_to_itself, appended_at_a_break,
                                     appended_in_vain])
def test_appending_is_eagers(program):
    check(program, torch.ones(2), [0], min_graphs=1)


def test_a_length_that_was_read_is_a_fact():
    def fn(x, a):
        a.append(1)
        return x + len(a)

    compiled, x = minidynamo.optimize(fn), torch.ones(2)
    assert [compiled(x, [0] * n)[0].item() for n in (1, 2, 1, 5)] == [3, 4, 3, 7]
