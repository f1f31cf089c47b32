"""Cells: closure variables, their contents and the effect of writing one."""
from __future__ import annotations

import types
from typing import Any

from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Cell, CellContents


class CellVariable(VariableTracker):
    """A cell object; contents None means empty."""

    __slots__ = ("contents",)
    kind = "cell"

    def __init__(self, contents: VariableTracker | None, source: Any) -> None:
        self.contents, self.source = contents, source

    def py_type(self) -> type:
        return types.CellType

    def get(self, tx: Any) -> VariableTracker | None:
        return None if self.contents is None else real(tx, self.contents)

    def set(self, tx: Any, value: VariableTracker | None) -> None:
        tx.journal.set(self, "contents", value)
        tx.modified(self)

    def children(self) -> list[VariableTracker]:
        return [] if self.contents is None else [self.contents]

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        """cell_richcompare: by contents, an empty cell before all others."""
        if not isinstance(other, CellVariable):
            return NotImplemented
        mine, theirs = self.get(tx), other.get(tx)
        if mine is not None and theirs is not None:
            return compare.compare(tx, symbol, mine, theirs)
        return tx.wrap(compare.COMPARE[symbol](mine is not None, theirs is not None))

    # ---- making it again
    def rebuild(self, out: Any) -> None:
        out.call_function(types.CellType, *self.children())

    def create(self, out: Any) -> None:
        out.call_function(types.CellType)

    def fill(self, out: Any) -> None:
        if self.contents is not None:
            out.load(self.contents)
            out.load(self)
            out.op("STORE_ATTR", "cell_contents")

    def replay(self, out: Any) -> None:
        """Write the contents back: the frame's own cells by name, others by attribute."""
        own = isinstance(self.source, Cell)
        if self.contents is not None:
            out.load(self.contents)
            if own:
                out.op("STORE_DEREF", self.source.key)
                return
            out.load(self)
            out.op("STORE_ATTR", "cell_contents")
        elif own:
            out.delete_cell(self.source.key)
        else:
            out.delete_contents(self)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name != "cell_contents":
            attribute_error(tx, self, name)
        value = self.get(tx)
        if value is None:
            tx.raise_(ValueError, "Cell is empty")
        return value

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if name != "cell_contents":
            attribute_error(tx, self, name)
        self.set(tx, value)


@builds(types.CellType)
def build_cell(tx: Any, obj: types.CellType, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, types.CellType))
    try:
        contents = tx.lazy(obj.cell_contents, CellContents(source))
    except ValueError:
        tx.guard_cell_empty(source)
        contents = None
    return CellVariable(contents, source)


