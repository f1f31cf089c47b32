"""Recorder: one place that times, counts and tells. Four verbs: span, count, event, wait.

Logic does not call these; the pipeline and the hook do, for every stage alike.  Readers
(chromium, logs, tests) attach a `Sink`.
"""
from __future__ import annotations

import contextlib
import contextvars
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

from torch.monitor import _WaitCounter      # type: ignore[attr-defined]

from minidynamo.observe.names import COUNTERS, EVENTS, SPANS


class UnknownName(Exception):
    """A span, counter or event that ``observe/names.py`` does not declare."""


class Counters(dict[str, Counter[str]]):
    """Names to counters, made on demand."""

    def __missing__(self, name: str) -> Counter[str]:
        made = self[name] = Counter()
        return made


class Span:
    """One timed stretch; times are integer microseconds since the epoch."""

    __slots__ = ("name", "compile_id", "parent", "start_us", "end_us", "meta")

    def __init__(self, name: str, compile_id: str | None, parent: Span | None, meta: dict[str, Any]) -> None:
        self.name, self.compile_id, self.parent, self.meta = name, compile_id, parent, meta
        self.start_us = now_us()
        if parent is not None:              # a child never starts before its parent, whatever the clock does
            self.start_us = max(self.start_us, parent.start_us)
        self.end_us = 0

    @property
    def elapsed_us(self) -> int:
        return self.end_us - self.start_us


class Sink(Protocol):
    """A reader of what happens, as it happens."""

    def span_started(self, span: Span) -> None: ...
    def span_ended(self, span: Span) -> None: ...
    def event(self, name: str, at_us: int, compile_id: str | None, fields: dict[str, Any]) -> None: ...


def now_us() -> int:
    return time.time_ns() // 1000


class Recorder:
    """Spans form one stack per thread and task."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.sinks: list[Sink] = []
        self._top: contextvars.ContextVar[Span | None] = contextvars.ContextVar("minidynamo_span", default=None)
        self._waits: dict[str, Any] = {}

    @contextlib.contextmanager
    def span(self, name: str, compile_id: str | None = None, **meta: Any) -> Iterator[Span]:
        """Time a stretch; `compile_id` is inherited from the span around it."""
        if name not in SPANS:
            raise UnknownName(f"span {name!r}")
        parent = self._top.get()
        span = Span(name, compile_id or (parent.compile_id if parent else None), parent, meta)
        token = self._top.set(span)
        for sink in self.sinks:
            sink.span_started(span)
        try:
            with self.wait(name):
                yield span
        finally:
            self._top.reset(token)
            span.end_us = max(now_us(), span.start_us)
            for sink in self.sinks:
                sink.span_ended(span)

    def wait(self, name: str) -> Any:
        """torch's wait counter ``minidynamo.timed.<name>`` as a context manager."""
        counter = self._waits.get(name)
        if counter is None:
            counter = self._waits[name] = _WaitCounter(f"minidynamo.timed.{name}")
        return counter.guard()

    def count(self, group: str, name: str, number: int = 1) -> None:
        if group not in COUNTERS:
            raise UnknownName(f"counter {group!r}")
        self.counters[group][name] += number

    def event(self, name: str, **fields: Any) -> None:
        """Something happened, at one moment."""
        if name not in EVENTS:
            raise UnknownName(f"event {name!r}")
        at, compile_id = now_us(), self.compile_id()
        for sink in self.sinks:
            sink.event(name, at, compile_id, fields)

    def top(self) -> Span | None:
        return self._top.get()

    def compile_id(self) -> str | None:
        top = self._top.get()
        return top.compile_id if top else None


recorder = Recorder()
counters = recorder.counters
