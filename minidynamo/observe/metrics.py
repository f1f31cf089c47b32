"""Metrics: one record per outermost compile, filled from spans and stage results."""
from __future__ import annotations

import contextvars
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any

from minidynamo.observe.recorder import Span
from minidynamo.observe.names import SPANS


@dataclasses.dataclass
class CompilationMetrics:
    """Everything one compile can say about itself.  Each field may be missing.

    ``cumulative`` in a name: the phase contains others.  ``runtime``: paid when the user's code runs.
    """

    compile_id: str | None = None
    co_name: str | None = None
    co_filename: str | None = None
    co_firstlineno: int | None = None
    is_resume: bool | None = None
    start_time_us: int | None = None
    end_time_us: int | None = None
    compile_cumulative_us: int | None = None
    decode_us: int | None = None
    trace_us: int | None = None
    plan_us: int | None = None
    graph_cumulative_us: int | None = None
    lower_us: int | None = None
    backend_cumulative_us: int | None = None
    emit_us: int | None = None
    guard_build_us: int | None = None
    install_us: int | None = None
    gc_us: int | None = None
    guard_count: int | None = None
    guard_latency_us: int | None = None
    graph_op_count: int | None = None
    graph_node_count: int | None = None
    graph_input_count: int | None = None
    inlined_call_count: int | None = None
    effect_count: int | None = None
    cache_size: int | None = None
    accumulated_cache_size: int | None = None
    recompile_reason: str | None = None
    exit_kind: str | None = None
    break_reasons: list[str] | None = None
    skip_reason: str | None = None
    fail_type: str | None = None
    fail_message: str | None = None
    fail_user_filename: str | None = None
    fail_user_lineno: int | None = None
    backend: str | None = None
    backend_version: str | None = None
    config: str | None = None
    cache_hits: int | None = None
    cache_misses: int | None = None
    cache_keys: list[str] | None = None
    remote_get_runtime_us: int | None = None
    remote_put_runtime_us: int | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> CompilationMetrics:
        """The one factory: collections sorted, what is no plain data shown as ``<unknown>``."""
        known = {f.name for f in dataclasses.fields(cls)}
        unknown = set(fields) - known
        if unknown:
            raise AttributeError(f"CompilationMetrics has no {sorted(unknown)}")
        return cls(**{name: _plain(value) for name, value in fields.items()})


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Collection) and not isinstance(value, Mapping):
        return sorted(item if isinstance(item, str) else "<unknown>" for item in value)
    return "<unknown>"


class MetricsContext:
    """Collects the fields of the outermost compile; entering it again inside is counted, not nested."""

    def __init__(self, on_exit: Callable[[dict[str, Any], BaseException | None], None]) -> None:
        self._on_exit = on_exit
        self._level: contextvars.ContextVar[int] = contextvars.ContextVar("minidynamo_metrics_level", default=0)
        self._fields: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar(
            "minidynamo_metrics", default=None)

    def __enter__(self) -> MetricsContext:
        if self._level.get() == 0:
            self._fields.set({"start_time_us": time.time_ns() // 1000})
        self._level.set(self._level.get() + 1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._level.set(self._level.get() - 1)
        if self._level.get():
            return
        fields = self._need()
        self._fields.set(None)
        fields["end_time_us"] = max(time.time_ns() // 1000, fields["start_time_us"])
        if error is not None:
            fields.setdefault("fail_type", type(error).__name__)
            fields.setdefault("fail_message", str(error))
        self._on_exit(fields, error)

    def active(self) -> bool:
        return self._level.get() > 0

    def outermost(self) -> bool:
        return self._level.get() == 1

    def set(self, name: str, value: Any, *, overwrite: bool = False) -> None:
        fields = self._need()
        if name in fields and not overwrite:
            raise RuntimeError(f"metric {name!r} is set already")
        fields[name] = value

    def update(self, values: Mapping[str, Any], *, overwrite: bool = False) -> None:
        for name, value in values.items():
            self.set(name, value, overwrite=overwrite)

    def increment(self, name: str, number: int = 1) -> None:
        fields = self._need()
        fields[name] = fields.get(name, 0) + number

    def _need(self) -> dict[str, Any]:
        fields = self._fields.get()
        if fields is None:
            raise RuntimeError("metrics are collected inside a compile only")
        return fields


class SpanTimes:
    """Sink that adds each span's time to its metrics field; nested spans of one name count once."""

    def span_started(self, span: Span) -> None:
        pass

    def span_ended(self, span: Span) -> None:
        name = SPANS[span.name]
        if name and metrics.active() and not _inside_same(span):
            metrics.increment(name, span.elapsed_us)

    def event(self, name: str, at_us: int, compile_id: str | None, fields: dict[str, Any]) -> None:
        pass


def _inside_same(span: Span) -> bool:
    above = span.parent
    while above is not None:
        if above.name == span.name:
            return True
        above = above.parent
    return False


RECORDS: deque[CompilationMetrics] = deque(maxlen=1024)
LISTENERS: list[Callable[[CompilationMetrics], None]] = []


def _emit(fields: dict[str, Any], error: BaseException | None) -> None:
    record = CompilationMetrics.of(fields)
    RECORDS.append(record)
    for listener in LISTENERS:
        listener(record)


metrics = MetricsContext(_emit)
