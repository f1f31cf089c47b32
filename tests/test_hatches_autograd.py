"""torch.autograd.Function: one node with its own backward; a backward pass that does more breaks."""
from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.testing import check

BACKENDS = ["eager", "aot_eager"]
OUTSIDE = torch.ones(3)
calls: list[int] = []


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 * x * ctx.k * 10, None         # not the true gradient, so that it shows


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k, x + 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.k + h * 100, None


class Sorted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        index = x.argsort()
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(x)
        return x * 3, index, x * 5

    @staticmethod
    def backward(ctx, g, gi, g2):
        x, = ctx.saved_tensors
        r = torch.zeros_like(x)
        if g is not None:
            r = r + g * 3
        return r if g2 is None else r + g2 * 500


class ReadsOutside(Square):
    @staticmethod
    def backward(ctx, g):
        return g * OUTSIDE, None


class Counts(Square):
    @staticmethod
    def backward(ctx, g):
        calls.append(1)
        return g, None


class Prints(Square):
    @staticmethod
    def backward(ctx, g):
        print("backward")
        return g, None


def f_square(x):
    return Square.apply(x + 1, 3).sin()


def f_pair(x):
    a, b = Pair.apply(x, 2.0)
    return a + b


def f_sorted(x):
    a, i, b = Sorted.apply(x)
    return a.sin(), i, b


def f_twice(x):
    return Square.apply(Square.apply(x, 2), 3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("fn", [f_square, f_pair, f_sorted, f_twice], ids=lambda f: f.__name__)
def test_one_graph(fn, backward, backend):
    found = check(fn, torch.randn(3, requires_grad=backward), graphs=1, backward=backward, backend=backend,
                  tol=0.0 if backend == "eager" else 1e-6)
    assert not found.breaks


@pytest.mark.parametrize("cls", [ReadsOutside, Counts, Prints])
def test_a_backward_that_does_more_breaks(cls):
    def f(x):
        return cls.apply(x * 2, 3) + 1
    for backend in BACKENDS:
        found = check(f, torch.randn(3, requires_grad=True), min_graphs=1, backward=True, backend=backend, tol=1e-6)
        assert "MD0410" in found.breaks


def test_a_new_backward_is_noticed(monkeypatch):
    class Own(Square):
        pass

    def f(x):
        return Own.apply(x, 3)
    g = minidynamo.optimize(f, backend="aot_eager")

    def grad(call):
        x = torch.ones(3, requires_grad=True)
        call(x).sum().backward()
        return x.grad
    assert torch.equal(grad(f), grad(g))
    monkeypatch.setattr(Own, "backward", staticmethod(lambda ctx, g: (g * 7, None)), raising=False)
    assert torch.equal(grad(f), grad(g))
