"""Optimizers inside a compiled function: parameters, state and gradients as in eager, and later steps from the cache."""
from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, CompileCounterWithBackend, check

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    "foreach": (torch.optim.Adam, {"lr": 0.01, "foreach": True}),
    "fused": (torch.optim.AdamW, {"lr": 0.01, "fused": True}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.01}),
    "nadam": (torch.optim.NAdam, {"lr": 0.01}),
    "rprop": (torch.optim.Rprop, {"lr": 0.01}),
}


def made(kind, options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    optimizer = kind(model.parameters(), **options)
    model(torch.ones(5, 3)).square().sum().backward()
    return model, optimizer


def step(optimizer):
    optimizer.step()
    return optimizer.param_groups[0]["params"], [optimizer.state[p] for p in optimizer.param_groups[0]["params"]]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step(name):
    fused = name == "fused"             # torch cannot functionalize its fused operators, so the work itself is Python's
    found = check(step, make=lambda: (made(*OPTIMIZERS[name])[1],), min_graphs=0 if fused else 1, cached=False, tol=1e-5)
    assert bool(found.breaks["MD0401"]) is fused


def test_later_steps_are_cached():
    counter = CompileCounter()
    minidynamo.reset()
    compiled = minidynamo.optimize(step, backend=counter)
    _, ours = made(torch.optim.Adam, {"lr": 0.01})
    _, eager = made(torch.optim.Adam, {"lr": 0.01})
    graphs = []
    for _ in range(5):
        a, b = compiled(ours), step(eager)
        graphs.append(counter.frame_count)
        for x, y in zip(a[0], b[0], strict=True):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6)
    assert graphs[-1] == graphs[2] >= 1


def test_zero_grad_and_hooks():
    def f(optimizer):
        optimizer.step()
        optimizer.zero_grad()
        return [p.grad for p in optimizer.param_groups[0]["params"]]

    def hooked():
        optimizer = made(torch.optim.SGD, {"lr": 0.1})[1]
        optimizer.register_step_pre_hook(lambda *a: print("before"))
        optimizer.register_step_post_hook(lambda *a: print("after"))
        optimizer._optimizer_step_pre_hooks = dict(enumerate(optimizer._optimizer_step_pre_hooks.values()))
        optimizer._optimizer_step_post_hooks = dict(enumerate(optimizer._optimizer_step_post_hooks.values()))
        return (optimizer,)

    check(f, make=hooked, min_graphs=1, cached=False, tol=1e-6)


ONE_GRAPH = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "tensor lr": (torch.optim.Adam, {"lr": torch.tensor(0.01)}),
    "amsgrad": (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    "foreach": (torch.optim.Adam, {"lr": 0.01, "foreach": True}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.01}),
    "adadelta": (torch.optim.Adadelta, {"foreach": True}),
    "nadam": (torch.optim.NAdam, {"lr": 0.01}),
    "adamax": (torch.optim.Adamax, {"lr": 0.01}),
    "rprop": (torch.optim.Rprop, {"lr": 0.01}),
}


def train(optimizer, model, compiled, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(5, 3)).square().sum().backward()
        compiled(optimizer)
    return list(model.parameters()), [optimizer.state[p] for p in model.parameters()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph_for_all_steps(name, backend):
    """The state of the first step is there before the graph is made, so the second step finds what the first compiled."""
    def take(optimizer):
        optimizer.step()

    counter = CompileCounterWithBackend(backend)
    minidynamo.reset()
    compiled = minidynamo.optimize(take, backend=counter, fullgraph=True)
    runs = []
    for step_of in (compiled, take):
        model, optimizer = made(*ONE_GRAPH[name])
        runs.append(train(optimizer, model, step_of, 10))
    assert counter.frame_count == 1
    for ours, eager in zip(runs[0][0], runs[1][0], strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)
    assert [list(s) for s in runs[0][1]] == [list(s) for s in runs[1][1]]


def test_state_that_is_looked_at_is_made_in_its_turn():
    def take(optimizer):
        before = len(optimizer.state)
        optimizer.step()
        return before, len(optimizer.state)

    minidynamo.reset()
    counter = CompileCounter()
    compiled = minidynamo.optimize(take, backend=counter)
    _, optimizer = made(torch.optim.Adam, {"lr": 0.01})
    assert [compiled(optimizer) for _ in range(3)] == [(0, 4), (4, 4), (4, 4)]
    assert counter.frame_count == 2


def test_state_is_not_made_before_what_may_fail():
    """A step that is not reached leaves the optimizer as it was."""
    def take(optimizer, table, at):
        row = table[at]
        optimizer.step()
        return row

    minidynamo.reset()
    _, optimizer = made(torch.optim.Adam, {"lr": 0.01})
    compiled = minidynamo.optimize(take, backend=CompileCounter())
    with pytest.raises(IndexError):
        compiled(optimizer, torch.ones(3), torch.tensor([7]))
    assert not optimizer.state


def test_one_step_function_with_several_optimizers():
    def take(optimizer):
        optimizer.step()

    minidynamo.reset()
    counter = CompileCounter()
    compiled = minidynamo.optimize(take, backend=counter)
    runs = [made(torch.optim.Adam, {"lr": 0.01}), made(torch.optim.SGD, {"lr": 0.1}), made(torch.optim.RMSprop, {"lr": 0.1})]
    twins = [made(torch.optim.Adam, {"lr": 0.01}), made(torch.optim.SGD, {"lr": 0.1}), made(torch.optim.RMSprop, {"lr": 0.1})]
    for (model, optimizer), (twin, eager) in zip(runs * 2, twins * 2, strict=True):
        ours, theirs = train(optimizer, model, compiled, 2), train(eager, twin, take, 2)
        for a, b in zip(ours[0], theirs[0], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert counter.frame_count == 3


def test_the_step_of_training_is_one_graph_after_backward():
    def train_step(model, optimizer, x):
        loss = model(x).square().sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    minidynamo.reset()
    counter = CompileCounter()
    compiled = minidynamo.optimize(train_step, backend=counter)
    model, optimizer = made(torch.optim.Adam, {"lr": 0.01})
    twin, eager = made(torch.optim.Adam, {"lr": 0.01})
    for _ in range(4):
        torch.testing.assert_close(compiled(model, optimizer, torch.ones(2, 3)), train_step(twin, eager, torch.ones(2, 3)))
        assert all(p.grad is None for p in model.parameters())
    assert counter.frame_count == 2


def test_zero_grad_does_not_ask_whether_there_were_gradients():
    def f(optimizer, model, x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        model.zero_grad()
        return loss, [p.grad for p in model.parameters()]

    minidynamo.reset()
    counter = CompileCounter()
    compiled = minidynamo.optimize(f, backend=counter, fullgraph=True)
    model, optimizer = made(torch.optim.SGD, {"lr": 0.1})
    for _ in range(3):
        assert compiled(optimizer, model, torch.ones(2, 3))[1] == [None] * 4
        assert all(p.grad is None for p in model.parameters())
        model(torch.ones(2, 3)).sum().backward()
    assert counter.frame_count == 1


def test_zero_grad_to_zeros():
    def f(optimizer, model, x):
        optimizer.zero_grad(set_to_none=False)
        return model(x), [p.grad for p in model.parameters()]

    def fresh():
        model, optimizer = made(torch.optim.SGD, {"lr": 0.1})
        return optimizer, model, torch.ones(2, 3)

    check(f, make=fresh, min_graphs=1)


def test_after_torchs_own_frontend_has_wrapped_the_optimizers():
    """torch.compile keeps ``_init_group`` from itself, for the whole process, once it has compiled anything."""
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight], 0.1)
    weight.grad = torch.ones(3)
    minidynamo.reset()
    minidynamo.optimize(optimizer.step, fullgraph=True)()
    assert minidynamo.counters["stats"]["unique_graphs"] == 1
    assert not torch.equal(weight, torch.ones(3))
