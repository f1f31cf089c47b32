"""Classes: attributes, calls (type_call), isinstance and issubclass, properties and other descriptors, super."""
from __future__ import annotations

import types
import weakref
from typing import Any

from minidynamo import code, reasons
from minidynamo.base.text import tp_name
from minidynamo.code import facts
from minidynamo.guards.kinds import Predicate, SameObject, TypeIs
from minidynamo.model.tables import C_MEMBERS, builds, builds_subclasses, meaning, wraps
from minidynamo.model.variable import VariableTracker, is_subtype
from minidynamo.protocol import attrs, calls
from minidynamo.protocol.attrs import class_value, describe, is_data, type_lookup
from minidynamo.sources import Fetch
from minidynamo.variables import torch_ops
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable
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
        if meta is not None and is_data(meta, reading=True):
            return describe(tx, meta, self, type(self.cls))
        own = type_lookup(tx, self.cls, name)
        if own is not None:
            attrs.pass_over(tx, meta)
            return describe(tx, own, None, self.cls)
        if meta is not None:
            return describe(tx, meta, self, type(self.cls))
        hook = type_lookup(tx, type(self.cls), "__getattr__")
        if hook is not None:
            return tx.call(describe(tx, hook, self, type(self.cls)), [tx.wrap(name)])
        tx.raise_attribute_error(f"type object '{self.cls.__name__}' has no attribute '{name}'", self, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        special = "__setattr__" if value is not None else "__delattr__"
        if attrs.special_is_python(tx, type(self.cls), special):
            method = attrs.lookup_special(tx, self, special)
            tx.call(method, [tx.wrap(name)] if value is None else [tx.wrap(name), value])
            return
        self.set_own(tx, name, value)

    def set_own(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        """type_setattro, the metaclass's own ``__setattr__`` apart."""
        if self.cls.__flags__ & attrs.IMMUTABLE_TYPE:
            tx.raise_(TypeError, f"cannot set '{name}' attribute of immutable type '{self.cls.__name__}'")
        if name in SLOT_NAMES or self.source is None:
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
        if self.cls is type:                                # PyObject_GetItem knows this one by itself
            return tx.generic_alias(self, key)
        if own is None:
            tx.raise_(TypeError, f"type '{self.cls.__qualname__}' is not subscriptable")
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


class ClassFact:
    """Predicate: a name or the bases of a class that may be assigned to; the class is held weakly, its bases by id."""

    def __init__(self, cls: type, name: str) -> None:
        self.cls, self.read = weakref.ref(cls), vars(type)[name].__get__
        self.value = self.now()

    def now(self) -> Any:
        value = self.read(self.cls())
        return tuple(map(id, value)) if isinstance(value, tuple) else value if isinstance(value, str) else id(value)

    def __call__(self, _: Any) -> bool:
        return self.cls() is not None and self.now() == self.value


def class_fact(name: str, wrap: Any) -> Any:
    """A part of the class that an assignment may change: guarded where it can."""
    def read(tx: Any, me: ClassVariable) -> VariableTracker:
        if not me.cls.__flags__ & attrs.IMMUTABLE_TYPE and id(me.cls) not in tx.made_classes:
            tx.guard(Predicate(tx.builtins_source, ClassFact(me.cls, name), f"{me.cls.__qualname__}.{name} is as it was"))
        value = vars(type)[name].__get__(me.cls)
        if value is None:
            tx.stop(reasons.METACLASS_CALL, name=me.cls.__qualname__, why="the class is still being made")
        return wrap(tx, value)
    return read


def wrap_classes(tx: Any, classes: tuple[type, ...]) -> VariableTracker:
    return TupleVariable([tx.class_of(c) for c in classes])


def read_own(name: str, missing: Any) -> Any:
    """A getset of type that reads the class's own namespace (type_module, type_get_doc, type_get_annotations)."""
    def read(tx: Any, me: ClassVariable) -> VariableTracker:
        if code.is_static(me.cls):
            return tx.wrap(getattr(me.cls, name)) if hasattr(me.cls, name) else missing(tx, me)
        space = tx.class_namespace(me)
        if space.has(tx, name):
            value = space.read(tx, name)
            return attrs.bind_value(tx, value, None, me.cls)
        return missing(tx, me)
    return read


def missing_annotations(tx: Any, me: ClassVariable) -> VariableTracker:
    if code.is_static(me.cls):
        tx.raise_attribute_error(f"type object '{me.cls.__name__}' has no attribute '__annotations__'", me, "__annotations__")
    value = tx.empty_dict()
    me.set_own(tx, "__annotations__", value)
    return value


def missing_abstract(tx: Any, me: ClassVariable) -> VariableTracker:
    tx.raise_(AttributeError, "__abstractmethods__")


# Names behind which a C slot of the type stands, or a getset of type itself: writing them changes more than a name.
SLOT_NAMES = frozenset(
    {"__new__", "__init__", "__del__", "__call__", "__get__", "__set__", "__delete__", "__next__", "__await__", "__aiter__",
     "__anext__", "__matmul__", "__rmatmul__", "__imatmul__", "__getattr__", "__set_name__", "__init_subclass__",
     "__class_getitem__", "__slots__"}
    | {name for kind in (object, type, int, float, complex, str, list, dict, set, tuple, bytearray)
       for name, raw in vars(kind).items() if name.startswith("__") and not isinstance(raw, str)})
DISALLOW_INSTANTIATION = 1 << 7    # Py_TPFLAGS_DISALLOW_INSTANTIATION

CLASS_ATTRIBUTES = {
    "__module__": read_own("__module__", missing_abstract),
    "__doc__": read_own("__doc__", lambda tx, me: tx.wrap(None)),
    "__annotations__": read_own("__annotations__", missing_annotations),
    "__abstractmethods__": read_own("__abstractmethods__", missing_abstract),
    **{name: class_text(name) for name in ("__flags__", "__basicsize__", "__itemsize__", "__dictoffset__", "__text_signature__",
                                           "__weakrefoffset__")},
    "__name__": class_fact("__name__", lambda tx, text: tx.wrap(text)),
    "__qualname__": class_fact("__qualname__", lambda tx, text: tx.wrap(text)),
    "__class__": lambda tx, me: tx.class_of(type(me.cls)),
    "__mro__": class_fact("__mro__", wrap_classes),
    "__bases__": class_fact("__bases__", wrap_classes),
    "__base__": class_fact("__base__", lambda tx, base: tx.wrap(None) if base is None else tx.class_of(base)),
    "__dict__": lambda tx, me: tx.class_namespace(me),
}


def set_nothing(tx: Any, me: VariableTracker, value: VariableTracker | None) -> None:
    tx.unsupported(me, "an attribute of type, set through its descriptor")


for name_, read_ in CLASS_ATTRIBUTES.items():           # ``type.__dict__["__mro__"].__get__(cls)``
    if isinstance(vars(type).get(name_), (types.GetSetDescriptorType, types.MemberDescriptorType)):
        C_MEMBERS.add(vars(type)[name_], (read_, set_nothing))


# ---------------------------------------------------------------- making instances
def type_call(tx: Any, cls: ClassVariable, args: list, kwargs: dict) -> VariableTracker:
    """type_call in typeobject.c: ``__new__``, then ``__init__`` if an instance came."""
    if cls.cls.__flags__ & DISALLOW_INSTANTIATION:
        tx.raise_(TypeError, f"cannot create '{tp_name(cls.cls)}' instances")
    new = type_lookup(tx, cls.cls, "__new__")
    raw = new.raw
    if isinstance(raw, staticmethod) or new.value is not None:
        instance = tx.call(describe(tx, new, None, cls.cls), [cls, *args], kwargs)
    elif isinstance(raw, types.FunctionType):
        instance = tx.call(class_value(tx, new), [cls, *args], kwargs)
    else:
        instance = tx.new_instance(cls, raw.__self__, args, kwargs)
    made = instance.py_type()
    if not is_subtype(made, cls.cls):
        return instance
    init = type_lookup(tx, made, "__init__")
    if init.raw is object.__init__:
        return instance
    result = tx.call(describe(tx, init, instance, made), args, kwargs)
    if not (result.__class__ is ConstantVariable and result.value is None):
        tx.raise_(TypeError, f"__init__() should return None, not '{result.py_type().__name__}'")
    return instance


# ---------------------------------------------------------------- super
class SuperVariable(VariableTracker):
    """``super(cls, obj)`` (super_getattro)."""

    __slots__ = ("cls", "obj", "start")
    kind = "super"

    def __init__(self, cls: ClassVariable, obj: VariableTracker | None, start: type | None, source: Any = None) -> None:
        self.cls, self.obj, self.start, self.source = cls, obj, start, source

    def py_type(self) -> type:
        return super

    def children(self) -> list[VariableTracker]:
        return [self.cls] if self.obj is None else [self.cls, self.obj]

    def rebuild(self, out: Any) -> None:
        out.call_function(super, *self.children())

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        """super_descr_get: an unbound one is bound."""
        return self if obj is None or self.obj is not None else bind_super(tx, self.cls, obj)

    def lookup(self, tx: Any, name: str) -> Any:
        if self.start is None:
            return None
        mro = self.start.__mro__
        rest = mro[mro.index(self.cls.cls) + 1:]
        return lookup_in(tx, rest, name)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__class__":
            return tx.wrap(super)
        found = self.lookup(tx, name)
        if found is None:
            if name in ("__thisclass__", "__self__", "__self_class__"):
                return {"__thisclass__": self.cls, "__self__": self.obj or tx.wrap(None),
                        "__self_class__": tx.wrap(None) if self.start is None else tx.class_of(self.start)}[name]
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
            return attrs.Found(vars(klass)[name], attrs.item_source(tx, klass, name), klass, None)
        attrs.guard_absent(tx, klass, name)
    return None


@meaning(super)
def call_super(tx, cls=None, obj=None, /):
    if cls is None:
        cls, obj = tx.super_arguments()
    if not isinstance(cls, ClassVariable):
        tx.raise_(TypeError, f"super() argument 1 must be a type, not {cls.py_type().__name__}")
    if obj is None or obj.py_type() is type(None):
        return SuperVariable(cls, None, None)
    return bind_super(tx, cls, obj)


def bind_super(tx: Any, cls: ClassVariable, obj: VariableTracker) -> SuperVariable:
    """supercheck: where in the MRO the search starts."""
    if isinstance(obj, ClassVariable) and is_subtype(obj.cls, cls.cls):
        start = obj.cls
    else:
        start = obj.py_type()
        if not is_subtype(start, cls.cls):
            claimed = attrs.getattr_or_none(tx, obj, "__class__")
            if isinstance(claimed, ClassVariable) and is_subtype(claimed.cls, cls.cls):
                return SuperVariable(cls, obj, claimed.cls)
            tx.raise_(TypeError, not_below(cls.cls, obj))
    return SuperVariable(cls, obj, start)


def not_below(cls: type, obj: VariableTracker) -> str:
    """What supercheck says."""
    if not facts.SUPER_NAMES_TYPES:
        return "super(type, obj): obj must be an instance or subtype of type"
    shown = f"type {obj.cls.__name__}" if isinstance(obj, ClassVariable) else f"instance of {obj.py_type().__name__}"
    return f"super(type, obj): obj ({shown}) is not an instance or subtype of type ({cls.__name__})."


@builds(super)
def build_super(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """One that came over a break is another object each time: its parts are guarded."""
    tx.guard(TypeIs(source, super))
    this, bound, kind = [tx.real(tx.build(read(obj), Fetch(source, read, name))) for name, read in SUPER_PARTS.items()]
    if kind.py_type() is type(None):
        return SuperVariable(this, None, None, source)
    return SuperVariable(this, bound, kind.cls, source)


# Past super's own attribute access.
SUPER_PARTS = {name: vars(super)[name].__get__ for name in ("__thisclass__", "__self__", "__self_class__")}


# ---------------------------------------------------------------- type()
@meaning(type)
def call_type(tx, obj, *rest, **kwargs):
    if rest or kwargs:
        return tx.type_new(tx.class_of(type), [obj, *rest], kwargs)
    return tx.type_of(obj)


def build_class(tx: Any, obj: type, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return ClassVariable(obj, source)


builds(type)(build_class)
builds_subclasses(type)(build_class)


@wraps(type)
def wrap_class(tx: Any, obj: type) -> VariableTracker:
    return tx.class_of(obj)

