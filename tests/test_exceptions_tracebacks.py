"""Tracebacks of exceptions raised while tracing, frame objects, contexts that gen.throw() leaves alone."""
from __future__ import annotations

import contextlib
import sys
import traceback
import types

import pytest
import torch

from minidynamo.testing import check

X = torch.ones(2)


def entries(tb):
    found = []
    while tb is not None:
        found.append((tb.tb_lineno, tb.tb_frame.f_code.co_name, tb.tb_frame.f_lineno))
        tb = tb.tb_next
    return found


def in_finally():
    try:
        raise KeyError(1)
    finally:
        pass


def in_with():
    with contextlib.nullcontext():
        raise KeyError(1)


def numbers():
    yield 1
    try:
        yield 2
    finally:
        pass


def in_a_generator():
    generator = numbers()
    next(generator)
    next(generator)
    generator.throw(KeyError)


def in_a_fresh_generator():
    numbers().throw(KeyError)


def key_fails(value):
    raise IndexError(value)


def in_a_key():
    sorted([1, 2], key=key_fails)


def in_a_comprehension():
    return [1 // q for q in (1, 0)]


def raised_again():
    try:
        raise KeyError(1)
    except KeyError:
        len("between")
        raise


def raised_anew():
    try:
        raise KeyError(1)
    except KeyError as error:
        raise error


def in_a_class():
    class Broken:
        y = 1
        raise ValueError(y)


@contextlib.contextmanager
def managed():
    yield


def in_managed():
    with managed():
        raise KeyError(1)


def deeper(n):
    return deeper(n - 1) if n else [][n]


@pytest.mark.parametrize("fails", [
    in_finally, in_with, in_a_generator, in_a_key, in_a_comprehension, raised_again, raised_anew,
    in_a_class, in_managed, lambda: deeper(3),
    pytest.param(in_a_fresh_generator, marks=pytest.mark.skipif(
        sys.version_info >= (3, 13), reason="the line its frame shows at last is left to Python"))])
def test_each_frame_an_exception_passes_is_shown(fails):
    def fn(x):
        try:
            fails()
        except Exception as error:
            tb = error.__traceback__
            return x + 1, entries(tb), tb is error.__traceback__, tb is sys.exc_info()[2]
    check(fn, X, graphs=1)


def test_exit_gets_the_traceback():
    def fn(x):
        class Manager:
            def __enter__(self):
                return self

            def __exit__(self, kind, value, tb):
                self.seen = tb is value.__traceback__, entries(tb)
                return True
        with Manager() as manager:
            deeper(1)
        return x + 1, manager.seen
    check(fn, X, graphs=1)


def test_setting_a_traceback():
    def fn(x):
        out = []
        try:
            deeper(0)
        except IndexError as error:
            tb = error.__traceback__
        made = BaseException().with_traceback(tb)
        out.append(made.__traceback__ is tb)
        for bad in (5, "x"):
            try:
                made.__traceback__ = bad
            except TypeError as error:
                out.append(str(error))
        made.__traceback__ = None
        out.append(made.__traceback__)
        try:
            raise KeyError().with_traceback(tb)
        except KeyError as error:
            out.append((entries(error.__traceback__), error.__traceback__.tb_next is tb))
        own = types.TracebackType(tb, sys._getframe(), 1, 2)
        out.append((own.tb_lineno, own.tb_lasti, own.tb_next is tb, own.tb_frame is sys._getframe()))
        try:
            own.tb_next = own
        except ValueError as error:
            out.append(str(error))
        return x + 1, out, made
    check(fn, X, graphs=1)


old_locals = pytest.mark.skipif(sys.version_info >= (3, 13), reason="f_locals is a proxy, which is left to Python")


@old_locals
def test_frames_of_callers():
    def callee():
        return (sys._getframe(1).f_locals["here"], sys._getframe().f_back.f_code.co_name, sys._getframe(1).f_lineno,
                sys._getframe().f_globals["__name__"])

    def caller():
        here = 5
        return callee(), here

    def fn(x):
        return x + 1, caller()
    check(fn, X, graphs=1)


@old_locals
def test_clearing_the_frames_of_a_call_that_is_over():
    def fails():
        held = 3
        raise KeyError(held)

    def fn(x):
        try:
            fails()
        except KeyError as error:
            traceback.clear_frames(error.__traceback__)
            return x + 1, error.__traceback__.tb_next.tb_frame.f_locals, x.shape
    check(fn, X, graphs=1)


def test_a_traceback_that_leaves_is_made_by_python():
    def fn(x):
        try:
            deeper(1)
        except IndexError as error:
            return x + 1, error, len(entries(error.__traceback__))
    check(fn, X)


def test_throw_leaves_the_context_of_what_it_throws():
    @contextlib.contextmanager
    def raises(exc):
        try:
            yield
        finally:
            raise exc

    def fn(x):
        excs = [KeyError(i) for i in range(4)]
        try:
            with contextlib.ExitStack() as stack:
                for exc in excs[1:]:
                    stack.enter_context(raises(exc))
                raise excs[0]
        except KeyError as error:
            chain = []
            while error is not None:
                chain.append(excs.index(error))
                error = error.__context__
        return x + 1, chain
    check(fn, X, graphs=1)
