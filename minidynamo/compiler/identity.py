"""The identity frontend: each frame is decoded and reassembled, nothing is captured.

It has the interface of the real one (`pipeline.Frontend`), so the hook, the pipeline and the
wrapper can be tested, and measured, with nothing else in between.
"""
from __future__ import annotations

import dataclasses
from types import CodeType
from typing import Any

from minidynamo.code import Program, assemble
from minidynamo.reasons import Stop


@dataclasses.dataclass(slots=True)
class Return:
    value: Any = None


@dataclasses.dataclass(slots=True)
class Break:
    stop: Stop


@dataclasses.dataclass(slots=True)
class Skip:
    stop: Stop


@dataclasses.dataclass(slots=True)
class Trace:
    program: Program
    exit: Return | Break | Skip
    tracer: Any = None
    plan: Any = None

    def release(self) -> None:
        """Nothing is held."""


def trace(program: Program, frame: Any, options: Any, plan: Any) -> Trace:
    return Trace(program, Return())


def plan(traced: Trace) -> None:
    return None


def lower(traced: Trace) -> None:
    """No graph."""


def emit(traced: Trace, lowered: Any, graph: Any) -> CodeType:
    return assemble(traced.program)
