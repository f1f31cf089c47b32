"""The frontend in use: tracing, lowering, emission and guards, as the pipeline calls them."""
from __future__ import annotations

from typing import Any

from minidynamo import codegen, interp
from minidynamo.base.config import config
from minidynamo.codegen.resume import first_op, loop_heads
from minidynamo.compiler import identity
from minidynamo.compiler.pipeline import Frontend
from minidynamo.graph import shapes
from minidynamo.graph.to_fx import to_fx
from minidynamo.guards.kinds import NotAliased, ShapeExpr, TensorsNotAliased
from minidynamo.guards.manager import build_guards
from minidynamo.guards.relations import SizeOf, StorageOffset, StrideOf
from minidynamo.interp.tracer import Options
from minidynamo.observe import warn
from minidynamo.reasons import MARK_LOST, render

IDENTITY = Frontend(
    trace=identity.trace, plan=identity.plan, lower=identity.lower, emit=identity.emit,
    guards=lambda trace, frame: None, options=lambda options, state: None, tracing_context=lambda trace: None)


def lower(trace: Any) -> Any:
    """The tape as a GraphModule; None when nothing of it matters."""
    plan = trace.plan
    return to_fx(trace.tracer.tape, plan.outputs, whole=True) if plan.has_ops else None


def guards(trace: Any, frame: Any) -> Any:
    """All that the trace relied on, as a guard tree.  Runs after the backend, which may add shape facts."""
    tx = trace.tracer
    add = tx.guards.add
    for fact in tx.shapes.facts():
        add(ShapeExpr(fact.text, tuple([(name, source, reader(accessor)) for name, source, accessor in fact.names]),
                      shapes.FACT_GLOBALS))
    lost = tx.shapes.specialised_marks()
    if lost:
        warn(render(MARK_LOST, {"name": frame.code.co_qualname, "dims": ", ".join(lost)}, None))
    inputs = [value.source for value in tx.input_tensors]
    if len(inputs) > 1:
        add(TensorsNotAliased(tuple(inputs)))
    for group in tx.alias_groups:
        add(NotAliased(tuple(group)))
    return build_guards(tx.guards, frame.locals, frame.globals, frame.code, config.guards)


# How a guard reads the number behind an accessor; None: the source's value itself.
READERS = {"size": SizeOf, "stride": StrideOf, "storage_offset": StorageOffset, "int": None, "float": None}


def reader(accessor: Any) -> Any:
    made = READERS[accessor[0]]
    return made(*accessor[1:]) if made is not None else None


def options(options: Any, state: Any) -> Options:
    return Options(options.dynamic, options.fullgraph, state.history)


def trace(program: Any, frame: Any, opts: Any, plan: Any) -> Any:
    opts.resume_loops, opts.first, opts.closure = loop_heads(program), first_op(program), frame.closure
    return interp.trace(program, frame.locals, frame.globals, opts, plan)


REAL = Frontend(trace=trace, plan=codegen.plan, lower=lower, emit=codegen.emit, guards=guards, options=options,
                tracing_context=lambda trace: trace.tracer.env.tracing_context())
FRONTEND = REAL
