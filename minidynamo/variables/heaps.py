"""heapq over literals: the C function itself orders them; other items are compared by the polyfill, in the same order."""
from __future__ import annotations

import _heapq
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.model.tables import POLYFILLS, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.variables.sequences import ListVariable, inner


class Known:
    """An item by its value."""

    __slots__ = ("value", "item")

    def __init__(self, value: Any, item: VariableTracker | None) -> None:
        self.value, self.item = value, item

    def __lt__(self, other: Known) -> Any:
        return self.value < other.value


def heap_call(tx: Any, function: Any, heap: VariableTracker, *more: VariableTracker) -> VariableTracker:
    part = inner(heap)
    if not isinstance(part, ListVariable) or part.owner is not list:
        which = "" if function.__name__ == "heapify" else " 1"
        tx.raise_(TypeError, f"{function.__name__}() argument{which} must be list, not {tp_name(heap.py_type())}")
    items = [real(tx, item) for item in part.items]
    values = cmp.constants(*items, *more)
    if values is None:
        return tx.call_polyfill(POLYFILLS.get(function), [heap, *more], {})     # type: ignore[no-any-return]
    known = [Known(value, item) for value, item in zip(values, [*items, *more])]
    ordered, given = known[:len(items)], known[len(items):]
    try:
        result = function(ordered, *given)
    except Exception as error:
        part.store(tx, [k.item for k in ordered])
        tx.raise_real(error)
    part.store(tx, [k.item for k in ordered])
    return tx.wrap(None) if result is None else result.item         # type: ignore[no-any-return]


def of_heap(function: Any) -> Any:
    return lambda tx, heap, /: heap_call(tx, function, heap)


def of_heap_and_item(function: Any) -> Any:
    return lambda tx, heap, item, /: heap_call(tx, function, heap, item)


for name_ in ("heapify", "_heapify_max", "heappop", "_heappop_max"):
    meaning(getattr(_heapq, name_))(of_heap(getattr(_heapq, name_)))
for name_ in ("heappush", "heappushpop", "heapreplace", "_heapreplace_max"):
    meaning(getattr(_heapq, name_))(of_heap_and_item(getattr(_heapq, name_)))
