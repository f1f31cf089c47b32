"""``__dict__``, ``vars()`` and ``globals()``: live dicts over objects, classes and modules."""
from __future__ import annotations

import types

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, check

KNOWN = 3


class Thing:
    kind = "thing"

    def __init__(self, **values):
        self.a, self.b = 1, torch.ones(2)
        self.__dict__.update(values)


def update_through(t, x):
    t.__dict__.update(c=x, d=4)
    return t.c * t.d


def write_and_read(t, x):
    t.__dict__["c"] = x + 1
    t.a = 5
    return t.c, t.__dict__["a"], list(t.__dict__)


def delete(t, x):
    del t.__dict__["a"]
    return x + 1, "a" in vars(t), hasattr(t, "a"), list(vars(t).items())


def pop(t, x):
    return x + t.__dict__.pop("a"), t.__dict__.pop("z", 9), len(t.__dict__)


def setdefault(t, x):
    return x + t.__dict__.setdefault("a", 7) + t.__dict__.setdefault("n", 8), t.n


def live(t, x):
    d = vars(t)
    before = len(d)
    t.late = x
    return before, len(d), d["late"] + 1


def missing(t, x):
    try:
        t.__dict__["nothing"]
    except KeyError as error:
        return x + 1, error.args, t.__dict__.get("nothing"), t.__dict__.get("nothing", 3)


def copies(t, x):
    d = dict(t.__dict__)
    d["a"] = 100
    return x + t.a, d["a"], {**vars(t)}["a"]


def iterates(t, x):
    return [(k, v) for k, v in t.__dict__.items()], [k for k in vars(t)], x + 1


def returned(t, x):
    t.c = x + 1
    return t.__dict__


def same(t, x):
    return t.__dict__ is t.__dict__, x + 1


def made_inside(t, x):
    new = Thing(z=x)
    new.__dict__["y"] = 4
    return new.z + new.y, list(new.__dict__), new.__dict__ is vars(new)


def clear(t, x):
    t.__dict__.clear()
    return x + 1, len(t.__dict__)


@pytest.mark.parametrize("fn", [update_through, write_and_read, delete, pop, setdefault, live, missing, copies, iterates,
                                returned, same, made_inside, clear])
def test_instances(fn):
    check(fn, Thing(), torch.ones(2), graphs=1)


def of_class(t, x):
    d = Thing.__dict__
    return x + 1, d["kind"], "kind" in d, "a" in d, d.get("nothing", 1), "__init__" in vars(Thing)


def class_is_read_only(t, x):
    try:
        Thing.__dict__["kind"] = 2
    except TypeError as error:
        return x + 1, str(error)


@pytest.mark.parametrize("fn", [of_class, class_is_read_only])
def test_classes(fn):
    check(fn, Thing(), torch.ones(2), graphs=1)


MODULE = types.ModuleType("some_module")
MODULE.value = 5


def of_module(x):
    return x + vars(MODULE)["value"] + MODULE.__dict__.get("other", 0), "value" in vars(MODULE)


def of_globals(x):
    return x + globals()["KNOWN"], "Thing" in globals(), globals().get("nothing")


def global_write(x):
    globals()["KNOWN"] = KNOWN + 1
    return x + KNOWN


@pytest.mark.parametrize("fn", [of_module, of_globals, global_write])
def test_modules(fn):
    check(fn, torch.ones(2), graphs=1)


def test_only_the_names_asked_for_are_guarded():
    t, counter = Thing(), CompileCounter()
    compiled = minidynamo.optimize(lambda x: x + t.__dict__["a"], backend=counter)
    compiled(torch.ones(2))
    t.other = 4
    compiled(torch.ones(2))
    assert counter.frame_count == 1
    t.a = 9
    assert compiled(torch.zeros(2)).tolist() == [9, 9]
