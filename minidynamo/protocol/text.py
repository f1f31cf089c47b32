"""Text: str(), repr(), format() (PyObject_Str, PyObject_Repr, PyObject_Format)."""
from __future__ import annotations

from typing import Any

from minidynamo.model.variable import VariableTracker


def to_str(tx: Any, value: VariableTracker) -> VariableTracker:
    """``str(value)``."""
    return value if value.py_type() is str else value.tp_str(tx)


def to_repr(tx: Any, value: VariableTracker) -> VariableTracker:
    """``repr(value)``."""
    return value.tp_repr(tx)


def convert(tx: Any, value: VariableTracker, conversion: str) -> VariableTracker:
    """The ``!s``, ``!r`` and ``!a`` of an f-string."""
    if conversion == "s":
        return to_str(tx, value)
    if conversion == "r":
        return to_repr(tx, value)
    if conversion == "a":
        return tx.wrap(ascii_of(to_repr(tx, value).as_constant()))
    return value


def ascii_of(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def to_format(tx: Any, value: VariableTracker, spec: str) -> VariableTracker:
    """``format(value, spec)``."""
    if not spec and value.py_type() is str:
        return value
    return value.tp_format(tx, spec)
