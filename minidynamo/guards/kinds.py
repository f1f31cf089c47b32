"""All guard kinds: import them from here; the table is ``guard.KINDS``."""
from __future__ import annotations

from minidynamo.guards.containers import (
    DictKeys, HasKey, Length, ListIteratorAt, RangeIteratorAt, SetItems, TupleIteratorAt,
    TupleIteratorLen, iterator_items, iterator_position, range_left,
)
from minidynamo.guards.guard import KINDS, Guard, guard_kind
from minidynamo.guards.relations import (
    Aliased, NotAliased, ShapeExpr, SizeOf, StorageOffset, StrideOf, TensorsNotAliased,
)
from minidynamo.guards.state import DefaultDevice, GlobalState, ModeStack, NoBuiltinShadow, mode_stack
from minidynamo.guards.tensors import TensorMatch
from minidynamo.guards.values import (
    CodeIs, Equal, HasAttr, InInstanceDict, IsNone, Predicate, SameObject, TypeIs, WeakrefAlive,
)

__all__ = [
    "KINDS", "Aliased", "CodeIs", "DefaultDevice", "DictKeys", "Equal", "GlobalState", "Guard", "HasAttr",
    "HasKey", "InInstanceDict", "IsNone", "Length", "ListIteratorAt", "ModeStack", "NoBuiltinShadow",
    "NotAliased", "Predicate", "RangeIteratorAt", "SameObject", "SetItems", "ShapeExpr", "SizeOf",
    "StorageOffset", "StrideOf", "TensorMatch", "TensorsNotAliased", "TupleIteratorAt", "TupleIteratorLen",
    "TypeIs", "WeakrefAlive", "guard_kind", "iterator_items", "iterator_position", "mode_stack", "range_left",
]
