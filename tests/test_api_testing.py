"""`minidynamo.testing`: what `check` and `same` see, and what they refuse to overlook."""
from __future__ import annotations

import collections
from types import CodeType, SimpleNamespace

import pytest
import torch

import minidynamo
from minidynamo.compiler import frontend, identity
from minidynamo.testing import CompileCounter, EagerAndRecordGraphs, Mismatch, check, same

LOG: list[int] = []
COUNT = 0


@pytest.fixture(autouse=True)
def use(monkeypatch):
    monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY)
    yield lambda **parts: monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY._replace(**parts))
    minidynamo.reset()


def other_code(fn) -> dict:
    """A frontend that is wrong: it installs the code of `fn`."""
    def emit(trace, lowered, call) -> CodeType:
        return fn.__code__ if trace.program.name == "f" else identity.emit(trace, lowered, call)
    return {"emit": emit}


def test_right_code_passes_with_all_effects():
    def f(x, items, *, key):
        global COUNT
        COUNT += 1
        LOG.append(COUNT)
        items.append(items)
        print(key)
        return x + torch.rand(2), items
    found = check(f, torch.ones(2), [], key="k")
    assert found.graphs == []
    assert (COUNT, LOG) == (0, [])


@pytest.mark.parametrize("good, bad, args", [
    (lambda x: x + 1, lambda x: x + 2, (1,)),
    (lambda x: [x, x], lambda x: [x, x.clone()], (torch.ones(1),)),
    (lambda x: (x,), lambda x: [x], (1,)),
    (lambda x: x.append(1), lambda x: None, ([],)),
    (lambda x: print(x), lambda x: print(x + 1), (1,)),
    (lambda x: LOG.append(x), lambda x: None, (1,)),
    (lambda x: x.add_(1), lambda x: x + 1, (torch.ones(1),)),
    (lambda x: x.double(), lambda x: x + 0, (torch.ones(1),)),
    (lambda x: 0.0 * x, lambda x: -0.0 * x, (1,)),
    (lambda x: torch.rand(1) * 0, lambda x: torch.zeros(1), (1,)),
    (lambda x: torch.set_grad_enabled(False) and None, lambda x: None, (1,)),
    (lambda x: {1: x, 2: x}, lambda x: {2: x, 1: x}, (1,)),
    (lambda x: x[3], lambda x: x[4], ([],) and ({},)),
])
def test_wrong_code_is_found(use, good, bad, args):
    space: dict = {}
    f = type(good)(good.__code__.replace(co_name="f"), good.__globals__, "f")
    use(**other_code(bad))
    with pytest.raises(Mismatch, match="eager and compiled differ"):
        check(f, *args)
    assert not space
    LOG.clear()


def test_exceptions_are_compared(use):
    def f(x):
        raise ValueError("a", x) from KeyError("cause")
    check(f, 1)

    def g(x):
        raise ValueError("a", x)
    use(**other_code(g))
    with pytest.raises(Mismatch, match="exception"):
        check(f, 1)


def test_an_exception_of_ours_is_shown(use):
    def buggy(*args):
        raise ZeroDivisionError("oops")
    use(trace=buggy)
    with pytest.raises(Mismatch, match="InternalError"):
        check(lambda x: x, 1)


def test_expectations(use):
    with pytest.raises(Mismatch, match="0 graphs, not 1"):
        check(lambda x: x, 1, graphs=1)
    with pytest.raises(Mismatch, match="at least"):
        check(lambda x: x, 1, min_graphs=2)
    with pytest.raises(Mismatch, match="frames were skipped"):
        check(lambda x: x, 1, rewrite=False, skips=())
    from minidynamo.hook.adapter import NoGuards

    def never(trace, frame):
        guards = NoGuards()
        guards.root.add_lambda_guard(lambda scope: False, ["never"], None)
        return guards
    use(guards=never)
    with pytest.raises(Mismatch, match="call 2 compiled 1 frames again"):
        check(lambda x: x, 1)
    check(lambda x: x, 1, cached=False)


def test_arguments_made_anew():
    check(lambda it: (next(it), list(it)), make=lambda: (iter(range(5)),))
    check(lambda gen: sum(gen), make=lambda: ((i for i in range(4)),))


def test_closures_are_put_back():
    total = [0]
    n = 0

    def f(x):
        nonlocal n
        n += x
        total[0] += x
        return n, total
    check(f, 3)
    assert (n, total) == (0, [0])


def test_same():
    x = torch.ones(2)
    assert same({"a": [x, x]}, {"a": [x.clone()] * 2})
    assert not same([x, x], [x, x.clone()])
    assert same(torch.tensor(float("nan")), torch.tensor(float("nan")))
    assert not same(x, x.double())
    assert same(x, x.double(), exact_dtype=False)
    assert same(x, x + 1e-6)
    assert not same(x, x + 1e-2)
    assert not same(collections.OrderedDict(a=1), {"a": 1})
    assert same({3, 1}, {1, 3})
    loop: list = []
    loop.append(loop)
    twin: list = []
    twin.append(twin)
    assert same(loop, twin)
    assert not same(loop, [twin])


def test_counting_backends(use):
    gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    use(lower=lambda trace: SimpleNamespace(gm=gm, example_inputs=[torch.ones(2)], grad_mode=None))
    counter, recorder = CompileCounter(), EagerAndRecordGraphs()
    minidynamo.optimize(lambda x: x, backend=counter)(1)
    minidynamo.optimize(lambda x: x, backend=recorder)(1)
    assert (counter.frame_count, counter.op_count, counter.graphs, recorder.graphs) == (1, 2, [gm], [gm])
    counter.clear()
    assert (counter.frame_count, counter.op_count, counter.graphs) == (0, 0, [])
