"""mappingproxy: a read-only view of a mapping (Objects/descrobject.c)."""
from __future__ import annotations

import _thread
import gc
import sys
import types
from typing import Any

from minidynamo.guards.kinds import Predicate, TypeIs
from minidynamo.model.tables import builds, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare, numbers
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Fetch
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable

FORWARDED = ("get", "keys", "values", "items", "copy", "__getitem__", "__contains__", "__len__", "__iter__",
             "__reversed__")


def proxied(proxy: types.MappingProxyType) -> Any:
    """The mapping behind a proxy."""
    return gc.get_referents(proxy)[0]


class MappingProxyVariable(HashedByIdentity):
    """``types.MappingProxyType(mapping)``."""

    __slots__ = ("mapping",)
    kind = "mappingproxy"

    def __init__(self, mapping: VariableTracker, source: Any = None) -> None:
        self.mapping, self.source = mapping, source

    def py_type(self) -> type:
        return types.MappingProxyType

    def children(self) -> list[VariableTracker]:
        return [self.mapping]

    def rebuild(self, out: Any) -> None:
        out.call_function(types.MappingProxyType, self.mapping)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__class__":
            return tx.class_of(types.MappingProxyType)
        if name in FORWARDED:
            return real(tx, self.mapping).tp_getattro(tx, name)
        if not hasattr(types.MappingProxyType, name):
            attribute_error(tx, self, name)
        return tx.unsupported(self, f".{name}")

    def tp_iter(self, tx: Any) -> VariableTracker:
        return real(tx, self.mapping).tp_iter(tx)

    def sq_length(self, tx: Any) -> VariableTracker:
        return real(tx, self.mapping).sq_length(tx)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return real(tx, self.mapping).sq_length(tx).nb_bool(tx)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return real(tx, self.mapping).mp_subscript(tx, key)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return compare.contains(tx, real(tx, self.mapping), item)

    def string_items(self, tx: Any) -> dict[str, VariableTracker]:
        return real(tx, self.mapping).string_items(tx)            # type: ignore[attr-defined]

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol != "|":
            return NotImplemented
        mine, theirs = real(tx, self.mapping), plain(tx, other)
        return numbers.binary(tx, "|", *((theirs, mine) if reflected else (mine, theirs)))

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return compare.compare(tx, symbol, real(tx, self.mapping), plain(tx, other))

    def tp_hash(self, tx: Any) -> VariableTracker:
        return real(tx, self.mapping).tp_hash(tx)

    def key(self, tx: Any) -> Any:
        return real(tx, self.mapping).key(tx)

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(f"mappingproxy({tx.text_of(real(tx, self.mapping))})")

    def tp_str(self, tx: Any) -> VariableTracker:
        return tx.to_str(real(tx, self.mapping))


def plain(tx: Any, value: VariableTracker) -> VariableTracker:
    return real(tx, value.mapping) if isinstance(value, MappingProxyVariable) else value


@meaning(types.MappingProxyType)
def call_mappingproxy(tx, mapping, /):
    """mappingproxy_new_impl."""
    cls = mapping.py_type()
    if not hasattr(cls, "__getitem__") or issubclass(cls, (list, tuple)):
        tx.raise_(TypeError, f"mappingproxy() argument must be a mapping, not {cls.__name__}")
    return MappingProxyVariable(mapping)


@builds(types.MappingProxyType)
def build_mappingproxy(tx: Any, obj: types.MappingProxyType, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, types.MappingProxyType))
    return MappingProxyVariable(tx.lazy(proxied(obj), Fetch(source, proxied, "mapping")), source)


class StillAnswers:
    """Predicate: a function of the interpreter's state gives what it gave."""

    def __init__(self, function: Any, answer: Any) -> None:
        self.function, self.answer = function, answer

    def __call__(self, _: Any) -> bool:
        return self.function() == self.answer


def read_state(function: Any) -> Any:
    """The answer now, guarded."""
    def call(tx):
        answer = function()
        tx.guard(Predicate(tx.builtins_source, StillAnswers(function, answer), f"{function.__name__}() == {answer}"))
        return ConstantVariable(answer)
    return call


for function_ in (sys.getrecursionlimit, _thread.get_ident):
    meaning(function_)(read_state(function_))
