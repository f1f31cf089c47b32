"""Guards keep no user object alive, and never pass for a new object at an old address."""
from __future__ import annotations

import gc
import sys
import types
import weakref
from typing import Any

import pytest
import torch
from minidynamo.guards.diff import explain_miss
from minidynamo.guards.kinds import (
    CodeIs, Equal, GlobalState, HasKey, ModeStack, SameObject, TensorMatch, TensorsNotAliased, TypeIs,
)
from minidynamo.guards.manager import build_guards
from minidynamo.sources import ClassDict, DictItem, InstanceAttr, Local

X = Local("x")


class Plain:
    pass


class NoWeakref:
    __slots__ = ()


def made(kind: str) -> Any:
    if kind == "function":
        return types.FunctionType((lambda: 1).__code__, {})
    if kind == "class":
        return type("Made", (), {})
    if kind == "module":
        return types.ModuleType("made")
    if kind == "nn.Module":
        return torch.nn.Linear(2, 2)
    return Plain()


KINDS = ["function", "class", "module", "nn.Module", "object"]


@pytest.mark.parametrize("form", ["tree", "python"])
@pytest.mark.parametrize("kind", KINDS)
def test_identity_holds_nothing_and_fails_after_death(kind: str, form: str) -> None:
    obj = made(kind)
    entry = build_guards([SameObject(X, obj), SameObject(X, obj)], {"x": obj}, {}, None, form)
    assert entry.check({"x": obj}) and entry.check({"x": obj}, {}) and entry.alive
    gone, address = weakref.ref(obj), id(obj)
    del obj
    gc.collect()
    assert gone() is None, "the guards kept it alive"
    reused = None
    for _ in range(20000):                 # until the address is given to another object
        reused = made(kind) if kind == "object" else Plain()
        if id(reused) == address:
            break
    assert not entry.check({"x": reused}) and not entry.check({"x": None})
    assert not entry.guards[0].check({"x": reused}, {})
    assert explain_miss([entry], {"x": reused}, {})
    if form == "tree":
        assert not entry.alive


def test_address_reuse_is_really_seen() -> None:
    obj = Plain()
    entry, address = build_guards([SameObject(X, obj)], {}, {}, None), id(obj)
    del obj
    seen = False
    for _ in range(20000):
        reused = Plain()
        if id(reused) == address:
            seen = True
            assert not entry.check({"x": reused})
            break
    assert seen


def test_types_are_held_weakly() -> None:
    made_class = type("Made", (), {})
    entry = build_guards([TypeIs(X, made_class)], {}, {}, None)
    assert entry.check({"x": made_class()})
    gone = weakref.ref(made_class)
    del made_class
    gc.collect()
    assert gone() is None and not entry.check({"x": 1}) and not entry.alive


@pytest.mark.parametrize("form", ["tree", "python"])
def test_a_namespace_that_leads_back_to_its_class_is_held_weakly(form: str) -> None:
    made_class = type("Made", (), {"k": 2})
    made_class.instance = made_class()
    source = ClassDict(made_class, "Made")
    entry = build_guards([Equal(DictItem(source, "k"), 2), HasKey(source, "x", False)], {}, {}, None, form)
    assert entry.check({})
    gone = weakref.ref(made_class)
    del made_class
    gc.collect()
    assert gone() is None and not entry.check({}) and explain_miss([entry], {}, {})
    assert form == "python" or not entry.alive


def test_code_is_held_weakly() -> None:
    scope: dict[str, Any] = {}
    exec("def f(): return 1", scope)
    entry, gone = build_guards([CodeIs(X, scope["f"].__code__)], {}, {}, None), weakref.ref(scope["f"].__code__)
    assert entry.check({"x": scope["f"]})
    scope.clear()
    gc.collect()
    assert gone() is None and not entry.check({"x": made})


def test_a_whole_model_is_freed() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    modules = InstanceAttr(X, "_modules")
    guards = [GlobalState(), ModeStack([]), SameObject(X, model)]
    params = []
    for name, layer in model.named_children():
        at = DictItem(modules, name)
        guards.append(SameObject(at, layer))
        for key, value in layer.named_parameters():
            params.append(DictItem(InstanceAttr(at, "_parameters"), key))
            guards.append(TensorMatch(params[-1], value))
    entry = build_guards([*guards, TensorsNotAliased(tuple(params))], {"x": model}, {}, None)
    assert entry.check({"x": model})
    gone = [weakref.ref(part) for part in (model, *model.children(), *model.parameters())]
    del model, layer, value
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)
    assert not entry.alive


def test_what_cannot_be_weakly_held_is_kept() -> None:
    for obj in (NoWeakref(), 1 << 70, None, (1, 2), "text"):
        entry = build_guards([SameObject(X, obj)], {}, {}, None)
        assert entry.check({"x": obj}) and not entry.check({"x": object()}) and entry.alive


def test_dead_before_lowering() -> None:
    obj = Plain()
    guard = SameObject(X, obj)
    del obj
    for form in ("tree", "python"):
        entry = build_guards([guard], {}, {}, None, form)
        assert not entry.check({"x": None}) and not entry.check({"x": Plain()})
    tensor = torch.ones(2)
    match = TensorMatch(X, tensor)
    del tensor
    entry = build_guards([match], {}, {}, None)
    assert entry.check({"x": torch.ones(2)}) and not entry.check({"x": torch.ones(3)})


def test_dropping_the_tree_drops_its_references() -> None:
    kept = NoWeakref()
    before = sys.getrefcount(kept)
    entry = build_guards([SameObject(X, kept), Equal(X, (1, -0.0))], {}, {}, None)
    assert sys.getrefcount(kept) > before
    del entry
    gc.collect()
    assert sys.getrefcount(kept) == before
