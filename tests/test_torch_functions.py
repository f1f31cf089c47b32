"""Tensor subclasses with a ``__torch_function__``: asked as torch asks, results in their class, one graph of plain ops."""
from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, check

SEEN: list[str] = []


class Counted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append((getattr(func, "__name__", str(func)), [t.__name__ for t in types], len(args), sorted(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


class Meters(torch.Tensor):
    def to_feet(self):
        return self * 3.25

    @property
    def half(self):
        return self / 2


class Plainly(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.add:
            return "added"
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


def counted(fn, *made, graphs=1):
    """Same results, classes and questions; everything in `graphs` graphs; later calls compile nothing."""
    minidynamo.reset()
    counter = CompileCounter()
    compiled = minidynamo.optimize(fn, backend=counter, fullgraph=True)
    for _ in range(3):
        SEEN.clear()
        eager, asked = fn(*made), SEEN[:]
        SEEN.clear()
        ours = compiled(*made)
        assert SEEN == asked
        assert [type(v) for v in ours] == [type(v) for v in eager]
        for a, b in zip(ours, eager, strict=True):
            assert torch.equal(torch.as_tensor(a), torch.as_tensor(b)) if isinstance(a, torch.Tensor) else a == b
    assert counter.frame_count == graphs


def test_functions_methods_and_names():
    def f(x, y):
        a = torch.add(x, y)
        b = x.mul(3)
        return (a + b).sum(), type(a).__name__, a, torch.nn.functional.relu(x), torch.stack([x, y]), x.max(0).values

    counted(f, torch.arange(3.0).as_subclass(Counted), torch.ones(3))


def test_operators():
    def f(x, y):
        return x + 1, 1 - x, y * x, x ** 2, -x, x < y, y >= x, x @ y, x[1:], abs(x), x // 2

    counted(f, torch.arange(3.0).as_subclass(Counted), torch.ones(3))


def test_attributes():
    def f(x):
        return x.shape, x.dtype, x.ndim, x.T, x.size(), x.dim(), x.requires_grad, x.is_cuda, torch.is_floating_point(x)

    counted(f, torch.ones(2, 3).as_subclass(Counted))


def test_default_torch_function_and_own_methods():
    def f(x):
        return x.to_feet(), x.half, isinstance(x + 1, Meters), type(x.reshape(-1)) is Meters, x.sum()

    check(f, make=lambda: (torch.ones(3).as_subclass(Meters),), graphs=1, fullgraph=True)


def test_made_inside():
    def f(x):
        made = (x * 2).as_subclass(Meters)
        return made.to_feet(), made

    check(f, torch.ones(3), graphs=1, fullgraph=True)


def test_in_place_gives_the_same_object():
    def f(x):
        y = x + 1
        z = y.mul_(2)
        x.add_(1)
        return z is y, y, x.add_(1) is x

    check(f, make=lambda: (torch.ones(3).as_subclass(Meters),), graphs=1, fullgraph=True)


def test_answers_of_its_own():
    def f(x):
        return torch.add(x, 1), x.mul(2)

    check(f, make=lambda: (torch.ones(3).as_subclass(Plainly),), min_graphs=1)


def test_gradients_flow():
    def f(w, x):
        return (w * x).sum()

    minidynamo.reset()
    w, x = torch.ones(3, requires_grad=True), torch.arange(3.0).as_subclass(Meters)
    result = minidynamo.optimize(f, fullgraph=True, backend="aot_eager")(w, x)
    assert type(result) is Meters
    result.backward()
    assert torch.equal(w.grad, torch.arange(3.0))


@pytest.mark.parametrize("kind", [Counted, Meters])
def test_leaves_that_need_gradients_are_pythons(kind):
    def f(x):
        return (x * 2).sum()

    x = torch.ones(3).as_subclass(kind).requires_grad_()
    minidynamo.reset()
    minidynamo.optimize(f)(x).backward()
    assert torch.equal(torch.Tensor.as_subclass(x.grad, torch.Tensor), torch.full((3,), 2.0))


def test_an_alias_in_a_class_is_another_object_than_what_it_is_an_alias_of():
    def made_here(x):
        y = x + 1
        s, t = y.as_subclass(Meters), y.as_subclass(Meters)
        ways = y.add_(1), torch.add(y, 1, out=y), torch.relu_(y), s.add_(1), t.mul_(2), y.contiguous()
        return y, s, [type(w).__name__ for w in ways], [[w is v for v in (y, s, t)] for w in ways], s is t

    def given(x):
        s = x.as_subclass(Meters)
        ways = x.add_(s), s.add_(x), torch.add(x, 1, out=s), x.copy_(s), s.mul_(2)
        return s, [type(w).__name__ for w in ways], [[w is v for v in (x, s)] for w in ways]

    def grown(x, s):
        y = x.add_(s)
        t = y
        t *= 2
        return t is y, x.mul_(2) is x, x.mul_(s) is x

    check(made_here, make=lambda: (torch.ones(4),), graphs=1)
    check(given, make=lambda: (torch.ones(4),), graphs=1)
    check(grown, make=lambda: (torch.ones(4), torch.ones(4).as_subclass(Meters)), graphs=1)
