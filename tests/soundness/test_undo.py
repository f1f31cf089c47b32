"""Undo: after every instruction of the corpus, rewinding the journal brings all values back to what they were."""
from __future__ import annotations

import types
from typing import Any

import pytest

import minidynamo
from minidynamo.interp import loop
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import NotConstant, VariableTracker
from minidynamo.reasons import Stop
from tests.soundness.forced import corpus_code, namespace, run

CODE = corpus_code()
NAMES = [name for name in namespace(CODE) if name.startswith("p_")]
# They change the frame's own locals, which a break reads from the frame as it stood before the op.
LOCALS = frozenset({"STORE_LOCAL", "DELETE_LOCAL", "LOAD_LOCAL_CLEAR", "MAKE_CELL"})
# Caches of what never changes, and who made the value.
SKIPPED = frozenset({"source", "fn", "obj", "code", "program", "real", "value", "node", "cls"})


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


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_undone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[str] = []
    count = 0

    def twice(handler: Any) -> Any:
        def run_twice(tx: Any, frame: Any, op: Any) -> Any:
            nonlocal count
            if frame is not tx.root or op.name in LOCALS:
                return handler(tx, frame, op)
            count += 1
            before = picture(tx, frame)
            mark, stack, pc, handled = tx.journal.mark(), frame.stack[:], frame.pc, tx.handled
            try:
                handler(tx, frame, op)
            except (Raised, Stop, NotConstant):
                tx.frame = frame
            tx.journal.rewind(mark)
            frame.stack[:], frame.pc, tx.handled = stack, pc, handled
            after = picture(tx, frame)
            problems.extend(f"{op!r} line {op.pos.lineno}: {part}: {before[part]!r:.300} became {after[part]!r:.300}"
                            for part in before if before[part] != after[part])
            return handler(tx, frame, op)
        return run_twice

    def prepare(program: Any) -> None:
        program.memo["told"] = name         # programs of libraries outlive this test: the real prepare starts over
        for op in program.ops:
            op.cache = twice(loop.HANDLERS.get(op.name, loop.unknown))

    monkeypatch.setattr(loop, "prepare", prepare)
    minidynamo.reset()
    run(namespace(corpus_code()), name, force_break_at=0)
    assert count > 1, "nothing was traced"
    assert not problems, "\n".join(problems[:4])
