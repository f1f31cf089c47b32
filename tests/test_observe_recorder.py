"""Spans, counters, metrics, chromium trace, logs, events; reasons and their page."""
from __future__ import annotations

import json
import pathlib

import pytest
import torch

import minidynamo
from minidynamo.base.text import near
from minidynamo import reasons
from minidynamo.compiler import frontend, identity
from minidynamo.observe import (
    LISTENERS,
    RECORDS,
    ChromiumWriter,
    CompilationMetrics,
    MetricsContext,
    Recorder,
    UnknownName,
    counters,
    recorder,
)
from minidynamo.observe.events import EventLevel, add
from minidynamo.observe.logs import UnknownArtefact
from minidynamo.reasons import BadReason, Reason, Stop, Where
from minidynamo.reasons.docs import page


@pytest.fixture(autouse=True)
def use(monkeypatch):
    monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY)
    minidynamo.reset()
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True):
        yield lambda **parts: monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY._replace(**parts))
    minidynamo.reset()


def simple(x):
    return x


# ------------------------------------------------------------------ recorder
def test_spans_nest_and_never_overlap():
    made = Recorder()
    with made.span("compile", "3/1") as outer, made.span("trace") as inner:
        assert made.top() is inner
        assert inner.parent is outer
        assert made.compile_id() == "3/1"
    assert made.top() is None
    assert outer.start_us <= inner.start_us <= inner.end_us <= outer.end_us
    assert type(inner.start_us) is int


def test_unknown_names_are_errors():
    made = Recorder()
    with pytest.raises(UnknownName), made.span("lunch"):
        pass
    with pytest.raises(UnknownName):
        made.count("lunches", "x")
    with pytest.raises(UnknownName):
        made.event("lunch")


def test_counters_are_made_on_demand():
    assert counters["anything"]["at all"] == 0


def test_a_span_ends_when_its_body_raises():
    made = Recorder()
    with pytest.raises(ValueError), made.span("trace"):
        raise ValueError
    assert made.top() is None


# ------------------------------------------------------------------ metrics
def test_one_record_per_compile():
    heard = []
    LISTENERS.append(heard.append)
    try:
        minidynamo.optimize(simple)(1)
    finally:
        LISTENERS.remove(heard.append)
    (record,) = RECORDS
    assert heard == [record]
    assert record.compile_id == "0/0"
    assert record.co_name == "simple"
    assert record.exit_kind == "return"
    assert record.compile_cumulative_us >= record.trace_us + record.decode_us
    assert record.end_time_us >= record.start_time_us
    assert record.backend == "eager"


def test_a_failing_compile_is_recorded(use):
    def buggy(*args):
        raise KeyboardInterrupt("stop")
    use(trace=buggy)
    with pytest.raises(KeyboardInterrupt):
        minidynamo.optimize(simple)(1)
    (record,) = RECORDS
    assert (record.fail_type, record.fail_message, record.exit_kind) == ("KeyboardInterrupt", "stop", "failed")


def test_a_skip_is_recorded_with_its_place(use):
    where = Where("file.py", "simple", (7, 7, 0, 3))
    use(trace=lambda program, *rest: identity.Trace(
        program, identity.Skip(Stop(reasons.PRINT_NOW, {"call": "print()"}, where))))
    minidynamo.optimize(simple)(1)
    (record,) = RECORDS
    assert (record.skip_reason, record.fail_user_filename, record.fail_user_lineno) == ("MD0101", "file.py", 7)


def test_context_is_reentrant_and_strict():
    out = []
    context = MetricsContext(lambda fields, error: out.append(fields))
    with pytest.raises(RuntimeError):
        context.set("co_name", "x")
    with context:
        with context:
            context.set("co_name", "x")
            context.increment("guard_count", 2)
            context.increment("guard_count")
            context.set("break_reasons", {"b", "a"})
        assert out == []
        with pytest.raises(RuntimeError, match="set already"):
            context.set("co_name", "y")
        context.update({"co_name": "y"}, overwrite=True)
    record = CompilationMetrics.of(out[0])
    assert (record.co_name, record.guard_count, record.break_reasons) == ("y", 3, ["a", "b"])
    with pytest.raises(AttributeError):
        CompilationMetrics.of({"lunch": 1})
    assert CompilationMetrics.of({"backend": object(), "cache_keys": {1, "k"}}).cache_keys == ["<unknown>", "k"]


def test_events_choose_their_level():
    with pytest.raises(RuntimeError):
        add(x=1)
    with recorder.span("trace") as span:
        add(EventLevel.PT2_COMPILE, ops=3)
        add(note="n")
    assert json.loads(span.meta["metadata"]) == {"ops": 3}
    assert span.meta["note"] == "n"


# ------------------------------------------------------------------ readers
def test_chromium_trace(tmp_path):
    writer = ChromiumWriter(str(tmp_path / "out.json"))
    recorder.sinks.append(writer)
    try:
        minidynamo.optimize(simple)(1)
    finally:
        recorder.sinks.remove(writer)
    writer.write()
    rows = json.loads((tmp_path / "out.json").read_text())
    by_name = {row["name"]: row for row in rows}
    assert {"compile", "decode", "trace", "graph", "emit", "guard", "install"} <= set(by_name)
    assert by_name["trace"]["args"]["compile_id"] == "0/0"
    assert by_name["trace"]["args"]["stack"] == ["compile", "trace"]
    assert all(type(row["ts"]) is int for row in rows)
    outer, inner = by_name["compile"], by_name["guard"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_logs(use, caplog):
    caplog.set_level("INFO", "minidynamo")
    use(lower=lambda trace: None, trace=lambda program, *rest: identity.Trace(
        program, identity.Break(Stop(reasons.PRINT_NOW, {"call": "print()"}))))
    minidynamo.set_logs(graph_breaks=True, times=True)
    try:
        minidynamo.optimize(simple)(1)
    finally:
        minidynamo.set_logs(all=False)
    assert "MD0101  print() must run now" in caplog.text
    assert "0/0 simple break" in caplog.text
    assert counters["graph_break"] == {"MD0101": 1}
    with pytest.raises(UnknownArtefact, match="no log artefact lunch"):
        minidynamo.set_logs(lunch=True)


def test_graph_log(use, caplog):
    caplog.set_level("INFO", "minidynamo")
    gm = torch.fx.symbolic_trace(lambda x: torch.relu(x))
    use(lower=lambda trace: type("Lowered", (), {"gm": gm, "example_inputs": [], "grad_mode": None}))
    minidynamo.set_logs(graph=True)
    try:
        minidynamo.optimize(simple)(1)
    finally:
        minidynamo.set_logs(all=False)
    assert "torch.relu" in caplog.text


# ------------------------------------------------------------------ reasons
def test_a_stop_reads_in_four_parts():
    path = pathlib.Path(__file__)
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if text.startswith("LINE = "))
    where = Where(str(path), "f", (line, line, 8, 22), Where(str(path), "g", (line, line, None, None)))
    shown = Stop(reasons.PRINT_NOW, {"call": "print('ä')"}, where).render()
    assert shown.splitlines() == [
        "MD0101  print() must run now",
        f"  called at {near(str(path))}:{line} in g",
        f"  at {near(str(path))}:{line} in f",
        f"  {line:>4} |     LINE = (\"ä\", max(1, 2))",
        "       |     " + " " * 8 + "^" * 13,
        "  `print('ä')` writes to the terminal while the graph is still being built.",
        "  hint: move it out of the compiled function",
        "  hint: minidynamo.opaque(print, when=\"later\") runs it after the graph",
    ]
    assert where.stack_trace().count("LINE = ") == 2


LINE = ("ä", max(1, 2))


def test_declarations_are_checked():
    with pytest.raises(BadReason, match="the text uses"):
        Reason("MD9991", "t", "{a}", hints=("h",), fields=("b",))
    with pytest.raises(BadReason, match="no_hint"):
        Reason("MD9992", "t", "x")
    with pytest.raises(BadReason, match="declared twice"):
        Reason("MD0101", "t", "x", hints=("h",))


def test_ids_are_never_reused():
    retired = (pathlib.Path(reasons.__file__).parent / "retired.txt").read_text().split()
    assert not set(retired) & set(reasons.REASONS)
    assert all(len(id_) == 6 and id_.startswith("MD") for id_ in reasons.REASONS)


def test_page_lists_every_reason():
    text = page()
    for reason in reasons.REASONS.values():
        assert f"### {reason.id} {reason.title}" in text
