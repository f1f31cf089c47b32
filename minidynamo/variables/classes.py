"""Classes: attributes, calls (type_call), isinstance and issubclass, properties and other descriptors, super."""
from __future__ import annotations

import types
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import SameObject
from minidynamo.model.tables import builds, builds_subclasses, meaning, wraps
from minidynamo.model.variable import CannotRebuild, VariableTracker
from minidynamo.protocol import attrs, calls
from minidynamo.protocol.attrs import attribute_error, class_value, describe, is_data_descriptor, type_lookup
from minidynamo.sources import Attr
from minidynamo.variables import torch_ops
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.functions import BoundMethodVariable, HashedByIdentity
from minidynamo.variables.sequences import TupleVariable


class ClassVariable(HashedByIdentity):
    """A class object."""

    __slots__ = ("cls",)
    kind = "class"

    def __init__(self, cls: type, source: Any = None) -> None:
        self.cls, self.source = cls, source

    def py_type(self) -> type:
        return type(self.cls)

    def as_object(self) -> Any:
        return self.cls

    def identity(self) -> object:
        return self.cls

    def shown_name(self) -> str:
        return f"{self.cls.__qualname__}()" if self.cls.__module__ == "builtins" \
            else f"{self.cls.__module__}.{self.cls.__qualname__}()"

    def rebuild(self, out: Any) -> None:
        out.load_object_unchecked(self.cls)             # the class itself: identity is all it is

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        """type.__getattribute__ (type_getattro): metatype data descriptor, own MRO, metatype."""
        fixed = CLASS_ATTRIBUTES.get(name)
        if fixed is not None and not attrs.special_is_python(tx, type(self.cls), "__getattribute__"):
            return fixed(tx, self)
        meta = type_lookup(tx, type(self.cls), name)
        if meta is not None and meta.value is None and is_data_descriptor(meta.raw):
            return describe(tx, meta, self, type(self.cls))
        own = type_lookup(tx, self.cls, name)
        if own is not None:
            return describe(tx, own, None, self.cls)
        if meta is not None:
            return describe(tx, meta, self, type(self.cls))
        hook = type_lookup(tx, type(self.cls), "__getattr__")
        if hook is not None:
            return tx.call(describe(tx, hook, self, type(self.cls)), [tx.wrap(name)])
        tx.raise_attribute_error(f"type object '{self.cls.__name__}' has no attribute '{name}'", self, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if self.cls.__flags__ & attrs.IMMUTABLE_TYPE:
            tx.raise_(TypeError, f"cannot set '{name}' attribute of immutable type '{self.cls.__name__}'")
        if attrs.special_is_python(tx, type(self.cls), "__setattr__") or name.startswith("__") or self.source is None:
            tx.unsupported(self, f".{name} = ...")
        if value is None and (name not in vars(self.cls)):
            tx.unsupported(self, f"del .{name}")
        writes = tx.class_writes.get(self.cls)
        if writes is None:
            writes = {}
            tx.journal.put(tx.class_writes, self.cls, writes)
        tx.journal.put(writes, name, value)
        tx.journal.set(tx, "type_memo", {})
        tx.modified(self)

    def children(self) -> list[VariableTracker]:
        return []

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return [v for v in tx.class_writes.get(self.cls, {}).values() if v is not None]

    def replay(self, out: Any) -> None:
        for name, value in out.tx.class_writes.get(self.cls, {}).items():
            out.set_attribute(self, name, value, type)

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        result = calls.call_c(tx, self.cls, args, kwargs)
        if result is not None:
            return result
        if torch_ops.is_graph_op(self.cls):
            return torch_ops.call_op(tx, self.cls, args, kwargs)
        if attrs.special_is_python(tx, type(self.cls), "__call__"):
            found = type_lookup(tx, type(self.cls), "__call__")
            return tx.call(describe(tx, found, self, type(self.cls)), args, kwargs)
        return type_call(tx, self, args, kwargs)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        """``list[int]``, ``Foo[T]``, ``Color["RED"]``: __class_getitem__ or the metaclass."""
        meta = type_lookup(tx, type(self.cls), "__getitem__")
        if meta is not None:
            return tx.call(describe(tx, meta, self, type(self.cls)), [key])
        own = type_lookup(tx, self.cls, "__class_getitem__")
        if own is None:
            tx.raise_(TypeError, f"type '{self.cls.__qualname__}' is not subscriptable"
                      if self.cls.__module__ == "builtins" else f"type '{self.cls.__qualname__}' is not subscriptable")
        return tx.subscript_class(self, own, key)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "|":
            return tx.union_type(self, other, reflected)
        return NotImplemented

    def tp_iter(self, tx: Any) -> VariableTracker:
        found = type_lookup(tx, type(self.cls), "__iter__")
        if found is None:
            tx.raise_(TypeError, f"'{type(self.cls).__name__}' object is not iterable")
        return tx.call(describe(tx, found, self, type(self.cls)), [])

    def sq_length(self, tx: Any) -> VariableTracker:
        found = type_lookup(tx, type(self.cls), "__len__")
        if found is None:
            return super().sq_length(tx)
        return tx.call(describe(tx, found, self, type(self.cls)), [])

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        found = type_lookup(tx, type(self.cls), "__contains__")
        return None if found is None else tx.call(describe(tx, found, self, type(self.cls)), [item])

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        for name in ("__bool__", "__len__"):
            found = type_lookup(tx, type(self.cls), name)
            if found is not None:
                result = tx.call(describe(tx, found, self, type(self.cls)), [])
                return result if name == "__bool__" else result.nb_bool(tx)
        return None

    def tp_repr(self, tx: Any) -> VariableTracker:
        if attrs.special_is_python(tx, type(self.cls), "__repr__"):
            return tx.call(attrs.lookup_special(tx, self, "__repr__"), [])
        return ConstantVariable(type.__repr__(self.cls))


def class_text(name: str) -> Any:
    return lambda tx, me: tx.wrap(type.__getattribute__(me.cls, name))


CLASS_ATTRIBUTES = {
    "__name__": class_text("__name__"),
    "__qualname__": class_text("__qualname__"),
    "__class__": lambda tx, me: tx.class_of(type(me.cls)),
    "__mro__": lambda tx, me: TupleVariable([tx.class_of(c) for c in me.cls.__mro__]),
    "__bases__": lambda tx, me: TupleVariable([tx.class_of(c) for c in me.cls.__bases__]),
    "__base__": lambda tx, me: tx.wrap(None) if me.cls is object else tx.class_of(me.cls.__base__),
    "__dict__": lambda tx, me: tx.class_namespace(me),
}


# ---------------------------------------------------------------- making instances
def type_call(tx: Any, cls: ClassVariable, args: list, kwargs: dict) -> VariableTracker:
    """type_call in typeobject.c: ``__new__``, then ``__init__`` if an instance came."""
    new = type_lookup(tx, cls.cls, "__new__")
    raw = new.raw
    if isinstance(raw, staticmethod):
        instance = tx.call(describe(tx, new, None, cls.cls), [cls, *args], kwargs)
    elif isinstance(raw, types.FunctionType):
        instance = tx.call(class_value(tx, new), [cls, *args], kwargs)
    else:
        instance = tx.new_instance(cls, raw.__self__, args, kwargs)
    made = instance.py_type()
    if not issubclass(made, cls.cls):
        return instance
    init = type_lookup(tx, made, "__init__")
    if init.raw is object.__init__:
        check_object_init(tx, cls, new, args, kwargs)
        return instance
    result = tx.call(describe(tx, init, instance, made), args, kwargs)
    if not (result.__class__ is ConstantVariable and result.value is None):
        tx.raise_(TypeError, f"__init__() should return None, not '{result.py_type().__name__}'")
    return instance


def check_object_init(tx: Any, cls: ClassVariable, new: Any, args: list, kwargs: dict) -> None:
    """object_init and object_new refuse arguments that nobody takes."""
    if (args or kwargs) and new.raw is object.__dict__["__new__"]:
        tx.raise_(TypeError, f"{cls.cls.__name__}() takes no arguments")


# ---------------------------------------------------------------- descriptors
class DescriptorVariable(HashedByIdentity):
    """A descriptor object of a builtin kind, found in a class."""

    __slots__ = ("raw",)
    kind = "descriptor"

    def __init__(self, raw: Any, source: Any = None) -> None:
        self.raw, self.source = raw, source

    def py_type(self) -> type:
        return type(self.raw)

    def as_object(self) -> Any:
        return self.raw

    def identity(self) -> object:
        return self.raw

    def part(self, tx: Any, name: str) -> VariableTracker:
        value = getattr(self.raw, name)
        return tx.wrap(value) if self.source is None and value is None else tx.build(value, Attr(self.source, name))

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("fget", "fset", "fdel", "__func__", "__wrapped__") and hasattr(self.raw, name):
            return self.part(tx, name)
        if name in ("__name__", "__doc__", "__qualname__") and isinstance(getattr(self.raw, name, 0), (str, type(None))):
            return tx.wrap(getattr(self.raw, name))
        if not hasattr(self.raw, name):
            attribute_error(tx, self, name)
        return super().tp_getattro(tx, name)

    def rebuild(self, out: Any) -> None:
        raise CannotRebuild(self, "a descriptor without a path")


class PropertyVariable(DescriptorVariable):
    """``property`` (property_descr_get)."""

    __slots__ = ()

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        if self.raw.fget is None:
            tx.raise_attribute_error(no_accessor(self.raw, obj, "getter"), obj, "")
        return tx.call(self.part(tx, "fget"), [obj])

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        name, kind = ("fset", "setter") if value is not None else ("fdel", "deleter")
        if getattr(self.raw, name) is None:
            tx.raise_(AttributeError, no_accessor(self.raw, obj, kind))
        tx.call(self.part(tx, name), [obj] if value is None else [obj, value])


def no_accessor(raw: property, obj: VariableTracker, kind: str) -> str:
    name = getattr(raw, "_name_of_property", None) or (raw.fget.__name__ if raw.fget else None)
    owner = obj.py_type().__qualname__
    return f"property {name!r} of {owner!r} object has no {kind}" if name else f"property of {owner!r} object has no {kind}"


class StaticMethodVariable(DescriptorVariable):
    """``staticmethod``."""

    __slots__ = ()

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        return self.part(tx, "__func__")

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return tx.call(self.part(tx, "__func__"), args, kwargs)


class ClassMethodVariable(DescriptorVariable):
    """``classmethod``."""

    __slots__ = ()

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        owner = obj if isinstance(obj, ClassVariable) and issubclass(cls, type) else tx.class_of(cls)
        function = self.part(tx, "__func__")
        if hasattr(function, "tp_descr_get") and not isinstance(function, ClassVariable):
            return function.tp_descr_get(tx, owner, type(owner.cls))
        return BoundMethodVariable(function, owner)


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
    """A C attribute (getset_descriptor); each meaning is declared in GETSETS, by descriptor."""

    __slots__ = ()

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        if obj is None:
            return self
        return tx.getset_value(obj, self.raw)

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        tx.set_getset_value(obj, self.raw, value)


def descriptor_builder(kind: type) -> Any:
    def build(tx: Any, obj: Any, source: Any) -> VariableTracker:
        tx.guard(SameObject(source, obj))
        return kind(obj, source)
    return build


for type_, kind_ in ((property, PropertyVariable), (staticmethod, StaticMethodVariable),
                     (classmethod, ClassMethodVariable), (types.MemberDescriptorType, SlotVariable),
                     (types.GetSetDescriptorType, GetSetVariable)):
    builds(type_)(descriptor_builder(kind_))


@meaning(property)
def call_property(tx, *args, **kwargs):
    tx.stop(reasons.UNSUPPORTED_CALL, call="property()", kind="a class")


# ---------------------------------------------------------------- super
class SuperVariable(VariableTracker):
    """``super(cls, obj)`` (super_getattro)."""

    __slots__ = ("cls", "obj", "start")
    kind = "super"

    def __init__(self, cls: ClassVariable, obj: VariableTracker, start: type) -> None:
        self.cls, self.obj, self.start, self.source = cls, obj, start, None

    def py_type(self) -> type:
        return super

    def children(self) -> list[VariableTracker]:
        return [self.cls, self.obj]

    def rebuild(self, out: Any) -> None:
        out.begin_call()
        out.load_object_unchecked(super)
        out.callable_done()
        out.load(self.cls)
        out.load(self.obj)
        out.call(2)

    def lookup(self, tx: Any, name: str) -> Any:
        mro = self.start.__mro__
        rest = mro[mro.index(self.cls.cls) + 1:]
        return lookup_in(tx, rest, name)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__class__":
            return tx.wrap(super)
        found = self.lookup(tx, name)
        if found is None:
            if name in ("__thisclass__", "__self__", "__self_class__"):
                return {"__thisclass__": self.cls, "__self__": self.obj, "__self_class__": tx.class_of(self.start)}[name]
            tx.raise_attribute_error(f"'super' object has no attribute '{name}'", self, name)
        through_class = isinstance(self.obj, ClassVariable) and self.obj.cls is self.start
        return describe(tx, found, None if through_class else self.obj, self.start)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        tx.unsupported(self, f".{name} = ...")


def lookup_in(tx: Any, classes: tuple[type, ...], name: str) -> Any:
    """type_lookup along a part of an MRO, guarded in the same way."""
    for klass in classes:
        pending = tx.class_writes.get(klass, {})
        if pending.get(name) is not None:
            return attrs.Found(None, None, klass, pending[name])
        if name in attrs.CLASS_DICT.__get__(klass) and name not in pending:
            return attrs.Found(vars(klass)[name], attrs.DictItem(attrs.class_source(klass), name), klass, None)
        if not klass.__flags__ & attrs.IMMUTABLE_TYPE:
            tx.guard(attrs.HasKey(attrs.class_source(klass), name, False))
    return None


@meaning(super)
def call_super(tx, cls=None, obj=None, /):
    if cls is None:
        cls, obj = tx.super_arguments()
    if obj is None or not isinstance(cls, ClassVariable):
        tx.stop(reasons.UNSUPPORTED_CALL, call="super(cls)", kind="an unbound super")
    if isinstance(obj, ClassVariable) and issubclass(obj.cls, cls.cls):
        start = obj.cls
    else:
        start = obj.py_type()
        if not issubclass(start, cls.cls):
            tx.raise_(TypeError, "super(type, obj): obj must be an instance or subtype of type")
    return SuperVariable(cls, obj, start)


# ---------------------------------------------------------------- type(), isinstance(), issubclass()
@meaning(type)
def call_type(tx, obj, *rest, **kwargs):
    if rest or kwargs:
        tx.stop(reasons.CLASS_BODY, name="type()")
    return tx.type_of(obj)


def class_tuple(tx: Any, classes: VariableTracker, what: str) -> list[VariableTracker]:
    """The classes of an isinstance() test, tuples and unions flattened."""
    if isinstance(classes, TupleVariable):
        return [c for part in classes.items for c in class_tuple(tx, tx.real(part), what)]
    return [classes]


@meaning(isinstance)
def call_isinstance(tx, obj, classes, /):
    return ConstantVariable(any(is_instance(tx, obj, c) for c in class_tuple(tx, classes, "isinstance")))


def is_instance(tx: Any, obj: VariableTracker, cls: VariableTracker) -> bool:
    """object_isinstance: exact type first, then ``__instancecheck__`` of the metaclass."""
    if not isinstance(cls, ClassVariable):
        return tx.check_by_object(isinstance, obj, cls)
    if obj.py_type() is cls.cls:
        return True
    meta = type(cls.cls)
    if meta is type or meta.__instancecheck__ is type.__instancecheck__:
        return issubclass(obj.py_type(), cls.cls)
    return tx.check_by_metaclass("__instancecheck__", obj, cls)


@meaning(issubclass)
def call_issubclass(tx, obj, classes, /):
    return ConstantVariable(any(is_subclass(tx, obj, c) for c in class_tuple(tx, classes, "issubclass")))


def is_subclass(tx: Any, obj: VariableTracker, cls: VariableTracker) -> bool:
    if not isinstance(obj, ClassVariable):
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    if not isinstance(cls, ClassVariable):
        return tx.check_by_object(issubclass, obj, cls)
    meta = type(cls.cls)
    if meta is type or meta.__subclasscheck__ is type.__subclasscheck__:
        return type.__subclasscheck__(cls.cls, obj.cls)
    return tx.check_by_metaclass("__subclasscheck__", obj, cls)


@meaning(type.__instancecheck__)
def call_real_isinstance(tx, cls, obj, /):
    """``super().__instancecheck__`` of a metaclass (_PyObject_RealIsInstance)."""
    return ConstantVariable(issubclass_plainly(obj.py_type(), cls.as_object()))


@meaning(type.__subclasscheck__)
def call_real_issubclass(tx, cls, other, /):
    return ConstantVariable(issubclass_plainly(other.as_object(), cls.as_object()))


def issubclass_plainly(kind: type, cls: type) -> bool:
    return type.__subclasscheck__(cls, kind)


def build_class(tx: Any, obj: type, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return ClassVariable(obj, source)


builds(type)(build_class)
builds_subclasses(type)(build_class)


@wraps(type)
def wrap_class(tx: Any, obj: type) -> VariableTracker:
    return tx.class_of(obj)

