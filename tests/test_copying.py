"""How copy and pickle take values apart and make them again: ``__reduce__``, ``__setstate__``; dumps and loads."""
from __future__ import annotations

import copy
import itertools
import sys

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
