"""Handlers: yield, yield from, generator creation; async ops are refused."""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from minidynamo import reasons
from minidynamo.interp.loop import YIELDED, handles
from minidynamo.interp.stack_ops import peek, pop
from minidynamo.interp.state import Frame
from minidynamo.model.tracer import Raised
from minidynamo.variables import exceptions
from minidynamo.variables.generators import GeneratorVariable
from minidynamo.variables.objects import ObjectVariable


@handles("RETURN_GENERATOR")
def return_generator(tx: Any, frame: Frame, op: Any) -> None:
    """The generator exists already; its body starts with the POP that follows."""
    frame.stack.append(tx.wrap(None))


@handles("YIELD")
def yield_value(tx: Any, frame: Frame, op: Any) -> str:
    return YIELDED


@handles("GET_YIELD_FROM_ITER")
def get_yield_from_iter(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame)
    frame.stack.append(value if value.py_type() is types.GeneratorType else value.tp_iter(tx))


@handles("SEND")
def send(tx: Any, frame: Frame, op: Any) -> None:
    """Pass a sent value on to the receiver; its result ends the loop (SEND in ceval.c)."""
    value = pop(tx, frame)
    receiver = pop(tx, frame)
    frame.stack.append(receiver)
    if isinstance(receiver, GeneratorVariable):
        result = receiver.resume(tx, value)
        ended = receiver.frame.result if result is None else None
    elif exceptions.is_none(value):
        method = receiver.special(tx, "__next__") if isinstance(receiver, ObjectVariable) else None
        result, ended = until_stop(tx, lambda: receiver.tp_iternext(tx) if method is None else tx.call(method, []))
    else:
        result, ended = until_stop(tx, lambda: tx.call(receiver.tp_getattro(tx, "send"), [value]))
    if result is None:
        frame.stack.append(ended if ended is not None else tx.wrap(None))
        frame.pc = op.target
    else:
        frame.stack.append(result)


def until_stop(tx: Any, step: Callable[[], Any]) -> tuple[Any, Any]:
    """What the step gives, or the value of the StopIteration that it raises."""
    handled = tx.handled
    try:
        return step(), None
    except Raised as raised:
        if not issubclass(raised.exc.py_type(), StopIteration):
            raise
        tx.handled = handled
        return None, exceptions.stop_value(tx, raised.exc)


@handles("END_SEND")
def end_send(tx: Any, frame: Frame, op: Any) -> None:
    value = frame.stack.pop()
    frame.stack[-1] = value


@handles("CLEANUP_THROW")
def cleanup_throw(tx: Any, frame: Frame, op: Any) -> None:
    exc = peek(tx, frame, 1)
    if not issubclass(exc.py_type(), StopIteration):
        raise Raised(exc)
    del frame.stack[-3:]
    frame.stack.append(tx.wrap(None))
    frame.stack.append(exceptions.stop_value(tx, exc))


@handles("GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "END_ASYNC_FOR", "BEFORE_ASYNC_WITH")
def async_op(tx: Any, frame: Frame, op: Any) -> None:
    tx.stop(reasons.ASYNC_CODE, text=op.name)
