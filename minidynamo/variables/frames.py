"""Frames as values, and what they show of themselves: locals(), dir(), sys._getframe (Objects/frameobject.c)."""
from __future__ import annotations

import sys
import traceback
import types
from typing import Any

from minidynamo import reasons
from minidynamo.code import facts
from minidynamo.guards.kinds import Predicate
from minidynamo.model.services import service
from minidynamo.model.tables import meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol import attrs
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable
from minidynamo.variables.tracebacks import TracebackVariable, is_own


# ---------------------------------------------------------------- variables
def locals_of(tx: Any, frame: Any) -> VariableTracker:
    """PyFrame_FastToLocalsWithError: one dict per frame, brought up to date by each call; a new one each time from 3.13 on."""
    if frame.class_dict is not None:
        return frame.class_dict                                   # type: ignore[no-any-return]
    if frame.is_root and tx.options.first:
        tx.stop(reasons.LOCALS_CALL, name="locals()")             # a resume function has but some of the variables
    space = frame.namespace
    if space is None or facts.LOCALS_ARE_SNAPSHOTS:
        space = DictVariable({})
        tx.journal.set(frame, "namespace", space)
    for name, value in variables(tx, frame):
        key = ConstantVariable(name)
        if value is not None:
            space.set_item(tx, key, value)
        else:
            space.delete_item(tx, key)
    return space                                                  # type: ignore[no-any-return]


def variables(tx: Any, frame: Any) -> list[tuple[str, VariableTracker | None]]:
    """The frame's variables in the order of its code object; None for one that is not bound."""
    code = frame.program.code
    names = dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
    return [(name, frame.cells[name].contents if name in frame.cells else frame.local.get(name)) for name in names]


# ---------------------------------------------------------------- names
@meaning(dir)
def call_dir(tx, obj=None, /):
    """PyObject_Dir: the names of the running frame, or what ``__dir__`` gives, sorted."""
    if obj is None:
        space = tx.local_namespace()
        return tx.call_python(in_order, space if isinstance(space, DictVariable) else tx.call(
            space.tp_getattro(tx, "keys"), []))
    return tx.call_python(in_order, tx.call(attrs.lookup_special(tx, obj, "__dir__"), []))


def in_order(names: Any) -> list[Any]:
    return sorted(names)


def class_names(tx: Any, cls: VariableTracker, names: dict[str, None]) -> None:
    """merge_class_dict."""
    if not isinstance(cls, ClassVariable):
        tx.unsupported(cls, "dir() of an object whose __class__ is no class")
    names.update(dict.fromkeys(tx.class_namespace(cls).names()))
    for base in cls.tp_getattro(tx, "__bases__").items:
        class_names(tx, base, names)


def name_list(names: dict[str, None]) -> VariableTracker:
    return ListVariable([ConstantVariable(name) for name in names])


@meaning(vars(object)["__dir__"])
def object_dir(tx, self, /):
    """object___dir___impl."""
    names: dict[str, None] = {}
    space = attrs.getattr_or_none(tx, self, "__dict__")
    if space is not None and isinstance(space, DictVariable):
        names.update(dict.fromkeys(real(tx, key).as_constant() for key in space.key_list()))
    class_names(tx, self.tp_getattro(tx, "__class__"), names)
    return name_list(names)


@meaning(vars(type)["__dir__"])
def type_dir(tx, self, /):
    """type___dir___impl."""
    names: dict[str, None] = {}
    class_names(tx, self, names)
    return name_list(names)


@meaning(vars(types.ModuleType)["__dir__"])
def module_dir(tx, self, /):
    """module_dir."""
    space = self.tp_getattro(tx, "__dict__")
    hook = space.find(tx, ConstantVariable("__dir__"))
    return tx.call(hook, []) if hook is not None else name_list(dict.fromkeys(space.names()))


# ---------------------------------------------------------------- frame objects
class FrameVariable(HashedByIdentity):
    """The frame object of a traced call."""

    __slots__ = ("frame", "lost_at")
    kind = "frame"

    def __init__(self, frame: Any, made_at: int) -> None:
        self.frame, self.lost_at, self.source = frame, made_at, None

    def py_type(self) -> type:
        return types.FrameType

    def rebuild(self, out: Any) -> None:
        raise CannotRebuild(self, "the frame of an inlined call")

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        reader = FRAME_ATTRIBUTES.get(name)
        if reader is not None:
            return reader(tx, self.frame)                        # type: ignore[no-any-return]
        if not hasattr(types.FrameType, name):
            attrs.attribute_error(tx, self, name)
        return super().tp_getattro(tx, name)


@service
def local_namespace(tx: Any) -> VariableTracker:
    """``locals()`` of the running frame."""
    return locals_of(tx, tx.frame)


@service
def frame_value(tx: Any, frame: Any) -> VariableTracker:
    if frame.value is None:
        tx.journal.set(frame, "value", FrameVariable(frame, tx.root_step))
    return frame.value                                           # type: ignore[no-any-return]


def frame_code(tx: Any, frame: Any) -> VariableTracker:
    if frame.is_root and tx.options.first:
        tx.stop(reasons.LOCALS_CALL, name="sys._getframe()")     # a resume function has code of its own
    return tx.wrap(frame.program.code)                           # type: ignore[no-any-return]


def outer(tx: Any, frame: Any) -> Any:
    """The frame that called, past our own functions; the tracer does not see whoever called the root."""
    frame = frame.caller
    while frame is not None and is_own(frame):
        frame = frame.caller
    if frame is None:
        tx.stop(reasons.LOCALS_CALL, name="sys._getframe()")
    return frame


def frame_line(tx: Any, frame: Any) -> VariableTracker:
    """frame_getlineno."""
    if frame.op is not None:
        return ConstantVariable(frame.op.pos.lineno)
    if facts.UNSTARTED_FRAME_MOVES:                              # where a generator that never ran was left by what it was thrown
        tx.stop(reasons.DUNDER_TRACEBACK, text=".f_lineno")
    return ConstantVariable(frame.program.firstlineno)


def frame_locals(tx: Any, frame: Any) -> VariableTracker:
    """frame_getlocals: since 3.13 a proxy that writes through, of a function's frame."""
    if frame.class_dict is None and facts.LOCALS_ARE_SNAPSHOTS:
        tx.stop(reasons.LOCALS_CALL, name=".f_locals")
    return locals_of(tx, frame)


FRAME_ATTRIBUTES = {
    "f_code": frame_code,
    "f_lineno": frame_line,
    "f_globals": lambda tx, frame: tx.scope_value(frame.scope),
    "f_builtins": lambda tx, frame: tx.builtins_namespace(),
    "f_locals": frame_locals,
    "f_back": lambda tx, frame: ConstantVariable(None) if frame.caller is None and not frame.is_root      # a suspended one
    else frame_value(tx, outer(tx, frame)),
    "f_trace": lambda tx, frame: ConstantVariable(None),
    "__class__": lambda tx, frame: tx.wrap(types.FrameType),
}


@meaning(sys._getframe)
def call_getframe(tx, depth=None, /):
    """sys__getframe_impl."""
    frame = tx.frame
    if is_own(frame):
        frame = outer(tx, frame)
    for _ in range(0 if depth is None else depth.as_constant()):
        frame = outer(tx, frame)
    return frame_value(tx, frame)


@meaning(traceback.clear_frames)
def clear_frames(tx, tb, /):
    """traceback.clear_frames: calls that are over let go of their variables."""
    running, frame = set(), tx.frame
    while frame is not None:
        running.add(id(frame))
        frame = frame.caller
    while isinstance(tb, TracebackVariable):
        if tb.frame is not None and id(tb.frame) not in running:
            tx.journal.set(tb.frame, "local", {})
        tb = tb.next
    if tb is not None and tb.py_type() is not type(None):
        tx.stop(reasons.DUNDER_TRACEBACK, text="traceback.clear_frames()")
    return ConstantVariable(None)


# ---------------------------------------------------------------- facts of the thread
def not_traced(_: Any) -> bool:
    return sys.gettrace() is None


@meaning(sys.gettrace)
def call_gettrace(tx):
    if sys.gettrace() is not None:
        tx.stop(reasons.TRACE_FUNCTION, name="sys.gettrace")
    tx.guard(Predicate(tx.builtins_source, not_traced, "no trace function is set"))
    return ConstantVariable(None)


@meaning(sys.settrace)
def call_settrace(tx, function, /):
    """Taking away what is not there."""
    if function.py_type() is not type(None):
        tx.stop(reasons.TRACE_FUNCTION, name="sys.settrace")
    return call_gettrace(tx)


@meaning(sys.setprofile)
def call_setprofile(tx, function, /):
    tx.stop(reasons.TRACE_FUNCTION, name="sys.setprofile")
