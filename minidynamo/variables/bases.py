"""What several families share: hashing by identity or not at all, no attributes of one's own, an object that is only held."""
from __future__ import annotations

from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.model.variable import IdKey, VariableTracker
from minidynamo.protocol.attrs import attribute_error, generic_getattr
from minidynamo.variables.constants import ConstantVariable


class HashedByIdentity(VariableTracker):
    """Values whose type keeps object's ``__eq__`` and ``__hash__``."""

    __slots__ = ()

    def key(self, tx: Any) -> Any:
        return IdKey(self.identity())

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol not in ("==", "!=") or self.identity() is not other.identity():
            return NotImplemented
        return ConstantVariable(symbol == "==")

    def tp_hash(self, tx: Any) -> VariableTracker:
        """The hash of an address."""
        return tx.hash_by_address(self)


class Unhashable(VariableTracker):
    """Values whose type sets ``__hash__`` to None (PyObject_HashNotImplemented)."""

    __slots__ = ()

    def tp_hash(self, tx: Any) -> VariableTracker:
        tx.raise_(TypeError, f"unhashable type: '{tp_name(self.py_type())}'")

    key = tp_hash  # type: ignore[assignment]


class TypeAttributesOnly(VariableTracker):
    """Values without a dict: each attribute is their type's."""

    __slots__ = ()

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        value = generic_getattr(tx, self, name)
        if value is None:
            attribute_error(tx, self, name)
        return value


class HeldObject(VariableTracker):
    """An object of the user's that is carried about as it is."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any, source: Any) -> None:
        self.obj, self.source = obj, source

    def py_type(self) -> type:
        return type(self.obj)

    def identity(self) -> object:
        return self.obj
