"""range and slice."""
from __future__ import annotations

from typing import Any

from minidynamo.guards.kinds import Equal, TypeIs
from minidynamo.model.tables import PROXIES, Methods, builds, fold, meaning, wraps
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import numbers
from minidynamo.protocol.attrs import attribute_error, describe, type_lookup
from minidynamo.sources import Attr
from minidynamo.variables.constants import ConstantVariable, index_or_slice


class RangeVariable(VariableTracker):
    """A range of literal ints."""

    __slots__ = ("value",)
    kind = "range"

    def __init__(self, value: range, source: Any = None) -> None:
        self.value, self.source = value, source

    def py_type(self) -> type:
        return range

    def as_constant(self) -> Any:
        return self.value

    def rebuild(self, out: Any) -> None:
        out.call_function(range, self.value.start, self.value.stop, self.value.step)

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.range_iterator(self.value)

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return [ConstantVariable(i) for i in self.value] if len(self.value) < 100_000 else None

    def sq_length(self, tx: Any) -> VariableTracker:
        try:
            return ConstantVariable(len(self.value))
        except OverflowError as error:
            tx.raise_real(error)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.value))

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        key = index_or_slice(tx, key)
        try:
            result = self.value[key.as_constant()]
        except (IndexError, TypeError) as error:
            tx.raise_real(error)
        return tx.wrap(result)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        if item.__class__ is ConstantVariable:
            return ConstantVariable(item.value in self.value)
        return None

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not isinstance(other, RangeVariable) or symbol not in ("==", "!="):
            return NotImplemented
        return ConstantVariable((self.value == other.value) is (symbol == "=="))

    def tp_hash(self, tx: Any) -> VariableTracker:
        return ConstantVariable(hash(self.value))

    def key(self, tx: Any) -> Any:
        return self.value

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(repr(self.value))

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        return tx.fold(format, [self, ConstantVariable(spec)])

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return ConstantVariable(getattr(self.value, name))
        return attribute_of_type(tx, self, name)


def attribute_of_type(tx: Any, value: VariableTracker, name: str) -> VariableTracker:
    """An attribute of a C type whose instances have none of their own."""
    found = type_lookup(tx, value.py_type(), name)
    if found is None:
        attribute_error(tx, value, name)
    return tx.wrap(value.py_type()) if name == "__class__" else describe(tx, found, value, value.py_type())


fold(range.index, range.count)


@meaning(range)
def call_range(tx, start, stop=None, step=None, /):
    parts = [numbers.unary(tx, "index", p) for p in (start, stop, step) if p is not None]
    try:
        return RangeVariable(range(*[p.as_constant() for p in parts]))
    except ValueError as error:
        tx.raise_real(error)


@builds(range)
def build_range(tx: Any, obj: range, source: Any) -> VariableTracker:
    tx.guard(Equal(source, obj))
    return RangeVariable(obj, source)


@wraps(range)
def wrap_range(tx: Any, obj: range) -> VariableTracker:
    return RangeVariable(obj)


class SliceVariable(VariableTracker):
    """A slice of any three values."""

    __slots__ = ("start", "stop", "step")
    kind = "slice"

    def __init__(self, start: VariableTracker, stop: VariableTracker, step: VariableTracker, source: Any = None) -> None:
        self.start, self.stop, self.step, self.source = start, stop, step, source

    def py_type(self) -> type:
        return slice

    def parts(self) -> tuple[VariableTracker, VariableTracker, VariableTracker]:
        return self.start, self.stop, self.step

    def children(self) -> list[VariableTracker]:
        return list(self.parts())

    def as_constant(self) -> Any:
        return slice(*[bound_of(p) for p in self.parts()])

    def rebuild(self, out: Any) -> None:
        for part in self.parts():
            out.load(part)
        out.op("BUILD_SLICE", 3)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return real(tx, getattr(self, name))
        return attribute_of_type(tx, self, name)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not isinstance(other, SliceVariable):
            return NotImplemented
        mine, theirs = tx.wrap_tuple(list(self.parts())), tx.wrap_tuple(list(other.parts()))
        return mine.tp_richcompare(tx, symbol, theirs)

    def tp_hash(self, tx: Any) -> VariableTracker:
        tx.raise_(TypeError, "unhashable type: 'slice'")

    def key(self, tx: Any) -> Any:
        tx.raise_(TypeError, "unhashable type: 'slice'")

    def tp_repr(self, tx: Any) -> VariableTracker:
        texts = [tx.text_of(real(tx, p)) for p in self.parts()]
        return ConstantVariable(f"slice({', '.join(texts)})")


def bound_of(value: VariableTracker) -> Any:
    """One bound of a slice as a literal."""
    built = getattr(value, "built", value)
    if built is None:
        raise NotConstant(value)
    return built.as_constant()


class SliceMethods(Methods, of=slice):
    """slice's methods."""

    def __reduce__(tx, self, /):
        return tx.wrap_tuple([tx.class_of(slice), tx.wrap_tuple(list(self.parts()))])


@meaning(slice)
def call_slice(tx, start, stop=None, step=None, /):
    none = ConstantVariable(None)
    if stop is None:
        return SliceVariable(none, start, none)
    return SliceVariable(start, stop, step or none)


@builds(slice)
def build_slice(tx: Any, obj: slice, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, slice))
    return SliceVariable(*[tx.build(getattr(obj, n), Attr(source, n)) for n in ("start", "stop", "step")], source)


@wraps(slice)
def wrap_slice(tx: Any, obj: slice) -> VariableTracker:
    return SliceVariable(*[tx.wrap(getattr(obj, n)) for n in ("start", "stop", "step")])


PROXIES[SliceVariable] = lambda tx, v: slice(*[tx.proxy(p) for p in v.parts()])
PROXIES[RangeVariable] = lambda tx, v: v.value
