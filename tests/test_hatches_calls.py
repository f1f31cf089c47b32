"""opaque (now, later, break), allow_in_graph, assume_constant_result, disable, graph_break, is_compiling."""
from __future__ import annotations

import logging
import time

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, check

X = torch.arange(1.0, 4.0)
seen = []
ticks = []


def tick():
    ticks.append(1)
    return len(ticks)


def log(value, *, tag=""):
    seen.append((tag, value))


def log_text(items):
    seen.append(repr(items))


def log_and_count(value):
    seen.append(value)
    return value + 1


def opaque_break(x):
    return x + 1


minidynamo.opaque(time.time, when="now")
minidynamo.opaque(tick, when="now")
minidynamo.opaque(log, when="later")
minidynamo.opaque(log_text, when="later")
minidynamo.opaque(log_and_count, when="later")
minidynamo.opaque(opaque_break, when="break")


@pytest.fixture(autouse=True)
def fresh():
    seen.clear()
    ticks.clear()


def test_now_runs_once_while_tracing():
    def f(x):
        time.time()
        return x * tick()
    counting = CompileCounter()
    g = minidynamo.optimize(f, backend=counting, fullgraph=True)
    assert torch.equal(g(X), X) and torch.equal(g(X), X)
    assert len(ticks) == 1 and counting.frame_count == 1


def test_later_runs_after_the_graph_in_order():
    def f(x):
        log(1)
        y = x + 1
        log(y, tag="y")
        log(x.sum())
        return y * 2
    found = check(f, X, graphs=1)
    assert not found.breaks


def test_later_keeps_its_place_among_other_effects():
    def f(x, out):
        log("a")
        out.append(x + 1)
        log("b")
        return x * 2
    assert not check(f, X, [], graphs=1).breaks


def test_later_sees_a_list_as_it_was():
    def f(x):
        items = [1]
        y = x + 1
        log_text(items)
        items.append(2)
        return y * 2, items
    found = check(f, X, min_graphs=1)
    assert "MD0007" in found.breaks


def test_later_sees_a_tensor_as_it_was():
    def f(x):
        y = x + 1
        log_text(y)
        y.add_(5)
        return y * 2
    check(f, X, min_graphs=1)


def test_later_whose_result_is_used_is_not_deferred():
    def f(x):
        n = log_and_count(3)
        return x * n
    check(f, X, min_graphs=1, calls=1)


def test_logger_method_later(caplog):
    logger = logging.getLogger("minidynamo.test")
    minidynamo.opaque(logger.info, when="later")

    def f(x):
        logger.info("value %d", 3)
        return x + 1
    with caplog.at_level(logging.INFO):
        counting = CompileCounter()
        g = minidynamo.optimize(f, backend=counting, fullgraph=True)
        g(X), g(X)
    assert [r.getMessage() for r in caplog.records if r.name == "minidynamo.test"] == ["value 3"] * 2
    assert counting.frame_count == 1


def test_break():
    def f(x):
        return opaque_break(x * 2) * 3
    assert check(f, X, graphs=2).breaks["MD0003"] == 1


# ---------------------------------------------------------------- allow_in_graph
@minidynamo.allow_in_graph
def branches(a, *, parts, k=2):
    out = a * k
    for p in parts:
        out = out + p
    return out, [out.sum(), a]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_allow_in_graph_is_one_node(backend):
    def f(x, k):
        y, (s, a) = branches(x.relu(), parts=[x, x + 1], k=k)
        return y.sin() + s, a
    found = check(f, X, 2, graphs=1, backend=backend, tol=1e-6)
    assert any(n.target is branches for n in found.graphs[0].graph.nodes)


def test_a_marked_function_is_guarded_by_identity():
    def make(k):
        def inner(x):
            return x * k
        return minidynamo.allow_in_graph(inner)

    def f(fn, x):
        return fn(x) + 1
    g = minidynamo.optimize(f)
    for k in (2, 3):
        inner = make(k)
        assert torch.equal(g(inner, X), f(inner, X))


# ---------------------------------------------------------------- assume_constant_result
@minidynamo.assume_constant_result
def settings():
    return {"k": 3, "w": torch.ones(3)}


def test_constant_result_of_any_kind():
    def f(x):
        s = settings()
        return x * s["k"] + s["w"]
    assert not check(f, X, graphs=1).breaks


# ---------------------------------------------------------------- disable
@minidynamo.disable
def disabled(x):
    return x + 1


def inner(x):
    return x.cos() * 2


@minidynamo.disable(recursive=False)
def disabled_alone(x):
    return inner(x) + 1


def test_disable():
    def f(x):
        return disabled(x * 2) * 3
    assert check(f, X, graphs=2).breaks["MD0002"] == 1


def test_disable_alone_compiles_what_it_calls():
    def f(x):
        return disabled_alone(x * 2) * 3
    assert check(f, X, graphs=3).breaks["MD0002"] == 1


def test_graph_break_and_is_compiling():
    def f(x):
        x = x + 1
        minidynamo.graph_break("here")
        return x * 2
    assert check(f, X, graphs=2).breaks["MD0001"] == 1

    def g(x):
        return x + 1 if minidynamo.is_compiling() or torch.compiler.is_compiling() else x - 1
    assert torch.equal(minidynamo.optimize(g)(X), X + 1)
    assert torch.equal(g(X), X - 1)


def marked_by_a_library(x):
    return helper_of_the_library(x, {object(): 1})


def helper_of_the_library(x, names):
    return (x * len(names)).relu()


def test_what_a_library_gave_to_torch_allow_in_graph_is_one_node():
    torch.compiler.allow_in_graph(marked_by_a_library)
    ops = CompileCounter()

    def f(x):
        return marked_by_a_library(x) + 1
    assert check(f, X, graphs=1)
    assert torch.equal(minidynamo.optimize(f, backend=ops)(X), X + 1)
    assert ops.op_count == 2


@pytest.mark.parametrize("device,supported", [("cpu", True), ("cpu:3", False), ("nonsense", False), (object(), False),
                                              ("cuda:99", False), (torch.device("cpu"), True)])
def test_is_compile_supported(device, supported):
    assert minidynamo.is_compile_supported(device) is supported
