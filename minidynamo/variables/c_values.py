"""Immutable values of the standard library's C types, as one kind: their methods are the real ones, run while tracing.

A row of ROWS makes a type such a kind. What a method reads besides its arguments (the decimal context, the locale) is
guarded; what cannot be guarded (the clock, the local time zone) is left to Python.
"""
from __future__ import annotations

import datetime
import decimal
import locale
import numbers as abstract_numbers
import operator
import re
import struct
import time
import types
import zoneinfo
from collections.abc import Callable
from typing import Any, NamedTuple

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Equal, SameObject
from minidynamo.guards.literals import is_literal, literal_key
from minidynamo.model.slots import COMPARE_DUNDER, CONVERSIONS, UNARY_DUNDER, binary_name
from minidynamo.model.tables import CALLS, builds, meaning, wraps
from minidynamo.model.variable import NotConstant, VariableTracker, defines, real
from minidynamo.protocol import numbers
from minidynamo.protocol.attrs import attribute_error
from minidynamo.side_effects.effect import Changed
from minidynamo.sources import Attr, DictRoot, Fetch
from minidynamo.variables import opaque
from minidynamo.variables.buffers import BytearrayVariable
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ABSENT, LITERAL_TYPES, ConstantVariable, type_attribute
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import ListVariable, NamedTupleVariable, TupleVariable, inner

DATES = (datetime.date, datetime.datetime, datetime.time)
ZONES = (datetime.timezone, zoneinfo.ZoneInfo)
IsoCalendarDate = type(datetime.date(1, 1, 1).isocalendar())


class Row(NamedTuple):
    """How one type is handled."""

    again: Callable[[Any], Any] | None = None               # another object of the same value; None: one object will do
    outside: frozenset[str] = frozenset()                   # methods that read what cannot be guarded


CLOCK = frozenset({"now", "today", "utcnow", "utcfromtimestamp", "ctime"})
ROWS: dict[type, Row] = {
    datetime.date: Row(datetime.date.replace, CLOCK - {"ctime"} | {"fromtimestamp"}),
    datetime.datetime: Row(datetime.datetime.replace, CLOCK - {"ctime"}),
    datetime.time: Row(datetime.time.replace),
    datetime.timedelta: Row(datetime.timedelta.__pos__),
    datetime.timezone: Row(),
    IsoCalendarDate: Row(),
    zoneinfo.ZoneInfo: Row(None, frozenset({"no_cache", "clear_cache", "from_file", "key_not_found"})),
    decimal.Decimal: Row(lambda value: value.copy_sign(value)),
    struct.Struct: Row(None, frozenset({"iter_unpack", "pack_into"})),
}
MADE = tuple(set(ROWS) - {zoneinfo.ZoneInfo, IsoCalendarDate})      # the classes whose calls are pure


class CValue(VariableTracker):
    """A value of one of the types in ROWS, exactly."""

    __slots__ = ("value",)
    kind = "library value"
    one_per_object = False

    def __init__(self, value: Any, source: Any = None) -> None:
        self.value, self.source = value, source

    def py_type(self) -> type:
        return type(self.value)

    def as_object(self) -> Any:
        return self.value

    def identity(self) -> object:
        return self.value

    def rebuild(self, out: Any) -> None:
        again = ROWS[type(self.value)].again
        if again is None:
            out.load_object_unchecked(self.value)           # immutable, and nobody makes two of it
            return
        out.begin_call_of(again)
        out.load_object_unchecked(self.value)
        out.call(1)

    def key(self, tx: Any) -> Any:
        self.tp_hash(tx)
        return self.value

    # ---- slots: the real ones
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        raw = type_attribute(type(self.value), name)
        if raw is ABSENT:
            attribute_error(tx, self, name)
        if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return tx.bound_c_method(self, raw)             # type: ignore[no-any-return]
        if isinstance(raw, (types.GetSetDescriptorType, types.MemberDescriptorType)) and name != "__class__":
            value = getattr(self.value, name)
            if self.source is not None and isinstance(value, ZONES):
                return tx.build(value, Attr(self.source, name))         # type: ignore[no-any-return]
            return value_of(tx, value)
        cls = tx.class_of(type(self.value))
        return cls if name == "__class__" else cls.tp_getattro(tx, name)        # type: ignore[no-any-return]

    def tp_hash(self, tx: Any) -> VariableTracker:
        if isinstance(self.value, decimal.Decimal) and self.value.is_qnan():
            tx.stop(reasons.ID_OF_VALUE, call="hash() of a NaN")         # hashed by its address
        return run(tx, hash, [self])

    def tp_repr(self, tx: Any) -> VariableTracker:
        return run(tx, repr, [self])

    def tp_str(self, tx: Any) -> VariableTracker:
        return run(tx, str, [self])

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        return run(tx, format, [self, ConstantVariable(spec)])

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return run(tx, bool, [self]) if defines(type(self.value), "__bool__") or self.is_sequence() else None

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        names = CONVERSIONS.get(symbol) or (UNARY_DUNDER[symbol],)
        if not any(defines(type(self.value), name) for name in names):
            return NotImplemented
        return run(tx, numbers.UNARY[symbol], [self])

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        return self.with_other(tx, binary_name(symbol, reflected), other)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return self.with_other(tx, COMPARE_DUNDER[symbol], other)

    def with_other(self, tx: Any, name: str, other: VariableTracker) -> Any:
        """A binary slot, which answers NotImplemented to whatever is no number, date … itself."""
        raw = type_attribute(type(self.value), name)
        if raw is ABSENT:
            return NotImplemented
        try:
            result = run(tx, raw, [self, other])
        except NotConstant:
            if issubclass(other.py_type(), (abstract_numbers.Number, datetime.tzinfo, datetime.timedelta, *DATES)):
                tx.unsupported(other, name)
            return NotImplemented
        return tx.not_implemented(result)

    # ---- those of IsoCalendarDate
    def is_sequence(self) -> bool:
        return isinstance(self.value, tuple)

    def sq_length(self, tx: Any) -> VariableTracker:
        return run(tx, len, [self]) if self.is_sequence() else super().sq_length(tx)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return run(tx, operator.getitem, [self, key]) if self.is_sequence() else super().mp_subscript(tx, key)

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.sequence_iterator(self) if self.is_sequence() else super().tp_iter(tx)    # type: ignore[no-any-return]

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return None


# ---------------------------------------------------------------- calls
def plain(tx: Any, value: VariableTracker) -> Any:
    """An argument as the real thing; raises NotConstant where that is not known, or could be told from it."""
    value = real(tx, value)
    if value.__class__ is CValue:
        return value.value                                  # type: ignore[attr-defined]
    if value.__class__ is ClassVariable:
        return value.as_object()
    if type(value) in (ListVariable, TupleVariable):
        return value.py_type()([plain(tx, item) for item in value.items])       # type: ignore[attr-defined]
    part = inner(value)
    if part.bf_getbuffer is not None:
        return part.bf_getbuffer()
    return part.as_constant() if part is value or issubclass(part.py_type(), int) else value.as_constant()


def run(tx: Any, function: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker] | None = None) -> VariableTracker:
    """``function(*args)`` for real; its exceptions are the traced program's."""
    values, names = [plain(tx, a) for a in args], {k: plain(tx, v) for k, v in (kwargs or {}).items()}
    know_world(tx, function, [*values, *names.values()])
    try:
        if any(isinstance(v, decimal.Decimal) or v is decimal.Decimal for v in values) or function is decimal.Decimal:
            result = with_flags(tx, function, values, names)
        else:
            result = function(*values, **names)
    except Exception as error:
        tx.raise_real(error)
    for value, arg in zip(values, args):
        if result is value and type(result) in ROWS:
            return real(tx, arg)
    return value_of(tx, result)


def value_of(tx: Any, result: Any) -> VariableTracker:
    """What a call returned, as a value made while tracing."""
    kind = type(result)
    if isinstance(result, type):
        return tx.class_of(result)                          # type: ignore[no-any-return]
    if kind is time.struct_time or hasattr(kind, "_fields"):
        return NamedTupleVariable([value_of(tx, item) for item in result], None, kind)
    if kind in (list, tuple):
        return (ListVariable if kind is list else TupleVariable)([value_of(tx, item) for item in result])
    return ConstantVariable(result) if kind in LITERAL_TYPES else tx.wrap(result)       # type: ignore[no-any-return]


def pure_call(function: Any) -> Any:
    """The meaning of a C function or method that needs its arguments' values only."""
    def call(tx, *args, **kwargs):
        try:
            return run(tx, function, list(args), kwargs)
        except NotConstant:
            return None
    return call


def class_call(cls: type, name: str) -> Any:
    """The meaning of a class method of exactly this class."""
    raw, row = getattr(cls, name), ROWS[cls]

    def call(tx, owner, *args, **kwargs):
        if owner.as_object() is not cls or name in row.outside or name == "fromtimestamp" and len(args) + len(kwargs) < 2:
            return None
        try:
            return run(tx, raw, list(args), kwargs)
        except NotConstant:
            return None
    return call


def call_decimal(tx, *args, **kwargs):
    """PyDecType_FromObjectExact."""
    made = pure_call(decimal.Decimal)(tx, *args, **kwargs)
    if made is None and len(args) == 1 and isinstance(args[0], ObjectVariable) and args[0].inner is None:
        tx.raise_(TypeError, f"conversion from {tp_name(args[0].py_type())} to Decimal is not supported")
    return made


LEFT_ALONE = frozenset({"__init__", "__new__", "__getattribute__", "__setattr__", "__delattr__", "__sizeof__",
                        "__init_subclass__", "__deepcopy__"})
for cls_, row_ in {**ROWS, datetime.tzinfo: Row()}.items():
    for name_, raw_ in vars(cls_).items():
        if isinstance(raw_, types.ClassMethodDescriptorType) and name_ not in LEFT_ALONE:
            CALLS.add(raw_, class_call(cls_, name_))
        elif isinstance(raw_, (types.MethodDescriptorType, types.WrapperDescriptorType)) \
                and name_ not in row_.outside | LEFT_ALONE:
            CALLS.add(raw_, pure_call(raw_))
for cls_ in MADE:
    meaning(cls_)(call_decimal if cls_ is decimal.Decimal else pure_call(cls_))
for function_ in (struct.pack, struct.unpack, struct.unpack_from, struct.calcsize):
    meaning(function_)(pure_call(function_))


@meaning(decimal.Decimal.__deepcopy__)
def deepcopy_decimal(tx, self, memo, /):
    return self


def pack_into(raw: Any, at: int) -> Any:
    """A packing function that writes into its argument number `at`."""
    def call(tx, *args):
        buffer = inner(args[at]) if len(args) > at else None
        if not isinstance(buffer, BytearrayVariable):
            return None
        before, values = [plain(tx, a) for a in args[:at]], args[at + 1:]
        return tx.wrap(buffer.perform(tx, lambda copy, *values: raw(*before, copy, *values), values))
    return call


meaning(struct.pack_into)(pack_into(struct.pack_into, 1))
meaning(struct.Struct.pack_into)(pack_into(struct.Struct.pack_into, 1))


# ---------------------------------------------------------------- values from outside
@builds(*ROWS)
def build_value(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """By value, where it is not another one again and again; by identity, where the type has no key of its values."""
    zone = getattr(obj, "tzinfo", None)
    if zone is not None and type(zone) not in ZONES:        # whose methods are the user's
        return opaque.build_opaque(tx, obj, source)
    if not is_literal(obj):
        tx.guard(SameObject(source, obj))
    elif not tx.options.fullgraph and tx.is_restless(literal_key(obj), source):
        return opaque.build_opaque(tx, obj, source)
    else:
        tx.guard(Equal(source, obj))
    return CValue(obj, source)


@wraps(*ROWS)
def wrap_value(tx: Any, obj: Any) -> VariableTracker:
    return CValue(obj)


# ---------------------------------------------------------------- what is read besides the arguments
PROCESS = DictRoot({}, "the process")


def depends_on(tx: Any, read: Callable[[Any], Any], name: str) -> None:
    """Guard a fact about the process."""
    tx.guard(Equal(Fetch(PROCESS, read, name), read(None)))


def locale_now(_: Any) -> str:
    return locale.setlocale(locale.LC_ALL)


def decimal_context(_: Any) -> tuple[Any, ...]:
    """Everything in the current context but the flags."""
    *numbers_, _, traps = decimal.getcontext().__reduce__()[1]      # type: ignore[misc]
    return (*numbers_, *(signal.__name__ for signal in traps))


SIMPLE = re.compile(r"(?:[^%\x80-\U0010ffff]|%[YmdHMSfjUWyIwuGVzZe%:])*")      # no name of a month or day, no local form
KNOWN = re.compile(r"(?:[^%]|%[YmdHMSfjUWyIwuGVzZe%aAbBcxXp:])*")


def know_world(tx: Any, function: Any, values: list[Any]) -> None:
    """Guard what the call will read, or stop."""
    name = getattr(function, "__name__", "")
    first = values[0] if values else None
    if isinstance(first, DATES) and name in ("strftime", "__format__", "format") and isinstance(values[1], str):
        know_format(tx, name, values[1])
    elif name == "strptime":
        text = values[1] if isinstance(values[1], str) else ""
        if "%Z" in text or "%d" in text and not re.search("%[yYGcx]", text):    # local names; a warning since 3.13
            tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=name, why="the format depends on the time zone, or is warned of")
        know_format(tx, name, text)
    elif name in ("timestamp", "astimezone") and isinstance(first, datetime.datetime) \
            and (first.tzinfo is None or name == "astimezone" and values[1:] in ([], [None])):
        tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=name, why="it reads the local time zone")
    elif name in ("__format__", "format") and isinstance(first, decimal.Decimal) and "n" in values[1]:
        depends_on(tx, locale_now, "setlocale")


def know_format(tx: Any, name: str, text: str) -> None:
    if SIMPLE.fullmatch(text):
        return
    if not KNOWN.fullmatch(text):
        tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=name, why=f"the format {text!r}")
    depends_on(tx, locale_now, "setlocale")


class DecimalFlags(Changed):
    """An effect: signals that the trace's arithmetic has raised in the current decimal context."""

    kind = "decimal flags"
    lost_at: int | None = None

    def __init__(self, tx: Any, signals: list[Any]) -> None:
        self.signals, self.made_at = signals, tx.root_step

    def replay(self, out: Any) -> None:
        out.begin_call_of(set_flags)
        out.load_object_unchecked(self.signals)
        out.call(1)
        out.op("POP")


def set_flags(signals: list[Any]) -> None:
    flags = decimal.getcontext().flags
    for signal in signals:
        flags[signal] = True


def with_flags(tx: Any, function: Any, values: list[Any], names: dict[str, Any]) -> Any:
    """The call in a copy of the current decimal context; the flags it raises become an effect."""
    depends_on(tx, decimal_context, "decimal_context")
    context = decimal.getcontext().copy()
    context.clear_flags()
    try:
        with decimal.localcontext(context) as own:
            return function(*values, **names)
    finally:
        told = {signal for change in tx.changed.values() if isinstance(change, DecimalFlags) for signal in change.signals}
        new = [signal for signal, raised in own.flags.items() if raised and signal not in told]
        if new:
            flags = DecimalFlags(tx, new)
            tx.journal.put(tx.changed, id(flags), flags)
