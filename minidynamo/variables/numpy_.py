"""numpy values: arrays and scalars from outside are carried, guarded by their type, and a break when used."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds, builds_subclasses
from minidynamo.variables.bases import HashedByIdentity, HeldObject

try:
    import numpy
except ImportError:                     # numpy is optional, also for torch
    numpy = None                        # type: ignore[assignment]


class NumpyVariable(HeldObject, HashedByIdentity):
    """An array or scalar: only its type is known, so that a new one on each call compiles nothing anew."""

    __slots__ = ()
    kind = "numpy value"

    def tp_getattro(self, tx: Any, name: str) -> Any:
        if name == "__class__":
            return tx.class_of(type(self.obj))
        return tx.stop(reasons.NUMPY_CALL, name=f".{name}")

    def tp_richcompare(self, tx: Any, symbol: str, other: Any) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)

    def key(self, tx: Any) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name="hash()")

    def nb_binary(self, tx: Any, symbol: str, other: Any, reflected: bool) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)

    def nb_inplace(self, tx: Any, symbol: str, other: Any) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)


def build_numpy(tx: Any, obj: Any, source: Any) -> NumpyVariable:
    tx.guard(TypeIs(source, type(obj)))
    return NumpyVariable(obj, source)


if numpy is not None:
    builds(numpy.ndarray)(build_numpy)
    builds_subclasses(numpy.ndarray, numpy.generic)(build_numpy)
