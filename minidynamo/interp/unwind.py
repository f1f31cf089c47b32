"""Handlers: raise, except, with (do_raise, CHECK_EXC_MATCH, BEFORE_WITH in ceval.c)."""
from __future__ import annotations

from typing import Any

from minidynamo.base.text import tp_name
from minidynamo import reasons
from minidynamo.interp.loop import LastInstruction, handles
from minidynamo.interp.stack_ops import peek, pop
from minidynamo.interp.state import Frame, PreviousException
from minidynamo.model.tracer import Raised
from minidynamo.protocol.attrs import lookup_special
from minidynamo.variables import exception_groups, exceptions


@handles("RAISE")
def raise_varargs(tx: Any, frame: Frame, op: Any) -> None:
    if op.arg == 0:
        if tx.handled is None:
            tx.stop(reasons.UNCAUGHT_EXCEPTION, type="the exception being handled", message="")
        raise Raised(tx.handled)
    cause = pop(tx, frame) if op.arg == 2 else None
    exc = exceptions.instantiate(tx, pop(tx, frame))
    if cause is not None:
        exceptions.set_cause(tx, exc, cause)
    tx.raise_value(exc)


@handles("RERAISE")
def reraise(tx: Any, frame: Frame, op: Any) -> None:
    exc = pop(tx, frame)
    origin = frame.stack[-op.arg] if op.arg else None
    if isinstance(origin, LastInstruction):
        frame.op = origin.op                             # the line that the frame shows
    raise Raised(exc)


@handles("PUSH_EXC_INFO")
def push_exc_info(tx: Any, frame: Frame, op: Any) -> None:
    exc = pop(tx, frame)
    frame.stack.append(PreviousException(tx.handled))
    frame.stack.append(exc)
    tx.handled = exc


@handles("POP_EXCEPT")
def pop_except(tx: Any, frame: Frame, op: Any) -> None:
    entry = frame.stack.pop()
    tx.journal.set(entry, "spent", True)
    tx.handled = entry.previous


@handles("CHECK_EXC_MATCH")
def check_exc_match(tx: Any, frame: Frame, op: Any) -> None:
    kind = pop(tx, frame)
    exc = pop(tx, frame)
    frame.stack.append(exc)
    frame.stack.append(tx.wrap(exceptions.matches(tx, exc, kind)))


@handles("CHECK_EG_MATCH")
def check_eg_match(tx: Any, frame: Frame, op: Any) -> None:
    kind, exc = pop(tx, frame), pop(tx, frame)
    rest, match = exception_groups.group_match(tx, exc, kind)
    frame.stack.extend((rest, match))
    if not exceptions.is_none(match):
        tx.handled = match


@handles("BEFORE_WITH")
def before_with(tx: Any, frame: Frame, op: Any) -> None:
    manager = pop(tx, frame)
    enter = lookup_special(tx, manager, "__enter__")
    name = tp_name(manager.py_type())
    if enter is None:
        tx.raise_(TypeError, f"'{name}' object does not support the context manager protocol")
    leave = lookup_special(tx, manager, "__exit__")
    if leave is None:
        tx.raise_(TypeError, f"'{name}' object does not support the context manager protocol (missed __exit__ method)")
    frame.stack.append(leave)
    frame.stack.append(tx.call(enter, []))


@handles("WITH_EXCEPT_START")
def with_except_start(tx: Any, frame: Frame, op: Any) -> None:
    leave, exc = peek(tx, frame, 4), peek(tx, frame, 1)
    frame.stack.append(tx.call(leave, [exc.type_value(tx), exc, exc.traceback_value(tx)]))
