"""The C++ tree, the Python function and each guard's own check agree on generated sets and inputs."""
from __future__ import annotations

import collections
import os
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minidynamo.guards import kinds
from minidynamo.guards.kinds import (
    Aliased, DictKeys, Equal, Guard, HasAttr, HasKey, InInstanceDict, IsNone, Length, NotAliased,
    SameObject, SetItems, ShapeExpr, SizeOf, TensorMatch, TypeIs,
)
from minidynamo.guards.literals import KEYS
from minidynamo.guards.lower_python import lower_python
from minidynamo.guards.manager import build_guards
from minidynamo.guards.set import GuardSet
from minidynamo.sources import DictItem, DictValue, Global, InstanceAttr, Item, Local, Source, TypeOf

EXAMPLES = 3000 if os.environ.get("MINIDYNAMO_FULL") else 200


class Plain:
    def __init__(self, attrs: dict[str, Any]) -> None:
        self.__dict__.update(attrs)


class Other(Plain):
    pass


class MyList(list):
    pass


def f() -> None: ...


NAMES = st.sampled_from(["a", "b", "c"])
TENSORS = [torch.ones(2, 3), torch.ones(3, 2), torch.ones(3, 2).t(), torch.ones(2, 3, dtype=torch.int64),
           torch.ones(2, 3, requires_grad=True), torch.nn.Parameter(torch.ones(2, 3)), torch.ones(3),
           torch.ones(()), torch.ones(2, 3, device="meta")]
ATOMS = st.one_of(
    st.sampled_from([0, 1, True, False, 0.0, -0.0, 1.0, float("nan"), None, "a", "", (), (1,), (True,), f, len, int,
                     Plain, torch, frozenset(), frozenset({1}), 2j, slice(1), range(2), torch.float32]),
    st.sampled_from(TENSORS))


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["a", "b", 1, True, 0.0, (1,)])
    dicts = st.dictionaries(keys, inner, max_size=3)
    return st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.lists(inner, max_size=2).map(MyList),
        dicts, dicts.map(collections.OrderedDict),
        st.dictionaries(NAMES, inner, max_size=2).map(Plain), st.dictionaries(NAMES, inner, max_size=2).map(Other),
        st.sets(st.sampled_from([1, 2, "a", 0.0]), max_size=3))


VALUES = st.recursive(ATOMS, containers, max_leaves=6)
ROOTS: list[Source] = [Local("x"), Local("y"), Global("g")]


def children(source: Source, value: Any) -> list[tuple[Source, Any]]:
    """The values below one, with their sources."""
    if isinstance(value, (list, tuple)):
        owner = list if isinstance(value, list) else tuple
        return [(Item(source, index, owner), item) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return [*((DictItem(source, key), item) for key, item in value.items()),
                *((DictValue(source, index), item) for index, item in enumerate(value.values()))]
    if isinstance(value, Plain):
        return [(InstanceAttr(source, name), item) for name, item in vars(value).items()]
    return []


def facts(source: Source, value: Any) -> list[Guard]:
    """Guards that hold for a value."""
    true: list[Guard] = [TypeIs(source, type(value)), IsNone(source, value is None), SameObject(source, value),
                         SameObject(TypeOf(source), type(value)), HasAttr(source, "real", hasattr(value, "real"))]
    if type(value) in KEYS and type(value) not in (list, set):
        true.append(Equal(source, value))
    if isinstance(value, dict):
        true += [Length(source, len(value), dict), HasKey(source, "a", "a" in value), DictKeys(source, tuple(value))]
    for owner in (list, tuple, set, frozenset, str):
        if isinstance(value, owner):
            true.append(Length(source, len(value), owner))
    if isinstance(value, (set, frozenset)):
        true.append(SetItems(source, frozenset(value)))
    if isinstance(value, Plain):
        true += [InInstanceDict(source, name, name in vars(value)) for name in "ab"]
    if isinstance(value, torch.Tensor):
        true += [TensorMatch(source, value), TensorMatch(source, value, [0] if value.ndim else [])]
        if value.ndim:
            true.append(ShapeExpr("n == k", (("n", source, SizeOf(0)),), {"k": value.size(0)}))
    return true


def draw_guards(draw: Any, frame: dict[Source, Any]) -> list[Guard]:
    everything: list[Guard] = []
    objects: list[tuple[Source, Any]] = []
    todo = list(frame.items())
    while todo:
        source, value = todo.pop(0)
        objects.append((source, value))
        everything += facts(source, value)
        todo += children(source, value)
    for source, value in objects[:6]:
        for other, second in objects[:6]:
            if source != other:
                everything.append(Aliased(source, other) if value is second else NotAliased((source, other)))
    return draw(st.lists(st.sampled_from(everything), max_size=12))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_forms_agree(data: st.DataObject) -> None:
    """And true facts hold: sets are made from the very values that they are first checked on."""
    pool = data.draw(st.lists(VALUES, min_size=3, max_size=4))
    values = [data.draw(st.sampled_from(pool)) for _ in ROOTS]
    guards = GuardSet()
    for guard in draw_guards(data.draw, dict(zip(ROOTS, values))):
        guards.add(guard)
    G: dict[str, Any] = {"g": values[2]}
    L = {"x": values[0], "y": values[1]}
    raw, final = build_guards(list(guards), L, G, None), build_guards(guards, L, G, None)
    python, text = lower_python(guards.final())
    assert raw.check(L), guards.guards
    for _ in range(4):
        by_check = all(guard.check(L, G) for guard in guards)
        assert raw.root.check(L) == by_check, (guards.guards, L, G)
        assert final.root.check(L) == by_check, (guards.guards, L, G)
        assert python(L, G) == by_check, (text, L, G)
        choice = st.one_of(st.sampled_from(pool), VALUES)
        L, G["g"] = {"x": data.draw(choice), "y": data.draw(choice)}, data.draw(st.sampled_from([values[2], *pool]))
        if data.draw(st.booleans()):
            L, G["g"] = {"x": values[0], "y": data.draw(choice)}, values[2]


def test_all_generated_kinds_are_public() -> None:
    assert all(hasattr(kinds, name) for name in kinds.__all__)
