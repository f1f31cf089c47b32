"""Marks: what users said about their own functions. Read by the tracer, the hook and the public door.

Tables are keyed by identity; marking twice is harmless.  `unwrap` gives the function a mark is
kept under, so that a bound method and its function carry the same one.
"""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from minidynamo.base.table import Table

ALLOW_IN_GRAPH: Table[bool] = Table("allow_in_graph", "functions that become one node of the graph")
DISABLED: Table[bool] = Table("disabled", "functions that are not traced; what they call is (disable(recursive=False))")
CONSTANT_RESULT: Table[bool] = Table("assume_constant_result", "functions whose result is read once and kept")
OPAQUE: Table[tuple[str, Callable[..., Any]]] = Table(
    "opaque", "functions with a declared time to run: now, later or break; and how to call them without being traced")
BREAKS: Table[bool] = Table("graph_break", "functions whose call ends the graph")
DOORS: Table[bool] = Table("doors", "our functions that mark others, and so must run outside of graphs")
COMPILING: Table[bool] = Table("is_compiling", "functions that answer True while tracing")

# Code of the wrappers that the public door makes.  All wrappers of a kind share one code object, so
# a wrapper is known by it: an attribute would be copied by functools.wraps to whatever wraps it.
WRAPPERS: Table[str] = Table("wrappers", "code of the functions that optimize, disable and nonstrict_trace return")
SKIPPED_CODE: Table[bool] = Table("skipped code", "code of functions marked disable(recursive=False)")

WHEN = ("now", "later", "break")


def unwrap(fn: Any) -> Any:
    """The object a mark is kept under."""
    return fn.__func__ if isinstance(fn, types.MethodType) else fn


def mark(table: Table[Any], fn: Any, entry: Any = True) -> None:
    table.add(unwrap(fn), entry, replace=True)


def wrapped_by(fn: Any) -> tuple[str, Callable[..., Any]] | None:
    """("optimized", "disabled" or "nonstrict", the function behind it) when `fn` is a wrapper of ours."""
    if type(fn) is not types.FunctionType:
        return None
    kind = WRAPPERS.get(fn.__code__)
    if kind is None or fn.__closure__ is None:
        return None
    return kind, free_variable(fn, "fn")


def free_variable(fn: types.FunctionType, name: str) -> Any:
    """What a function's closure holds under `name`."""
    assert fn.__closure__ is not None
    return fn.__closure__[fn.__code__.co_freevars.index(name)].cell_contents
