"""Attributes: _PyType_Lookup, PyObject_GenericGetAttr and SetAttr, type.__getattribute__, super."""
from __future__ import annotations

import types
from typing import Any, NamedTuple

from minidynamo.base.text import tp_name
from minidynamo.code import facts
from minidynamo.guards.hold import is_heap_type
from minidynamo.guards.kinds import HasKey, TypeIs
from minidynamo.model.variable import VariableTracker, defines, is_subtype
from minidynamo.sources import ClassDict, DictItem, DictRoot, Source, namespace
from minidynamo.sources.source import CLASS_DICT

IMMUTABLE_TYPE = 1 << 8            # Py_TPFLAGS_IMMUTABLETYPE


class Found(NamedTuple):
    """A class attribute before its descriptor is asked."""

    raw: Any                       # the object in the class's namespace
    source: Source | None          # where it is; None for a class made while tracing
    owner: type                    # the class in the MRO that has it
    value: VariableTracker | None  # what the trace itself has stored there, if it has


def class_source(cls: type) -> Source:
    name = f"{cls.__module__}.{cls.__qualname__}"
    return ClassDict(cls, name) if is_heap_type(cls) else DictRoot(namespace(cls), name)


def type_lookup(tx: Any, cls: type, name: str) -> Found | None:
    """_PyType_Lookup, guarded: who has the name, and that no class before it does."""
    memo = tx.type_memo.get((cls, name), tx)
    if memo is not tx:
        return memo
    found = None
    for klass in cls.__mro__:
        pending = tx.class_writes.get(klass)
        if pending is not None and name in pending:
            value = pending[name]
            if value is None:      # deleted in this trace
                continue
            found = Found(None, None, klass, value)
            break
        own = CLASS_DICT.__get__(klass)
        if name in own:
            found = Found(own[name], item_source(tx, klass, name), klass, None)
            break
        guard_absent(tx, klass, name)
    tx.journal.put(tx.type_memo, (cls, name), found)
    return found


def item_source(tx: Any, klass: type, name: str) -> Source | None:
    """Where a name in a class's own namespace is; a class made while tracing exists nowhere yet."""
    return None if id(klass) in tx.made_classes else DictItem(class_source(klass), name)


def guard_absent(tx: Any, klass: type, name: str) -> None:
    if not klass.__flags__ & IMMUTABLE_TYPE and id(klass) not in tx.made_classes:
        tx.guard(HasKey(class_source(klass), name, False))


def class_value(tx: Any, found: Found) -> VariableTracker:
    """The raw class attribute as a value."""
    if found.value is not None:
        return found.value
    if found.source is None:
        return tx.made_class_part(found.raw)
    if found.owner.__flags__ & IMMUTABLE_TYPE:
        return tx.build_unguarded(found.raw, found.source)
    return tx.build(found.raw, found.source)


def is_data_descriptor(raw: Any) -> bool:
    return is_data_type(type(raw))


def is_data_type(cls: type) -> bool:
    return hasattr(cls, "__set__") or hasattr(cls, "__delete__")


def is_data(found: Found, reading: bool = False) -> bool:
    """Whether a class attribute is a data descriptor; for reading it must also have a ``__get__``."""
    cls = type(found.raw) if found.value is None else found.value.py_type()
    return is_data_type(cls) and (not reading or defines(cls, "__get__"))


def is_python_slot(raw: types.MemberDescriptorType) -> bool:
    """Whether a member descriptor comes from ``__slots__``: it holds any object, and may be written and emptied."""
    owner = raw.__objclass__
    slots = CLASS_DICT.__get__(owner).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return raw.__name__ in names or any(mangled(owner, name) == raw.__name__ for name in names)


def mangled(owner: type, name: str) -> str:
    """_Py_Mangle."""
    return f"_{owner.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name


def generic_getattr(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """PyObject_GenericGetAttr; None in place of AttributeError."""
    cls = obj.py_type()
    found = type_lookup(tx, cls, name)
    if found is not None and is_data(found, reading=True):
        return describe(tx, found, obj, cls)
    value = obj.instance_get(tx, name)
    if value is not None:
        pass_over(tx, found)
        return value
    if found is None:
        return None
    return describe(tx, found, obj, cls)


def pass_over(tx: Any, found: Found | None) -> None:
    """A class attribute that is no data descriptor was not asked: that stays so while its type does."""
    if found is not None and found.source is not None and not found.owner.__flags__ & IMMUTABLE_TYPE:
        tx.guard(TypeIs(found.source, type(found.raw)))


def describe(tx: Any, found: Found, obj: VariableTracker | None, cls: type) -> VariableTracker:
    """What reading a class attribute through `obj` (None: through the class) gives."""
    return bind_value(tx, class_value(tx, found), obj, cls)


def bind_value(tx: Any, value: VariableTracker, obj: VariableTracker | None, cls: type) -> VariableTracker:
    """``value.__get__(obj, cls)`` where its type has it; a kind without that slot stops here."""
    if value.tp_descr_get is not None:
        return value.tp_descr_get(tx, obj, cls)
    if hasattr(value.py_type(), "__get__"):
        tx.unsupported(value, "an attribute that is read through its __get__")
    return value


def attribute_error(tx: Any, obj: VariableTracker, name: str, more: str = "") -> None:
    """Raise the AttributeError of PyObject_GenericGetAttr."""
    text = f"'{tp_name(obj.py_type())}' object has no attribute '{name}'{more}"
    tx.raise_attribute_error(text, obj, name)


def lookup_special(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """_PyObject_LookupSpecial: a dunder found on the type, bound to `obj`."""
    found = type_lookup(tx, obj.py_type(), name)
    slot = found and foreign_slot(obj.py_type(), found)
    if slot is not None:
        return tx.bound_c_method(obj, slot)              # whose call says that it is for other objects
    return None if found is None else describe(tx, found, obj, obj.py_type())


def foreign_slot(cls: type, found: Found) -> Any:
    """The slot wrapper that a class took from another one that `cls` does not derive from; else None."""
    raw = found.raw if found.value is None else getattr(found.value, "fn", None)
    if raw.__class__ is not types.WrapperDescriptorType or not found.owner.__flags__ & (1 << 9):
        return None
    return None if is_subtype(cls, raw.__objclass__) else raw


def special_is_python(tx: Any, cls: type, name: str) -> bool:
    """Whether `name` on the type is user code rather than a C slot."""
    found = type_lookup(tx, cls, name)
    if found is None:
        return False
    if found.value is not None or not isinstance(found.raw, C_ATTRIBUTES) or foreign_slot(cls, found):
        return True
    # Another slot under this name, as in ``__setattr__ = dict.__setitem__``; C's own carry their name.
    return found.owner.__flags__ & (1 << 9) != 0 and getattr(found.raw, "__name__", name) != name


C_ATTRIBUTES = (types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType,
                types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MethodWrapperType)


def generic_setattr(tx: Any, obj: VariableTracker, name: str, value: VariableTracker | None) -> None:
    """PyObject_GenericSetAttr: data descriptor, else the instance dict. None deletes."""
    cls = obj.py_type()
    found = type_lookup(tx, cls, name)
    if found is not None and is_data(found):
        descriptor = class_value(tx, found)
        if descriptor.tp_descr_set is None:
            raise tx.unsupported(descriptor, f".{name} = ... through its __set__")
        descriptor.tp_descr_set(tx, obj, value)
        return
    pass_over(tx, found)
    if not obj.has_instance_dict():
        if found is not None:
            tx.raise_attribute_error(f"'{cls.__name__}' object attribute '{name}' is read-only", obj, name)
        if facts.MISSING_DICT_IS_TOLD and not special_is_python(tx, cls, "__setattr__"):
            attribute_error(tx, obj, name, " and no __dict__ for setting new attributes")
        attribute_error(tx, obj, name)
    if value is None and obj.instance_get(tx, name) is None:
        attribute_error(tx, obj, name)
    obj.instance_set(tx, name, value)


def getattr_or_none(tx: Any, obj: VariableTracker, name: str) -> VariableTracker | None:
    """``getattr(obj, name, None)`` that tells a missing attribute from None."""
    return tx.catching(AttributeError, lambda: obj.tp_getattro(tx, name))
