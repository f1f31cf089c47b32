"""copy and deepcopy of user objects inside compiled code."""
from __future__ import annotations

import copy

import pytest
import torch

from minidynamo.testing import check


class Config:
    def __init__(self):
        self.n, self.names, self.inner = 2, ["a", "b"], {"k": (1, 2)}

    def __eq__(self, other):
        return type(other) is Config and vars(self) == vars(other)


class Cyclic:
    def __init__(self):
        self.me, self.items = self, [1]


class Bag(dict):
    pass


class Stack(list):
    pass


def deep(c, x):
    d = copy.deepcopy(c)
    d.names.append("c")
    return x + d.n, d, c.names, d.inner


def shallow(c, x):
    d = copy.copy(c)
    d.n = 5
    return x + d.n, c.n, d.names is c.names, d


def empty(c, x):
    class_ = type(c)
    return x + 1, copy.deepcopy(object.__new__(class_)).__dict__


@pytest.mark.parametrize("fn", [deep, shallow, empty])
def test_objects(fn):
    check(fn, Config(), torch.ones(2), min_graphs=1, cached=False)


def test_cycles():
    def f(x):
        c = Cyclic()
        d = copy.deepcopy(c)
        return x + 1, d.me is d, d.items is c.items, d.items == c.items
    check(f, torch.ones(2), graphs=1)


@pytest.mark.parametrize("made", [Bag(a=[1]), Stack([[1], 2])])
def test_subclasses_of_builtins(made):
    def f(b, x):
        b.extra = 1
        c = copy.deepcopy(b)
        return x + c.extra, c, c == b
    check(f, made, torch.ones(2), min_graphs=1, cached=False)     # id() fixes the object: each copy compiles
