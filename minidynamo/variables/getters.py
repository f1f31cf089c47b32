"""Small C helpers with a state: operator.itemgetter, attrgetter, methodcaller; functools.cmp_to_key; string's parser."""
from __future__ import annotations

import _string
import functools
import operator
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.sources import Fetch
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.iterators import IteratorVariable, advanced
from minidynamo.variables.opaque import build_opaque
from minidynamo.variables.sequences import TupleVariable, inner


class GetterVariable(HashedByIdentity):
    """A getter or caller with its arguments; immutable."""

    __slots__ = ("cls", "args", "kwargs")
    kind = "getter"

    def __init__(self, cls: type, args: list, kwargs: dict[str, VariableTracker], source: Any = None) -> None:
        self.cls, self.args, self.kwargs, self.source = cls, args, kwargs, source

    def py_type(self) -> type:
        return self.cls

    def children(self) -> list[VariableTracker]:
        return [*self.args, *self.kwargs.values()]

    def rebuild(self, out: Any) -> None:
        out.begin_call()
        out.load_object_unchecked(self.cls)
        out.callable_done()
        for value in self.children():
            out.load(value)
        out.call(len(self.args) + len(self.kwargs), tuple(self.kwargs))

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if kwargs or len(args) != 1:
            if kwargs:
                tx.raise_(TypeError, f"{self.cls.__name__}() takes no keyword arguments")
            tx.raise_(TypeError, f"{self.cls.__name__} expected 1 argument, got {len(args)}")
        if self.cls is operator.methodcaller:
            name, *rest = [real(tx, a) for a in self.args]
            return tx.call(args[0].tp_getattro(tx, name.as_constant()), rest, self.kwargs)
        read = item_of if self.cls is operator.itemgetter else attribute_of
        values = [read(tx, args[0], real(tx, key)) for key in self.args]
        return values[0] if len(values) == 1 else TupleVariable(values)


def item_of(tx: Any, value: VariableTracker, key: VariableTracker) -> VariableTracker:
    return value.mp_subscript(tx, key)


def attribute_of(tx: Any, value: VariableTracker, name: VariableTracker) -> VariableTracker:
    for part in name.as_constant().split("."):
        value = real(tx, value.tp_getattro(tx, part))
    return value


def maker(cls: type) -> Any:
    def make(tx, first, /, *rest, **kwargs):
        if kwargs and cls is not operator.methodcaller:
            tx.raise_(TypeError, f"{cls.__name__}() takes no keyword arguments")
        names = [first] if cls is operator.methodcaller else [first, *rest] if cls is operator.attrgetter else []
        for name in names:
            if not issubclass(name.py_type(), str):
                tx.raise_(TypeError, "method name must be a string" if cls is operator.methodcaller
                          else "attribute name must be a string")
        return GetterVariable(cls, [first, *rest], kwargs)
    return make


def getter_args(getter: Any) -> tuple[Any, ...]:
    """The arguments that a getter was made with."""
    return getter.__reduce__()[1]


def build_getter(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    made = obj.__reduce__()
    if made[0] is not type(obj):            # a methodcaller with keyword arguments
        return build_opaque(tx, obj, source)
    args = tx.build(made[1], Fetch(source, getter_args, "getter_args"))
    return GetterVariable(type(obj), [real(tx, a) for a in args.items], {}, source)


for cls_ in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
    builds(cls_)(build_getter)
    meaning(cls_)(maker(cls_))


# ---------------------------------------------------------------- functools.cmp_to_key (Modules/_functoolsmodule.c)
KEY_WRAPPER = type(functools.cmp_to_key(lambda a, b: 0))


class KeyWrapperVariable(VariableTracker):
    """What ``cmp_to_key`` returns, and, with an object in it, what calling that returns."""

    __slots__ = ("compare", "obj")
    kind = "KeyWrapper"

    def __init__(self, compare: VariableTracker, obj: VariableTracker | None) -> None:
        self.compare, self.obj, self.source = compare, obj, None

    def py_type(self) -> type:
        return KEY_WRAPPER

    def children(self) -> list[VariableTracker]:
        return [self.compare] if self.obj is None else [self.compare, self.obj]

    def rebuild(self, out: Any) -> None:
        out.call_function(key_wrapper, *self.children())

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        given = [*args, *kwargs.values()]
        if len(given) != 1 or set(kwargs) - {"obj"}:
            tx.stop(reasons.UNSUPPORTED_CALL, call="KeyWrapper()", kind="these arguments")
        return KeyWrapperVariable(self.compare, given[0])

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "obj" and self.obj is not None:
            return real(tx, self.obj)
        return super().tp_getattro(tx, name)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        """keyobject_richcompare."""
        if not isinstance(other, KeyWrapperVariable):
            tx.raise_(TypeError, "other argument must be K instance")
        if self.obj is None or other.obj is None:
            tx.raise_(AttributeError, "object")
        result = tx.call(real(tx, self.compare), [self.obj, other.obj])
        return cmp.compare(tx, symbol, result, ConstantVariable(0))

    def tp_hash(self, tx: Any) -> VariableTracker:
        tx.raise_(TypeError, f"unhashable type: '{tp_name(KEY_WRAPPER)}'")

    key = tp_hash  # type: ignore[assignment]


def key_wrapper(compare: Any, *obj: Any) -> Any:
    made = functools.cmp_to_key(compare)
    return made(*obj) if obj else made


@meaning(functools.cmp_to_key)
def call_cmp_to_key(tx, mycmp):
    return KeyWrapperVariable(mycmp, None)


# ---------------------------------------------------------------- string.Formatter's parser
class ParserIterator(IteratorVariable):
    """The iterators of ``_string``: over the fields of a format, or the rest of a field name."""

    __slots__ = ("cls", "make", "text", "parts", "index")

    def __init__(self, make: Any, text: str) -> None:
        iterator = make(text)
        self.cls, self.make, self.text, self.source = type(iterator), make, text, None
        self.parts: list[Any] = []
        try:
            self.parts += iterator
        except ValueError as error:                 # met again where it stands
            self.parts.append(error)
        self.index = 0

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.index >= len(self.parts):
            return None
        part = self.parts[self.index]
        self.advance(tx, index=self.index + 1)
        return tx.raise_real(part) if isinstance(part, ValueError) else tx.wrap(part)

    def rebuild(self, out: Any) -> None:
        out.call_function(AT[self.make], self.text, self.index)


def rest_of_name(text: str) -> Any:
    return _string.formatter_field_name_split(text)[1]


AT = {_string.formatter_parser: lambda text, index: advanced(_string.formatter_parser(text), index),
      rest_of_name: lambda text, index: advanced(rest_of_name(text), index)}


@meaning(_string.formatter_parser)
def call_formatter_parser(tx, text, /):
    return ParserIterator(_string.formatter_parser, inner(text).as_constant())


@meaning(_string.formatter_field_name_split)
def call_field_name_split(tx, text, /):
    name = inner(text).as_constant()
    first = tx.fold(first_of_name, [text])
    return TupleVariable([first, ParserIterator(rest_of_name, name)])


def first_of_name(text: str) -> Any:
    return _string.formatter_field_name_split(text)[0]
