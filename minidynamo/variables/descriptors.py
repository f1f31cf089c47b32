"""Descriptor objects of builtin kinds: property, staticmethod, classmethod, slots, C attributes (descrobject.c, funcobject.c)."""
from __future__ import annotations

import types
from _collections import _tuplegetter
from typing import Any

from minidynamo.guards.kinds import SameObject
from minidynamo.model.tables import Methods, builds, meaning
from minidynamo.model.variable import CannotRebuild, NotConstant, VariableTracker, defines, real
from minidynamo.protocol.attrs import attribute_error, bind_value
from minidynamo.sources import Attr
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.functions import BoundMethodVariable
from minidynamo.variables.sequences import inner
from minidynamo.variables.subclasses import PARTS


class DescriptorVariable(HashedByIdentity):
    """A descriptor: a user's object (``raw``), or one made while tracing (``parts``)."""

    __slots__ = ("raw", "parts", "fields")
    kind = "descriptor"
    names: tuple[str, ...] = ()               # the parts, in the constructor's order
    made_type: type = object

    def __init__(self, raw: Any, source: Any = None, parts: dict[str, VariableTracker] | None = None) -> None:
        self.raw, self.source, self.parts = raw, source, parts
        self.fields: dict[str, VariableTracker] = {}

    @classmethod
    def of(cls, *parts: VariableTracker) -> DescriptorVariable:
        """A new one, made while tracing."""
        return cls(None, None, dict(zip(cls.names, parts)))

    def py_type(self) -> type:
        return type(self.raw) if self.parts is None else self.made_type

    def as_object(self) -> Any:
        if self.parts is not None or self.fields:
            raise NotConstant(self)
        return self.raw

    def identity(self) -> object:
        return self.raw if self.parts is None else self

    def part(self, tx: Any, name: str) -> VariableTracker:
        if self.parts is not None:
            return real(tx, self.parts[name])
        value = getattr(self.raw, name)
        return tx.wrap(value) if self.source is None and value is None else tx.build(value, Attr(self.source, name))

    def part_values(self, tx: Any) -> list[VariableTracker]:
        return [self.part(tx, name) for name in self.names if name.startswith(("f", "__func"))]

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in self.fields:
            return self.fields[name]
        if name == "__class__":
            return tx.class_of(self.py_type())
        if name in self.names or name == "__wrapped__" and "__func__" in self.names:
            return self.part(tx, "__func__" if name == "__wrapped__" else name)
        if name == "__isabstractmethod__" and self.names:
            return ConstantVariable(any(abstract_mark(tx, part) for part in self.part_values(tx)))
        if self.parts is not None:
            return self.made_attribute(tx, name)
        if name in ("__name__", "__doc__", "__qualname__") and isinstance(getattr(self.raw, name, 0), (str, type(None))):
            return tx.wrap(getattr(self.raw, name))
        if name == "__objclass__" and hasattr(self.raw, name):
            return tx.class_of(self.raw.__objclass__)
        raw = tx.c_method_of(type(self.raw), name)
        if raw is not None:
            return tx.bound_c_method(self, raw)
        if not hasattr(self.raw, name):
            attribute_error(tx, self, name)
        if name == "__objclass__":
            return tx.class_of(self.raw.__objclass__)
        return super().tp_getattro(tx, name)

    def made_attribute(self, tx: Any, name: str) -> VariableTracker:
        raw = tx.c_method_of(self.made_type, name)
        if raw is not None:
            return tx.bound_c_method(self, raw)
        if name in COPIED and "__func__" in self.names:         # functools_wraps in funcobject.c
            return self.part(tx, "__func__").tp_getattro(tx, name)
        if not hasattr(self.made_type, name):
            attribute_error(tx, self, name)
        return super().tp_getattro(tx, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if self.parts is None or value is None \
                or name not in ("__isabstractmethod__", "__doc__") and "__func__" not in self.names:
            tx.unsupported(self, f".{name} = ...")
        tx.journal.put(self.fields, name, value)

    # ---- making it again
    def children(self) -> list[VariableTracker]:
        return [] if self.parts is None else [*self.parts.values(), *self.fields.values()]

    def rebuild(self, out: Any) -> None:
        if self.parts is None:
            raise CannotRebuild(self, "a descriptor without a path")
        out.call_function(self.made_type, *[self.parts[name] for name in self.names if name in self.parts])
        if self.fields:
            out.keep(self)
            for name, value in self.fields.items():
                out.set_attribute(self, name, value)


COPIED = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")


def abstract_mark(tx: Any, value: VariableTracker) -> bool:
    """_PyObject_IsAbstract."""
    if value.py_type() is type(None):
        return False
    found = tx.catching(AttributeError, lambda: value.tp_getattro(tx, "__isabstractmethod__"))
    return found is not None and bool(found.as_constant())


ACCESSORS = (("fset", property.__set__, (None,)), ("fdel", property.__delete__, ()), ("fget", property.__get__, ()))


class PropertyVariable(DescriptorVariable):
    """``property`` (property_descr_get)."""

    __slots__ = ("shown", "getter_doc")
    names = ("fget", "fset", "fdel", "__doc__")
    made_type = property

    def __init__(self, raw: Any, source: Any = None, parts: dict[str, VariableTracker] | None = None) -> None:
        super().__init__(raw, source, parts)
        self.shown: VariableTracker | None = None        # the name that ``__set_name__`` gave
        self.getter_doc = parts is None and raw.fget is not None and \
            getattr(raw.fget, "__doc__", None) is not None and raw.fget.__doc__ is raw.__doc__

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        return tx.call(self.accessor(tx, obj, "fget"), [obj])

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        function = self.accessor(tx, obj, "fset" if value is not None else "fdel")
        tx.call(function, [obj] if value is None else [obj, value])

    def accessor(self, tx: Any, obj: VariableTracker, name: str) -> VariableTracker:
        function = self.part(tx, name)
        if function.py_type() is type(None):
            text = no_accessor(self.name(), obj, {"fget": "getter", "fset": "setter", "fdel": "deleter"}[name])
            tx.raise_(AttributeError, text)
        return function

    def name(self) -> str | None:
        """prop_name: only ``__set_name__`` gives one, and up to 3.12 Python shows it nowhere but in the texts about an
        accessor that is missing.  Where none is, nobody ever sees it."""
        if self.parts is not None:
            return None if self.shown is None else self.shown.as_constant()
        for accessor, use, args in ACCESSORS:
            if getattr(self.raw, accessor) is None:
                try:
                    use(self.raw, Nothing(), *args)
                except AttributeError as error:
                    found = str(error)
                    return found.split("'")[1] if found.startswith("property '") else None
        return None

    def children(self) -> list[VariableTracker]:
        return [*super().children(), *([] if self.shown is None else [self.shown])]

    def init(self, tx: Any, holder: VariableTracker, args: list, kwargs: dict) -> None:
        """property_init of a subclass's instance; a getter's docstring goes to its ``__dict__``."""
        made = make_property(tx, *args, **kwargs)
        if made.getter_doc:
            holder.tp_setattro(tx, "__doc__", made.parts["__doc__"])
        tx.journal.set(self, "parts", made.parts)

    def write_into(self, out: Any, holder: VariableTracker) -> None:
        out.call_function(property.__init__, holder, *self.parts.values())
        out.op("POP")
        if self.shown is not None:
            out.call_function(property.__set_name__, holder, NONE, self.shown)
            out.op("POP")

    def rebuild(self, out: Any) -> None:
        super().rebuild(out)
        if self.shown is not None:
            if id(self) not in out.temps:
                out.keep(self)
            out.call_function(property.__set_name__, self, NONE, self.shown)
            out.op("POP")

    def copy(self, tx: Any, **parts: VariableTracker) -> VariableTracker:
        """property_copy; a docstring that came from the getter is looked up again."""
        if self.py_type() is not property:
            tx.unsupported(self, ".setter()")
        old = {name: self.part(tx, name) for name in self.names}
        old.update({k: v for k, v in parts.items() if v.py_type() is not type(None)})
        if self.getter_doc and old["fget"].py_type() is not type(None):
            old["__doc__"] = NONE
        made = make_property(tx, *old.values())
        tx.journal.set(made, "shown", self.shown if self.parts is not None else named(tx, self.name()))
        return made


class Nothing:
    """An object no getter knows."""


def named(tx: Any, name: str | None) -> VariableTracker | None:
    return None if name is None else tx.wrap(name)


def no_accessor(name: str | None, obj: VariableTracker, kind: str) -> str:
    owner = obj.py_type().__qualname__
    return f"property {name!r} of {owner!r} object has no {kind}" if name else f"property of {owner!r} object has no {kind}"


@meaning(property)
def make_property(tx, fget=NONE, fset=NONE, fdel=NONE, doc=NONE):
    """property_init: without a docstring, the getter's."""
    from_getter = doc.py_type() is type(None) and fget.py_type() is not type(None)
    if from_getter:
        doc = tx.catching(AttributeError, lambda: fget.tp_getattro(tx, "__doc__")) or NONE
    made = PropertyVariable.of(fget, fset, fdel, doc)
    made.getter_doc = from_getter and doc.py_type() is not type(None)
    return made


def copied(tx: Any, value: VariableTracker, **parts: VariableTracker) -> VariableTracker:
    """property_copy calls the type; only property's own constructor is known."""
    return value.copy(tx, **parts) if isinstance(value, PropertyVariable) else tx.unsupported(value, ".setter()")


class PropertyMethods(Methods, of=property):
    """``getter``, ``setter``, ``deleter`` and the descriptor protocol called by name."""

    def getter(tx, self, function, /):
        return copied(tx, self, fget=function)

    def setter(tx, self, function, /):
        return copied(tx, self, fset=function)

    def deleter(tx, self, function, /):
        return copied(tx, self, fdel=function)

    def __set_name__(tx, self, owner, name, /):
        part = inner(self)
        if part.parts is None:
            tx.unsupported(self, ".__set_name__()")
        tx.journal.set(part, "shown", name)
        return NONE


class StaticMethodVariable(DescriptorVariable):
    """``staticmethod``."""

    __slots__ = ()
    names = ("__func__",)
    made_type = staticmethod

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        return self.part(tx, "__func__")

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return tx.call(self.part(tx, "__func__"), args, kwargs)


class ClassMethodVariable(DescriptorVariable):
    """``classmethod`` (cm_descr_get)."""

    __slots__ = ()
    names = ("__func__",)
    made_type = classmethod

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        owner = tx.class_of(cls)
        function = self.part(tx, "__func__")
        if hasattr(function.py_type(), "__get__") and not isinstance(function, ClassVariable):
            return bind_value(tx, function, owner, owner.cls)
        if not defines(function.py_type(), "__call__"):
            tx.unsupported(function, "as a class method")
        return BoundMethodVariable(function, owner)


class TupleGetterVariable(DescriptorVariable):
    """A field of a named tuple made while tracing (tuplegetter_descr_get)."""

    __slots__ = ()
    names = ("index", "__doc__")
    made_type = _tuplegetter

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        index = self.part(tx, "index").as_constant()
        if not issubclass(obj.py_type(), tuple):
            tx.raise_(TypeError, f"descriptor for index '{index}' for tuple subclasses doesn't apply to "
                                 f"'{obj.py_type().__name__}' object")
        items = tx.builtin_part(obj).items
        if not 0 <= index < len(items):
            tx.raise_(IndexError, "tuple index out of range")
        return real(tx, items[index])

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        tx.raise_(AttributeError, "can't set attribute" if value is not None else "can't delete attribute")


@meaning(_tuplegetter)
def make_tuple_getter(tx, index, doc, /):
    return TupleGetterVariable.of(index, doc)


@meaning(staticmethod)
def make_staticmethod(tx, function, /):
    return StaticMethodVariable.of(function)


@meaning(classmethod)
def make_classmethod(tx, function, /):
    return ClassMethodVariable.of(function)


def descriptor_get(tx, self, obj, cls=None, /):
    """``descriptor.__get__(obj, cls)`` called by name."""
    missing = obj.py_type() is type(None)
    if cls is None or not isinstance(cls, ClassVariable):
        if missing:
            tx.raise_(TypeError, "__get__(None, None) is invalid")
        cls = tx.type_of(obj)
    found = inner(self).tp_descr_get(tx, None if missing else obj, cls.cls)
    return self if found is inner(self) else found


def descriptor_set(tx, self, obj, value, /):
    inner(self).tp_descr_set(tx, obj, value)
    return NONE


def descriptor_delete(tx, self, obj, /):
    inner(self).tp_descr_set(tx, obj, None)
    return NONE


for owner_ in (property, staticmethod, classmethod, types.FunctionType, types.MemberDescriptorType,
               types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType):
    meaning(vars(owner_)["__get__"])(descriptor_get)
meaning(vars(property)["__set__"])(descriptor_set)
meaning(vars(property)["__delete__"])(descriptor_delete)


class SlotVariable(DescriptorVariable):
    """A member descriptor of ``__slots__`` or of a C struct (member_get)."""

    __slots__ = ()

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        return tx.slot_value(obj, self.raw)

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        tx.set_slot_value(obj, self.raw, value)


class GetSetVariable(DescriptorVariable):
    """A C attribute (getset_descriptor)."""

    __slots__ = ()

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        return tx.getset_value(obj, self.raw)

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        tx.set_getset_value(obj, self.raw, value)


def descriptor_builder(kind: type) -> Any:
    def build(tx: Any, obj: Any, source: Any) -> VariableTracker:
        if source is not None:
            tx.guard(SameObject(source, obj))
        return kind(obj, source)
    return build


for type_, kind_ in ((property, PropertyVariable), (staticmethod, StaticMethodVariable),
                     (classmethod, ClassMethodVariable), (types.MemberDescriptorType, SlotVariable),
                     (types.GetSetDescriptorType, GetSetVariable)):
    builds(type_)(descriptor_builder(kind_))
    PARTS[type_] = descriptor_builder(kind_)
