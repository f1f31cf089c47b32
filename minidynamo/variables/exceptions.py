"""Exceptions as values: making, chaining, matching, attributes (Objects/exceptions.c)."""
from __future__ import annotations

import sys
import types
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import Predicate, TypeIs
from minidynamo.model.tables import builds_subclasses, meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker, is_subtype, real
from minidynamo.protocol.attrs import special_is_python
from minidynamo.sources import Attr
from minidynamo.variables import opaque
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import TupleVariable

CHAIN = ("__context__", "__cause__", "__suppress_context__", "__traceback__", "__notes__")


# Classes with a __str__ of their own; others have another object for the same function.
OWN_TEXT = (BaseExceptionGroup, ImportError, KeyError, OSError, SyntaxError, UnicodeError)


class Unread(VariableTracker):
    """Stands for a part of an exception that the trace has not looked at."""

    __slots__ = ("why",)
    kind = "part of an exception"

    def __init__(self, why: str) -> None:
        self.why, self.source = why, None


UNREAD = Unread("it is read, and guarded, when it is asked for")
OUTER = Unread("the exception that the caller handles, if any")


class ExceptionVariable(ObjectVariable):
    """An exception instance.

    ``fields`` has what was written to its dict and to the members of its C struct (variables/exception_fields.py).
    ``context``, ``cause`` and ``trace`` (``__traceback__``) are None, a value, or one of the `Unread`; ``suppress`` is None
    while unread.
    """

    __slots__ = ("args_tuple", "args_written", "context", "cause", "suppress", "trace", "init_args")
    kind = "exception"

    def __init__(self, cls: type, args: list[VariableTracker], obj: Any = None, source: Any = None) -> None:
        super().__init__(cls, obj, source)
        self.args_tuple, self.args_written = TupleVariable(args), False
        self.context: VariableTracker | None = None
        self.cause: VariableTracker | None = None
        self.suppress: bool | None = False
        self.trace: VariableTracker | None = None if obj is None else UNREAD
        self.init_args: list[VariableTracker] | None = list(args)    # to ``__init__``, if it ran

    @property
    def raised_at(self) -> int | None:
        """The root step at which it was raised; None if it can be made again without."""
        return None if self.trace is None else self.trace.made_at

    @property
    def args(self) -> list[VariableTracker]:
        return self.args_tuple.items

    def shown_args(self) -> list[Any]:
        """The arguments for a message of ours."""
        return [a.value if isinstance(a, ConstantVariable) else a for a in self.args]

    def type_value(self, tx: Any) -> VariableTracker:
        return tx.class_of(self.cls)

    def traceback_value(self, tx: Any) -> VariableTracker:
        return read_traceback(tx, self)

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name not in self.fields:
            reader = EXCEPTION_ATTRIBUTES.get(name)
            if reader is not None:
                return reader(tx, self)
        return super().tp_getattro(tx, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        writer = EXCEPTION_WRITERS.get(name)
        if writer is None or special_is_python(tx, self.cls, "__setattr__" if value is not None else "__delattr__"):
            super().tp_setattro(tx, name, value)
            return
        if value is None:
            tx.raise_(TypeError, "can't delete numeric/char attribute" if name == "__suppress_context__"
                      else f"{name} may not be deleted")
        writer(tx, self, value)
        tx.modified(self)

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        if name in self.fields or self.obj is not None:
            return super().instance_get(tx, name)
        return None

    def has_instance_dict(self) -> bool:
        return True

    # ---- making it again
    def children(self) -> list[VariableTracker]:
        chain = [v for v in (self.context, self.cause, self.trace) if v is not None and not isinstance(v, Unread)]
        fields = [v for v in self.fields.values() if v is not None]
        args = [self.args_tuple, *(self.init_args or ())] if self.args_written else self.args
        return [*args, *chain, *fields]

    @property
    def lost_at(self) -> int | None:
        """For restarts: a raised exception has a traceback, so the raising must be done by Python."""
        return self.raised_at

    def create(self, out: Any) -> None:
        if self.obj is not None and self.source is None:
            raise CannotRebuild(self, "an exception object without a path")
        out.call_function(builtin_exception(self.cls).__new__, out.tx.class_of(self.cls), *self.args)

    def rebuild(self, out: Any) -> None:
        if self.raised_at is not None:
            raise CannotRebuild(self, "an exception raised while tracing")
        self.create(out)
        out.keep(self)
        self.fill(out)

    def fill(self, out: Any) -> None:
        if builtin_exception(self.cls).__init__ is not BaseException.__init__ and self.init_args is not None:
            out.call_function(builtin_exception(self.cls).__init__, self, *self.init_args)
            out.op("POP")
        self.replay(out)

    def replay(self, out: Any) -> None:
        """A new object starts without context, cause and suppression; the user's is brought to what was written."""
        fresh = self.obj is None
        if self.args_written:
            out.set_attribute(self, "args", self.args_tuple)
        for name, value in (("__context__", self.context), ("__cause__", self.cause), ("__traceback__", self.trace)):
            if not isinstance(value, Unread) and not (fresh and value is None):
                out.set_attribute(self, name, optional(value))
        if self.suppress is not None and (not fresh or self.suppress != (self.cause is not None)):
            out.set_attribute(self, "__suppress_context__", ConstantVariable(self.suppress))
        for name, value in self.fields.items():
            if not (name in ("name", "obj") and value is not None and not isinstance(value, ConstantVariable)):
                out.set_attribute(self, name, value)

    def tp_str(self, tx: Any) -> VariableTracker:
        if special_is_python(tx, self.cls, "__str__"):
            return super().tp_str(tx)
        if issubclass(self.cls, KeyError) and len(self.args) == 1:
            return real(tx, self.args[0]).tp_repr(tx)
        if issubclass(self.cls, OWN_TEXT):
            return tx.exception_text(self)
        if not self.args:
            return ConstantVariable("")
        if len(self.args) == 1:
            return tx.to_str(real(tx, self.args[0]))
        return tx.to_str(self.args_tuple)

    def tp_repr(self, tx: Any) -> VariableTracker:
        if special_is_python(tx, self.cls, "__repr__"):
            return super().tp_repr(tx)
        if len(self.args) == 1:
            inside = tx.text_of(real(tx, self.args[0]))
            return ConstantVariable(f"{self.cls.__name__}({inside})")
        return ConstantVariable(f"{self.cls.__name__}{tx.text_of(self.args_tuple)}")


def builtin_exception(cls: type) -> type:
    return next(c for c in cls.__mro__ if c.__module__ == "builtins")


def optional(value: VariableTracker | None) -> VariableTracker:
    return ConstantVariable(None) if value is None else value


def read_args(tx: Any, exc: ExceptionVariable) -> VariableTracker:
    if exc.source is None:
        tx.journal.set(exc, "args_written", True)        # so that the exception holds this very tuple
    return exc.args_tuple


def read_link(tx: Any, exc: ExceptionVariable, slot: str) -> VariableTracker:
    """``__context__`` or ``__cause__``."""
    value = getattr(exc, slot)
    if value is OUTER:
        if tx.caller_handles:
            tx.unsupported(exc, ".__context__")
        tx.guard(Predicate(tx.builtins_source, nothing_handled, "the caller handles no exception"))
        return ConstantVariable(None)
    if value is UNREAD:
        name = f"__{slot}__"
        return tx.build(getattr(exc.obj, name), Attr(exc.source, name))
    return optional(value)


def nothing_handled(_: Any) -> bool:
    """Of the thread, when guards run: what the caller of the frame handles."""
    return sys.exc_info()[1] is None


def read_suppress(tx: Any, exc: ExceptionVariable) -> VariableTracker:
    if exc.suppress is None:
        return tx.build(exc.obj.__suppress_context__, Attr(exc.source, "__suppress_context__"))
    return ConstantVariable(exc.suppress)


def read_traceback(tx: Any, exc: ExceptionVariable) -> VariableTracker:
    if exc.trace is UNREAD:
        return tx.build(exc.obj.__traceback__, Attr(exc.source, "__traceback__"))
    return optional(exc.trace)


EXCEPTION_ATTRIBUTES = {
    "args": read_args,
    "__context__": lambda tx, exc: read_link(tx, exc, "context"),
    "__cause__": lambda tx, exc: read_link(tx, exc, "cause"),
    "__suppress_context__": lambda tx, exc: read_suppress(tx, exc),  # noqa: PLW0108  (declared below)
    "__traceback__": read_traceback,
    "__class__": lambda tx, exc: tx.class_of(exc.cls),
}


def write_args(tx: Any, exc: ExceptionVariable, value: VariableTracker) -> None:
    value = value if isinstance(value, TupleVariable) and value.py_type() is tuple else tx.wrap_tuple(tx.collect(value))
    tx.journal.set(exc, "args_tuple", value)
    tx.journal.set(exc, "args_written", True)


def check_link(tx: Any, value: VariableTracker, what: str) -> None:
    if not is_none(value) and not issubclass(value.py_type(), BaseException):
        tx.raise_(TypeError, f"exception {what} must be None or derive from BaseException")


def write_context(tx: Any, exc: ExceptionVariable, value: VariableTracker) -> None:
    check_link(tx, value, "context")
    tx.journal.set(exc, "context", None if is_none(value) else value)


def write_cause(tx: Any, exc: ExceptionVariable, value: VariableTracker) -> None:
    check_link(tx, value, "cause")
    tx.journal.set(exc, "cause", None if is_none(value) else value)
    tx.journal.set(exc, "suppress", True)
    tx.modified(exc)


def write_suppress(tx: Any, exc: ExceptionVariable, value: VariableTracker) -> None:
    tx.journal.set(exc, "suppress", bool(value.as_constant()))


def write_traceback(tx: Any, exc: ExceptionVariable, value: VariableTracker) -> None:
    """BaseException_set_tb."""
    if not is_none(value) and value.py_type() is not types.TracebackType:
        tx.raise_(TypeError, "__traceback__ must be a traceback or None")
    tx.journal.set(exc, "trace", None if is_none(value) else value)


EXCEPTION_WRITERS = {"args": write_args, "__context__": write_context, "__cause__": write_cause,
                     "__suppress_context__": write_suppress, "__traceback__": write_traceback}


def with_traceback(tx, exc, value, /):
    """BaseException_with_traceback; without its traceback an exception can be made again."""
    write_traceback(tx, exc, value)
    if is_none(value) and exc.context is OUTER:
        read_link(tx, exc, "context")
        tx.journal.set(exc, "context", None)
    tx.modified(exc)
    return exc


def exc_info(tx):
    """sys.exc_info: what this frame handles, or that its caller handles nothing."""
    exc = tx.handled
    if exc is None:
        if tx.caller_handles:
            tx.stop(reasons.DUNDER_TRACEBACK, text="sys.exc_info()")
        tx.guard(Predicate(tx.builtins_source, nothing_handled, "the caller handles no exception"))
        return TupleVariable([ConstantVariable(None)] * 3)
    return TupleVariable([tx.type_of(exc), exc, read_traceback(tx, exc)])


def exception(tx):
    """sys.exception."""
    return exc_info(tx).items[1]


meaning(sys.exc_info)(exc_info)
meaning(sys.exception)(exception)


def add_note(tx, exc, note, /):
    """BaseException_add_note."""
    if not issubclass(note.py_type(), str):
        tx.raise_(TypeError, f"note must be a str, not '{note.py_type().__name__}'")
    notes = tx.catching(AttributeError, lambda: exc.tp_getattro(tx, "__notes__"))
    if notes is None:
        exc.tp_setattro(tx, "__notes__", tx.list_of([note]))
    elif notes.py_type() is list:
        tx.call(notes.tp_getattro(tx, "append"), [note])
    else:
        tx.raise_(TypeError, "Cannot add note: __notes__ is not a list")
    return ConstantVariable(None)


meaning(BaseException.with_traceback)(with_traceback)
meaning(BaseException.add_note)(add_note)


def is_none(value: VariableTracker) -> bool:
    return isinstance(value, ConstantVariable) and value.value is None


# ---------------------------------------------------------------- making and raising
def make_exception(tx: Any, cls: type, args: list[VariableTracker]) -> ExceptionVariable:
    return ExceptionVariable(cls, args)


def instantiate(tx: Any, value: VariableTracker) -> VariableTracker:
    """do_raise: a class is called, an instance is itself, anything else is a TypeError."""
    if isinstance(value, ClassVariable) and issubclass(value.cls, BaseException):
        made = tx.call(value, [])
        if not isinstance(made, ExceptionVariable):
            tx.raise_(TypeError, f"calling {value.cls!r} should have returned an instance of BaseException, "
                                 f"not {made.py_type()!r}")
        return made
    if isinstance(value, ExceptionVariable):
        return value
    tx.raise_(TypeError, "exceptions must derive from BaseException")


def set_cause(tx: Any, exc: VariableTracker, cause: VariableTracker) -> None:
    if not is_none(cause):
        if isinstance(cause, ClassVariable) and issubclass(cause.cls, BaseException):
            cause = tx.call(cause, [])
        elif not isinstance(cause, ExceptionVariable):
            tx.raise_(TypeError, "exception causes must derive from BaseException")
    write_cause(tx, exc, cause)


def chain(tx: Any, exc: Any, handled: Any) -> None:
    """_PyErr_SetObject: set ``__context__``, and cut the cycle it would make.

    Where this frame handles nothing, the caller may: what it handles is not known while tracing.
    """
    if handled is exc:
        return
    if handled is None:
        if exc.context is None:
            tx.journal.set(exc, "context", OUTER)
        return
    node, passed = handled, set()
    while isinstance(node, ExceptionVariable) and node.context is not None and id(node) not in passed:
        passed.add(id(node))                 # a cycle that does not go through `exc` stays
        if node.context is exc:
            tx.journal.set(node, "context", None)
            tx.modified(node)
            break
        node = node.context
    tx.journal.set(exc, "context", handled)
    tx.modified(exc)


def matches(tx: Any, exc: VariableTracker, kind: VariableTracker) -> bool:
    """PyErr_GivenExceptionMatches over a class or a tuple of classes."""
    kinds = [real(tx, k) for k in kind.items] if isinstance(kind, TupleVariable) else [kind]
    for one in kinds:
        if not isinstance(one, ClassVariable) or not issubclass(one.cls, BaseException):
            tx.raise_(TypeError, "catching classes that do not inherit from BaseException is not allowed")
    return any(is_subtype(exc.py_type(), one.cls) for one in kinds)


def stop_value(tx: Any, exc: Any) -> VariableTracker:
    """``StopIteration.value``."""
    return real(tx, exc.args[0]) if exc.args else ConstantVariable(None)


@builds_subclasses(BaseException)
def build_exception(tx: Any, obj: BaseException, source: Any) -> VariableTracker:
    """An exception object of the user's; what it does not show plainly is read when asked."""
    if any(name in vars(cls) for cls in type(obj).__mro__ for name in CHAIN[:3] if cls is not BaseException):
        return opaque.build_opaque(tx, obj, source)
    tx.guard(TypeIs(source, type(obj)))
    args = tx.build(obj.args, Attr(source, "args"))
    value = ExceptionVariable(type(obj), [], obj, source)
    value.args_tuple = args
    value.context = value.cause = UNREAD
    value.suppress = None
    return value


