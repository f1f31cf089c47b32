"""Optimizers inside a compiled function: parameters, state and gradients as in eager, and later steps from the cache."""
from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, check

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    "foreach": (torch.optim.Adam, {"lr": 0.01, "foreach": True}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.01}),
    "nadam": (torch.optim.NAdam, {"lr": 0.01}),
    "asgd": (torch.optim.ASGD, {"lr": 0.01}),
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
    check(step, make=lambda: (made(*OPTIMIZERS[name])[1],), min_graphs=1, cached=False, tol=1e-5)


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
