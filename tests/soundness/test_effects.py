"""Effects: what a program wrote, in the order it wrote it, also when the graph raises at run time."""
# ruff: noqa: E702
from __future__ import annotations

from typing import Any

import pytest
import torch

from minidynamo import counters
from minidynamo.testing import check


class P:
    pass


LG: list[Any] = []
DG: dict[Any, Any] = {}
ZZ: Any = None
PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


@program
def effect_then_fail(x):
    LG.append(1)
    try:
        y = x[torch.tensor([5])]
    except IndexError:
        LG.append("caught"); y = x
    LG.append(2)
    return y


@program
def effect_then_fail_uncaught(x):
    LG.append("before")
    y = x + 1
    z = y[torch.tensor([7])]
    LG.append("after")
    return z


@program
def mutate_then_fail(x):
    x.add_(1)
    LG.append("m")
    try:
        return x[torch.tensor([9])]
    except IndexError:
        LG.append("c"); return x


@program
def rng_then_fail(x):
    y = torch.rand(3)
    LG.append("r")
    try:
        z = x[torch.tensor([9])]
    except IndexError:
        LG.append("c"); z = x
    return y, z, torch.rand(2)


@program
def order(x):
    p = P(); LG.append(p); p.v = LG; LG[:] = [p, p]; DG["p"] = p; del DG["p"]; DG["q"] = 1; DG["p"] = 2
    return list(DG), LG[0] is LG[1]


@program
def dict_order_reset(x):
    DG.clear(); DG["b"] = 1; DG["a"] = 2; DG["b"] = 3; v = DG.pop("b"); DG["b"] = v
    return list(DG), x + 1


@program
def new_in_old_in_new(x):
    n = [x]; LG.append(n); n.append(LG); m = {"n": n, "l": LG}; DG["m"] = m; n.append(m)
    return n, m


@program
def overwritten_used(x):
    LG[:] = [x * 2]
    old = LG[0]; LG[0] = x; r = (old, LG[0])
    LG.append(old)
    return r


@program
def nested_print(x):
    LG.append(x + 1)
    print(len(LG))
    LG[-1] = LG[-1] * 2
    print(LG[-1])
    return LG


@program
def slice_ops(x):
    LG[:] = [1, 2, 3, 4]; LG[1:3] = [9]; LG[::2] = ["a", "b"]; LG.reverse(); LG.insert(1, x)
    del LG[0]
    return LG, x * 1


@program
def cells(x):
    c = 0
    def inc():
        nonlocal c
        c += 1
        return c
    inc(); print(c); inc()
    y = x + c
    print(inc(), c)
    return y, c, inc


@program
def cell_shared(x):
    v = [x]
    def a():
        v.append(1); return v
    def b():
        nonlocal v
        v = v + [2]
        return v
    a(); print("."); b(); a(); print(".")
    return v, a, b


@program
def return_same(x):
    LG.append(1)
    return LG, LG, [LG], DG


@program
def loop_effects(x):
    for i in range(4):
        LG.append(i)
        if i % 2: print(i, len(LG))
        x = x + len(LG)
    return x


@program
def tensor_attr(x):
    x.foo = [1]; x.foo.append(x)
    return x.foo[1] is x, x + 1


@program
def grad_write(x):
    w = torch.ones(3, requires_grad=True)
    (w * x).sum().backward()
    return w.grad, w.grad is w.grad


@program
def set_order(x):
    s = set(); s.add(3); s.add(1); s.discard(3); s.add(2); return s, frozenset(s), x + len(s)


@program
def exc_in_effects(x):
    try:
        LG.append(1); DG["k"] = LG; raise ValueError(LG)
    except ValueError as e:
        e.args[0].append(2)
        return e.args[0] is LG, x + 1


@program
def gen_effects(x):
    def g():
        LG.append("start")
        try:
            yield x
        finally:
            LG.append("closed")
    it = g(); v = next(it); it.close(); LG.append("end"); return v


@program
def gen_half(x):
    def g():
        LG.append("start"); yield x; LG.append("second"); yield x + 1
    it = g(); v = next(it); print("mid"); return v, next(it)


@program
def del_global(x):
    global ZZ
    ZZ = x + 1; y = ZZ; del ZZ
    try:
        ZZ
    except NameError as e:
        return y, str(e)


@program
def inplace_alias_output(x):
    y = x.view(-1); y.add_(1); z = x * 2; x.mul_(3)
    return y, z, x


@program
def statistics_then_fail(x):
    m = torch.nn.BatchNorm1d(3)
    y = m(torch.ones(2, 3))
    LG.append(m.num_batches_tracked)
    try:
        return y[torch.tensor([9])]
    except IndexError:
        return y, m.running_mean


NORM = torch.nn.BatchNorm1d(3)


@program
def kept_statistics_then_fail(x):
    y = NORM(torch.stack([x, x * 2]))
    LG.append("seen")
    try:
        return torch.nn.functional.cross_entropy(y, torch.tensor([0, 7]))
    except IndexError:
        return y, NORM.running_mean.clone(), NORM.num_batches_tracked.clone()


@program
def dropout_then_fail(x):
    y = torch.nn.functional.dropout(x, 0.5)
    LG.append(y)
    try:
        return torch.linalg.cholesky(torch.zeros(2, 2) - torch.eye(2))
    except RuntimeError as error:
        return y, type(error).__name__, torch.rand(1)


@program
def divide_by_zero(x):
    n = torch.tensor([3, 4])
    LG.append(1)
    try:
        return n // torch.tensor([0, 1])
    except RuntimeError as error:
        LG.append(str(error))
    return LG


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_effects(fn: Any) -> None:
    check(fn, torch.arange(3.0), cached=False)
    assert counters["frames"]["ok"], "nothing was captured"
