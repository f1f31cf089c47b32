"""``id()`` and ``hash()`` of an object that exists only once the output code runs: numbers that nobody knows yet."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.model.services import service
from minidynamo.model.variable import IdKey, NotConstant, VariableTracker
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


class HashVariable(AddressVariable):
    """``hash()`` of an object that hashes by its address; whoever needs the number fixes which object it is."""

    __slots__ = ("tx",)
    kind = "hash"

    def __init__(self, tx: Any, value: VariableTracker) -> None:
        super().__init__(value)
        self.tx = tx

    def as_constant(self) -> int:
        known = self.value.as_object()
        if self.value.source is not None:
            self.tx.guard_same(self.value.source, known)
        return hash(known)

    def rebuild(self, out: Any) -> None:
        out.call_function(hash, self.value)

    def known(self) -> ConstantVariable | None:
        try:
            return ConstantVariable(self.as_constant())
        except NotConstant:
            return None

    def key(self, tx: Any) -> Any:
        known = self.known()
        return ("hash", self.value.key(tx)) if known is None else known.value

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        """Objects that are the same as keys have one hash; of others nobody knows, unless they exist already."""
        if symbol in ("==", "!=") and isinstance(other, HashVariable) and other.value.key(tx) == self.value.key(tx):
            return ConstantVariable(symbol == "==")
        return by_number("tp_richcompare")(self, tx, symbol, other)


def by_number(name: str) -> Any:
    def slot(self: HashVariable, tx: Any, *args: Any) -> Any:
        known = self.known()
        return getattr(known, name)(tx, *args) if known is not None else tx.stop(reasons.ID_OF_VALUE, call="hash()")
    return slot


for name_ in ("tp_hash", "tp_repr", "tp_format", "tp_getattro", "nb_unary", "nb_binary", "nb_inplace"):
    setattr(HashVariable, name_, by_number(name_))


@service
def address_of(tx: Any, value: VariableTracker) -> VariableTracker:
    return AddressVariable(value)


@service
def hash_by_address(tx: Any, value: VariableTracker) -> VariableTracker:
    return HashVariable(tx, value)
