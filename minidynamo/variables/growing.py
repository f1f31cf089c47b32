"""Lists that a resumed frame only appends to: their length is no fact of the trace, so a loop that fills one is traced once."""
from __future__ import annotations

from typing import Any

from minidynamo.guards.kinds import Length, TypeIs
from minidynamo.model.tables import PROXIES, builds
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import PlainItem
from minidynamo.variables.sequences import ListVariable, SequenceVariable, build_list

ITEMS = SequenceVariable.items         # the slot


class GrowingListVariable(ListVariable):
    """A user's list nobody has looked into; the slot holds what was appended.  The first look makes it a ListVariable."""

    __slots__ = ()

    @property
    def items(self) -> list[VariableTracker]:       # type: ignore[override]
        tx, obj = self.original                     # type: ignore[misc]
        source, items = self.source, ITEMS.__get__(self)
        tx.guard(Length(source, len(obj), list))
        self.__class__ = ListVariable               # type: ignore[assignment]
        self.original = [tx.lazy(v, PlainItem(source, i, list)) for i, v in enumerate(obj)]
        items[:0] = self.original                   # the journal knows this very list
        return items

    @items.setter
    def items(self, value: list[VariableTracker]) -> None:
        ITEMS.__set__(self, value)

    def children(self) -> list[VariableTracker]:
        return ITEMS.__get__(self)

    def replay(self, out: Any) -> None:
        self.write(out, "extend", ITEMS.__get__(self))

    def append(self, tx: Any, value: VariableTracker) -> None:
        tx.journal.append(ITEMS.__get__(self), value)
        tx.modified(self)

    def extend(self, tx: Any, values: VariableTracker) -> None:
        items = values.fast_items(tx) if values is not self and values.fast_items else None
        if items is None:
            super().extend(tx, values)
            return
        for item in list(items):
            self.append(tx, item)


@builds(list)
def build_growing(tx: Any, obj: list, source: Any) -> VariableTracker:
    if not tx.options.first:
        return build_list(tx, obj, source)
    tx.guard(TypeIs(source, list))
    value = GrowingListVariable([], source)
    value.original = (tx, obj)                      # type: ignore[assignment]
    return value


PROXIES[GrowingListVariable] = lambda tx, value: PROXIES[ListVariable](tx, value)
