"""``id()`` of an object that exists only once the output code runs: a number that nobody knows yet."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.model.variable import IdKey, VariableTracker
from minidynamo.variables.constants import ConstantVariable


class AddressVariable(VariableTracker):
    """An address: equal to itself only, and a key of dicts and sets; as a number it breaks."""

    __slots__ = ("value",)
    kind = "address"

    def __init__(self, value: VariableTracker) -> None:
        self.value, self.source = value, None

    def py_type(self) -> type:
        return int

    def children(self) -> list[VariableTracker]:
        return [self.value]

    def rebuild(self, out: Any) -> None:
        out.call_function(id, self.value)

    def key(self, tx: Any) -> Any:
        """No number that is known while tracing is the address of an object made later."""
        return "address", IdKey(self.value.identity())

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(True)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol not in ("==", "!="):
            return self.as_number(tx)
        same = isinstance(other, AddressVariable) and other.value.identity() is self.value.identity()
        return ConstantVariable(same is (symbol == "=="))

    def as_number(self, tx: Any, *_: Any) -> Any:
        return tx.stop(reasons.ID_OF_VALUE, call="id()")

    tp_hash = tp_repr = tp_format = tp_getattro = nb_unary = nb_binary = nb_inplace = as_number
