"""checkpoint and cond: one node each, captures lifted, bodies that do more than compute break."""
from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from minidynamo.testing import check

BACKENDS = ["eager", "aot_eager"]
W = torch.arange(9.0).view(3, 3).requires_grad_()
LINEAR = torch.nn.Linear(3, 3)
DROP = torch.nn.Dropout(0.5)
seen: list[int] = []


def body(x, y, *, k=1):
    return torch.sin(x) @ W + y * k


def c_function(x):
    return checkpoint(body, x, x * 2, use_reentrant=False, k=3).relu()


def c_module(x):
    return checkpoint(LINEAR, x, use_reentrant=False).relu()


def c_closure(x):
    y = x * 2
    return checkpoint(lambda a: {"s": (a + y).cos(), "t": [a * 2, None, 3]}, x, use_reentrant=False)


def c_nested(x):
    return checkpoint(lambda a: checkpoint(body, a, a, use_reentrant=False) * 2, x, use_reentrant=False)


def c_no_grad(x):
    with torch.no_grad():
        return checkpoint(body, x, x, use_reentrant=False)


def d_cond(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin() + W[0], lambda a: a.cos() @ W, (x,))


def d_known(x):
    return torch.cond(x.shape[0] == 3, lambda a: a.sin(), lambda a: a.cos(), (x,))


def d_several(x):
    y = x * 2
    a, b = torch.cond((x > 0).any(), lambda: (x + 1, y.sin()), lambda: (y + 1, x.cos()))
    return a * b


ONE_GRAPH = [c_function, c_module, c_closure, c_nested, c_no_grad, d_cond, d_known, d_several]


@pytest.mark.filterwarnings("ignore")       # eager cond compiles its branches, and warns about non-leaf captures
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("fn", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph(fn, backward, backend):
    for sign in (1.0, -1.0):
        x = torch.rand(3, 3).mul(sign).requires_grad_(backward)
        found = check(fn, x, graphs=1, backward=backward, backend=backend, tol=1e-6)
        assert not found.breaks


def b_random(x):
    return checkpoint(lambda a: DROP(a.sin()), x * 2, use_reentrant=False)


def b_effect(x):
    return checkpoint(lambda a: (seen.append(1), a.sin())[1], x * 2, use_reentrant=False)


def b_outer_list(x):
    out = []
    y = checkpoint(lambda a: (out.append(a.shape[0]), a.sin())[1], x * 2, use_reentrant=False)
    return y, out


def b_in_place(x):
    return checkpoint(lambda a: a.mul(2).add_(1), x * 2, use_reentrant=False)


def b_set_cell(x):
    n = 0

    def inner(a):
        nonlocal n
        n += 1
        return a.sin()
    return checkpoint(inner, x * 2, use_reentrant=False), n


@pytest.mark.parametrize("fn", [b_random, b_effect, b_outer_list, b_in_place, b_set_cell], ids=lambda f: f.__name__)
def test_a_body_that_does_more_breaks(fn):
    found = check(fn, torch.randn(3, 3, requires_grad=True), min_graphs=1, cached=False)
    assert "MD0411" in found.breaks
