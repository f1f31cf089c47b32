"""Instances of builtins' subclasses that come from outside: an object part and a builtin part."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo.code import is_static
from minidynamo.guards.kinds import Equal, Length, TypeIs
from minidynamo.model.tables import builds_when
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import Fetch, Item
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.mappings import DictVariable, dict_entries
from minidynamo.variables.objects import ObjectVariable, builtin_base
from minidynamo.variables.sequences import ListVariable, NamedTupleVariable, TuplePart
from minidynamo.variables.sets import FrozensetVariable, SetVariable, set_entries

# The plain value inside an instance of a subclass, by the base class's own slot.
PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__, float: float.__float__, str: str.__str__, bytes: bytes.__bytes__, complex: complex.__complex__,
}


def items_of(tx: Any, obj: Any, source: Any, base: type) -> list[VariableTracker]:
    tx.guard(Length(source, base.__len__(obj), base))
    return [tx.lazy(item, Item(source, at, base)) for at, item in enumerate(base.__iter__(obj))]


# A mutable part has the object's source, so that it is written back to that object; an immutable part has none:
# what reads it alone gets a plain builtin.
PARTS: dict[type, Callable[[Any, Any, Any], VariableTracker]] = {
    list: lambda tx, obj, source: ListVariable(items_of(tx, obj, source, list), source),
    tuple: lambda tx, obj, source: TuplePart(items_of(tx, obj, source, tuple)),
    dict: lambda tx, obj, source: DictVariable(dict_entries(tx, obj, source, type(obj)), source),
    set: lambda tx, obj, source: SetVariable(set_entries(tx, obj, source, set), source),
    frozenset: lambda tx, obj, source: FrozensetVariable(set_entries(tx, obj, source, frozenset)),
}


def literal_part(base: type) -> Callable[[Any, Any, Any], VariableTracker]:
    read = PLAIN[base]

    def part(tx: Any, obj: Any, source: Any) -> VariableTracker:
        value = read(obj)
        tx.guard(Equal(Fetch(source, read, f"{base.__name__}.{read.__name__}"), value))
        return ConstantVariable(value)
    return part


PARTS.update({base: literal_part(base) for base in PLAIN})


def is_builtin_subclass(obj: Any) -> bool:
    """An instance of a Python class whose memory is that of a builtin with a part of its own here."""
    cls = type(obj)
    return not is_static(cls) and builtin_base(cls) in PARTS and not is_struct(cls)


@builds_when("builtin subclass", is_builtin_subclass)
def build_subclass(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    return ObjectVariable(type(obj), obj, source, PARTS[builtin_base(type(obj))](tx, obj, source))


def is_struct(cls: type) -> bool:
    """A C struct sequence (``os.stat_result``, ``torch.return_types.max``)."""
    return issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields") and hasattr(cls, "n_unnamed_fields")


@builds_when("struct sequence", lambda obj: is_struct(type(obj)))
def build_struct(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    return NamedTupleVariable(items_of(tx, obj, source, tuple), source, type(obj))
