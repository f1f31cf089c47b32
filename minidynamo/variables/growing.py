"""Lists from outside.  The length of one that is only appended to is no fact: a loop that fills it is traced once."""
from __future__ import annotations

from typing import Any

from minidynamo.guards.kinds import Length, TypeIs
from minidynamo.model.tables import PROXIES, builds
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import PlainItem
from minidynamo.variables.sequences import ListVariable


class InputList(ListVariable):
    """A list from outside.  Until somebody looks inside, its length is no fact of the trace, and it can be appended to."""

    __slots__ = ("tx", "obj", "seen", "kept", "tail")

    def __init__(self, tx: Any, obj: list, source: Any) -> None:
        self.tx, self.obj, self.source = tx, obj, source
        self.seen: list[VariableTracker] | None = None
        self.kept: list[VariableTracker] = []
        self.tail: list[VariableTracker] = []          # appended unseen

    def look(self) -> list[VariableTracker]:
        tx, source = self.tx, self.source
        tx.guard(Length(source, len(self.obj), list))
        items = [tx.lazy(v, PlainItem(source, i, list)) for i, v in enumerate(self.obj)]
        tx.journal.set(self, "kept", items)
        tx.journal.set(self, "seen", items + self.tail)
        return self.seen                                # type: ignore[return-value]

    @property
    def items(self) -> list[VariableTracker]:           # type: ignore[override]
        return self.look() if self.seen is None else self.seen

    @items.setter
    def items(self, items: list[VariableTracker]) -> None:
        self.seen = items

    @property
    def original(self) -> list[VariableTracker]:        # type: ignore[override]
        if self.seen is None:
            self.look()
        return self.kept

    def of_same_kind(self, items: list[VariableTracker]) -> VariableTracker:
        return ListVariable(items)

    def append(self, tx: Any, value: VariableTracker) -> None:
        if self.seen is not None:
            super().append(tx, value)
            return
        tx.journal.append(self.tail, value)
        tx.modified(self)

    def extend(self, tx: Any, values: VariableTracker) -> None:
        items = values.fast_items(tx) if self.seen is None and values is not self and values.fast_items else None
        if items is None:
            super().extend(tx, values)
            return
        for item in list(items):
            self.append(tx, item)

    def only_grew(self) -> bool:
        return self.seen is None or super().only_grew()

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return self.tail if self.seen is None else super().effect_children(tx)


@builds(list)
def build_list(tx: Any, obj: list, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, list))
    return InputList(tx, obj, source)


PROXIES[InputList] = PROXIES[ListVariable]
