"""Comprehensions, which 3.12 inlines into the function around them (PEP 709): variables, cells, breaks inside."""
from __future__ import annotations

import pytest
import torch

from minidynamo.testing import check

X = torch.arange(4.0)
PROGRAMS = []


def program(fn, breaks=False, name=None):
    """Captured in one piece."""
    PROGRAMS.append(pytest.param(fn, breaks, id=name or fn.__name__))
    return fn


def breaking(fn):
    """Breaks somewhere, and goes on captured behind it."""
    return program(fn, True)


@pytest.mark.parametrize(("fn", "breaks"), PROGRAMS)
def test_program(fn, breaks):
    found = check(fn, X, cached=False, min_graphs=2 if breaks else 1)
    assert bool(found.breaks) is breaks, found.breaks
    assert "MD0507" not in found.skips              # no frame that could not be split


@program
def variables_stay_inside(x):
    i = "kept"
    a = [i for i in range(3)]
    b = {i: j for i, j in zip("ab", a)}
    c = {i for i in b}
    return a, b, sorted(c), i, [x for x in a], x + 1


@program
def nothing_is_left_behind(x):
    a = [i for i in range(3)]
    try:
        return i
    except NameError as error:
        return a, type(error).__name__, x + 1


@program
def the_outermost_iterable_is_the_functions(x):
    try:
        return [z for z in z]
    except NameError as error:
        return type(error).__name__, str(error), x + 1
    z = 1


@program
def nested(x):
    m = [[i * j for j in range(i)] for i in range(4)]
    t = [[r[k] for r in m if len(r) > k] for k in range(3)]
    return m, t, x + 1


@program
def walrus_goes_outside(x):
    a = [y := k * 2 for k in range(4)]
    b = [last for k in a if (last := k) > 2]
    any((hit := k) > 3 for k in a)
    return a, b, y, last, hit, x + y


@program
def raising_gives_the_variable_back(x):
    i = 5

    def read():
        return i
    out = []
    for make in (lambda: 0, lambda: 1):
        try:
            [1 // i for i in (2, 1, make())]
        except ZeroDivisionError as error:
            out.append((str(error), i, read()))
    return out, x + 1


@program
def closures_over_the_variable(x):
    fs = [lambda: i for i in range(3)]
    gs = [(lambda: (i, j)) for i in range(2) for j in range(2)]
    return [f() for f in fs], [g() for g in gs], x + 1


@program
def the_slot_of_a_cell_is_borrowed(x):
    i = 10

    def read():
        return i
    fs = [lambda: i for i in range(3)]
    plain = [i * 2 for i in range(3)]
    defaults = [(i, lambda i=i: (i,)) for i in range(2)]
    inner = [[i for i in range(i)] + [i] for i in range(3)]
    cell_outside = [([i for i in range(2)], lambda: i) for i in range(3)]
    cell_inside = [[(lambda: i) for i in range(2)] + [i] for i in range(3)]
    i += 1
    return ([f() for f in fs], plain, [(a, f()) for a, f in defaults], inner, [(a, f()) for a, f in cell_outside],
            [[f() if callable(f) else f for f in row] for row in cell_inside], i, read(), x + 1)


@breaking
def breaks_inside(x):
    i = "out"
    y = x + 1
    a = [print("in", i) or i * 2 for i in range(3)]
    b = {i: print("d", i) for i in range(2)}
    c = [[print(i, k) or (x * k).sum() for k in range(i)] for i in range(3)]
    return a, b, c, i, y * 2


@breaking
def breaks_while_a_cells_slot_is_borrowed(x):
    i = 10

    def read():
        return i
    y = x + 1
    fs = [print(i) or (lambda: i) for i in range(3)]
    plain = [print(i) or i * 2 for i in range(3)]
    looks = [(i, print("b", read()), lambda i=i: (i,)) for i in range(2)]
    inner = [[print(i) or i for i in range(i)] + [i] for i in range(3)]
    cell_outside = [([print(i) or i for i in range(2)], print(i), lambda: i) for i in range(3)]
    cell_inside = [[print(i) or (lambda: i) for i in range(2)] + [i, print(i)] for i in range(3)]
    i += 1
    return ([f() for f in fs], plain, [(a, f()) for a, _, f in looks], inner, [(a, f()) for a, _, f in cell_outside],
            [[f() if callable(f) else f for f in row] for row in cell_inside], i, read(), y + 1)


@breaking
def tensors_in_borrowed_slots(x):
    t = x * 2

    def read():
        return t
    fs = [(print("n"), lambda: t + k)[1] for k, t in enumerate([x, x + 1, x + 2])]
    sums = [t.sum() for t in (x, x * 3)]
    return [f() for f in fs], sums, read(), t


@breaking
def raises_behind_a_break(x):
    i = 3

    def read():
        return i
    out = []
    y = x + 1
    try:
        [(print(i), lambda: i, 1 // (2 - i)) for i in range(5)]
    except ZeroDivisionError as error:
        out.append((str(error), i, read()))
    return out, y + 1


def around():
    i = 10

    def over_a_free_variable(x):
        y = x + 1
        print("before")
        a = [print(i) or i * 2 for i in range(3)]
        b = [(print("q", i), i, k) for k in range(2)]

        def read():
            return i
        return a, b, i, read(), [print(i) or [i for i in range(i)] for i in range(2)], y + 1

    return over_a_free_variable


breaking(around())


def around_cell():
    i = 10

    def captured_over_a_free_variable(x):
        fs = [lambda: i for i in range(3)]
        return [f() for f in fs], i, x + 1      # CPython 3.12 forgets the function's own cell
    return captured_over_a_free_variable


program(around_cell())


def test_variable_read_before_it_is_bound():
    def fn(x):
        i = 3

        def read():
            return i
        out = []
        for words in (False, True):
            try:
                [(words and print(k)) or (lambda: i) for k in range(2) for j in [i] for i in range(2)]
            except NameError as error:
                out.append((type(error).__name__, str(error)))
        try:
            [(i, k) for k in range(2) for j in [i] for i in range(2)]
        except NameError as error:
            out.append((type(error).__name__, str(error)))
        return str(out), i, read(), x + 1
    check(fn, X, graphs=1)


@program
def in_class_bodies(x):
    class C:
        n = 3
        a = [i for i in range(n)]
        b = [n for n in a]
        d = [(lambda: i)() for i in a]
        e = [[j for j in range(i)] for i in a]
    return C.a, C.b, C.n, C.d, C.e, sorted(k for k in vars(C) if k[0] != "_"), x + 1


def test_in_texts_that_are_run():
    def fn(x):
        space = {}
        exec("a = [i for i in range(3)]\nfs = [lambda: i for i in a]\nclass K:\n    v = [j for j in a]", space)
        return space["a"], [f() for f in space["fs"]], space["K"].v, x + 1
    check(fn, X, min_graphs=1, cached=False)
