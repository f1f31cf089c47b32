"""Torch's global state: read, switched and restored as in plain Python, also at breaks and when the graph raises."""
from __future__ import annotations

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import minidynamo
from minidynamo import reasons
from minidynamo.testing import check

X = torch.randn(3, 3)
TABLE = torch.randn(4, 3)


def f_no_grad(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    return y, z, x * 4


def f_break_inside(x):
    with torch.no_grad():
        y = x * 2
        print(torch.is_grad_enabled())
        y = y + 1
    return y, x * 3, torch.is_grad_enabled()


def f_left_switched(x):
    torch.set_grad_enabled(False)
    return x * 2


def f_decorated(x):
    @torch.no_grad()
    def inner(y):
        return y * 2
    return inner(x), x * 2


def f_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        with torch.autocast("cpu", enabled=False):
            z = x @ x
    return y, z, x @ x


def f_autocast_break(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        print(torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
        z = y @ y
    return y, z, torch.is_autocast_enabled("cpu")


def f_inference_mode(x):
    with torch.inference_mode():
        y = x.detach() * 2
    return y.is_inference(), x + 1


def f_seed(x):
    torch.manual_seed(3)
    a = torch.rand(3) + x
    torch.manual_seed(3)
    return a, torch.rand(3), torch.nn.functional.dropout(x, 0.5), torch.randn_like(x)


def f_default_dtype(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(2) + 1
    torch.set_default_dtype(torch.float32)
    return y, torch.ones(2) + x[0, 0]


def f_default_device(x):
    with torch.device("meta"):
        y = torch.ones(2)
    return y.device, x + 1, torch.get_default_device()


def f_deterministic(x):
    torch.use_deterministic_algorithms(True)
    y = x + 1, torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    return y


def f_exception_leaves(x):
    try:
        with torch.no_grad():
            y = x * 2
            raise KeyError("k")
    except KeyError:
        return y, torch.is_grad_enabled(), x * 3


def f_record_function(x):
    with torch.autograd.profiler.record_function("region"):
        y = x + 1
        print("inside")
        y = y * 2
    return y


@pytest.mark.parametrize("fn", [f_no_grad, f_break_inside, f_left_switched, f_decorated, f_autocast, f_autocast_break,
                                f_inference_mode, f_seed, f_default_dtype, f_default_device, f_deterministic,
                                f_exception_leaves, f_record_function], ids=lambda f: f.__name__)
@pytest.mark.parametrize("grad", [True, False])
def test_state(fn, grad):
    check(fn, X.clone().requires_grad_(grad), min_graphs=1)


@pytest.mark.parametrize("fn", [f_no_grad, f_left_switched, f_decorated, f_exception_leaves, f_autocast],
                         ids=lambda f: f.__name__)
def test_one_graph(fn):
    assert not check(fn, X, graphs=1).breaks


@pytest.mark.parametrize("fn", [f_no_grad, f_left_switched, f_break_inside, f_autocast], ids=lambda f: f.__name__)
def test_a_compiled_graph_leaves_the_same_state(fn):
    check(fn, X, min_graphs=1, backend="aot_eager", tol=1e-2)


def f_raises_in_no_grad(i, log):
    log.append("before")
    with torch.no_grad():
        return torch.index_select(TABLE, 0, i) * 2


def f_raises_after_switch(i, log):
    torch.set_grad_enabled(False)
    log.append(torch.is_grad_enabled())
    return torch.index_select(TABLE * 1, 0, i)


def f_caught(i, log):
    try:
        return torch.nn.functional.embedding(i, TABLE)
    except IndexError as error:
        log.append(str(error))
        return TABLE * 2


def f_finally(i, log):
    log.append(1)
    try:
        return torch.linalg.cholesky(TABLE @ TABLE.T - 10 * i.sum())
    finally:
        log.append(2)


@pytest.mark.parametrize("fn", [f_raises_in_no_grad, f_raises_after_switch, f_caught, f_finally],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("index", [2, 9])
def test_graph_raises(fn, index):
    check(fn, torch.tensor([index]), [], calls=3, min_graphs=1)


def test_state_is_guarded():
    def f(x):
        return x * 2, torch.is_grad_enabled()

    compiled = minidynamo.optimize(f, backend="eager")
    x = torch.ones(2, requires_grad=True)
    for enabled in (True, False, True):
        with torch.set_grad_enabled(enabled):
            assert compiled(x)[1] is enabled and compiled(x)[0].requires_grad is enabled


def test_default_dtype_is_guarded():
    compiled = minidynamo.optimize(lambda: torch.ones(2) + 1, backend="eager")
    assert compiled().dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


class CountsFunctions(TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class CountsDispatches(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [CountsFunctions, CountsDispatches])
def test_modes_see_each_call_once(kind):
    def f(x):
        return (x + 1) * 2

    compiled = minidynamo.optimize(f, backend="eager")
    minidynamo.reset()
    with kind() as eager:
        f(X)
    with kind() as ours:
        compiled(X)
    assert ours.seen == eager.seen
    assert minidynamo.counters["skips"][reasons.TORCH_FUNCTION_MODE.id] == 1
    assert torch.equal(compiled(X), f(X))


def test_functorch_transforms_run_plain():
    def f(x):
        return x.sin().sum()

    compiled = minidynamo.optimize(f, backend="eager")
    minidynamo.reset()
    assert torch.equal(torch.vmap(compiled)(X), torch.vmap(f)(X))
    assert torch.equal(torch.func.grad(compiled)(X), torch.func.grad(f)(X))
    assert minidynamo.counters["skips"][reasons.FUNCTORCH_ACTIVE.id]


def test_switches_alone_are_no_graph():
    def f(x):
        with torch.no_grad():
            pass
        torch.set_grad_enabled(False)
        return x

    check(f, X, graphs=0)
