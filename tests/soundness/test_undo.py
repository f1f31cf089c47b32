"""Undo: after every instruction of the corpus, rewinding the journal brings all values back to what they were."""
from __future__ import annotations

import contextlib
import io
import os
import types
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import minidynamo
from minidynamo.compiler.preserve import preserved
from minidynamo.interp import loop
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import NotConstant, VariableTracker
from minidynamo.reasons import Stop
from tests.soundness.compare import TooLong, arguments, bounded, module
from tests.soundness.forced import corpus_code, namespace, run
from tests.soundness.programs import write

FULL = bool(os.environ.get("MINIDYNAMO_FULL"))
CODE = corpus_code()
NAMES = [name for name in namespace(CODE) if name.startswith("p_")]
# They change the frame's own locals, which a break reads from the frame as it stood before the op.
LOCALS = frozenset({"STORE_LOCAL", "DELETE_LOCAL", "LOAD_LOCAL_CLEAR", "MAKE_CELL"})
# Caches of what never changes, and who made the value.
SKIPPED = frozenset({"source", "fn", "obj", "code", "program", "real", "value", "node", "cls", "original", "mapping"})


def picture(tx: Any, frame: Any) -> Any:
    """All that the trace has found out, as plain data: trackers numbered in the order they are met."""
    seen: dict[int, int] = {}

    def show(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and type(value).__module__ == "builtins":
            return [show(item) for item in value]
        if isinstance(value, dict):
            return [(key if isinstance(key, (str, int)) else repr(type(key)), show(item)) for key, item in value.items()]
        if isinstance(value, (set, frozenset)):
            return len(value)
        if not isinstance(value, (VariableTracker, types.SimpleNamespace)) and type(value).__name__ != "Scope":
            return value if isinstance(value, (int, str, float, bool, type(None))) else type(value).__name__
        if id(value) in seen:
            return ("again", seen[id(value)])
        seen[id(value)] = len(seen)
        parts = [(slot, show(getattr(value, slot, "unset"))) for cls in type(value).__mro__
                 for slot in getattr(cls, "__slots__", ()) if slot not in SKIPPED
                 and not isinstance(getattr(type(value), slot), property)]          # one that looks inside when it is asked
        return (type(value).__name__, parts)

    return {"stack": show(frame.stack), "local": show(frame.local), "cells": show(frame.cells),
            "changed": [show(value) for value in tx.changed.values()], "scope": show(frame.scope),
            "known": sorted(tx.by_id), "handled": show(tx.handled), "nodes": len(tx.tape.nodes),
            "exit": repr(tx.at_exit)}


class Undoing:
    """Each instruction of the traced frame is done, rewound, looked at, and done again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[str] = []
        self.count = 0

    def __enter__(self) -> Undoing:
        self.real, loop.prepare = loop.prepare, self.prepare
        return self

    def __exit__(self, *_: object) -> None:
        loop.prepare = self.real

    def prepare(self, program: Any) -> None:
        program.memo["told"] = self.name        # programs of libraries outlive this: the real prepare starts over
        for op in program.ops:
            op.cache = self.twice(loop.HANDLERS.get(op.name, loop.unknown))

    def twice(self, handler: Any) -> Any:
        def run_twice(tx: Any, frame: Any, op: Any) -> Any:
            if frame is not tx.root or op.name in LOCALS:
                return handler(tx, frame, op)
            self.count += 1
            before = picture(tx, frame)
            mark, stack, pc, handled = tx.journal.mark(), frame.stack[:], frame.pc, tx.handled
            try:
                handler(tx, frame, op)
            except (Raised, Stop, NotConstant):
                tx.frame = frame
            tx.journal.rewind(mark)
            frame.stack[:], frame.pc, tx.handled = stack, pc, handled
            after = picture(tx, frame)
            self.problems.extend(f"{op!r} line {op.pos.lineno}: {part}: {before[part]!r:.300} became {after[part]!r:.300}"
                                 for part in before if before[part] != after[part])
            return handler(tx, frame, op)
        return run_twice


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_undone(name: str) -> None:
    minidynamo.reset()
    with Undoing(name) as undoing:
        run(namespace(corpus_code()), name, force_break_at=0)
    assert undoing.count > 1, "nothing was traced"
    assert not undoing.problems, "\n".join(undoing.problems[:4])


@settings(max_examples=2000 if FULL else 25, deadline=None, derandomize=not FULL, suppress_health_check=list(HealthCheck),
          phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_written_programs_are_undone(data: st.DataObject) -> None:
    """The same for programs that hypothesis writes; 2,000 of them with MINIDYNAMO_FULL=1."""
    numbers = st.integers(0, 1 << 16)
    source = write(lambda n: data.draw(numbers) % n, size=8)
    minidynamo.reset()
    with warnings.catch_warnings(), contextlib.suppress(SyntaxError, TooLong), preserved(), bounded(), Undoing("written") as undoing:
        warnings.simplefilter("ignore")
        space = module(source)
        with minidynamo.config.patch(rewrite_frames_without_graph=True), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.suppress(Exception):
            minidynamo.optimize(space["f"])(*arguments(0))
        assert undoing.count > 1, "nothing was traced"
        assert not undoing.problems, "\n".join(undoing.problems[:4]) + source[source.index("def f("):]
