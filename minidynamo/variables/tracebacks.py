"""Tracebacks (Python/traceback.c): one entry for each traced frame an exception has passed."""
from __future__ import annotations

import types
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds, meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Attr
from minidynamo.variables.bases import HashedByIdentity, TypeAttributesOnly
from minidynamo.variables.constants import ConstantVariable

NAMES = ("tb_next", "tb_frame", "tb_lasti", "tb_lineno")


class TracebackVariable(TypeAttributesOnly, HashedByIdentity):
    """An entry made while tracing; only raising for real can make it again.  `frame` is None for a hidden one."""

    __slots__ = ("frame", "line", "next", "lasti", "made_at")
    kind = "traceback"

    def __init__(self, tx: Any, frame: Any, line: int | None, rest: VariableTracker | None, lasti: int | None = None) -> None:
        self.frame, self.line, self.next, self.lasti, self.source = frame, line, rest, lasti, None
        self.made_at = rest.made_at if isinstance(rest, TracebackVariable) else tx.root_step

    def py_type(self) -> type:
        return types.TracebackType

    @property
    def lost_at(self) -> int:
        return self.made_at                                 # type: ignore[no-any-return]

    def rebuild(self, out: Any) -> None:
        raise CannotRebuild(self, "the traceback of an exception raised while tracing")

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in NAMES and self.frame is None:
            tx.stop(reasons.DUNDER_TRACEBACK, text=f".{name}")
        if name == "tb_next":
            return ConstantVariable(None) if self.next is None else self.next
        if name == "tb_lineno":
            return ConstantVariable(self.line)
        if name == "tb_frame":
            return tx.frame_value(self.frame)
        if name == "tb_lasti":
            if self.lasti is None:
                tx.stop(reasons.DUNDER_TRACEBACK, text=".tb_lasti")
            return ConstantVariable(self.lasti)
        return super().tp_getattro(tx, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        """tb_next_set."""
        if name != "tb_next":
            if name in NAMES:
                tx.raise_attribute_error("readonly attribute", self, name)
            attribute_error(tx, self, name)
        if value is None:
            tx.raise_(TypeError, "can't delete tb_next attribute")
        entry = next_of(tx, value)
        while isinstance(entry, TracebackVariable):
            if entry is self:
                tx.raise_(ValueError, "traceback loop detected")
            entry = entry.next
        tx.journal.set(self, "next", next_of(tx, value))


def next_of(tx: Any, value: VariableTracker) -> VariableTracker | None:
    if value.py_type() is type(None):
        return None
    if value.py_type() is not types.TracebackType:
        tx.raise_(TypeError, f"expected traceback object or None, got '{value.py_type().__name__}'")
    return value


@meaning(types.TracebackType)
def call_traceback(tx, tb_next, tb_frame, tb_lasti, tb_lineno):
    """tb_new_impl."""
    rest = next_of(tx, tb_next)
    if tb_frame.py_type() is not types.FrameType:
        tx.raise_(TypeError, f"TracebackType() argument 'tb_frame' must be frame, not {tb_frame.py_type().__name__}")
    return TracebackVariable(tx, tb_frame.frame, tb_lineno.as_constant(), rest, tb_lasti.as_constant())


class InputTraceback(HashedByIdentity):
    """A traceback from outside."""

    __slots__ = ("obj",)
    kind = "traceback of an exception from outside"

    def __init__(self, obj: types.TracebackType, source: Any) -> None:
        self.obj, self.source = obj, source

    def py_type(self) -> type:
        return types.TracebackType

    def as_object(self) -> Any:
        return self.obj

    def identity(self) -> object:
        return self.obj

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("tb_next", "tb_lineno"):
            return tx.build(getattr(self.obj, name), Attr(self.source, name))    # type: ignore[no-any-return]
        return tx.wrap(types.TracebackType) if name == "__class__" else super().tp_getattro(tx, name)


@builds(types.TracebackType)
def build_traceback(tx: Any, obj: types.TracebackType, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, types.TracebackType))
    return InputTraceback(obj, source)


# ---------------------------------------------------------------- how they grow
def passed(tx: Any, exc: Any, frame: Any, line: int | None) -> None:
    """PyTraceBack_Here: `exc` leaves, or is caught in, a frame at `line`; one from outside was not raised here."""
    if exc.source is None and not is_own(frame):
        tx.journal.set(exc, "trace", TracebackVariable(tx, frame, line, exc.trace))


def hidden(tx: Any, exc: Any) -> None:
    """`exc` comes out of a Python function whose meaning is declared: its frames are not known."""
    if exc.source is None:
        tx.journal.set(exc, "trace", TracebackVariable(tx, None, None, exc.trace))


def is_own(frame: Any) -> bool:
    """Whether a frame runs one of our own functions in place of a C one."""
    return frame.scope.name.startswith("minidynamo.")       # type: ignore[no-any-return]
