"""trace(): one frame from its program and entry state to a Trace; the one place that restarts."""
from __future__ import annotations

import dataclasses
from typing import Any

from minidynamo import reasons
from minidynamo.base.journal import CannotRewind
from minidynamo.code import Program
from minidynamo.interp import loop
from minidynamo.interp.tracer import Options, Tracer
from minidynamo.model.variable import CannotRebuild, VariableTracker
from minidynamo.reasons import Stop


@dataclasses.dataclass(slots=True)
class Return:
    """The frame returns `value`."""

    value: VariableTracker


@dataclasses.dataclass(slots=True)
class Break:
    """Tracing ends before op `index`; it is run by Python (unless not `run_op`), then a resume function goes on."""

    stop: Stop
    index: int
    stack: list[VariableTracker]
    local: dict[str, VariableTracker]
    handled: VariableTracker | None
    run_op: bool = True

    def plain(self, tape: Any) -> bool:
        """Whether the rest is left to Python: a long trace without a single tensor op is not worth going on with."""
        return self.stop.reason is reasons.TRACE_TOO_LONG and not tape.has_ops()


@dataclasses.dataclass(slots=True)
class Skip:
    """The frame is left alone, and `stop` says why."""

    stop: Stop


@dataclasses.dataclass(slots=True)
class Trace:
    """All that one trace found out; plain data for planning, lowering and reports."""

    program: Program
    exit: Return | Break | Skip
    tracer: Tracer
    plan: Any = None
    restarts: int = 0

    def release(self) -> None:
        """Let go of all values; what is left is the program and the counts."""
        self.tracer.release()
        self.exit = self.plan = None


RESTARTS = 64


def trace(program: Program, frame_locals: dict[str, Any], frame_globals: dict[str, Any],
          options: Options, plan: Any) -> Trace:
    """Trace one frame.  `plan(trace)` is codegen's planning, which finds what cannot be rebuilt.

    A value that no code can rebuild at a break (a half-run generator, an exception raised while tracing) is
    met by a restart: tracing once more, and stopping where it was made.  So is a generator that is dropped half-run.
    """
    stop_at: dict[int, Stop] = {}
    for restarts in range(RESTARTS):
        tracer = Tracer(program, frame_locals, frame_globals, options, stop_at)
        try:
            with tracer.ambient():
                result = Trace(program, loop.run_root(tracer, Return, Break, Skip), tracer, restarts=restarts)
                if isinstance(result.exit, Skip):
                    return result
                result.plan = plan(result)
            lost_generator = tracer.abandoned()
            if lost_generator is None:
                return result
            step = lost_generator.lost_at
            stop = tracer.dropped(lost_generator.name, lost_generator.in_root)
        except CannotRewind as barrier:
            step = tracer.root_step
            stop = Stop(reasons.METADATA_MUTATION, {"op": str(barrier)}, tracer.where())
        except CannotRebuild as lost:
            step = lost.value.lost_at
            if step is None:
                step = lost.value.made_at
            stop = getattr(lost.value, "stop", None) or Stop(
                reasons.CANNOT_REBUILD, {"kind": lost.value.kind, "why": lost.why}, tracer.where())
            if step is None or step >= tracer.root_step and step in stop_at:
                return Trace(program, Skip(stop), tracer, restarts=restarts)
        if step in stop_at:
            return Trace(program, Skip(stop), tracer, restarts=restarts)
        stop_at[step] = stop.with_traceback(None)
        if restarts < RESTARTS - 1:
            tracer.release()
    return Trace(program, Skip(stop), tracer, restarts=restarts)
