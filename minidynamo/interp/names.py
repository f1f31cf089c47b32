"""Handlers: globals, builtins, attributes, imports."""
from __future__ import annotations

import builtins
import sys
from typing import Any

from minidynamo import reasons
from minidynamo.code import null_first
from minidynamo.guards.kinds import HasKey
from minidynamo.interp.loop import handles
from minidynamo.interp.stack_ops import peek, pop
from minidynamo.interp.state import NULL, Frame, Scope
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import Builtin, Imported
from minidynamo.variables.sequences import TupleVariable


def load_name_global(tx: Any, scope: Scope, name: str) -> VariableTracker:
    """LOAD_GLOBAL: what the trace wrote, the globals dict, then builtins."""
    if scope.value is not None:
        found = scope.value.find(tx, tx.wrap(name))              # type: ignore[attr-defined]
        return load_builtin(tx, scope, name) if found is None else found
    if name in scope.written:
        value = scope.written[name]
        if value is not None:
            return value
    value = scope.seen.get(name)
    if value is not None:
        return value
    if name in scope.mapping and name not in scope.written:
        value = tx.build(scope.mapping[name], scope.source(name))
    else:
        value = load_builtin(tx, scope, name)
    tx.journal.put(scope.seen, name, value)
    return value


def load_builtin(tx: Any, scope: Scope, name: str) -> VariableTracker:
    own: Any = scope.mapping.get("__builtins__", builtins)
    if scope.value is not None:
        own = scope.value.mp_subscript(tx, tx.wrap("__builtins__")).identity()
    if own is not builtins and own is not builtins.__dict__:
        tx.stop(reasons.UNSUPPORTED_OP, opcode="LOAD_GLOBAL with replaced builtins")
    if scope.value is None and name not in scope.written:
        tx.guard(HasKey(scope.root_source(), name, False))
    if name not in builtins.__dict__:
        tx.guard(HasKey(tx.builtins_source, name, False))
        tx.raise_name_error(name)
    return tx.build(builtins.__dict__[name], Builtin(name))


@handles("LOAD_GLOBAL")
def load_global(tx: Any, frame: Frame, op: Any) -> None:
    value = frame.scope.seen.get(op.arg)
    if value is None or frame.scope.written:
        value = load_name_global(tx, frame.scope, op.arg)
    frame.stack.append(value)


@handles("STORE_GLOBAL")
def store_global(tx: Any, frame: Frame, op: Any) -> None:
    tx.write_global(frame.scope, op.arg, pop(tx, frame))


@handles("DELETE_GLOBAL")
def delete_global(tx: Any, frame: Frame, op: Any) -> None:
    scope, name = frame.scope, op.arg
    if scope.value is not None:
        there = scope.value.find(tx, tx.wrap(name)) is not None  # type: ignore[attr-defined]
    elif name in scope.written:
        there = scope.written[name] is not None
    else:
        there = name in scope.mapping
        tx.guard(HasKey(scope.root_source(), name, there))
    if not there:
        tx.raise_name_error(name)
    tx.write_global(scope, name, None)


@handles("LOAD_BUILD_CLASS")
def load_build_class(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(tx.build(builtins.__build_class__, Builtin("__build_class__")))


@handles("LOAD_ASSERTION_ERROR")
def load_assertion_error(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(tx.wrap(AssertionError))


# ---------------------------------------------------------------- attributes
@handles("LOAD_ATTR")
def load_attr(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(pop(tx, frame).tp_getattro(tx, op.arg))


@handles("LOAD_METHOD")
def load_method(tx: Any, frame: Frame, op: Any) -> None:
    value = pop(tx, frame).tp_getattro(tx, op.arg)
    frame.stack.extend((NULL, value) if null_first else (value, NULL))


@handles("STORE_ATTR")
def store_attr(tx: Any, frame: Frame, op: Any) -> None:
    owner = pop(tx, frame)
    owner.tp_setattro(tx, op.arg, pop(tx, frame))


@handles("DELETE_ATTR")
def delete_attr(tx: Any, frame: Frame, op: Any) -> None:
    pop(tx, frame).tp_setattro(tx, op.arg, None)


@handles("LOAD_SUPER_ATTR")
def load_super_attr(tx: Any, frame: Frame, op: Any) -> None:
    name, is_method, two_args = op.arg
    obj, cls, super_type = pop(tx, frame), pop(tx, frame), pop(tx, frame)
    if super_type.as_object() is super or two_args:
        proxy = tx.call(super_type, [cls, obj])
    else:
        proxy = tx.call(super_type, [])
    value = proxy.tp_getattro(tx, name)
    if is_method:
        frame.stack.extend((NULL, value) if null_first else (value, NULL))
    else:
        frame.stack.append(value)


# ---------------------------------------------------------------- imports
@handles("IMPORT_NAME")
def import_name(tx: Any, frame: Frame, op: Any) -> None:
    """Modules that are loaded already; a real import runs in Python."""
    fromlist, level = pop(tx, frame), pop(tx, frame).as_constant()
    name = absolute_name(tx, frame, op.arg, level)
    value = tx.loaded_module(name)
    module = sys.modules.get(name)
    for part in fromlist.items if isinstance(fromlist, TupleVariable) and hasattr(module, "__path__") else ():
        full = f"{name}.{part.as_constant()}"
        if not hasattr(module, part.as_constant()) and full not in sys.modules:
            tx.stop(reasons.IMPORT_UNKNOWN, name=full)                      # _handle_fromlist imports it
    if fromlist.py_type() is type(None) and level == 0:
        value = tx.loaded_module(name.partition(".")[0])
    frame.stack.append(value)


def absolute_name(tx: Any, frame: Frame, name: str, level: int) -> str:
    if not level:
        return name
    if frame.scope.value is not None:
        tx.stop(reasons.IMPORT_UNKNOWN, name="." * level + name)
    package = frame.scope.mapping.get("__package__") or frame.scope.mapping.get("__name__", "").rpartition(".")[0]
    base = package.rsplit(".", level - 1)[0] if level > 1 else package
    return f"{base}.{name}" if name else base


@handles("IMPORT_FROM")
def import_from(tx: Any, frame: Frame, op: Any) -> None:
    module = peek(tx, frame, 1)
    value = tx.catching(AttributeError, lambda: module.tp_getattro(tx, op.arg))
    if value is None:
        full = f"{module.as_object().__name__}.{op.arg}"
        if full not in sys.modules:
            tx.stop(reasons.IMPORT_UNKNOWN, name=full)
        value = tx.build(sys.modules[full], Imported(full))
    frame.stack.append(value)
