"""What a function that is not traced can reach by itself: its cells, globals, helpers and their objects.

``nonstrict_trace`` asks: where is a tensor that the function read, which numbers and helpers
would its graph be stale without, and has the region changed any of it (then the function, which
runs inside the graph, would see the old state).
"""
from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

from minidynamo.guards.kinds import DictKeys, Equal, IsNone, Length, SameObject
from minidynamo.sources import Attr, CellContents, DictItem, InstanceAttr, PlainItem, Source
from minidynamo.sources.source import instance_dict
from minidynamo.variables.constants import LITERAL_TYPES

LIMIT = 20_000
LIBRARIES = ("torch", "numpy", "builtins", "typing", "collections", "functools", "math", "operator", "minidynamo")


class Reach:
    """Everything found from some roots: objects by id with their source, and the places that hold them."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.sources: dict[int, Source] = {}
        self.keep: list[Any] = []
        self.facts: list[Any] = []                  # guards on numbers and helpers
        self.places: list[tuple[Any, Any]] = []     # (container, shallow copy), to see writes
        self.scopes: dict[int, tuple[Any, set[str]]] = {}
        self._queue: deque[tuple[Any, Source]] = deque()

    def add(self, obj: Any, source: Source) -> None:
        """A root, or something found behind one."""
        if obj is None or id(obj) in self.sources or type(obj) in LITERAL_TYPES:
            return
        self.sources[id(obj)] = source
        self.keep.append(obj)
        self._queue.append((obj, source))

    def search(self) -> Reach:
        while self._queue and len(self.keep) < LIMIT:
            obj, source = self._queue.popleft()
            expand = EXPAND.get(type(obj))
            if expand is not None:
                expand(self, obj, source)
            elif not isinstance(obj, (torch.Tensor, type)) and type(obj).__module__.partition(".")[0] != "builtins":
                expand_object(self, obj, source)
        return self

    # ---- answers
    def changed(self) -> str | None:
        """Something within reach that the region has changed, which is written back only after the graph."""
        tx = self.tx
        for scope, names in self.scopes.values():
            for name in names:
                if name in scope.written:
                    return f"the global {name}"
        for value in tx.changed.values():
            for obj in (value.obj, getattr(value, "cell", None)):
                if obj is not None and id(obj) in self.sources and not isinstance(obj, torch.Tensor):
                    return f"{self.sources[id(obj)]}"
        for key, value in tx.by_id.items():
            if key in self.sources and id(value) in tx.changed and not isinstance(value.identity(), torch.Tensor):
                return f"{self.sources[key]}"
        return None

    def restore(self) -> str | None:
        """Undo what a trial run wrote; answers a name for the first thing written."""
        found = None
        for container, before in self.places:
            now = shallow(container)
            if not same_items(now, before):
                found = found or f"a {type(container).__name__}"
                put_back(container, before)
        return found


def shallow(container: Any) -> Any:
    if isinstance(container, PLACES):
        try:
            return [container.cell_contents]
        except ValueError:
            return []
    return dict(container) if isinstance(container, dict) else list(container)


def same_items(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return len(a) == len(b) and all(k in b and v is b[k] for k, v in a.items())
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def put_back(container: Any, before: Any) -> None:
    if isinstance(container, PLACES):
        if before:
            container.cell_contents = before[0]
    elif isinstance(container, dict):
        dict.clear(container)
        dict.update(container, before)
    else:
        container[:] = before


# ---------------------------------------------------------------- one object further
def expand_function(reach: Reach, fn: types.FunctionType, source: Source) -> None:
    if fn.__globals__.get("__name__", "").partition(".")[0] in LIBRARIES and fn.__closure__ is None:
        return
    for at, cell in enumerate(fn.__closure__ or ()):
        where = PlainItem(Attr(source, "__closure__"), at, tuple)
        reach.sources.setdefault(id(cell), where)
        reach.keep.append(cell)
        reach.places.append((cell, shallow(cell)))
        for value in shallow(cell):
            fact(reach, value, CellContents(where))
    expand_globals(reach, fn)
    if fn.__defaults__:
        reach.add(fn.__defaults__, Attr(source, "__defaults__"))


def expand_globals(reach: Reach, fn: types.FunctionType) -> None:
    scope = reach.tx.scope_of(fn.__globals__)
    names = set(code_names(fn.__code__))
    known = reach.scopes.setdefault(id(scope), (scope, set()))[1]
    for name in sorted(names - known):
        if name in fn.__globals__:
            fact(reach, fn.__globals__[name], scope.source(name))
            reach.places.append((Name(fn.__globals__, name), [fn.__globals__[name]]))
    known.update(names)


class Name:
    """One name of a namespace, as a place that holds one thing."""

    def __init__(self, mapping: dict[str, Any], name: str) -> None:
        self.mapping, self.name = mapping, name

    @property
    def cell_contents(self) -> Any:
        if self.name not in self.mapping:
            raise ValueError(self.name)
        return self.mapping[self.name]

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.mapping[self.name] = value


PLACES = (types.CellType, Name)


def code_names(code: types.CodeType) -> Iterator[str]:
    """Names that a function's code may look up, nested functions included."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from code_names(const)


def fact(reach: Reach, value: Any, source: Source) -> None:
    """A number or helper found by name: the graph is stale without it."""
    if value is None:
        reach.facts.append(IsNone(source, True))
    elif type(value) in LITERAL_TYPES:
        reach.facts.append(Equal(source, value))
    elif type(value) is types.FunctionType:
        reach.facts.append(SameObject(source, value))
    reach.add(value, source)


def expand_method(reach: Reach, method: types.MethodType, source: Source) -> None:
    reach.add(method.__func__, Attr(source, "__func__"))
    reach.add(method.__self__, Attr(source, "__self__"))


def expand_dict(reach: Reach, mapping: dict, source: Source) -> None:
    reach.places.append((mapping, shallow(mapping)))
    if all(type(key) in LITERAL_TYPES for key in mapping):
        reach.facts.append(DictKeys(source, tuple(mapping)))
    for key, value in dict.items(mapping):
        if type(key) in (str, int):
            fact(reach, value, DictItem(source, key))


def expand_sequence(owner: type) -> Callable[..., None]:
    def expand(reach: Reach, values: Any, source: Source) -> None:
        if owner is list:
            reach.places.append((values, list(values)))
            reach.facts.append(Length(source, len(values), list))
        for at, value in enumerate(values):
            fact(reach, value, PlainItem(source, at, owner))
    return expand


MODULE_PARTS = ("_parameters", "_buffers", "_modules")


def expand_object(reach: Reach, obj: Any, source: Source) -> None:
    """A user's object or module: what its own dict holds."""
    if not type(obj).__dictoffset__:
        return
    own, is_module = instance_dict(obj), isinstance(obj, torch.nn.Module)
    reach.places.append((own, dict(own)))
    for name, value in own.items():
        if type(name) is not str or is_module and name.startswith("_") and name not in MODULE_PARTS:
            continue
        fact(reach, value, InstanceAttr(source, name))
    forward = getattr(type(obj), "forward" if isinstance(obj, torch.nn.Module) else "__call__", None)
    if isinstance(forward, types.FunctionType):
        expand_globals(reach, forward)


EXPAND: dict[type, Callable[..., None]] = {
    types.FunctionType: expand_function,
    types.MethodType: expand_method,
    dict: expand_dict,
    list: expand_sequence(list),
    tuple: expand_sequence(tuple),
}
