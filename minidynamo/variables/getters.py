"""Small C helpers with a state: operator.itemgetter, attrgetter, methodcaller; functools.cmp_to_key; string's parser."""
from __future__ import annotations

import _string
import functools
import operator
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import BUILD_EXACT, CALLS, declares, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import text
from minidynamo.sources import Fetch
from minidynamo.variables.bases import HashedByIdentity, TypeAttributesOnly
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.iterators import IteratorVariable, advanced
from minidynamo.variables.sequences import TupleVariable, inner


class GetterVariable(HashedByIdentity, TypeAttributesOnly):
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
        out.begin_call_of(self.cls)
        for value in self.children():
            out.load(value)
        out.call(len(self.args) + len(self.kwargs), tuple(self.kwargs))

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if kwargs or len(args) != 1:
            if kwargs:
                tx.raise_(TypeError, f"{self.cls.__name__}() takes no keyword arguments")
            tx.raise_(TypeError, f"{self.cls.__name__} expected 1 argument, got {len(args)}")
        return READ[self.cls.__name__](tx, self, args[0])

    def tp_repr(self, tx: Any) -> VariableTracker:
        if self in tx.repr_running:
            return ConstantVariable(f"{tp_name(self.cls)}(...)")
        tx.repr_running.append(self)
        try:
            shown = [inner(text.to_repr(tx, real(tx, a))) for a in self.args]
            shown += [tx.join_text([ConstantVariable(f"{name}="), inner(text.to_repr(tx, real(tx, value)))])
                      for name, value in self.kwargs.items()]
        finally:
            tx.repr_running.pop()
        pieces = [piece for item in shown for piece in (ConstantVariable(", "), item)]
        return tx.join_text([ConstantVariable(f"{tp_name(self.cls)}("), *pieces[1:], ConstantVariable(")")])  # type: ignore[no-any-return]


def call_method(tx: Any, getter: GetterVariable, obj: VariableTracker) -> VariableTracker:
    name, *rest = [real(tx, a) for a in getter.args]
    return tx.call(obj.tp_getattro(tx, inner(name).as_constant()), rest, getter.kwargs)


def read_each(read: Any) -> Any:
    def call(tx: Any, getter: GetterVariable, obj: VariableTracker) -> VariableTracker:
        values = [read(tx, obj, real(tx, key)) for key in getter.args]
        return values[0] if len(values) == 1 else TupleVariable(values)
    return call


def item_of(tx: Any, value: VariableTracker, key: VariableTracker) -> VariableTracker:
    return value.mp_subscript(tx, key)


def attribute_of(tx: Any, value: VariableTracker, name: VariableTracker) -> VariableTracker:
    for part in inner(name).as_constant().split("."):
        value = real(tx, value.tp_getattro(tx, part))
    return value


READ = {"methodcaller": call_method, "itemgetter": read_each(item_of), "attrgetter": read_each(attribute_of)}
TEXT_ARGUMENTS = {"methodcaller": "method name must be a string", "attrgetter": "attribute name must be a string"}


def getter_args(getter: Any) -> tuple[Any, ...]:
    """The arguments that a getter was made with."""
    made = getter.__reduce__()
    return made[1] if made[0] is type(getter) else (*made[0].args, *made[1])      # a methodcaller with names: a partial


def getter_names(getter: Any) -> dict[str, Any]:
    made = getter.__reduce__()[0]
    return {} if made is type(getter) else made.keywords


def reduce_getter(tx, self, /):
    """itemgetter_reduce, attrgetter_reduce, methodcaller_reduce."""
    cls = tx.class_of(self.cls)
    if not self.kwargs:
        return TupleVariable([cls, TupleVariable(self.args)])
    made = tx.call(tx.class_of(functools.partial), [cls, self.args[0]], self.kwargs)
    return TupleVariable([made, TupleVariable(self.args[1:])])


def declare_getter(cls: type) -> None:
    def make(tx, first, /, *rest, **kwargs):
        if kwargs and cls.__name__ != "methodcaller":
            tx.raise_(TypeError, f"{cls.__name__}() takes no keyword arguments")
        for name in {"methodcaller": [first], "attrgetter": [first, *rest]}.get(cls.__name__, []):
            if not issubclass(name.py_type(), str):
                tx.raise_(TypeError, TEXT_ARGUMENTS[cls.__name__])
        return GetterVariable(cls, [first, *rest], kwargs)

    def build(tx: Any, obj: Any, source: Any) -> VariableTracker:
        tx.guard(TypeIs(source, cls))
        args = tx.build(getter_args(obj), Fetch(source, getter_args, "getter_args"))
        names = tx.build(getter_names(obj), Fetch(source, getter_names, "getter_names"))
        return GetterVariable(cls, list(args.items), names.string_items(tx), source)

    CALLS.add(cls, make)
    BUILD_EXACT.add(cls, build)
    CALLS.add(vars(cls)["__reduce__"], reduce_getter)


for cls_ in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
    declares(cls_)(declare_getter)


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
            try:
                functools.cmp_to_key(len)(*args, **kwargs)
            except TypeError as error:                      # it counts before it looks
                tx.raise_real(error)
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
