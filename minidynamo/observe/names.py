"""Names the recorder knows: spans, counter groups and events. A name outside the list is an error."""
from __future__ import annotations

# span -> the metrics field its time is added to, in microseconds ("" = none)
SPANS: dict[str, str] = {
    "compile": "compile_cumulative_us",
    "decode": "decode_us",
    "trace": "trace_us",
    "plan": "plan_us",
    "graph": "graph_cumulative_us",
    "lower": "lower_us",
    "backend": "backend_cumulative_us",
    "emit": "emit_us",
    "guard": "guard_build_us",
    "install": "install_us",
    "gc": "gc_us",
}

COUNTERS = frozenset({
    "frames",          # total, ok, skipped, failed
    "graph_break",     # by reason id
    "skips",           # by reason id
    "recompiles",      # by function name
    "limits",          # by reason id
    "stats",           # unique_graphs, calls_captured
    "inline_call",     # by function name
    "errors",          # by exception type
})

EVENTS = frozenset({"graph_break", "skip", "recompile", "limit", "internal_error", "backend_failed", "guard_miss"})
