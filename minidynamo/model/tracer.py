"""Tracer: what the base class of values asks of the tracer, and Raised, how user exceptions travel.

The tracer itself is ``interp.tracer.Tracer``; what families of values ask of it is ``interp/services.py``.  User
exceptions travel as ``Raised``, give-ups as ``reasons.Stop``.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from minidynamo.base.journal import Journal
    from minidynamo.model.variable import VariableTracker
    from minidynamo.sources import Source


class Raised(Exception):
    """A user-level exception in flight inside the traced program."""

    def __init__(self, exc: VariableTracker) -> None:
        super().__init__(exc)
        self.exc = exc


class Tracer(Protocol):
    """The part that ``model/`` uses; the methods' own words are in ``interp/tracer.py``."""

    journal: Journal

    def build(self, obj: Any, source: Source | None) -> VariableTracker: ...
    def raise_(self, exc_type: type, *args: Any) -> NoReturn: ...
    def raise_attribute_error(self, text: str, obj: VariableTracker, name: str) -> NoReturn: ...
    def stop(self, reason: Any, **fields: Any) -> NoReturn: ...
    def unsupported(self, value: VariableTracker, action: str) -> NoReturn: ...
