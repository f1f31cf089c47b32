"""Why a call missed: the first failing guard of each cache entry, expected against got."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from minidynamo.guards.guard import Guard
from minidynamo.guards.manager import GuardManagerWrapper


class Miss(NamedTuple):
    """One entry's first guard that does not hold; `guard` is None where only a death explains it."""

    entry_index: int
    guard: Guard | None
    expected: str
    got: str
    text: str


def explain_miss(entries: Iterable[GuardManagerWrapper], L: Any, G: dict[str, Any]) -> list[Miss]:
    """The entries that do not accept the frame, each with its reason."""
    misses = []
    for index, entry in enumerate(entries):
        failing = next((guard for guard in entry.guards if not guard.check(L, G)), None)
        if failing is not None:
            misses.append(Miss(index, failing, *failing.describe(L, G), failing.text()))
        elif not entry.alive:
            misses.append(Miss(index, None, "all guarded objects alive", "one has been freed", ""))
    return misses


def table(misses: Iterable[Miss]) -> str:
    """The misses as aligned columns: entry, failing guard, expected, got."""
    rows = [("entry", "failing guard", "expected", "got")]
    rows += [(str(miss.entry_index), miss.text, miss.expected, miss.got) for miss in misses]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]])
                     for row in rows)
