"""tables: every registry, printed; what is looked up, in which order, and who declared it."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minidynamo.base.table import Table
from minidynamo.base.text import name_of
from minidynamo.hook import adapter  # noqa: F401  (declarations)
from minidynamo.interp.loop import HANDLERS
from minidynamo.model.tables import PREDICATES, PROXIES
from minidynamo.observe.names import SPANS
from minidynamo.reasons import REASONS

# The order in which the builder of a value, and the meaning of a call, is looked for.
BUILD_ORDER = ("build exact", "predicates", "build subclass", "opaque")
CALL_ORDER = ("calls", "torch rules", "polyfills", "fold", "a graph operation", "opaque", "a break")


def tables() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """(name, purpose, rows of (key, declared by)) for each registry."""
    for table in Table.all.values():
        yield table.name, table.about, [(name_of(key), owner(entry)) for key, entry in _pairs(table)]
    yield ("predicates", "value kinds chosen by a test, in this order, after the exact types",
           [(predicate.name, owner(predicate.build)) for predicate in PREDICATES])
    yield "proxies", "value kinds as arguments of graph nodes", [(name_of(k), owner(v)) for k, v in PROXIES.items()]
    yield "handlers", "neutral opcodes", [(name, owner(handler)) for name, handler in sorted(HANDLERS.items())]
    yield "spans", "what is timed, and the field of the metrics record it is added to", [(k, v or "") for k, v in SPANS.items()]
    yield "reasons", "why tracing ends", [(reason.id, reason.title) for reason in REASONS.values()]


def _pairs(table: Table[Any]) -> Iterator[tuple[Any, Any]]:
    for key in table:
        yield key, table.get(key)


def owner(entry: Any) -> str:
    """The function or class behind an entry; constants as they are."""
    return name_of(entry).removeprefix("minidynamo.") if callable(entry) else str(entry)


def page(only: str | None = None) -> str:
    """All registries as text, or one by name."""
    parts = [] if only else [f"a value is built by: {', then '.join(BUILD_ORDER)}",
                             f"a call means: {', then '.join(CALL_ORDER)}"]
    for name, about, rows in tables():
        if only in (None, name):
            width = min(max([len(key) for key, _ in rows], default=0), 60)
            parts.append(f"\n{name} ({len(rows)}): {about}")
            parts += [f"  {key:<{width}}  {who}" for key, who in rows]
    return "\n".join(parts)
