"""Members of C structs and slots: what member and getset descriptors read and write."""
from __future__ import annotations

import types
from typing import Any

import torch

from minidynamo.guards.kinds import Predicate
from minidynamo.model.services import service
from minidynamo.model.tables import C_MEMBERS, adopt
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import attrs
from minidynamo.sources import Attr
from minidynamo.variables import exception_fields, exceptions
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import NamedTupleVariable
from minidynamo.variables.tensors import TensorVariable


class _Unset:
    """Predicate: a slot is empty."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def __call__(self, obj: Any) -> bool:
        try:
            self.raw.__get__(obj)
        except AttributeError:
            return True
        return False


@service
def slot_value(tx: Any, obj: Any, raw: types.MemberDescriptorType) -> VariableTracker:
    """member_get: what the trace wrote, else the user's slot."""
    name = raw.__name__
    member = C_MEMBERS.get(raw)
    if member is not None:
        return member[0](tx, obj)
    if isinstance(obj, NamedTupleVariable) and name in getattr(obj.cls, "__match_args__", ()):
        return real(tx, obj.items[obj.cls.__match_args__.index(name)])       # a C struct sequence
    if isinstance(obj, exceptions.ExceptionVariable) and not (name in obj.fields or raw.__objclass__.__flags__ & (1 << 9)):
        return exception_fields.field_value(tx, obj, name)
    fields = getattr(obj, "fields", None)
    if fields is not None and name in fields:
        if fields[name] is None:
            attrs.attribute_error(tx, obj, name)
        return fields[name]
    if isinstance(obj.inner, ConstantVariable) and raw.__objclass__ in (int, float, complex):
        return obj.inner.tp_getattro(tx, name)
    known = obj.obj
    if not isinstance(obj, ObjectVariable) or not attrs.is_python_slot(raw) and known is None:
        tx.unsupported(obj, f".{name}")
    if known is None or obj.source is None:
        attrs.attribute_error(tx, obj, name)
    try:
        value = raw.__get__(known)
    except AttributeError:
        tx.guard(Predicate(obj.source, _Unset(raw), f"slot {name} is empty"))
        attrs.attribute_error(tx, obj, name)
    return tx.build(value, Attr(obj.source, name))


@service
def set_slot_value(tx: Any, obj: Any, raw: types.MemberDescriptorType, value: VariableTracker | None) -> None:
    member = C_MEMBERS.get(raw)
    if member is not None:
        member[1](tx, obj, value)
        return
    if not isinstance(obj, ObjectVariable):
        tx.unsupported(obj, f".{raw.__name__} = ...")
    if not attrs.is_python_slot(raw):
        if not issubclass(obj.cls, BaseException):
            tx.unsupported(obj, f".{raw.__name__} = ... of a C struct")
        exception_fields.set_field(tx, obj, raw.__name__, value)
        return
    if value is None:
        tx.slot_value(obj, raw)
    obj.instance_set(tx, raw.__name__, value)


@service
def getset_value(tx: Any, obj: VariableTracker, raw: types.GetSetDescriptorType) -> VariableTracker:
    name = raw.__name__
    member = C_MEMBERS.get(raw)
    if member is not None:
        return member[0](tx, obj)
    if name == "__dict__" and isinstance(obj, ObjectVariable):
        return tx.instance_namespace(obj)
    if name == "__class__":
        return tx.type_of(obj)
    if isinstance(obj.inner, ConstantVariable) and raw.__objclass__ in (int, float, complex):
        return obj.inner.tp_getattro(tx, name)
    if isinstance(obj, TensorVariable) and raw.__objclass__ is torch._C.TensorBase:
        return obj.tp_getattro(tx, name)
    if name == "__weakref__" and isinstance(obj, ObjectVariable) and obj.obj is None:
        return ConstantVariable(None)
    return tx.unsupported(obj, f".{name}")


@service
def set_getset_value(tx: Any, obj: VariableTracker, raw: types.GetSetDescriptorType, value: Any) -> None:
    member = C_MEMBERS.get(raw)
    if member is not None:
        member[1](tx, obj, value)
        return
    if raw.__name__ == "__dict__" and isinstance(obj, ObjectVariable):
        if value is None and adopt(raw.__objclass__):
            tx.raise_(TypeError, "cannot delete __dict__")            # PyObject_GenericSetDict
        tx.set_namespace(obj, value)
        return
    tx.unsupported(obj, f".{raw.__name__} = ...")
