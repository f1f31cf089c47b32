"""Compile events: one `add` that chooses how widely a fact is told."""
from __future__ import annotations

import enum
import json
from typing import Any

from minidynamo.observe.metrics import metrics
from minidynamo.observe.recorder import recorder


class EventLevel(enum.IntEnum):
    """Each level includes the ones below it."""

    CHROMIUM = 1              # on the span, in the chromium trace
    PT2_COMPILE = 2           # and in the span's one JSON metadata column
    COMPILATION_METRIC = 3    # and a field of the metrics record


def add(name_level: EventLevel = EventLevel.CHROMIUM, /, **facts: Any) -> None:
    """Attach facts to the running span; outside one it is an error."""
    span = recorder.top()
    if span is None:
        raise RuntimeError("a fact was added outside any span")
    span.meta.update(facts)
    if name_level >= EventLevel.PT2_COMPILE:
        column = json.loads(span.meta.get("metadata", "{}"))
        column.update({name: value if isinstance(value, (str, int, float, bool)) else str(value)
                       for name, value in facts.items()})
        span.meta["metadata"] = json.dumps(column, sort_keys=True)
    if name_level >= EventLevel.COMPILATION_METRIC:
        metrics.update(facts, overwrite=True)
