"""effects(): what the output code of a trace replays, as plain data; read by reports, logs and policies."""
from __future__ import annotations

from typing import Any

from minidynamo.base.text import name_of
from minidynamo.side_effects.effect import Effect


def effects(trace: Any) -> list[Effect]:
    """The effects of a planned trace in the order of replay; none of a trace that was given up."""
    if trace is None or trace.plan is None or trace.tracer is None:
        return []
    tx = trace.tracer
    found: list[Effect] = []
    for value in trace.plan.effects:
        found += value.effects(tx.changed_at.get(id(value)))
    found += [Effect("torch state", name_of(setter)) for setter, _ in tx.at_exit]
    return found
