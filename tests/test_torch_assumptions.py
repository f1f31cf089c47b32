"""Branches that only raise: the graph goes on past them, and a call for which they are taken raises as Python does.

PYTEST_DONT_REWRITE: asserts are branches here.
"""
from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, CompileCounterWithBackend, check


def guarded(x):
    if (x < 0).any():
        raise ValueError(f"negative: {x.min()}")
    assert not torch.isnan(x).any(), "nan"
    if not torch.isfinite(x).all():
        message = "infinite"
        raise OverflowError(message) from None
    return x.sqrt() + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph(backend):
    check(guarded, torch.ones(3), graphs=1, fullgraph=True, backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_raises(value, backend):
    x = torch.tensor([1.0, value, 2.0])
    check(guarded, x, graphs=1, backend=backend)
    compiled = minidynamo.optimize(guarded, backend=backend)
    for given in (torch.ones(3), x, torch.ones(3)):
        try:
            wanted, raised = guarded(given), None
        except Exception as error:
            wanted, raised = None, error
        if raised is None:
            assert torch.equal(compiled(given), wanted)
            continue
        with pytest.raises(type(raised), match=str(raised)) as caught:
            compiled(given)
        assert [f.name for f in caught.traceback[-1:]] == ["guarded"]


def test_effects_before_it_happen_once():
    log = []

    def f(x):
        log.append(len(log))
        x = torch.rand(3) + x
        if (x > 5).any():
            log.append("big")
            raise ValueError("big")
        log.append("fine")
        return x

    check(f, torch.ones(3), graphs=1, fullgraph=True, cached=False)
    check(f, torch.full((3,), 7.0), graphs=1)


def test_in_place_changes_are_taken_back():
    def f(x, n):
        x.add_(n)
        if (x > 5).any():
            raise ValueError("big")
        return x * 2

    check(f, torch.ones(3), torch.ones(()), graphs=1, fullgraph=True)
    check(f, torch.ones(3), torch.full((), 7.0), graphs=1)


def test_a_frame_that_cannot_start_again_breaks():
    def f(x, weight):
        with torch.no_grad():
            weight.mul_(2)
        if (x > 5).any():
            raise ValueError("big")
        return x * weight

    weight = torch.nn.Parameter(torch.ones(3))
    found = check(f, torch.ones(3), weight, min_graphs=1)
    assert found.breaks["MD0201"] == 1
    check(f, torch.full((3,), 7.0), weight)


def test_caught_by_the_caller():
    def validated(x):
        if (x > 5).any():
            raise ValueError("big")
        return x

    def f(x):
        try:
            return validated(x) + 1
        except ValueError as error:
            return str(error)

    check(f, torch.ones(3), graphs=1, fullgraph=True)
    check(f, torch.full((3,), 7.0))


def test_both_sides_go_on():
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    assert check(f, torch.ones(3)).breaks["MD0201"] == 1


def test_raise_that_the_frame_handles_is_a_branch():
    def f(x):
        try:
            if x.sum() > 0:
                raise StopIteration
        except StopIteration:
            return x + 1
        return x - 1

    assert check(f, torch.ones(3), cached=False).breaks["MD0201"] == 1


def test_distributions_validate_in_the_graph():
    def f(loc, scale):
        d = torch.distributions.Normal(loc, scale, validate_args=True)      # torch's own frontend turns the default off
        return d.log_prob(torch.zeros(3)), d.rsample()

    check(f, torch.zeros(3), torch.ones(3), graphs=1, fullgraph=True, backward=False)
    counter = CompileCounter()
    compiled = minidynamo.optimize(f, backend=counter)
    with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
        compiled(torch.zeros(3), -torch.ones(3))


def test_gradients():
    def f(x):
        if not (x.detach() > 0).all():
            raise ValueError
        return x.log().sum()

    check(f, torch.full((3,), 2.0, requires_grad=True), graphs=1, backward=True)
    check(f, torch.full((3,), 2.0, requires_grad=True), graphs=1, backward=True,
          backend=CompileCounterWithBackend("aot_eager"))
