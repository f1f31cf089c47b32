"""What namedtuples and dict views need beside the kinds of tuple and dict."""
from __future__ import annotations

import collections
import gc
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import SameObject, TypeIs
from minidynamo.model.tables import builds
from minidynamo.model.variable import VariableTracker, real
from minidynamo.sources import Fetch
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.mappings import VIEWS, DictViewVariable
from minidynamo.variables.sequences import TupleVariable, inner

TUPLE_GETTER = type(collections.namedtuple("Probe", "x").x)  # type: ignore[misc]


class TupleGetterVariable(HashedByIdentity):
    """The descriptor of a namedtuple's field (tuplegetter_descr_get)."""

    __slots__ = ("raw", "index")
    kind = "namedtuple field"

    def __init__(self, raw: Any, source: Any = None) -> None:
        self.raw, self.source, self.index = raw, source, raw.__reduce__()[1][0]

    def py_type(self) -> type:
        return TUPLE_GETTER

    def as_object(self) -> Any:
        return self.raw

    def identity(self) -> object:
        return self.raw

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        part = inner(obj)
        if not isinstance(part, TupleVariable):
            tx.raise_(TypeError, f"descriptor for index '{self.index}' for tuple subclasses doesn't apply to "
                                 f"'{tp_name(obj.py_type())}' object")
        if self.index >= len(part.items):
            tx.raise_(IndexError, "tuple index out of range")
        return real(tx, part.items[self.index])

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        tx.raise_(AttributeError, "can't set attribute" if value is not None else "can't delete attribute")


@builds(TUPLE_GETTER)
def build_getter(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return TupleGetterVariable(obj, source)


def viewed_dict(view: Any) -> Any:
    """The very dict behind a view (``view.mapping`` only shows a proxy of it)."""
    return gc.get_referents(view)[0]


WHAT = {cls: what for views in VIEWS.values() for what, cls in views.items()}


@builds(*WHAT)
def build_view(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    mapping = tx.build(viewed_dict(obj), Fetch(source, viewed_dict, "viewed_dict"))
    return DictViewVariable(mapping, WHAT[type(obj)], source)
