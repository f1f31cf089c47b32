"""The pipeline: decode, trace, graph, emit, guard as a tuple of stages that time themselves.

Stages are functions of one `Work` record; none of them logs or times.  The runner opens the
spans, catches, counts, and fills the metrics record and the Report.  What the stages call is
the `Frontend`, five functions, so that the hook runs with any of them.
"""
from __future__ import annotations

import contextlib
import dataclasses
import gc
import threading
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple, NoReturn

from torch import set_grad_enabled
from torch._guards import tracing

from minidynamo import reasons
from minidynamo.base.config import config
from minidynamo.base.text import type_name
from minidynamo.code import decode
from minidynamo.compiler.backends import shield
from minidynamo.compiler.frame import CodeState, Compiled, Frame, Options, Skipped
from minidynamo.compiler.limits import over_limit, why_missed
from minidynamo.compiler.preserve import preserved
from minidynamo.compiler.report import READERS, Report, tell
from minidynamo.graph.ambient import in_grad_mode
from minidynamo.model.variable import CannotRebuild
from minidynamo.observe import metrics, recorder, say, wants, warn
from minidynamo.reasons import Reason, Stop
from minidynamo.reasons.errors import BackendCompilerFailed, InternalError, MiniDynamoError, Unsupported


class Frontend(NamedTuple):
    """What turns a program into a trace and a trace into code."""

    trace: Callable[..., Any]               # (program, frame, options, plan) -> Trace
    plan: Callable[[Any], Any]              # (trace) -> its plan
    lower: Callable[[Any], Any]             # (trace) -> Lowered graph, or None without one
    emit: Callable[[Any, Any, Any], CodeType]   # (trace, Lowered or None, callable or None) -> new code
    guards: Callable[[Any, Frame], Any]     # (trace or None, frame) -> guard wrapper
    options: Callable[[Options, CodeState], Any]
    tracing_context: Callable[[Any], Any]   # (trace) -> torch's TracingContext for the backend, or None


@dataclasses.dataclass(slots=True)
class Work:
    """One compile as it goes through the stages."""

    frame: Frame
    options: Options
    state: CodeState
    frontend: Frontend
    report: Report
    program: Any = None
    trace: Any = None
    lowered: Any = None
    call: Callable[..., Any] | None = None      # the compiled graph
    unhooked: tuple[CodeType, ...] = ()
    code: CodeType | None = None
    guards: Any = None


class Stage(NamedTuple):
    """A named step; `fn` changes the Work, or raises `Left` to end early."""

    name: str
    fn: Callable[[Work], None]
    collects: bool = False          # whether garbage is collected meanwhile


class Left(Exception):
    """The frame is left as it is.  `forever` where no later call can differ."""

    def __init__(self, stop: Stop, forever: bool = False) -> None:
        super().__init__(stop.id)
        self.stop, self.forever = stop, forever


# After so many skips or plain entries for one code object, its frames are not looked at again.
PATIENCE = 4
_LOCK = threading.RLock()
_EXIT_KINDS = {"Return": "return", "Break": "break", "Skip": "skip"}


# ------------------------------------------------------------------ stages
def _decode(work: Work) -> None:
    work.program = decode(work.frame.code)


def _trace(work: Work) -> None:
    frame, frontend = work.frame, work.frontend
    work.trace = frontend.trace(work.program, frame, frontend.options(work.options, work.state), frontend.plan)
    leave = work.trace.exit
    report = work.report
    report.trace, report.exit_kind = work.trace, _EXIT_KINDS[type(leave).__name__]
    report.stop = getattr(leave, "stop", None)
    if report.exit_kind == "skip":
        raise Left(leave.stop)
    if report.exit_kind == "break" and work.options.fullgraph:
        raise Unsupported.of(leave.stop)
    if config.side_effects_policy != "allow":
        _judge_effects(work)


def _judge_effects(work: Work) -> None:
    """config.side_effects_policy: changes of the user's objects are told, or refused."""
    found = work.report.effects()
    if not found:
        return
    text = "; ".join(effect.text() for effect in found)
    if config.side_effects_policy == "error":
        raise Unsupported.of(Stop(reasons.SIDE_EFFECT_POLICY, {"kind": text}, found[0].where))
    warn(f"{work.frame.code.co_qualname} changes what is visible outside: {text}")


def _graph(work: Work) -> None:
    """The backend's callable; asked with a fresh graph where it wants to begin again, once for each input at most."""
    asked = 0
    made: Callable[..., Any] | None = None
    while made is None:
        with recorder.span("lower"), uncollected():
            lowered = work.lowered = work.frontend.lower(work.trace)
        if lowered is None:
            return
        gm = lowered.gm
        work.report.graph, work.report.inputs = gm, lowered.example_inputs
        begins_again = asked <= len(lowered.example_inputs)
        asked += 1
        with recorder.span("backend"), tracing(work.frontend.tracing_context(work.trace)):
            if lowered.grad_mode is None:
                made = _call_backend(work.options, gm, lowered.example_inputs, begins_again)
            else:
                with set_grad_enabled(lowered.grad_mode):
                    made = _call_backend(work.options, gm, lowered.example_inputs, begins_again)
    work.call, work.unhooked = shield(made if lowered.grad_mode is None else in_grad_mode(made, lowered.grad_mode))


def _call_backend(options: Options, gm: Any, inputs: list[Any], begins_again: bool) -> Callable[..., Any] | None:
    """None: torch's AOT backends raise this when they learn that a float must be a constant, and remember it."""
    try:
        made = options.backend(gm, inputs)
    except (MiniDynamoError, KeyboardInterrupt):
        raise
    except Exception as error:
        if begins_again and any(base.__name__ == "RestartAnalysis" for base in type(error).__mro__):
            return None
        stop = Stop(reasons.BACKEND_FAILED, {"backend": options.backend_name,
                                             "error": f"{type(error).__name__}: {error}"})
        _backend_failed(stop, options, error)
    if not callable(made):
        _backend_failed(Stop(reasons.BACKEND_NOT_CALLABLE,
                             {"backend": options.backend_name, "type": type_name(made)}), options, None)
    return made


def _backend_failed(stop: Stop, options: Options, error: Exception | None) -> NoReturn:
    recorder.event("backend_failed", reason=stop.id, backend=options.backend_name)
    if config.suppress_errors:
        warn(stop.render())
        raise Left(stop, forever=True) from error
    raise BackendCompilerFailed(stop.render(), options.backend) from error


def _emit(work: Work) -> None:
    """New code; or the old code again, under guards, when the frame returns without any graph."""
    if work.call is None and work.report.exit_kind == "return" and not config.rewrite_frames_without_graph:
        name = work.frame.code.co_qualname
        stop = work.report.stop = Stop(reasons.NO_TENSOR_IN_FRAME, {"name": name})
        work.state.plain += 1
        if work.state.plain >= PATIENCE:
            raise Left(stop, forever=True)
        work.code = work.frame.code
        _count_skip(work, stop)
        return
    try:
        work.code = work.report.new_code = work.frontend.emit(work.trace, work.lowered, work.call)
    except CannotRebuild as lost:           # found only while writing; nothing is installed yet
        stop = Stop(reasons.CANNOT_REBUILD, {"kind": lost.value.kind, "why": lost.why})
        raise Left(stop) from lost


def _guard(work: Work) -> None:
    work.guards = work.report.guards = work.frontend.guards(work.trace, work.frame)


STAGES: tuple[Stage, ...] = (
    Stage("decode", _decode),
    Stage("trace", _trace),         # planning runs inside, because what cannot be rebuilt is traced again
    Stage("graph", _graph, collects=True),      # a backend may take minutes
    Stage("emit", _emit),
    Stage("guard", _guard),
)


# ------------------------------------------------------------------ the runner
def compile_frame(frame: Frame, options: Options, state: CodeState, entries: list[Any],
                  frontend: Frontend) -> Compiled | Skipped:
    """One frame through all stages.  Raises only what the user must see."""
    recorder.count("frames", "total")
    limit = over_limit(frame, state, entries)
    if limit is not None:
        _tell_skip(frame, limit.reason, dict(limit.fields), state)
        return limit
    compile_id = (state.frame_id, state.compiles)
    state.compiles += 1
    text = f"{compile_id[0]}/{compile_id[1]}"
    report = Report(text, frame.code, recompile_reason=_recompiled(frame, entries, text))
    work = Work(frame, options, state, frontend, report)
    with _LOCK, metrics, recorder.span("compile", text, function=frame.code.co_qualname) as span:
        try:
            result = _run(work, compile_id)
        except BaseException as error:
            report.error, report.exit_kind = error, "failed"
            recorder.count("frames", "failed")
            recorder.count("errors", type(error).__name__)
            raise
        finally:
            _after(work, entries)
    report.times_us["compile"] = span.elapsed_us
    say("times", lambda: f"{text} {frame.code.co_qualname} {report.exit_kind}: {report.times_us}")
    tell(report)
    if work.trace is not None:
        work.trace.release()
    return result


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """What a trace makes lives until it ends: collecting meanwhile finds nothing, and walks all of torch to see that."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _run(work: Work, compile_id: tuple[int, int]) -> Compiled | Skipped:
    try:
        with preserved():
            for stage in STAGES:
                with recorder.span(stage.name) as span, contextlib.nullcontext() if stage.collects else uncollected():
                    stage.fn(work)
                work.report.times_us[stage.name] = span.elapsed_us
        left = None
    except Left as error:
        left = error
    except Stop as stop:                            # one that the interpreter let through: a skip all the same
        left = Left(stop)
    except CannotRebuild as lost:                   # found out only when its code was to be written
        left = Left(Stop(reasons.CANNOT_REBUILD, {"kind": lost.value.kind, "why": lost.why}))
    except RecursionError:                          # very deep data, or a caller near Python's own limit
        left = Left(Stop(reasons.RECURSION_DEPTH, {"depth": "Python's own limit"}))
    except MiniDynamoError:
        raise
    except Exception as error:
        return internal_error(work.frame, error, work.state, work)
    if left is not None:
        return _left(work, left.stop, left.forever)
    _succeeded(work)
    assert work.code is not None
    return Compiled(work.code, work.guards, compile_id, f"minidynamo {work.frame.code.co_qualname} "
                    f"{work.report.compile_id}", work.unhooked)


def _left(work: Work, stop: Stop, forever: bool) -> Skipped:
    if work.options.fullgraph and stop.reason.category != "nothing to do" and stop.reason.id not in _USERS_OWN:
        raise Unsupported.of(stop)
    work.report.exit_kind, work.report.stop = "skip", stop
    _count_skip(work, stop)
    tired = sum(work.state.skips.values()) >= PATIENCE
    return Skipped(stop.reason, stop.fields, forever or tired)


# Skips that fullgraph=True lets pass: Python raises the user's own exception.
_USERS_OWN = frozenset({reasons.UNCAUGHT_EXCEPTION.id, reasons.INTERNAL_ERROR.id, reasons.BACKEND_FAILED.id,
                        reasons.BACKEND_NOT_CALLABLE.id})


def internal_error(frame: Frame, error: Exception, state: CodeState, work: Work | None = None) -> Skipped:
    """A bug of ours: said once per code object with its traceback, counted, and the frame runs eagerly."""
    stop = Stop(reasons.INTERNAL_ERROR, {"error": f"{type(error).__name__}: {error}"})
    recorder.count("errors", type(error).__name__)
    recorder.event("internal_error", error=str(error))
    if config.error_on_internal:
        raise InternalError(f"{stop.render()}\n  while compiling {frame.code.co_qualname}") from error
    if stop.id not in state.warned:
        state.warned.add(stop.id)
        warn(f"{stop.render()}\n  while compiling {frame.code.co_qualname}\n"
             + "".join(traceback.format_exception(error)))
    if work is not None:
        work.report.error = error.with_traceback(None)
        return _left(work, stop, False)
    _tell_skip(frame, stop.reason, stop.fields, state)
    return Skipped(stop.reason, stop.fields, False)


# ------------------------------------------------------------------ what is told afterwards
def _succeeded(work: Work) -> None:
    report = work.report
    if report.new_code is not None:         # else the old code stands, and was counted as skipped
        recorder.count("frames", "ok")
    if report.graph is not None:
        recorder.count("stats", "unique_graphs")
        calls = sum(node.op in ("call_function", "call_method", "call_module") for node in report.graph.graph.nodes)
        recorder.count("stats", "calls_captured", calls)
        say("graph", lambda: f"{report.compile_id}\n{report.graph.print_readable(print_output=False)}")
    if report.exit_kind == "break" and report.stop is not None:
        stop = report.stop
        recorder.count("graph_break", stop.id)
        recorder.event("graph_break", reason=stop.id, text=stop.text())
        say("graph_breaks", lambda: f"{work.frame.code.co_qualname}\n{stop.render()}")
    name = f"{report.compile_id} {work.frame.code.co_qualname}"
    say("guards", lambda: f"{name}\n{report.guards_text()}")
    say("side_effects", lambda: f"{name}\n{_effects_text(report)}")
    say("bytecode", lambda: f"{name}\n{report.bytecode_text()}")


def _effects_text(report: Report) -> str:
    return "\n".join(effect.text() for effect in report.effects()) or "none"


def _count_skip(work: Work, stop: Stop) -> None:
    _tell_skip(work.frame, stop.reason, stop.fields, work.state)


def _tell_skip(frame: Frame, reason: Reason, fields: dict[str, Any], state: CodeState) -> None:
    state.skips[reason.id] += 1
    recorder.count("frames", "skipped")
    recorder.count("skips", reason.id)
    recorder.event("skip", reason=reason.id, function=frame.code.co_qualname)
    if wants("skips"):
        say("skips", reasons.render(reason, fields, None))


def _recompiled(frame: Frame, entries: list[Any], compile_id: str) -> str | None:
    """Why the entries that exist did not fit; evaluated only for someone who reads it."""
    if not entries:
        return None
    recorder.count("recompiles", frame.code.co_qualname)
    recorder.event("recompile", function=frame.code.co_qualname)
    if not wants("recompiles") and not config.trace and not READERS:
        return "recompiled; MINIDYNAMO_LOGS=recompiles says why"
    why = why_missed(frame, entries)
    say("recompiles", f"{compile_id} {frame.code.co_qualname}: {why}")
    return why


def _after(work: Work, entries: list[Any]) -> None:
    """Metrics of the outermost compile, and garbage."""
    if metrics.outermost():
        fields = work.report.metrics(work.frame, work.options.backend_name)
        metrics.update({name: value for name, value in fields.items() if value is not None}, overwrite=True)
        metrics.update({"cache_size": len(entries), "accumulated_cache_size": work.state.compiles}, overwrite=True)
    if config.gc_after_compile or config.gc_freeze_after_compile:
        with recorder.span("gc"):
            gc.collect()
            if config.gc_freeze_after_compile:
                gc.freeze()
