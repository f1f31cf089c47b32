"""Context variables (Python/context.c): what one holds on entry is a fact; setting one is Python's."""
from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from minidynamo.guards.kinds import Predicate, SameObject
from minidynamo.model.tables import Methods, builds
from minidynamo.model.variable import VariableTracker, real
from minidynamo.sources import Fetch
from minidynamo.variables.bases import HashedByIdentity, HeldObject, TypeAttributesOnly


class ContextVariable(HeldObject, TypeAttributesOnly, HashedByIdentity):
    """A ``contextvars.ContextVar`` of the user's."""

    __slots__ = ()
    kind = "context variable"

    def as_object(self) -> Any:
        return self.obj


MISSING = object()


def current(variable: ContextVar[Any]) -> Any:
    return variable.get(MISSING)


def is_unset(variable: ContextVar[Any]) -> bool:
    return current(variable) is MISSING


class ContextVarMethods(Methods, of=ContextVar):
    """ContextVar's methods; ``set`` and ``reset`` break."""

    def get(tx, self, default=None, /):
        """_contextvars_ContextVar_get_impl: the value, the argument, the variable's own default, LookupError."""
        if not is_unset(self.obj):
            return real(tx, tx.build(self.obj.get(), Fetch(self.source, current, "context_value")))
        tx.guard(Predicate(self.source, is_unset, "has no value"))
        if default is not None:
            return default
        try:
            value = self.obj.get()
        except LookupError:
            tx.raise_(LookupError, self)
        return real(tx, tx.build(value, Fetch(self.source, ContextVar.get, "default_of")))


@builds(ContextVar)
def build_context_variable(tx: Any, obj: ContextVar[Any], source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return ContextVariable(obj, source)
