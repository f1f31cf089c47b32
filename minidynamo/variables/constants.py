"""Constants: immutable literals known at trace time, and torch's dtype, device, layout …"""
from __future__ import annotations

import math
import operator
from typing import Any

import torch

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Equal, IsNone, TypeIs
from minidynamo.model.slots import BINARY_DUNDER, COMPARE_DUNDER
from minidynamo.model.tables import builds, fold, wraps
from minidynamo.model.variable import VariableTracker
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import numbers
from minidynamo.protocol.attrs import attribute_error

NUMBERS = (int, float, complex, bool)
TEXTS = (str, bytes)
SINGLETONS = (type(None), type(Ellipsis), type(NotImplemented))
TORCH_LITERALS = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.qscheme)
LITERAL_TYPES = frozenset((*NUMBERS, *TEXTS, *SINGLETONS, *TORCH_LITERALS))


ABSENT = object()


class NotALiteral(TypeError):
    """A ConstantVariable was asked to hold something that is not an immutable literal."""


class ConstantVariable(VariableTracker):
    """A literal of one of LITERAL_TYPES, exactly."""

    __slots__ = ("value",)
    kind = "constant"
    one_per_object = False

    def __init__(self, value: Any, source: Any = None) -> None:
        if type(value) not in LITERAL_TYPES:
            raise NotALiteral(f"{type(value).__name__} is not an immutable literal: {value!r}")
        self.value, self.source = value, source

    def py_type(self) -> type:
        return type(self.value)

    def as_constant(self) -> Any:
        return self.value

    def identity(self) -> object:
        return self.value

    def rebuild(self, out: Any) -> None:
        if type(self.value) in TORCH_LITERALS or self.value is NotImplemented:
            out.load_object_unchecked(self.value)      # immutable, and one object per value
        else:
            out.load_const(self.value)

    def key(self, tx: Any) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"<const {self.value!r}>"

    # ---- slots: the real operators, on real values
    def tp_hash(self, tx: Any) -> VariableTracker:
        if self.value != self.value and type(self.value) is float:
            tx.stop(reasons.ID_OF_VALUE, call="hash() of a NaN")         # hashed by its address
        return ConstantVariable(hash(self.value))

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        raw = type_attribute(type(self.value), name)
        if raw is ABSENT:
            attribute_error(tx, self, name)
        if name == "__class__":
            return tx.wrap(type(self.value))
        if hasattr(type(raw), "__get__") and not isinstance(raw, property) and callable(raw):
            return tx.bound_c_method(self, raw)
        if name in ("__module__", "__dict__", "__weakref__") and not hasattr(self.value, name):
            attribute_error(tx, self, name)
        return tx.wrap(getattr(self.value, name))

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if name == "__class__":
            tx.set_class(self, value)
        try:
            getattr(self.value, name)
        except AttributeError:
            attribute_error(tx, self, name)
        verb = "read-only" if callable(getattr(self.value, name)) else None
        if verb:
            tx.raise_attribute_error(f"'{tp_name(self.py_type())}' object attribute '{name}' is read-only", self, name)
        tx.unsupported(self, f".{name} = ...")

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        if self.value is NotImplemented:             # a warning each time
            tx.stop(reasons.WARNING_CALL, call="bool(NotImplemented)")
        return ConstantVariable(bool(self.value))

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        if type(self.value) not in NUMBERS and symbol not in ("int", "float"):
            return NotImplemented
        try:
            return ConstantVariable(numbers.UNARY[symbol](self.value))
        except Exception as error:
            tx.raise_real(error)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "%" and not reflected and type(self.value) in TEXTS:
            return percent_format(tx, self, other)
        other = tx.builtin_part(other)                            # C looks at the number or text inside an instance
        if other.__class__ is not ConstantVariable:
            if symbol == "*" and type(self.value) in TEXTS:
                times = other.nb_unary(tx, "index")               # sequence_repeat
                return NotImplemented if times is NotImplemented else tx.fold(operator.mul, [self, times])
            if symbol == "+" and not reflected and type(self.value) is bytes and other.kind == "opaque object":
                tx.unsupported(other, "b'' +")                    # bytes_concat takes any buffer
            return NotImplemented
        left, right = (other.value, self.value) if reflected else (self.value, other.value)
        name = f"__r{BINARY_DUNDER[symbol]}__" if reflected else f"__{BINARY_DUNDER[symbol]}__"
        if not hasattr(type(self.value), name) and not (reflected and symbol in "*+"):
            return NotImplemented
        try:
            return ConstantVariable(numbers.BINARY[symbol](left, right))
        except Exception as error:
            tx.raise_real(error)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        other = tx.builtin_part(other)
        if other.__class__ is not ConstantVariable:
            return NotImplemented
        result = getattr(type(self.value), COMPARE_DUNDER[symbol])(self.value, other.value)
        return NotImplemented if result is NotImplemented else ConstantVariable(result)

    def sq_length(self, tx: Any) -> VariableTracker:
        if type(self.value) not in TEXTS:
            return super().sq_length(tx)
        return ConstantVariable(len(self.value))

    def tp_iter(self, tx: Any) -> VariableTracker:
        if type(self.value) not in TEXTS:
            return super().tp_iter(tx)
        return tx.sequence_iterator(self)

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return [ConstantVariable(c) for c in self.value] if type(self.value) in TEXTS else None

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        if type(self.value) not in TEXTS:
            return super().mp_subscript(tx, key)
        return tx.fold(operator.getitem, [self, index_or_slice(tx, key)])

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        if type(self.value) not in TEXTS:
            return None
        item = tx.builtin_part(item)
        if type(self.value) is str and not issubclass(item.py_type(), str):
            tx.raise_(TypeError, f"'in <string>' requires string as left operand, not {tp_name(item.py_type())}")
        return tx.fold(operator.contains, [self, item])

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(repr(self.value))

    def tp_str(self, tx: Any) -> VariableTracker:
        return ConstantVariable(str(self.value))

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        try:
            return ConstantVariable(format(self.value, spec))
        except Exception as error:
            tx.raise_real(error)


NONE = ConstantVariable(None)


class PassingLiteral(VariableTracker):
    """A literal made by Python between two graphs, and another one again and again: a random number, the name of a file.

    Only its type is guarded, so whoever looks at it does that in Python.
    """

    __slots__ = ("passing",)
    kind = "value that is another one on each call"
    one_per_object = False

    def __init__(self, passing: Any, source: Any) -> None:
        self.passing, self.source = passing, source

    def py_type(self) -> type:
        return type(self.passing)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return tx.unsupported(self, "bool()")

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        return tx.unsupported(self, symbol)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        return tx.unsupported(self, symbol)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return tx.unsupported(self, symbol)

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        return tx.unsupported(self, "format()")


def restless(tx: Any, value: Any, source: Any) -> VariableTracker | None:
    """The value of an argument of a resume function that recompiling would never catch up with, else None."""
    if not tx.resumes() or not tx.is_restless((type(value), value), source):
        return None
    tx.guard(TypeIs(source, type(value)))
    return PassingLiteral(value, source)


def type_attribute(cls: type, name: str) -> Any:
    """The raw attribute in the namespace of the class that owns it, or ABSENT."""
    return next((vars(klass)[name] for klass in cls.__mro__ if name in vars(klass)), ABSENT)


def index_or_slice(tx: Any, key: VariableTracker) -> VariableTracker:
    """A subscript after ``__index__`` where the type has it."""
    if key.__class__ is ConstantVariable:
        return key
    if key.py_type() is slice:
        return tx.wrap(slice_value(tx, key))
    result = key.nb_unary(tx, "index")
    return key if result is NotImplemented else result


def slice_value(tx: Any, key: Any) -> slice:
    """PySlice_Unpack: step, start and stop as plain numbers, in its order."""
    step, start, stop = [slice_bound(tx, tx.real(part)) for part in (key.step, key.start, key.stop)]
    if step == 0:
        tx.raise_(ValueError, "slice step cannot be zero")
    return slice(start, stop, step)


def slice_bound(tx: Any, value: VariableTracker) -> Any:
    """_PyEval_SliceIndex."""
    if value.__class__ is ConstantVariable and (value.value is None or type(value.value) is int):
        return value.value
    number = value.nb_unary(tx, "index")
    if number is NotImplemented:
        tx.raise_(TypeError, "slice indices must be integers or None or have an __index__ method")
    return number.as_constant()


def percent_format(tx: Any, text: ConstantVariable, values: VariableTracker) -> VariableTracker:
    """``"..." % values``: folded for literals; else each directive is formatted by the protocol."""
    known = cmp.constants(values)
    if known is not None:
        try:
            return ConstantVariable(text.value % known[0])
        except Exception as error:
            tx.raise_real(error)
    return tx.percent(text, values)


@wraps(*LITERAL_TYPES)
def wrap_literal(tx: Any, value: Any) -> VariableTracker:
    return ConstantVariable(value)


@builds(str, bytes, complex)
def build_literal(tx: Any, value: Any, source: Any) -> VariableTracker:
    passing = restless(tx, value, source)
    return build_fixed(tx, value, source) if passing is None else passing


@builds(bool, *TORCH_LITERALS, type(Ellipsis), type(NotImplemented))
def build_fixed(tx: Any, value: Any, source: Any) -> VariableTracker:
    tx.guard(Equal(source, value))
    return ConstantVariable(value, source)


@builds(type(None))
def build_none(tx: Any, value: Any, source: Any) -> VariableTracker:
    tx.guard(IsNone(source, True))
    return ConstantVariable(value, source)


def build_number(symbolic: str) -> Any:
    """The builder of numbers, whose symbolic form is the tracer's method of that name."""
    def build(tx: Any, value: Any, source: Any) -> VariableTracker:
        made = restless(tx, value, source) if tx.is_settled(source) else None
        return made or getattr(tx, symbolic)(value, source) or build_literal(tx, value, source)
    return build


builds(int)(build_number("symbolic_int"))
builds(float)(build_number("symbolic_float"))


fold(divmod, chr, ord, bin, oct, hex, *[f for f in vars(math).values() if callable(f)], operator.index,
     operator.neg, operator.pos, operator.invert, operator.abs)
for cls_, impure in ((str, {"join", "format", "format_map", "maketrans"}),
                     (bytes, {"join", "fromhex", "maketrans"}), (int, {"from_bytes"}),
                     (float, {"fromhex", "__getformat__", "__setformat__"}), (complex, set()), (bool, set())):
    fold(*[raw for name_, raw in vars(cls_).items()
           if callable(raw) and name_ not in impure and not (name_.startswith("__") and name_.endswith("__"))])
