"""Handlers: calls and function creation."""
from __future__ import annotations

from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.code import null_first
from minidynamo.interp.loop import handles
from minidynamo.interp.stack_ops import pop, popn
from minidynamo.interp.state import NULL, Frame
from minidynamo.model.variable import real
from minidynamo.protocol import iters
from minidynamo.variables.functions import FunctionVariable


@handles("CALL")
def call(tx: Any, frame: Frame, op: Any) -> None:
    count, names = op.arg
    values = popn(tx, frame, count)
    function, args = callee(tx, frame, values)
    kwargs = {}
    if names:
        kwargs = dict(zip(names, args[len(args) - len(names):]))
        args = args[:len(args) - len(names)]
    frame.stack.append(function.tp_call(tx, args, kwargs))


def callee(tx: Any, frame: Frame, args: list) -> tuple[Any, list]:
    """The callable and its arguments, from a pair that holds a NULL or a method and its self."""
    upper, lower = frame.stack.pop(), frame.stack.pop()
    if null_first:
        if lower is NULL:
            return real(tx, upper), args
        return real(tx, lower), [real(tx, upper), *args]
    if upper is NULL:
        return real(tx, lower), args
    return real(tx, lower), [real(tx, upper), *args]


@handles("CALL_FUNCTION_EX")
def call_function_ex(tx: Any, frame: Frame, op: Any) -> None:
    mapping = pop(tx, frame) if op.arg else None
    starred = pop(tx, frame)
    function = callee(tx, frame, [])[0]
    if not iters.has_iter(starred):
        tx.raise_(TypeError, f"{function.shown_name()} argument after * must be an iterable, "
                             f"not {tp_name(starred.py_type())}")
    args = [real(tx, a) for a in iters.listed(tx, starred)]
    kwargs = mapping.string_items(tx) if mapping is not None else {}
    frame.stack.append(function.tp_call(tx, args, kwargs))


@handles("MAKE_FUNCTION")
def make_function(tx: Any, frame: Frame, op: Any) -> None:
    flags = op.arg
    code = pop(tx, frame).as_constant()
    function = FunctionVariable.made(tx, code, frame.scope)
    for bit in (8, 4, 2, 1):
        if flags & bit:
            function.set_part(tx, bit, pop(tx, frame))
    frame.stack.append(function)
