"""nn.Module instances inside compiled code: calls, hooks, registered names, writes, containers, guards."""
from __future__ import annotations

import collections

import pytest
import torch
from torch import nn
from torch.nn.modules import module as nn_module

import minidynamo
from minidynamo.testing import CompileCounter, check


class Mixed(nn.Module):
    """One of each thing a module can hold."""

    scale = 2

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(3))
        self.register_parameter("none", None)
        self.items = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()})
        self.seq = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.params = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
        self.pdict = nn.ParameterDict({"p": nn.Parameter(torch.ones(3))})
        self.calls = 0

    @property
    def doubled(self):
        return self.weight * self.scale

    def forward(self, x, *, twice=False):
        x = self.lin(x) * self.doubled
        return x * 2 if twice else x


def model():
    torch.manual_seed(0)
    return Mixed()


def run(fn, *more, graphs=1, **settings):
    return check(fn, model(), torch.ones(2, 3), *more, graphs=graphs, **settings)


# ------------------------------------------------------------------ reading and calling
@pytest.mark.parametrize("fn", [
    lambda m, x: m(x),
    lambda m, x: m(x, twice=True),
    lambda m, x: m.forward(x),
    lambda m, x: m.__call__(x),
    lambda m, x: m.seq(x),
    lambda m, x: m.count + m.weight + x,
    lambda m, x: x + 1 if m.none is None else -x,
    lambda m, x: [layer(x) for layer in m.items],
    lambda m, x: m.items[1](m.items[-1](x)),
    lambda m, x: [layer(x) for layer in m.items[1:]],
    lambda m, x: [(i, layer(x)) for i, layer in enumerate(m.items)],
    lambda m, x: {k: layer(x) for k, layer in m.named.items()},
    lambda m, x: [m.named[k](x) for k in m.named],
    lambda m, x: ("a" in m.named, len(m.named), list(m.named.keys()), m.named["b"](x)),
    lambda m, x: [layer(x) for layer in m.named.values()],
    lambda m, x: (len(m.seq), m.seq[0](x)),
    lambda m, x: [layer(x) for layer in m.seq],
    lambda m, x: x + sum(p for p in m.params),
    lambda m, x: x + m.params[1] + m.pdict["p"],
    lambda m, x: x * len(m.params) * len(m.items),
    lambda m, x: (x + 1, m.training, m.seq.training),
    lambda m, x: x + m.lin.in_features,
    lambda m, x: m.lin.weight @ x.T,
    lambda m, x: (hasattr(m, "weight"), hasattr(m, "nothing"), getattr(m, "nothing", 3), x + 1),
    lambda m, x: (isinstance(m.lin, nn.Linear), isinstance(m.items, nn.ModuleList), type(m) is Mixed, x + 1),
], ids=lambda fn: None)
def test_reading_and_calling(fn):
    run(fn)


@pytest.mark.parametrize("fn", [
    lambda m, x: [(n, p + x.sum()) for n, p in m.named_parameters()],
    lambda m, x: sum(p.sum() for p in m.parameters()) + x,
    lambda m, x: [(n, b) for n, b in m.named_buffers()] + [x + 1],
    lambda m, x: [n for n, _ in m.named_children()] + [x + 1],
    lambda m, x: [n for n, _ in m.named_modules()] + [x + 1],
    lambda m, x: [type(c).__name__ for c in m.children()] + [x + 1],
    lambda m, x: [type(c).__name__ for c in m.modules()] + [x + 1],
    lambda m, x: list(m._modules) + list(m._parameters) + list(m._buffers) + [x + 1],
    lambda m, x: m.get_submodule("seq.0")(x),
    lambda m, x: m.get_parameter("lin.weight") + x.sum(),
], ids=lambda fn: None)
def test_walks(fn):
    run(fn)


# ------------------------------------------------------------------ writing
def plain(m, x):
    m.calls += 1
    return m(x) * m.calls


def new_attribute(m, x):
    m.fresh = x + 1
    return m.fresh


def delete_attribute(m, x):
    del m.calls
    return x + hasattr(m, "calls")


def buffer(m, x):
    m.count = m.count + 1
    return m.count + x


def buffer_in_place(m, x):
    m.count.add_(1)
    return m.count + x


def parameter(m, x):
    m.weight = nn.Parameter(m.weight.detach())
    return x + 1


def parameter_none(m, x):
    m.weight = None
    return x + (m.weight is None)


def submodule(m, x):
    m.lin = m.seq[0]
    return m(x)


def attribute_by_setattr(m, x):
    setattr(m, "calls", m.calls + 5)
    return x * m.calls


def train_inside(m, x):
    m.eval()
    a = (m.training, m.lin.training)
    m.train()
    return x + 1, a, m.seq.training


def requires_grad_flag(m, x):
    return x + 1, m.weight.requires_grad


@pytest.mark.parametrize("fn", [plain, new_attribute, delete_attribute, buffer, buffer_in_place, parameter_none, submodule,
                                attribute_by_setattr, train_inside, requires_grad_flag])
def test_writing(fn):
    run(fn)


@pytest.mark.parametrize("value", [3, torch.ones(2), None, "text"])
def test_writing_what_the_tables_refuse(value):
    def f(m, x, value):
        try:
            m.lin = value
        except TypeError as error:
            return x + 1, str(error)
        return x + 2, m.lin is None
    run(f, value)


def test_gradients_reach_parameters():
    run(lambda m, x: m(m.seq(x)), backward=True)


# ------------------------------------------------------------------ hooks
def test_forward_hooks_of_a_module():
    m = model()
    m.lin.register_forward_hook(lambda mod, args, out: out * 3)
    m.lin.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    m.register_forward_hook(lambda mod, args, kwargs, out: (out, len(args), dict(kwargs)), with_kwargs=True)
    check(lambda x: m(x, twice=True), torch.ones(2, 3), graphs=1)


def test_a_hook_that_comes_later_is_seen():
    m, x = model(), torch.ones(2, 3)
    compiled = minidynamo.optimize(lambda x: m(x), backend="eager")
    before = compiled(x)
    handle = m.lin.register_forward_hook(lambda mod, args, out: out * 3)
    torch.testing.assert_close(compiled(x), m(x))
    assert not torch.equal(compiled(x), before)
    handle.remove()
    torch.testing.assert_close(compiled(x), before)


def test_a_global_hook_that_comes_later_is_seen():
    m, x = model(), torch.ones(2, 3)
    compiled = minidynamo.optimize(lambda x: m.lin(x), backend="eager")
    before = compiled(x)
    handle = nn_module.register_module_forward_hook(lambda mod, args, out: out * 3)
    try:
        torch.testing.assert_close(compiled(x), before * 3)
    finally:
        handle.remove()
    torch.testing.assert_close(compiled(x), before)


# ------------------------------------------------------------------ guards: what changes between calls is seen
def change_forward(m):
    m.lin.forward = lambda x: x * 5


def change_module(m):
    m.lin = nn.Linear(3, 3)


def change_kind(m):
    m.lin = nn.Identity()


def change_parameter(m):
    m.lin.weight = nn.Parameter(torch.zeros(3, 3))


def change_data(m):
    m.lin.weight.data = torch.zeros(3, 3)


def change_dtype(m):
    m.double()


def change_bias(m):
    m.lin.bias = None


def change_class_attribute(m):
    Mixed.scale = 7


def shadow(m):
    m.__dict__["lin"] = lambda x: x * 9


def append(m):
    m.items.append(nn.Linear(3, 3))


def reorder(m):
    m.items._modules["0"] = m.items._modules.pop("0")


def call_impl(m):
    m.lin._call_impl = lambda x: x * 9


def eval_mode(m):
    m.eval()


@pytest.mark.parametrize("change", [change_forward, change_module, change_kind, change_parameter, change_data, change_dtype,
                                    change_bias, change_class_attribute, shadow, append, reorder, call_impl, eval_mode])
def test_changes_between_calls(change):
    def f(x):
        y = m.lin(x) * m.doubled
        for layer in m.items:
            y = layer(y)
        return y * 2 if m.training else y
    m, counter = model(), CompileCounter()
    compiled = minidynamo.optimize(f, backend=counter)
    x = torch.ones(2, 3)
    try:
        torch.testing.assert_close(compiled(x), f(x))
        assert counter.frame_count == 1
        change(m)
        x = x.to(m.weight.dtype)
        torch.testing.assert_close(compiled(x), f(x))
        torch.testing.assert_close(compiled(x), f(x))
    finally:
        Mixed.scale = 2


# ------------------------------------------------------------------ optimize(module)
def test_optimized_module_is_one_graph_and_cached():
    m, counter = model(), CompileCounter()
    compiled = minidynamo.optimize(m, backend=counter)
    x = torch.ones(2, 3)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), m(x))
    assert counter.frame_count == 1
    m.eval()
    torch.testing.assert_close(compiled(x), m(x))


def test_optimized_module_inside_a_compiled_function():
    m, counter = model(), CompileCounter()
    inside = minidynamo.optimize(m, backend="eager")
    compiled = minidynamo.optimize(lambda x: inside(x) + 1, backend=counter)
    x = torch.ones(2, 3)
    torch.testing.assert_close(compiled(x), m(x) + 1)
    assert counter.frame_count == 1


def test_modules_with_methods_of_their_own():
    class Custom(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def __getattr__(self, name):
            if name == "magic":
                return 42
            return super().__getattr__(name)

        def __setattr__(self, name, value):
            super().__setattr__(name, value + 1 if name == "n" else value)

        def __call__(self, x):
            return super().__call__(x) + self.magic

        def forward(self, x):
            self.n = 1
            return self.lin(x) * self.n
    check(lambda m, x: m(x), Custom(), torch.ones(2, 3), graphs=1)


def test_hooks_in_an_ordered_dict_are_read():
    def f(m, x):
        return x + len(m._forward_hooks), bool(m._forward_hooks), type(m._forward_hooks) is collections.OrderedDict
    run(f)


# ------------------------------------------------------------------ modules made inside
def made_and_called(m, x):
    lin = nn.Identity()
    return lin(x) + m(x)


def made_sequential(m, x):
    seq = nn.Sequential(m.lin, nn.ReLU())
    return seq(x)


def sliced_list(m, x):
    for layer in m.items[:2]:
        x = layer(x)
    return x


class Fresh(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.register_buffer("b", torch.ones(3) * k)

    def forward(self, x):
        return x * self.k + self.b


def made_with_buffer(m, x):
    return Fresh(3)(x)


def made_with_hook(m, x):
    act = nn.ReLU()
    act.register_forward_hook(lambda mod, args, out: out + 1)
    return act(x)


@pytest.mark.parametrize("fn", [made_and_called, made_sequential, sliced_list, made_with_buffer])
def test_modules_made_inside(fn):
    run(fn)


def test_a_hook_registered_inside_runs():
    run(made_with_hook, graphs=None, min_graphs=1, cached=False)


def test_ids_of_new_objects_are_keys():
    def f(x):
        a, b = [1], [1]
        seen = {id(a): "a", id(b): "b"}
        return x + 1, seen[id(a)], seen[id(b)], id(a) == id(b), id(a) == id(a), id(a) in {id(b)}
    check(f, torch.ones(2), graphs=1)


def test_graph_modules_are_modules():
    made = torch.fx.symbolic_trace(model().lin)

    def f(x):
        return made(x) + 1
    check(f, torch.ones(2, 3), graphs=1)
