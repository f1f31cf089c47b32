"""How copy and pickle take values apart and make them again: ``__reduce__``, ``__setstate__``; dumps and loads."""
from __future__ import annotations

import collections
import copy
import functools
import itertools
import operator
import pickle
import sys
import types

import pytest
import torch

from minidynamo.testing import check

X = torch.arange(3.)


def err(f, *a, **k):
    try:
        return f(*a, **k)
    except Exception as e:
        return type(e), str(e)

class Counted:
    def __getitem__(self, i):
        if i>3: raise IndexError
        return i


def plain(v):
    if type(v) is tuple: return tuple(plain(i) for i in v)
    if hasattr(v,"__next__"): return "iterator"
    return v


def states_of_iterators(x,n):
    out=[]
    d={1:2,3:4,5:6}
    its=[iter([1,2,3]),iter((1,2)),iter("abé"),iter(b"ab"),iter(bytearray(b"ab")),reversed([1,2]),reversed((1,2,3)),iter(int,3),enumerate([5,6],3),zip([1,2],"ab"),zip([1,2],"ab",strict=True),map(abs,[1,-2]),filter(None,[1,0,2]), iter(d), reversed(d), iter({1}),iter(d.items()),reversed(d.values()), iter(range(2,30,3)), iter(range(1<<70,(1<<70)+3)), iter(Counted())]
    if sys.version_info < (3, 12):
        its+=[itertools.repeat(1,3),itertools.repeat(1),itertools.count(3),itertools.count(3,2),itertools.count(2.5),itertools.chain([1],[2]),itertools.islice([1,2],1),itertools.islice(range(20),2,12,3),itertools.takewhile(bool,[1,0,2]),itertools.dropwhile(bool,[1,0,2]),itertools.filterfalse(None,[0,1,0]),itertools.starmap(max,[(1,2),(3,4)]),itertools.compress("abc",[1,0,1]),itertools.accumulate([1,2,3])]
    for it in its:
        for _ in range(n): next(it,None)
        out.append(plain(it.__reduce__()))
        c=copy.copy(it)
        out.append([type(c) is type(it), [v for _,v in zip(range(5),c)]])
    out+=[err(iter([1]).__setstate__,"a"), err(iter([1]).__setstate__,1<<80), err(iter(range(3)).__setstate__,"a")]
    for k in (-5,0,1,7):
        for it in (iter([1,2,3]),iter((1,2,3)),iter("abc"),reversed([1,2,3]),reversed((1,2,3)),iter(range(3,9)),iter(Counted())):
            next(it)
            err(it.__setstate__,k)
            out.append((k,list(it)))
    return out,x+1


@pytest.mark.parametrize("taken", [0, 1, 2, 4])
def test_iterators(taken):
    assert not check(states_of_iterators, X, taken).breaks


class SubEnumerate(enumerate):
    pass


class Eq:
    def __init__(self, a):
        self.a = a

    class Inner:
        pass


class State:
    def __getstate__(self):
        return 5

    def __setstate__(self, s):
        self.s = s


class SubSet(set):
    pass


PICKLED = {
    "int": 3, "big": 1 << 70, "float": 1.5, "list": [1, [2], [], "a", "a"], "tuple": (1, 2, "a", None, True, ()),
    "dict": {"a": 1.5, "b": {}}, "set": {1}, "frozenset": frozenset([2]), "str": "é\n", "bytes": b"ab", "none": None,
    "object": Eq(3), "state": State(), "class": Eq, "nested class": Eq.Inner, "function": len, "own function": err,
    "ordered": collections.OrderedDict(a=1), "default": collections.defaultdict(list, a=[1]),
    "deque": collections.deque([1], 3), "partial": functools.partial(len, [1]), "getter": operator.attrgetter("a"),
    "caller": operator.methodcaller("f", 1, k=2), "range": range(1, 9, 2), "slice": slice(1, None), "set's": SubSet([1]),
    "bytearray": bytearray(b"ab"), "ellipsis": [..., NotImplemented, type(None)],
}


@pytest.mark.parametrize("name", PICKLED)
def test_pickle(name):
    def fn(x, value):
        data = [pickle.dumps(value, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
        return data, pickle.loads(data[0]), pickle.loads(data[2]), pickle.loads(data[-1]), x + 1
    found = check(fn, X, PICKLED[name], cached=False)
    assert not found.breaks or name == "nested class" and sys.version_info >= (3, 13)


def test_pickled_iterators():
    def fn(x):
        out = []
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for make in (lambda: iter([1, 2, 3]), lambda: iter("abc"), lambda: iter({1: 2, 3: 4}), lambda: iter(range(5)),
                         lambda: reversed((1, 2)), lambda: SubEnumerate([5, 6], 3), lambda: zip([1, 2], "ab")):
                it = make()
                next(it)
                again = pickle.loads(pickle.dumps(it, protocol))
                out.append((type(again) is type(it), list(again)))
        shared = [1]
        twice = pickle.loads(pickle.dumps([shared, shared]))
        append = pickle.loads(pickle.dumps(shared.append))
        append(2)
        return out, twice[0] is twice[1], append.__self__, shared, x + 1
    assert not check(fn, X).breaks


def test_what_cannot_be_pickled_is_pythons_to_say():
    def fn(x):
        return (err(pickle.dumps, lambda: 1), err(pickle.loads, b"zz"), err(pickle.loads, b""), err(pickle.dumps, (i for i in ())),
                err(copy.copy, (i for i in ())), err(copy.copy, iter(int, 1)), x + 1)
    found = check(fn, X, cached=False)
    assert found.graphs and found.breaks


def test_a_large_object_is_pickled_by_python():
    def fn(x):
        return len(pickle.dumps(list(range(5000)))), x + 1
    assert check(fn, X).breaks


def test_imports_see_what_the_trace_put_among_the_modules():
    def fn(x):
        made = types.ModuleType("made")
        made.value = 3
        sys.modules["made_here"] = made
        try:
            import made_here
            return made_here is made, made_here.value, x + 1
        finally:
            del sys.modules["made_here"]
    check(fn, X, cached=False)


def test_a_tuple_that_nobody_keeps_has_its_memory_used_again():
    def fn(x):
        return len(set(map(id, enumerate([5, 6, 7])))), len(set(map(id, list(enumerate([5, 6, 7]))))), x + 1
    assert check(fn, X, cached=False).graphs


def test_generators_seen_from_within():
    def fn(x):
        out = []

        def look():
            frame, names = sys._getframe(1), []
            while frame is not None and frame.f_code.co_name != "fn":
                names.append(frame.f_code.co_name)
                frame = frame.f_back
            out.append(names)

        def inner():
            look()
            try:
                yield 1
            except KeyError:
                look()
            yield 2

        def outer():
            out.append(mine.gi_yieldfrom)
            yield from inner()
        mine = outer()
        next(mine)
        out.append((mine.gi_frame.f_back, mine.gi_code.co_name, mine.gi_yieldfrom is None))
        mine.throw(KeyError)
        out.append(list(mine))
        out.append(mine.gi_frame)
        return out, x + 1
    found = check(fn, X)
    assert found.graphs


class Endless:
    def __getitem__(self, i):
        return i


def test_an_index_that_is_too_large():
    def fn(x):
        it = iter(Endless())
        it.__setstate__(sys.maxsize - 1)
        return next(it), err(next, it), err(next, it), x + 1
    assert not check(fn, X).breaks
