"""Generators: send, throw, close, yield from, what is handled inside, names."""
from __future__ import annotations

import sys

import pytest
import torch

from minidynamo.testing import check

X = torch.ones(1)


def raises_stop_iteration(x):
    def g():
        yield 1
        raise StopIteration
    it = g()
    out = [next(it)]
    try:
        next(it)
    except RuntimeError as e:
        out.append((str(e), type(e.__cause__), type(e.__context__)))
    return out, x+1
def handled_inside(x):
    out = []
    def gen():
        try:
            out.append(sys.exc_info()[0])
            yield
        except Exception as exc:
            out.append((sys.exc_info()[0], exc.__context__))
            yield
            out.append(sys.exc_info()[0])
            yield
            raise
    make = gen()
    next(make)
    try:
        raise ValueError()
    except Exception as exc:
        try:
            make.throw(exc)
        except Exception:
            pass
    next(make)
    try:
        next(make)
    except ValueError as e:
        out.append(("again", e.__context__))
    return out, sys.exc_info(), x+1
def send_throw_delegate(x):
    def inner():
        r = yield 1
        try:
            yield r
        except KeyError as e:
            yield str(e)
        return x
    def outer():
        v = yield from inner()
        yield v+1
        return "done"
    o = outer()
    out = [next(o), o.send(5), o.throw(KeyError("k"))]
    out.append(next(o))
    try:
        next(o)
    except StopIteration as e:
        out.append(e.value)
    o.close()
    def cl():
        try:
            yield 1
        finally:
            out.append("fin")
    c = cl()
    next(c)
    c.close()
    try:
        c.throw(ValueError("x"))
    except ValueError as e:
        out.append(str(e))
    c = cl()
    try:
        c.send(3)
    except TypeError as e:
        out.append(str(e))
    return out, list(c)
def names(x):
    def g():
        yield 1
    it = g()
    it.__name__ = "zz"
    out = [it.__name__, it.__qualname__, it.gi_running, it.gi_yieldfrom, it.gi_frame is None]
    try:
        it.__name__ = 3
    except TypeError as e:
        out.append(str(e))
    return out, x+1
def throw_and_close_delegate(x):
    out = []
    class It:
        def __iter__(s):
            return s
        def __next__(s):
            return 1
        def throw(s,*a):
            out.append(("throw",len(a)))
            raise StopIteration(9)
        def close(s):
            out.append("close")
    def g():
        r = yield from It()
        out.append(r)
        yield "after"
    a = g()
    next(a)
    out.append(a.throw(ValueError))
    b = g()
    next(b)
    b.close()
    def h():
        try:
            yield from [1,2]
        except ValueError as e:
            yield str(e)
    c = h()
    next(c)
    out.append(c.throw(ValueError("v")))
    def inner():
        try:
            yield 1
        finally:
            out.append("inner fin")
    def outer():
        try:
            yield from inner()
        finally:
            out.append("outer fin")
    d = outer()
    next(d)
    d.close()
    out.append(list(d))
    return out, x + 1


@pytest.mark.parametrize("fn", [raises_stop_iteration, handled_inside, send_throw_delegate, names, throw_and_close_delegate])
def test_generators(fn):
    assert not check(fn, X).breaks


def test_names_are_those_of_the_function_when_called():
    def fn(x):
        def func():
            yield 1
        func.__name__ = "zz"
        func.__qualname__ = "q.zz"
        g = func()
        func.__name__ = "yy"
        h = (i for i in range(2))
        return g.__name__, g.__qualname__, h.__name__, h.__qualname__, x + 1
    assert not check(fn, X).breaks
