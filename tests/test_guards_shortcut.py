"""Facts below a model are skipped while its dicts are as they were; whatever else changes is seen all the same."""
from __future__ import annotations

import collections
import gc
import random
import types
import weakref
from typing import Any

import pytest
import torch
from minidynamo.guards import shortcut
from minidynamo.guards.kinds import (
    DictKeys, Equal, GlobalState, HasKey, InInstanceDict, IsNone, Length, SameObject, TensorMatch, TensorsNotAliased,
    TypeIs,
)
from minidynamo.guards.manager import build_guards
from minidynamo.sources import DictItem, InstanceAttr, Item, Local
from torch import nn
from torch.nn.modules import module as nn_module

import minidynamo
from minidynamo.testing import CompileCounter


@pytest.fixture(autouse=True)
def eager_shortcuts(monkeypatch):
    """Shortcuts for anything, after the first full check."""
    monkeypatch.setattr(shortcut, "MANY", 1)
    monkeypatch.setattr(shortcut, "WAIT", 1)
    minidynamo.reset()
    with minidynamo.config.patch(error_on_internal=True):
        yield
    minidynamo.reset()


@pytest.fixture
def shortcuts(monkeypatch):
    """The shortcuts made so far."""
    made: list[shortcut.Shortcut] = []
    init = shortcut.Shortcut.__init__

    def record(self, *args):
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(shortcut.Shortcut, "__init__", record)
    return made


class Inner(nn.Module):
    factor = 2

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.register_buffer("shift", torch.ones(3))
        self.bound, self.sizes, self.table, self.steps = 4.0, (1, 2), {"a": 1}, [1, 2]

    def forward(self, x):
        y = self.norm(self.lin(x)) * self.factor + self.shift * self.sizes[1] + self.table["a"] + self.steps[0]
        if self.training:
            y = y * self.bound
        return y


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Inner(), Inner()])
        self.last = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.last(x)


class Doubled(Inner):
    factor = 5


class Hidden(Inner):
    def __getattr__(self, name):
        return torch.zeros(3) if name == "shift" else super().__getattr__(name)


def twin(layer: nn.Module) -> nn.Module:
    torch.manual_seed(7)
    return type(layer)(3, 3)


def new_dict(m, **more):
    m.__dict__ = {**m.__dict__, **more}


def other_dict_kept(m):
    global KEPT
    KEPT = m.__dict__
    m.__dict__ = {**KEPT, "factor": 9}


KEPT: Any = None


def frozen(p):
    p.requires_grad_(False)


def hook(module, args, out):
    return out + 1


CHANGES = {
    "class": lambda m: setattr(m.blocks[1], "__class__", Doubled),
    "class with __getattr__": lambda m: (delattr(m.blocks[1], "shift"), setattr(m.blocks[1], "__class__", Hidden)),
    "class of a leaf": lambda m: setattr(m.last[1], "__class__", nn.Sigmoid),
    "class of a parameter": lambda m: setattr(m.blocks[0].lin.bias, "__class__", torch.Tensor),
    "class attribute": lambda m: setattr(Inner, "factor", 3),
    "class gets __getattr__": lambda m: (delattr(m.blocks[1], "shift"), setattr(
        Inner, "__getattr__", lambda self, name: torch.ones(3) if name == "shift" else nn.Module.__getattr__(self, name))),
    "class method": lambda m: setattr(Inner, "forward", lambda self, x: x * 3),
    "instance shadows the class": lambda m: setattr(m.blocks[1], "factor", 7),
    "instance shadows forward": lambda m: setattr(m.blocks[1], "forward", lambda x: x - 1),
    "instance shadows by object.__setattr__": lambda m: object.__setattr__(m.blocks[0].lin, "forward", lambda x: x - 1),
    "instance shadows by __dict__": lambda m: m.blocks[1].__dict__.__setitem__("factor", 7),
    "instance shadows by vars": lambda m: vars(m.blocks[1]).update(factor=7),
    "instance shadows a buffer": lambda m: m.blocks[1].__dict__.__setitem__("shift", torch.zeros(3)),
    "instance shadows _call_impl": lambda m: setattr(m.blocks[1], "_call_impl", lambda x: x * 2),
    "instance shadows _compiled_call_impl": lambda m: setattr(m.blocks[1], "_compiled_call_impl", lambda x: x * 2),
    "another __dict__": lambda m: new_dict(m.blocks[1], factor=9),
    "another __dict__, the old one kept": lambda m: other_dict_kept(m.blocks[1]),
    "another __dict__ of a leaf": lambda m: new_dict(m.last[1], forward=lambda x: x * 2),
    "another __dict__ on top": lambda m: new_dict(m, forward=lambda x: x * 2),
    "hook": lambda m: m.blocks[1].lin.register_forward_hook(hook),
    "hook on top": lambda m: m.register_forward_hook(hook),
    "hook table": lambda m: setattr(m.last, "_forward_hooks", collections.OrderedDict({0: hook})),
    "hook in the table": lambda m: m.last._forward_hooks.__setitem__(5, hook),
    "global hook": lambda m: nn_module.register_module_forward_hook(hook),
    "parameter of another shape": lambda m: (setattr(m.blocks[1], "lin", nn.Linear(3, 3, bias=False))),
    "parameter is None": lambda m: setattr(m.blocks[1].lin, "bias", None),
    "parameter of another dtype": lambda m: m.double(),
    "parameter's data": lambda m: setattr(m.blocks[1].lin.bias, "data", torch.ones(1)),
    "parameter transposed": lambda m: setattr(m.blocks[0].lin.weight, "data", torch.ones(3, 3).t()[:, :]),
    "parameter strides": lambda m: setattr(
        m.blocks[0].lin.weight, "data", torch.ones(6, 3)[::2]),
    "requires_grad": lambda m: frozen(m.blocks[1].norm.weight),
    "parameters tied": lambda m: setattr(m.blocks[1].norm, "weight", m.blocks[0].norm.weight),
    "buffer of another shape": lambda m: setattr(m.blocks[1], "shift", torch.ones(1)),
    "buffer deleted": lambda m: (delattr(m.blocks[1], "shift"), setattr(Inner, "shift", torch.zeros(3))),
    "eval": lambda m: m.eval(),
    "eval of one": lambda m: m.blocks[1].eval(),
    "submodule of another class": lambda m: m.last.__setitem__(1, nn.ReLU()),
    "submodule replaced in the table": lambda m: m.last._modules.__setitem__("1", nn.ReLU()),
    "submodule added": lambda m: m.blocks.append(Inner()),
    "submodule deleted": lambda m: m.blocks.__delitem__(1),
    "submodule deep down": lambda m: setattr(m.blocks[1], "norm", nn.Identity()),
    "float": lambda m: setattr(m.blocks[1], "bound", 5.0),
    "tuple": lambda m: setattr(m.blocks[1], "sizes", (1, 3)),
    "dict item": lambda m: m.blocks[1].table.__setitem__("a", 2),
    "list item": lambda m: m.blocks[1].steps.__setitem__(0, 5),
    "grad mode": lambda m: torch.set_grad_enabled(False),
}


@pytest.fixture
def restored():
    """Classes and torch's global state as they were."""
    saved = {name: value for name, value in vars(Inner).items() if name in ("factor", "forward")}
    yield
    for name in ("__getattr__", "shift"):
        if name in vars(Inner):
            delattr(Inner, name)
    for name, value in saved.items():
        setattr(Inner, name, value)
    nn_module._global_forward_hooks.clear()
    torch.set_grad_enabled(True)


def in_use(shortcuts) -> bool:
    return any(made.fast is not None for made in shortcuts) or not shortcut.stores_are_seen()


def warm(fn, counter, *args):
    """Call until the shortcuts are in use."""
    for _ in range(4):
        fn(*args)
    assert counter.frame_count == 1


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_seen(name, restored, shortcuts) -> None:
    torch.manual_seed(0)
    m, x, counter = Outer(), torch.ones(2, 3), CompileCounter()
    fast = minidynamo.optimize(m, backend=counter)
    warm(fast, counter, x)
    assert in_use(shortcuts)
    CHANGES[name](m)
    x = x.double() if name == "parameter of another dtype" else x
    before = counter.frame_count
    got, want = fast(x), m(x)
    assert torch.equal(got, want) and got.requires_grad == want.requires_grad and got.dtype == want.dtype
    assert counter.frame_count > before, "nothing was compiled again"
    again = counter.frame_count
    for _ in range(4):
        assert torch.equal(fast(x), m(x))
    assert counter.frame_count == again


NEUTRAL = {
    "nothing": lambda m: None,
    "an attribute that is not read": lambda m: setattr(m.blocks[0], "note", 1),
    "a value like the old one": lambda m: setattr(m.blocks[0], "bound", float("4.0")),
    "a parameter like the old one": lambda m: setattr(m.blocks[0].lin, "bias", nn.Parameter(torch.zeros(3))),
    "a submodule like the old one": lambda m: setattr(m.blocks[0], "lin", twin(m.blocks[0].lin)),
    "another __dict__": lambda m: new_dict(m.blocks[0], note=2),
    "numbers of a parameter": lambda m: m.blocks[0].lin.weight.data.add_(1),
    "a gradient": lambda m: m(torch.ones(2, 3)).sum().backward(),
}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_no_fact_rests_on_compiles_nothing(name, shortcuts) -> None:
    torch.manual_seed(0)
    m, x, counter = Outer(), torch.ones(2, 3), CompileCounter()
    fast = minidynamo.optimize(m, backend=counter)
    warm(fast, counter, x)
    for _ in range(12):
        NEUTRAL[name](m)
        assert torch.equal(fast(x), m(x))
    assert counter.frame_count == 1
    for _ in range(100):
        fast(x)
    assert in_use(shortcuts)


def test_two_models_share_an_entry(shortcuts) -> None:
    counter, x = CompileCounter(), torch.ones(2, 3)
    fast = minidynamo.optimize(lambda m, x: m(x), backend=counter)
    models = [Outer(), Outer()]
    for _ in range(30):
        for m in models:
            assert torch.equal(fast(m, x), m(x))
    assert counter.frame_count == 1
    models[1].blocks[0].__class__ = Doubled
    assert torch.equal(fast(models[1], x), models[1](x)) and torch.equal(fast(models[0], x), models[0](x))
    assert counter.frame_count == 2


def test_models_are_freed(shortcuts) -> None:
    m, x, counter = Outer(), torch.ones(2, 3), CompileCounter()
    fast = minidynamo.optimize(lambda m, x: m(x), backend=counter)
    warm(fast, counter, m, x)
    assert in_use(shortcuts)
    old = weakref.ref(m.blocks[0].lin.weight)
    m.blocks[0].lin.weight = nn.Parameter(torch.ones(3, 3))
    gc.collect()
    assert old() is None, "a replaced parameter is kept alive"
    warm(fast, counter, m, x)
    m.blocks[0].parent = [m]                            # a cycle
    gone = [weakref.ref(part) for part in (*m.modules(), *m.parameters())]
    del m
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


# ------------------------------------------------------------------ generated
class Plain:
    def __init__(self, **attrs: Any) -> None:
        self.__dict__.update(attrs)


class Other(Plain):
    pass


X = Local("x")


def random_object(rng: random.Random, depth: int) -> Plain:
    inner = [random_object(rng, depth - 1) for _ in range(2)] if depth else []
    return Plain(n=rng.randrange(3), t=torch.ones(rng.randrange(1, 3)), d={"a": rng.randrange(3), "o": inner and inner[0]},
                 o=inner[1] if inner else None, pair=(rng.randrange(2), inner[0] if inner else 1), f=len)


def facts(source: Any, value: Any) -> list[Any]:
    """Every fact of a random object that one guard or other can state."""
    found: list[Any] = [TypeIs(source, type(value))]
    if isinstance(value, Plain):
        for name, item in vars(value).items():
            found += facts(InstanceAttr(source, name), item)
        found += [InInstanceDict(source, "zzz", "zzz" in vars(value)), InInstanceDict(source, "n", True)]
    elif type(value) is dict:
        found += [DictKeys(source, tuple(value)), HasKey(source, "zzz", "zzz" in value), Length(source, len(value), dict)]
        for key, item in value.items():
            found += facts(DictItem(source, key), item)
    elif type(value) is tuple:
        found.append(Length(source, len(value), tuple))
        for at, item in enumerate(value):
            found += facts(Item(source, at, tuple), item)
    elif isinstance(value, torch.Tensor):
        found.append(TensorMatch(source, value))
    elif value is len:
        found.append(SameObject(source, value))
    else:
        found += [Equal(source, value), IsNone(source, value is None)] if value != [] else []
    return found


def objects_in(value: Any) -> list[Plain]:
    below = [*vars(value).values(), value.d.get("o"), value.pair[-1] if value.pair else None] if isinstance(value, Plain) else []
    return [value, *(o for item in below if isinstance(item, Plain) for o in objects_in(item))] \
        if isinstance(value, Plain) else []


def mutate(rng: random.Random, top: Plain) -> None:
    obj = rng.choice(objects_in(top))
    rng.choice([
        lambda: setattr(obj, "n", rng.randrange(3)), lambda: setattr(obj, "__class__", rng.choice([Plain, Other])),
        lambda: setattr(obj, "__dict__", dict(obj.__dict__)), lambda: obj.__dict__.__setitem__("zzz", 1),
        lambda: obj.__dict__.pop("zzz", None), lambda: obj.d.__setitem__("a", rng.randrange(3)),
        lambda: obj.d.__setitem__("zzz", 1), lambda: obj.d.pop("zzz", None), lambda: setattr(obj, "d", dict(obj.d)),
        lambda: setattr(obj, "t", torch.ones(rng.randrange(1, 3))), lambda: obj.t.requires_grad_(rng.random() < 0.5),
        lambda: setattr(obj.t, "data", torch.ones(rng.randrange(1, 3))),
        lambda: setattr(obj, "pair", (rng.randrange(2), obj.pair[1])), lambda: setattr(obj, "f", rng.choice([len, max])),
        lambda: setattr(obj, "o", Plain(**vars(obj.o)) if obj.o is not None else None),
        lambda: obj.d.__setitem__("a", obj.d.pop("a")),
    ])()


@pytest.mark.skipif(not shortcut.stores_are_seen(), reason="this Python's dicts do not tell of attributes")
@pytest.mark.parametrize("seed", range(16))
def test_full_and_quick_checks_agree(seed, shortcuts) -> None:
    rng = random.Random(seed)
    for _ in range(6):
        value = random_object(rng, 2)
        guards = [GlobalState(), *facts(X, value)]
        shortcuts.clear()
        entry = build_guards(guards, {"x": value}, {}, None)
        assert entry.check({"x": value}) and shortcuts[0].fast is not None and shortcuts[0].fast(value)
        for _ in range(25):
            if rng.random() < 0.6:
                mutate(rng, value)
            want = all(guard.check({"x": value}, {}) for guard in guards)
            assert entry.check({"x": value}) is want
            shortcuts[0].left = shortcuts[0].wait = 1


def test_distinct_tensors_that_cannot_be_one_object_are_not_compared() -> None:
    sources = [DictItem(X, key) for key in "abcd"]
    tensors = [torch.ones(2), torch.ones(3), torch.ones(2, 2), nn.Parameter(torch.ones(2))]
    guards = [TypeIs(X, dict), *map(TensorMatch, sources, tensors), TensorsNotAliased(tuple(sources))]
    made = minidynamo.guards.set.GuardSet()
    for guard in guards:
        made.add(guard)
    assert [guard.sources for guard in made.final() if isinstance(guard, TensorsNotAliased)] == [tuple(sources[:2])]
    entry = build_guards(made, {}, {}, None)
    assert entry.check({"x": dict(zip("abcd", tensors))})
    free = TensorMatch(sources[1], tensors[1], [0])
    assert free.fixed_facts() == TensorMatch(sources[0], tensors[0]).fixed_facts()


def test_small_objects_are_checked_as_ever(monkeypatch) -> None:
    monkeypatch.setattr(shortcut, "MANY", 64)
    assert shortcut.divide(facts(X, Plain(n=1, o=types.SimpleNamespace()))) == {}
