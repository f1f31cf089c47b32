"""The C structs of builtin exceptions: their fields, how constructors fill them, and str() (Objects/exceptions.c)."""
from __future__ import annotations

import types
from typing import Any

from minidynamo import reasons
from minidynamo.model.services import service
from minidynamo.model.tables import WRAP
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.sources import Attr
from minidynamo.variables import exceptions
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.exceptions import ExceptionVariable, builtin_exception, read_args, stop_value
from minidynamo.variables.sequences import TupleVariable, inner


def fields_of(cls: type) -> list[str]:
    """The members of the C struct of a builtin exception, BaseException's own apart."""
    return [name for klass in builtin_exception(cls).__mro__ if klass.__module__ == "builtins" and klass is not BaseException
            for name, raw in vars(klass).items() if isinstance(raw, types.MemberDescriptorType)]


def probe(tx: Any, exc: ExceptionVariable) -> BaseException:
    """A real builtin exception with the same fields; raises NotConstant where they are no literals."""
    base = builtin_exception(exc.cls)
    given = exc.args if exc.init_args is None else exc.init_args
    made = base.__new__(base, *[real(tx, a).as_constant() for a in given])
    if exc.init_args is not None:
        made.__init__(*[real(tx, a).as_constant() for a in given])       # type: ignore[misc]
    if exc.obj is not None:
        made.args = tuple(real(tx, a).as_constant() for a in exc.args)
    for name in fields_of(exc.cls):
        if exc.obj is not None or name in exc.fields:
            value = field_value(tx, exc, name).as_constant()
            if getattr(made, name) is not value:
                setattr(made, name, value)
    return made


def field_value(tx: Any, exc: ExceptionVariable, name: str) -> VariableTracker:
    """A C member: what was written, what the user's object has, or what the constructor made of its arguments."""
    if name in exc.fields:
        return exceptions.optional(exc.fields[name])
    if exc.obj is not None and (BaseExceptionGroup, name) not in READERS:
        return tx.build(getattr(exc.obj, name), Attr(exc.source, name))  # type: ignore[no-any-return]
    for (cls, field), reader in READERS.items():
        if field == name and issubclass(exc.cls, cls):
            return reader(tx, exc)                                       # type: ignore[no-any-return]
    try:
        return tx.wrap(getattr(probe(tx, exc), name))                    # type: ignore[no-any-return]
    except NotConstant:
        return tx.stop(reasons.OPAQUE_VALUE, text=f".{name}", kind=exc.cls.__name__)  # type: ignore[no-any-return]


READERS: dict[tuple[type, str], Any] = {
    (StopIteration, "value"): stop_value,
    (SystemExit, "code"): lambda tx, exc: stop_value(tx, exc) if len(exc.args) < 2 else read_args(tx, exc),
}


def set_field(tx: Any, exc: ExceptionVariable, name: str, value: VariableTracker | None) -> None:
    """PyMember_SetOne; a deleted object reads as None.  A number is judged by a real exception."""
    if issubclass(exc.cls, BaseExceptionGroup):
        tx.raise_attribute_error("readonly attribute", exc, name)
    if issubclass(exc.cls, UnicodeError) and name in ("start", "end"):
        check_number(tx, exc, name, value)
    tx.journal.put(exc.fields, name, NONE if value is None else value)
    tx.modified(exc)


def check_number(tx: Any, exc: ExceptionVariable, name: str, value: VariableTracker | None) -> None:
    made: Any = UnicodeEncodeError("", "", 0, 0, "")
    try:
        if value is None:
            delattr(made, name)
        else:
            setattr(made, name, value.as_constant())
    except Exception as error:
        tx.raise_real(error)


@service
def exception_text(tx: Any, exc: ExceptionVariable) -> VariableTracker:
    """The ``__str__`` that a builtin exception has in place of BaseException's."""
    if issubclass(exc.cls, BaseExceptionGroup):
        message, members = (real(tx, field_value(tx, exc, name)) for name in ("message", "exceptions"))
        count = len(members.items)
        return ConstantVariable(f"{inner(message).as_constant()} ({count} sub-exception{'' if count == 1 else 's'})")
    return tx.wrap(str(probe(tx, exc)))                                  # type: ignore[no-any-return]


def copy_fields(tx: Any, exc: ExceptionVariable, error: BaseException) -> None:
    """Fields that C set beside ``args`` on an exception of a folded call."""
    for name in ("name", "obj", "path"):
        value = getattr(error, name, None)
        if value is not None and type(value) in WRAP:
            exc.fields[name] = tx.wrap(value)


# ---------------------------------------------------------------- constructors
def new_exception(tx: Any, cls: type, args: list[VariableTracker]) -> VariableTracker:
    """BaseException.__new__; that of OSError chooses the class by the number."""
    if issubclass(cls, OSError) and len(args) > 1:
        return new_os_error(tx, cls, args)
    made = ExceptionVariable(cls, list(args))
    made.init_args = None                                                    # until ``__init__`` has run
    return made


def new_os_error(tx: Any, cls: type, args: list[VariableTracker]) -> VariableTracker:
    """OSError_new, asked of the builtin class itself."""
    base = builtin_exception(cls)
    if base is not cls:
        tx.stop(reasons.OPAQUE_VALUE, text=f"{cls.__name__}(...)", kind="a subclass of OSError with an error number")
    try:
        made = base(*[a.as_constant() for a in args])
    except TypeError as error:
        tx.raise_real(error)
    value = ExceptionVariable(type(made), [tx.wrap(a) for a in made.args])
    for name in ("filename", "filename2"):
        if getattr(made, name) is not None:
            value.fields[name] = tx.wrap(getattr(made, name))
    return value


def init_exception(tx: Any, exc: ExceptionVariable, args: list[VariableTracker], kwargs: dict) -> None:
    """BaseException.__init__ and those of builtin subclasses."""
    base = builtin_exception(exc.cls)
    if issubclass(base, OSError) and len(args) > 1 and not kwargs:
        return                                                # done by OSError.__new__
    if exc.obj is not None and base.__init__ is not BaseException.__init__:
        tx.unsupported(exc, ".__init__()")
    check_arguments(tx, base, args, kwargs)
    kept = {name: value for name, value in exc.fields.items() if name not in fields_of(base)}
    tx.journal.set(exc, "fields", {**kept, **kwargs})
    tx.journal.set(exc, "init_args", list(args))
    tx.journal.set(exc, "args_tuple", TupleVariable(list(args)))
    tx.journal.set(exc, "args_written", exc.obj is not None)
    tx.modified(exc)


def check_arguments(tx: Any, base: type, args: list[VariableTracker], kwargs: dict) -> None:
    """Builtin constructors that refuse arguments (UnicodeDecodeError, SyntaxError, ImportError's names ...) are asked."""
    if issubclass(base, BaseExceptionGroup) or base.__init__ is BaseException.__init__ and not kwargs:
        return
    try:
        values = [real(tx, a).as_constant() for a in args]
    except NotConstant:
        if not kwargs:
            return
        values = [None] * len(args)
    try:
        base(*values, **dict.fromkeys(kwargs))
    except Exception as error:
        tx.raise_real(error)
