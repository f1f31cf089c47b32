"""Subclasses of builtins, from outside and made inside: both parts are tracked and written back."""
from __future__ import annotations

import operator
import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


class MyList(list):
    def __init__(self, *args):
        super().__init__(*args)
        self.tag = 1

    def append(self, value):
        self.tag += 1
        super().append(value * 2)


class MyDict(dict):
    def __missing__(self, key):
        self[key] = key * 2
        return self[key]

    def __getitem__(self, key):
        return 5 + super().__getitem__(key)


class MySet(set):
    pass


class Pair(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    def __deepcopy__(self, memo):
        return Pair(*self)


class MyInt(int):
    def __add__(self, other):
        return MyInt(int(self) + int(other) + 1)


class MyStr(str):
    x = 1


class Plain:
    pass


def change_list(items, x):
    items.append(3)
    items[0] = x
    items.tag += 10
    items.extra = x
    return len(items), items, [i for i in items], x + 1


def change_dict(d, x):
    d[1] = x
    y = d[7]
    d.z = 3
    for k in d:
        y = y + k
    return y, d, list(d), d.keys(), iter(d), dict(d), x + 1


def change_set(s, x):
    s.add(3)
    s.discard(1)
    s.q = x
    return 2 in s, s, x + len(s)


def read_tuple(t, x):
    return t[0] + x, t, t + (), t * 1, t[:], tuple(t), type(t)


def read_int(i, x):
    return type(i + 1), i + 1, i * 2, [x + 1, 2, x * 3][i]


def read_str(s, x):
    return s + "a", s.upper(), x + len(s), {s: 1}["ab"], f"{s}"


@pytest.mark.parametrize(("fn", "value"), [
    (change_list, MyList([1, 2])), (change_dict, MyDict({1: 2, 3: 4})), (change_set, MySet([1, 2])),
    (read_tuple, Pair(1, 2)), (read_int, MyInt(2)), (read_str, MyStr("ab"))])
def test_from_outside(fn, value):
    assert not check(fn, value, X, min_graphs=1).breaks


def test_made_inside():
    def fn(x):
        items = MyList([x])
        items.append(x)
        d = MyDict(a=x)
        pair = Pair(x, x + 1)
        return items, d, pair, MyInt(3) + 1, MySet([1, 2, 3]), items.tag, iter(items), d["a"], iter(d)
    assert not check(fn, X, graphs=1).breaks


def test_changed_part_of_two_objects_is_not_confused():
    def fn(a, b, x):
        a.append(x)
        return len(b), x + 1
    compiled = minidynamo.optimize(fn)
    one, two = MyList([1]), MyList([1])
    assert compiled(one, two, X)[0] == 1
    assert compiled(one, one, X)[0] == 3


def test_identity_is_guarded():
    def fn(a, b, x):
        return a is b, a == b, {a: 1}.get(b), b in {a, 3}, x + 1
    a, b = Plain(), Plain()
    compiled = minidynamo.optimize(fn)
    for pair in ((a, b), (a, a), (a, b)):
        assert compiled(*pair, X)[:4] == fn(*pair, X)[:4]


def test_set_order_is_guarded():
    def fn(s, x):
        return [i + x for i in s]
    compiled = minidynamo.optimize(fn)
    for s in ({8, 0}, {0, 8}, {8, 0}):
        assert [float(t[0]) for t in compiled(s, X)] == [float(t[0]) for t in fn(s, X)]
    check(fn, {8, 0, 16}, X, graphs=1)


def test_order_of_a_set_made_inside():
    def fn(x):
        s = {17, 2, 5}
        s.add(40)
        s.discard(5)
        return list(s), x + 1, s | {99, 3}, frozenset(s)
    check(fn, X, graphs=1)


def test_sets_of_objects_from_outside():
    def fn(s, x, item):
        for t in s:
            if isinstance(t, torch.Tensor):
                x = x + t
        return item in s, len(s), x
    item = Plain()
    # a copy's items may come in another order, which is another program
    assert not check(fn, {item, 1, X}, X, item, min_graphs=1, cached=False).breaks
    assert not check(fn, frozenset([X, item]), X, Plain(), min_graphs=1, cached=False).breaks
    compiled = minidynamo.optimize(fn)
    for other in (Plain(), item, Plain()):
        assert compiled({item, 1}, X, other)[0] is (other is item)


class Floated(str):
    def __float__(self):
        return 7.5


def test_numbers_from_text_of_subclasses():
    def fn(x):
        return float(MyStr("1.5")), int(MyStr("3")), float(Floated("1")), x + 1
    assert not check(fn, X, graphs=1).breaks


class MarkedProperty(property):
    def __init__(self, fget, fset=None, mark=None):
        super().__init__(fget, fset)
        self.mark = mark


class WithMarked:
    def __init__(self):
        self.v = 2

    @MarkedProperty
    def plain(self):
        return self.v + 1

    marked = MarkedProperty(lambda self: self.v * 2, lambda self, value: setattr(self, "v", value), mark="m")


def test_property_subclasses_are_properties():
    def f(x, a):
        before = a.plain, a.marked, type(a).marked.mark, type(a).plain is WithMarked.plain
        a.marked = 7
        return x * a.plain, before, property.__get__(WithMarked.marked, a)

    check(f, torch.ones(2), WithMarked(), graphs=1, fullgraph=True)


def test_property_subclasses_made_while_tracing():
    def f(x):
        made = MarkedProperty(lambda self: 5, mark="new")

        class Holder:
            p = made

        lazy = torch.distributions.Categorical.probs
        return x * Holder().p, made.mark, isinstance(made, property), type(lazy).__name__, isinstance(lazy, property)

    check(f, torch.ones(2), graphs=1)


def test_property_subclass_leaves_the_trace():
    def f(x):
        return x + 1, MarkedProperty(abs, mark=x)

    result = check(f, torch.ones(2), graphs=1, fullgraph=True).result[1]
    assert type(result) is MarkedProperty and result.fget is abs and isinstance(result.mark, torch.Tensor)


def test_a_dict_that_iterates_otherwise_is_copied_by_its_keys():
    class Odd(dict):
        def __getitem__(self, key):
            return 5
        def keys(self):
            return ["z"]
        def __iter__(self):
            return iter(["q"])

    def f(x, d, e):
        return d | {"y": 1}, {"y": 1} | d, d | d, e | d, d.copy(), e.copy(), dict.copy(d), {**d}, x + 1
    check(f, torch.ones(2), Odd(a=1), Odd(), graphs=1)


def test_a_search_in_what_cannot_be_iterated():
    class Mine:
        def __iter__(self):
            raise TypeError("mine")

    class Other:
        def __iter__(self):
            raise ValueError("other")

    class NoIterator:
        def __iter__(self):
            return 3

    class Blocked:
        __iter__ = None

    def f(x):
        told = []
        for obj in (Mine(), Other(), NoIterator(), Blocked(), 3, object):
            for search in (lambda o: 1 in o, lambda o: operator.countOf(o, 1), lambda o: operator.indexOf(o, 1)):
                try:
                    search(obj)
                except (TypeError, ValueError) as error:
                    told.append((str(error), error.__context__))
        return told, x + 1
    check(f, torch.ones(2), graphs=1)
