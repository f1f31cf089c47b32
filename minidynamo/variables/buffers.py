"""bytearray: a mutable value of known bytes; its methods are the real ones, run on a copy (Objects/bytearrayobject.c)."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Equal, TypeIs
from minidynamo.model.tables import CALLS, builds, meaning, wraps
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import calls, iters, numbers
from minidynamo.protocol import compare as cmp
from minidynamo.sources import Fetch
from minidynamo.variables.bases import TypeAttributesOnly, Unhashable
from minidynamo.variables.constants import ConstantVariable, slice_value
from minidynamo.variables.sequences import inner
from minidynamo.variables.subclasses import PARTS


class BytearrayVariable(Unhashable, TypeAttributesOnly):
    """A bytearray, or the part of a subclass's instance; ``value`` is what it holds now."""

    __slots__ = ("value", "original")
    kind = "bytearray"
    owner = bytearray

    def __init__(self, value: bytes, source: Any = None) -> None:
        self.value = self.original = value
        self.source = source

    def py_type(self) -> type:
        return bytearray

    def bf_getbuffer(self) -> bytes:
        """What the C buffer protocol shows."""
        return self.value

    # ---- making it again
    def rebuild(self, out: Any) -> None:
        out.call_function(bytearray, self.value)

    def write_into(self, out: Any, holder: VariableTracker) -> None:
        out.call_function(set_bytes, holder, self.value)
        out.op("POP")

    def replay(self, out: Any) -> None:
        self.write_into(out, self)

    # ---- the real thing, on a copy
    def perform(self, tx: Any, function: Any, args: list, kwargs: dict | None = None) -> Any:
        """``function(copy, *args)`` with the change kept; the user's exceptions are raised."""
        copy = bytearray(self.value)
        values = [literal(tx, a) for a in args]
        names = {k: literal(tx, v) for k, v in (kwargs or {}).items()}
        try:
            result = function(copy, *values, **names)
        except Exception as error:
            self.keep(tx, copy)
            tx.raise_real(error)
        self.keep(tx, copy)
        return self if result is copy else result

    def keep(self, tx: Any, copy: bytearray) -> None:
        if copy != self.value:
            tx.journal.set(self, "value", bytes(copy))
            tx.modified(self)

    def result(self, tx: Any, value: Any) -> Any:
        return value if value is self or value is NotImplemented else tx.wrap(value)

    # ---- slots
    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.value))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.value))

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.sequence_iterator(self)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return self.result(tx, self.perform(tx, bytearray.__getitem__, [key]))

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        if value is None:
            self.perform(tx, bytearray.__delitem__, [key])
        else:
            if inner(value) is self:
                value = BytearrayVariable(self.value)
            self.perform(tx, bytearray.__setitem__, [key, value])

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return self.result(tx, self.perform(tx, bytearray.__contains__, [item]))

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "%" and not reflected or symbol in "+*":
            try:
                operand = literal(tx, other)
            except NotConstant:
                return NotImplemented
            mine = bytearray(self.value)
            if symbol == "*" and type(operand) is not int:
                return NotImplemented
            try:
                return tx.wrap(numbers.BINARY[symbol](*((operand, mine) if reflected else (mine, operand))))
            except Exception as error:
                tx.raise_real(error)
        return NotImplemented

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol not in ("+=", "*="):
            return NotImplemented
        return self.result(tx, self.perform(tx, numbers.INPLACE[symbol], [other]))

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        part = inner(other)
        if not (isinstance(part, BytearrayVariable) or part.__class__ is ConstantVariable and type(part.value) is bytes):
            return NotImplemented
        return ConstantVariable(cmp.COMPARE[symbol](self.value, part.value))

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(repr(bytearray(self.value)))

    def init(self, tx: Any, holder: VariableTracker, args: list, kwargs: dict) -> None:
        made = call_bytearray(tx, *args, **kwargs)
        tx.journal.set(self, "value", made.value)
        tx.modified(self)


def set_bytes(target: Any, value: bytes) -> None:
    """Make a bytearray hold these bytes, through the base class."""
    bytearray.__setitem__(target, slice(None), value)


def literal(tx: Any, value: VariableTracker) -> Any:
    """An argument as the real thing; a bytearray as a copy, an iterable of ints as a list."""
    part = inner(real(tx, value))
    if part.py_type() is slice:
        return slice_value(tx, part)
    if isinstance(part, BytearrayVariable):
        return bytearray(part.value)
    try:
        return part.as_constant()
    except NotConstant:
        index = value.nb_unary(tx, "index")
        if index is not NotImplemented:
            return index.as_constant()
        if iters.has_iter(value):
            return [literal(tx, item) for item in iters.iterate(tx, value)]
        tx.stop(reasons.UNSUPPORTED_CALL, call="bytearray", kind=f"an argument of type {tp_name(value.py_type())}")


def method(raw: Any) -> Any:
    def call(tx, self, *args, **kwargs):
        said = calls.complaint(raw, [self, *args], kwargs)
        if said is not None:
            tx.raise_(TypeError, said)
        part = inner(self)
        return part.result(tx, part.perform(tx, raw, list(args), kwargs))
    return call


for name_, raw_ in vars(bytearray).items():
    if type(raw_) is type(bytearray.append) and name_ not in ("__reduce__", "__reduce_ex__", "__sizeof__", "join"):
        CALLS.add(raw_, method(raw_))


@meaning(bytearray.join)
def join(tx, self, iterable, /):
    parts = [literal(tx, item) for item in iters.iterate(tx, iterable)]
    return tx.wrap(bytearray(inner(self).value).join(parts))


@meaning(bytearray)
def call_bytearray(tx, *args, **kwargs):
    values, names = [literal(tx, a) for a in args], {k: literal(tx, v) for k, v in kwargs.items()}
    try:
        return BytearrayVariable(bytes(bytearray(*values, **names)))
    except Exception as error:
        tx.raise_real(error)


@wraps(bytearray)
def wrap_bytearray(tx: Any, obj: bytearray) -> VariableTracker:
    return BytearrayVariable(bytes(obj))


def build_bytearray(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Equal(Fetch(source, bytes_of, "bytes"), bytes_of(obj)))
    return BytearrayVariable(bytes_of(obj), source)


def bytes_of(obj: Any) -> bytes:
    return bytes(bytearray.__getitem__(obj, slice(None)))


builds(bytearray)(build_bytearray)
PARTS[bytearray] = build_bytearray
