"""Weak references as inputs: calling one gives the object it refers to, or None."""
from __future__ import annotations

import weakref
from typing import Any

from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import Fetch

TARGET = weakref.ref.__call__


class WeakrefVariable(VariableTracker):
    """``weakref.ref`` from outside (weakref_call)."""

    __slots__ = ("obj",)
    kind = "weak reference"

    def __init__(self, obj: Any, source: Any) -> None:
        self.obj, self.source = obj, source

    def py_type(self) -> type:
        return weakref.ref

    def identity(self) -> object:
        return self.obj

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if args or kwargs:
            return super().tp_call(tx, args, kwargs)
        return tx.real(tx.build(TARGET(self.obj), Fetch(self.source, TARGET, "weakref_target")))

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return tx.unsupported(self, symbol)


@builds(weakref.ref)
def build_weakref(tx: Any, obj: Any, source: Any) -> WeakrefVariable:
    tx.guard(TypeIs(source, weakref.ref))
    return WeakrefVariable(obj, source)
