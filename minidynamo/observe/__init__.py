"""Observation: the recorder, metrics, chromium trace, events and logs."""
from minidynamo.base.config import config
from minidynamo.observe.chromium import ChromiumWriter
from minidynamo.observe.events import EventLevel
from minidynamo.observe.logs import ARTEFACTS, _from_config, say, set_logs, wants, warn
from minidynamo.observe.metrics import LISTENERS, RECORDS, CompilationMetrics, MetricsContext, SpanTimes, metrics
from minidynamo.observe.recorder import Counters, Recorder, Sink, Span, UnknownName, counters, now_us, recorder

__all__ = ["ARTEFACTS", "LISTENERS", "RECORDS", "ChromiumWriter", "CompilationMetrics", "Counters", "EventLevel",
           "MetricsContext", "Recorder", "Sink", "Span", "UnknownName", "counters", "metrics", "now_us",
           "recorder", "say", "set_logs", "wants", "warn"]

recorder.sinks.append(SpanTimes())
if config.trace:
    recorder.sinks.append(ChromiumWriter(config.trace))
_from_config()
