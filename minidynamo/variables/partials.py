"""functools.partial: a function with arguments kept for it (Modules/_functoolsmodule.c)."""
from __future__ import annotations

import functools
from typing import Any

from minidynamo.code import facts
from minidynamo.guards.kinds import Equal
from minidynamo.model.tables import ADOPTED, C_MEMBERS, CALLS, declares
from minidynamo.model.variable import VariableTracker, defines, real
from minidynamo.protocol import attrs, text
from minidynamo.sources import Attr, Fetch
from minidynamo.variables import slot_calls
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import TupleVariable, inner
from minidynamo.variables.subclasses import PARTS


class PartialPart(HashedByIdentity):
    """What the C struct of a partial holds; the object around it has the attributes."""

    __slots__ = ("base", "cls", "obj", "function", "args", "kwargs")
    kind = "partial"

    def __init__(self, base: type, cls: type, obj: Any, source: Any = None) -> None:
        self.base, self.cls, self.obj, self.source = base, cls, obj, source     # base: the C class
        self.function: VariableTracker = NONE
        self.args: VariableTracker = NONE           # a tuple
        self.kwargs: VariableTracker = NONE         # a dict

    def py_type(self) -> type:
        return self.cls

    def identity(self) -> object:
        return self if self.obj is None else self.obj

    def as_object(self) -> Any:
        return super().as_object() if self.obj is None else self.obj

    def children(self) -> list[VariableTracker]:
        return [self.function, self.args, self.kwargs]

    def lacks_dict(self, tx: Any, holder: ObjectVariable) -> bool:
        return not there_was_dict(tx, holder)

    def belongs_to(self, cls: type) -> None:
        self.cls = cls

    # ---- making it again
    def create_holder(self, out: Any, cls: VariableTracker) -> None:
        out.call_function(new_partial, cls)

    def write_into(self, out: Any, holder: VariableTracker) -> None:
        out.call_function(set_parts, holder, *self.children())
        out.op("POP")

    def replay(self, out: Any) -> None:
        self.write_into(out, self)

    # ---- behaviour
    def call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        """partial_call: the names given in the call over those that are kept."""
        kept = inner(real(tx, self.kwargs)).string_items(tx)
        mine = [real(tx, a) for a in real(tx, self.args).items]
        return real(tx, self.function).tp_call(tx, [*mine, *args], {**kept, **kwargs})

    def repr_parts(self, tx: Any) -> tuple[str, list[VariableTracker], str]:
        """partial_repr."""
        name = self.cls.__name__ if self.cls is not self.base else f"{self.base.__module__}.{self.base.__name__}"
        if facts.PARTIAL_SHOWS_MODULE and self.cls is not self.base:          # PyType_GetFullyQualifiedName
            name = self.cls.__qualname__
            if self.cls.__module__ not in ("builtins", "__main__"):
                name = f"{self.cls.__module__}.{name}"
        shown = [text.to_repr(tx, real(tx, value)) for value in (self.function, *real(tx, self.args).items)]
        for key, value in list(inner(real(tx, self.kwargs)).entries.values()):
            parts = (text.to_str(tx, key), ConstantVariable("="), text.to_repr(tx, real(tx, value)))
            shown.append(tx.join_text([inner(part) for part in parts]))
        return f"{name}(", [inner(piece) for piece in shown], ")"


def base_of(cls: type) -> type:
    """The C class: functools.partial, or that of another copy of its module."""
    return next(klass for klass in cls.__mro__ if id(klass) in ADOPTED)


def new_partial(cls: type) -> Any:
    """One that is filled later."""
    return base_of(cls).__new__(cls, len)


def struct_dict(holder: Any) -> dict | None:
    """The dict in the C struct, None as long as there are no attributes; ``__dict__`` would make one."""
    return vars(base_of(type(holder)))["__reduce__"](holder)[2][3]      # type: ignore[no-any-return]


def has_struct_dict(holder: Any) -> bool:
    return struct_dict(holder) is not None


def set_parts(holder: Any, *parts: Any) -> None:
    vars(base_of(type(holder)))["__setstate__"](holder, (*parts, struct_dict(holder)))


def has_attributes(tx: Any, value: ObjectVariable) -> bool:
    if value.fields or value.namespace is not None or value.assigned is not None:
        return True
    return value.obj is not None and there_was_dict(tx, value)


def there_was_dict(tx: Any, value: ObjectVariable) -> bool:
    there = has_struct_dict(value.obj)
    tx.guard(Equal(Fetch(value.source, has_struct_dict, "has_struct_dict"), there))
    return there


def is_partial(value: VariableTracker) -> bool:
    return isinstance(inner(value), PartialPart)


def reduce(tx, self, /):
    """partial_reduce."""
    part = inner(self)
    space = tx.instance_namespace(self) if has_attributes(tx, self) else NONE
    return TupleVariable([tx.type_of(self), TupleVariable([part.function]), TupleVariable([*part.children(), space])])


def setstate(tx, self, state, /):
    """partial_setstate."""
    parts = [real(tx, v) for v in inner(state).items] if issubclass(state.py_type(), tuple) else []
    if len(parts) != 4 or not defines(parts[0].py_type(), "__call__") or not issubclass(parts[1].py_type(), tuple) \
            or not issubclass(parts[2].py_type(), (dict, type(None))):
        tx.raise_(TypeError, "invalid partial state")
    function, given, names, space = parts
    if given.py_type() is not tuple:
        given = TupleVariable(list(inner(given).items))
    if names.py_type() is not dict:
        names = DictVariable({}) if names.py_type() is type(None) else DictVariable(dict(inner(names).entries))
    part = inner(self)
    for name, value in zip(("function", "args", "kwargs"), (function, given, names)):
        tx.journal.set(part, name, value)
    tx.modified(part)
    if space.py_type() is not type(None):
        tx.set_namespace(self, space)
    elif has_attributes(tx, self):
        tx.set_namespace(self, None)
        if self.obj is None:
            tx.journal.set(self, "assigned", None)
    return NONE


def read_part(name: str) -> Any:
    return lambda tx, obj: real(tx, getattr(inner(obj), name))


def no_write(tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
    tx.raise_(AttributeError, "readonly attribute")


@declares(functools.partial)
def declare_partial(base: type) -> None:
    """The entries of the class: how its objects are made, called from outside, read and pickled."""
    def make(tx: Any, args: list, kwargs: dict) -> PartialPart:
        """partial_new: a partial without attributes is taken apart."""
        if not args:
            tx.raise_(TypeError, "type 'partial' takes at least one argument")
        function, *rest = args
        part = PartialPart(base, base, None)
        part.function, part.args, part.kwargs = function, TupleVariable(rest), DictVariable.from_names(tx, kwargs)
        if is_partial(function) and not attrs.special_is_python(tx, function.cls, "__call__") \
                and not has_attributes(tx, function):
            below = inner(function)
            kept = real(tx, below.args)
            part.function = below.function
            part.args = TupleVariable([*kept.items, *rest]) if rest else kept
            part.kwargs = DictVariable(dict(inner(real(tx, below.kwargs)).entries))
            part.kwargs.update(tx, DictVariable.from_names(tx, kwargs))
        elif not defines(function.py_type(), "__call__"):
            tx.raise_(TypeError, "the first argument must be callable")
        return part

    def call(tx: Any, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        return ObjectVariable(base, inner=make(tx, list(args), kwargs))

    def part_of(tx: Any, obj: Any, source: Any) -> PartialPart:
        part = PartialPart(base, type(obj), obj, source)
        for name, member in (("function", "func"), ("args", "args"), ("kwargs", "keywords")):
            setattr(part, name, tx.lazy(vars(base)[member].__get__(obj), Attr(source, member)))
        return part

    PARTS[base] = part_of
    slot_calls.PARTS[base] = make
    CALLS.add(base, call)
    CALLS.add(vars(base)["__reduce__"], reduce)
    CALLS.add(vars(base)["__setstate__"], setstate)
    for name, member in (("function", "func"), ("args", "args"), ("kwargs", "keywords")):
        C_MEMBERS.add(vars(base)[member], (read_part(name), no_write))
