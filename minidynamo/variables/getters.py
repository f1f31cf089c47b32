"""operator.itemgetter, attrgetter and methodcaller (Modules/_operator.c)."""
from __future__ import annotations

import operator
from typing import Any

from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.sources import Fetch
from minidynamo.variables.functions import HashedByIdentity
from minidynamo.variables.opaque import build_opaque
from minidynamo.variables.sequences import TupleVariable


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
