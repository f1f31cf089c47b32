"""Opaque values: carried, guarded by identity (arguments by type), and a break when used."""
from __future__ import annotations

from typing import Any

from minidynamo.guards.kinds import SameObject, TypeIs
from minidynamo.model.slots import COMPARE_DUNDER
from minidynamo.model.variable import IdKey, VariableTracker
from minidynamo.sources import Local
from minidynamo.variables.bases import HashedByIdentity, HeldObject


class Unknown(HashedByIdentity):
    """What only the object's own type knows; nothing is missing from it merely because it is not modelled."""

    __slots__ = ()
    kind = "opaque object"

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        if symbol in ("int", "float"):                      # which take buffers too
            return tx.unsupported(self, f"{symbol}()")
        return super().nb_unary(tx, symbol)

    def tp_hash(self, tx: Any) -> VariableTracker:
        return super().tp_hash(tx) if self.py_type().__hash__ is object.__hash__ else tx.unsupported(self, "hash()")


class OpaqueVariable(HeldObject, Unknown):
    """An object of the user's whose type has no kind."""

    __slots__ = ()

    def as_object(self) -> Any:
        return self.obj

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__class__" and not isinstance(vars(type(self.obj)).get("__class__"), property):
            return tx.class_of(type(self.obj))
        return super().tp_getattro(tx, name)

    def key(self, tx: Any) -> Any:
        if type(self.obj).__hash__ is object.__hash__ and type(self.obj).__eq__ is object.__eq__:
            return IdKey(self.obj)
        return tx.unsupported(self, "hash()")

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if getattr(type(self.obj), COMPARE_DUNDER[symbol]) is getattr(object, COMPARE_DUNDER[symbol]):
            return super().tp_richcompare(tx, symbol, other)
        return tx.unsupported(self, f"{symbol} ...")


class PassingVariable(Unknown):
    """An opaque object that came as an argument, or was replaced again and again: a new one on each call, as likely as not.

    Only its type is guarded; where its identity decides something, that is guarded there.
    """

    __slots__ = ("passing",)

    def __init__(self, obj: Any, source: Any) -> None:
        self.passing, self.source = obj, source

    def py_type(self) -> type:
        return type(self.passing)

    def identity(self) -> object:
        return self.passing

    def fixed(self, tx: Any) -> OpaqueVariable:
        tx.guard(SameObject(self.source, self.passing))
        return OpaqueVariable(self.passing, self.source)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        return OpaqueVariable(self.passing, self.source).tp_getattro(tx, name)

    def key(self, tx: Any) -> Any:
        return self.fixed(tx).key(tx)

    def tp_hash(self, tx: Any) -> VariableTracker:
        return self.fixed(tx).tp_hash(tx)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return self.fixed(tx).tp_richcompare(tx, symbol, other)


def build_opaque(tx: Any, obj: Any, source: Any) -> VariableTracker:
    if type(source) is Local or tx.is_restless(object(), source):       # each trace counts: addresses are used again
        tx.guard(TypeIs(source, type(obj)))
        return PassingVariable(obj, source)
    tx.guard(SameObject(source, obj))
    return OpaqueVariable(obj, source)
