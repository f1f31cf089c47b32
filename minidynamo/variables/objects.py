"""User objects: the object part (dict, slots) and, for subclasses of builtins, the builtin part."""
from __future__ import annotations

import enum
import types
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.code import is_static
from minidynamo.guards.kinds import InInstanceDict, TypeIs
from minidynamo.model.slots import BINARY_DUNDER, COMPARE_DUNDER, UNARY_DUNDER
from minidynamo.model.tables import adopt, builds_when
from minidynamo.model.variable import CannotRebuild, IdKey, NotConstant, VariableTracker, defines
from minidynamo.protocol import attrs, compare, numbers
from minidynamo.protocol.attrs import (
    IMMUTABLE_TYPE, attribute_error, generic_getattr, generic_setattr, special_is_python, type_lookup)
from minidynamo.sources import InstanceAttr, PlainInstanceAttr
from minidynamo.sources.source import instance_dict
from minidynamo.variables.constants import ConstantVariable


class ObjectVariable(VariableTracker):
    """An instance of a class written in Python.

    ``fields`` holds what the trace wrote (None: deleted); what it did not write is read from the
    user's object ``obj``.  ``inner`` is the builtin part of a subclass of list, dict, int …
    """

    __slots__ = ("cls", "obj", "fields", "inner", "made_at", "namespace", "assigned", "moved")
    kind = "object"

    def __init__(self, cls: type, obj: Any = None, source: Any = None, inner: VariableTracker | None = None) -> None:
        self.cls, self.obj, self.source, self.inner = cls, obj, source, inner
        self.fields: dict[str, VariableTracker | None] = {}
        self.made_at: int | None = None
        self.moved: VariableTracker | None = None     # the class that was assigned to ``__class__``
        self.namespace: Any = None                    # ``__dict__`` as a value, once somebody asked for it
        self.assigned: Any = None                        # the dict that was assigned to ``__dict__``; ``fields`` has slots only

    def py_type(self) -> type:
        return self.cls

    def as_object(self) -> Any:
        if self.obj is None or self.fields or self.moved is not None or self.assigned is not None:
            raise NotConstant(self)
        return self.obj

    def identity(self) -> object:
        return self if self.obj is None else self.obj

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        """slot_tp_getattr_hook: ``__getattribute__``, then ``__getattr__`` on AttributeError."""
        if special_is_python(tx, self.cls, "__getattribute__"):
            getter = attrs.lookup_special(tx, self, "__getattribute__")
            value = tx.catching_attribute_error(lambda: tx.call(getter, [tx.wrap(name)]), self.cls)
        else:
            fixed = OBJECT_ATTRIBUTES.get(name)
            if fixed is not None:
                return fixed(tx, self)
            value = tx.catching_attribute_error(lambda: generic_getattr(tx, self, name), self.cls)
        if value is None:
            hook = type_lookup(tx, self.cls, "__getattr__")
            if hook is None:
                attribute_error(tx, self, name)
            value = tx.call(attrs.describe(tx, hook, self, self.cls), [tx.wrap(name)])
        return value

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        if name in self.fields:
            return self.fields[name]
        if self.assigned is not None:
            return tx.builtin_part(self.assigned).find(tx, tx.wrap(name))
        if self.obj is None or not self.has_instance_dict() or self.has_no_dict_yet(tx):
            return None
        own = instance_dict(self.obj)
        if name in own:
            return tx.build(own[name], self.attr_source(name))
        tx.guard(InInstanceDict(self.source, name, False))
        return None

    def has_no_dict_yet(self, tx: Any) -> bool:
        """Whether asking for ``__dict__`` would make one, which C code tells from none."""
        return self.inner is not None and self.inner.lacks_dict is not None and self.inner.lacks_dict(tx, self)

    def attr_source(self, name: str) -> Any:
        """Plain attribute access where the class leaves it plain, else by ``__dict__``."""
        for klass in self.cls.__mro__[:-1]:
            if "__getattribute__" in vars(klass):
                return InstanceAttr(self.source, name)
        kind = InstanceAttr if hasattr(type(attrs_static(self.cls, name)), "__set__") else PlainInstanceAttr
        return kind(self.source, name)

    def instance_set(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if self.assigned is not None and not isinstance(attrs_static(self.cls, name), types.MemberDescriptorType):
            tx.builtin_part(self.assigned).mp_ass_subscript(tx, tx.wrap(name), value)
            return
        if value is None and not self.had(name):
            fields = dict(self.fields)
            fields.pop(name, None)
            tx.journal.set(self, "fields", fields)
        else:
            if self.fields.get(name, self) is None:
                tx.unsupported(self, f".{name} = ... after its deletion")
            tx.journal.put(self.fields, name, value)
        tx.modified(self)

    def had(self, name: str) -> bool:
        """Whether the user's object has the name in its dict or a slot, so that deleting it must be replayed."""
        if self.obj is None:
            return False
        raw = attrs_static(self.cls, name)
        if isinstance(raw, types.MemberDescriptorType):
            return raw_slot_is_set(raw, self.obj)
        return self.has_instance_dict() and self.assigned is None and name in instance_dict(self.obj)

    def has_instance_dict(self) -> bool:
        return self.cls.__dictoffset__ != 0

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        special = "__setattr__" if value is not None else "__delattr__"
        if special_is_python(tx, self.cls, special):
            method = attrs.lookup_special(tx, self, special)
            tx.call(method, [tx.wrap(name)] if value is None else [tx.wrap(name), value])
            return
        generic_setattr(tx, self, name, value)

    # ---- making it again
    def children(self) -> list[VariableTracker]:
        moved = [v for v in (self.moved, self.assigned) if v is not None]
        return [*moved, *[v for v in self.fields.values() if v is not None], *inner_children(self.inner)]

    def rebuild(self, out: Any) -> None:
        self.create(out)
        if self.fields or self.inner is not None or self.assigned is not None:
            out.keep(self)
            self.fill(out)

    def create(self, out: Any) -> None:
        if self.obj is not None and self.source is None:
            raise CannotRebuild(self, "an object that has no path from the arguments")
        if self.inner is not None and self.inner.create_holder is not None:
            self.inner.create_holder(out, out.tx.class_of(self.cls))
            return
        base = builtin_base(self.cls)
        out.begin_call_of(base.__new__)
        out.load(out.tx.class_of(self.cls))
        count = 1
        if self.inner is not None and base in IMMUTABLE_BASES:
            out.load_inner(self.inner)
            count = 2
        out.call(count)

    def fill(self, out: Any) -> None:
        if self.inner is not None and self.inner.write_into is not None:
            self.inner.write_into(out, self)
        elif self.inner is not None and builtin_base(self.cls) not in IMMUTABLE_BASES:
            fill_builtin_part(out, self)
        self.write_namespace(out)
        for name, value in self.fields.items():
            if value is not None:
                out.set_attribute(self, name, value)

    def replay(self, out: Any) -> None:
        if self.moved is not None:
            out.set_attribute(self, "__class__", self.moved)
        self.write_namespace(out)
        for name, value in self.fields.items():      # the builtin part has the object's source and replays itself
            out.set_attribute(self, name, value)

    def write_namespace(self, out: Any) -> None:
        if self.assigned is not None:
            out.call_function(set_instance_dict, self, self.assigned)
            out.op("POP")

    # ---- slots: user code where the class has it, else the builtin part, else object's
    def special(self, tx: Any, name: str) -> VariableTracker | None:
        """The bound dunder when it is user code; None when it is a C slot or absent."""
        return attrs.lookup_special(tx, self, name) if special_is_python(tx, self.cls, name) else None

    def sets_none(self, name: str) -> bool:
        return getattr(self.cls, name, self) is None

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        method = self.special(tx, "__call__")
        if method is None and self.inner is not None and self.inner.call is not None:
            return self.inner.call(tx, args, kwargs)
        return super().tp_call(tx, args, kwargs) if method is None else tx.call(method, args, kwargs)

    def tp_iter(self, tx: Any) -> VariableTracker:
        if self.sets_none("__iter__"):
            tx.raise_(TypeError, f"'{tp_name(self.cls)}' object is not iterable")
        method = self.special(tx, "__iter__")
        if method is not None:
            result = tx.call(method, [])
            if not defines(result.py_type(), "__next__"):
                tx.raise_(TypeError, f"iter() returned non-iterator of type '{tp_name(result.py_type())}'")
            return result
        if self.inner is not None:
            return tx.base_iterator(self)
        if self.special(tx, "__getitem__") is not None:
            return tx.sequence_iterator(self)
        return super().tp_iter(tx)

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        method = self.special(tx, "__next__")
        if method is None:
            return super().tp_iternext(tx) if self.inner is None else self.inner.tp_iternext(tx)
        return tx.catching(StopIteration, lambda: tx.call(method, []))

    def sq_length(self, tx: Any) -> VariableTracker:
        method = self.special(tx, "__len__")
        if method is not None:
            return tx.checked_length(tx.call(method, []))
        return self.inner.sq_length(tx) if self.inner is not None else super().sq_length(tx)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        method = self.special(tx, "__getitem__")
        if method is not None:
            return tx.call(method, [key])
        return super().mp_subscript(tx, key) if self.inner is None else self.base_subscript(tx, key)

    def base_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        """The base class's ``__getitem__``; dict_subscript asks a subclass for ``__missing__``."""
        if self.inner is None:
            return tx.unsupported(self, "[...]")
        missing = attrs.lookup_special(tx, self, "__missing__") if issubclass(self.cls, dict) else None
        if missing is not None:
            value = self.inner.find(tx, key)
            return tx.call(missing, [key]) if value is None else value
        return self.inner.mp_subscript(tx, key)

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        method = self.special(tx, "__setitem__" if value is not None else "__delitem__")
        if method is not None:
            tx.call(method, [key] if value is None else [key, value])
        elif self.inner is not None:
            self.inner.mp_ass_subscript(tx, key, value)
        else:
            super().mp_ass_subscript(tx, key, value)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        if self.sets_none("__contains__"):
            tx.raise_(TypeError, f"'{tp_name(self.cls)}' object is not a container")
        method = self.special(tx, "__contains__")
        if method is not None:
            return ConstantVariable(compare.truth(tx, tx.call(method, [item])))
        return self.inner.sq_contains(tx, item) if self.inner is not None else None

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        method = self.special(tx, "__bool__")
        if method is not None:
            result = tx.call(method, [])
            if result.py_type() is not bool:
                tx.raise_(TypeError, f"__bool__ should return bool, returned {tp_name(result.py_type())}")
            return result
        if special_is_python(tx, self.cls, "__len__"):
            return self.sq_length(tx).nb_bool(tx)
        return self.inner.nb_bool(tx) if self.inner is not None else None

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        if symbol == "index" and isinstance(self.cls, type) and int in self.cls.__mro__:
            return self.inner.nb_unary(tx, symbol)      # PyNumber_Index: an int is its own index, whatever it defines
        method = self.special(tx, UNARY_DUNDER[symbol])
        if method is not None:
            return tx.checked_unary(symbol, tx.call(method, []))
        if self.inner is not None:
            return self.inner.nb_unary(tx, symbol)
        if symbol in ("int", "float", "complex") and self.special(tx, "__index__") is not None:
            return self.nb_unary(tx, "index").nb_unary(tx, symbol)
        return NotImplemented

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        stem = BINARY_DUNDER[symbol]
        name = f"__r{stem}__" if reflected else f"__{stem}__"
        if self.sets_none(name):
            tx.raise_(TypeError, numbers.operand_error(symbol, *((other, self) if reflected else (self, other))))
        method = self.special(tx, name)
        if method is not None:
            return tx.not_implemented(tx.call(method, [other]))
        if self.inner is None:
            return NotImplemented
        if self.inner.binary_of_class is not None:
            return self.inner.binary_of_class(tx, self, symbol, other, reflected)
        return self.inner.nb_binary(tx, symbol, tx.builtin_part(other), reflected)

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        method = self.special(tx, f"__i{BINARY_DUNDER[symbol[:-1]]}__")
        if method is not None:
            return tx.not_implemented(tx.call(method, [other]))
        if self.inner is not None:
            result = self.inner.nb_inplace(tx, symbol, other)
            return self if result is self.inner else result
        return NotImplemented

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        name = COMPARE_DUNDER[symbol]
        method = tx.catching(BaseException, lambda: self.special(tx, name))     # slot_tp_richcompare clears errors
        if method is not None:
            return tx.not_implemented(tx.call(method, [other]))
        if symbol == "!=" and special_is_python(tx, self.cls, "__eq__") and not c_owner(self.cls, "__ne__"):
            result = self.tp_richcompare(tx, "==", other)
            return result if result is NotImplemented else ConstantVariable(not compare.truth(tx, result))
        if self.inner is not None:
            return self.inner.tp_richcompare(tx, symbol, tx.builtin_part(other))
        if symbol == "==" and compare.is_same(tx, self, other):
            return ConstantVariable(True)
        return NotImplemented

    def tp_hash(self, tx: Any) -> VariableTracker:
        if self.sets_none("__hash__"):
            tx.raise_(TypeError, f"unhashable type: '{tp_name(self.cls)}'")
        method = self.special(tx, "__hash__")
        if method is not None:
            result = tx.call(method, [])
            if not issubclass(result.py_type(), int):
                tx.raise_(TypeError, "__hash__ method should return an integer")
            return ConstantVariable(as_hash(tx.builtin_part(result).as_constant()))
        if self.inner is not None:
            return self.inner.tp_hash(tx)
        return tx.hash_by_address(self)

    def hash_runs_code(self, tx: Any) -> bool:
        return special_is_python(tx, self.cls, "__eq__") or special_is_python(tx, self.cls, "__hash__") \
            and attrs_static(self.cls, "__hash__") is not enum.Enum.__hash__       # of the name: pure, and nobody sees it run

    def key(self, tx: Any) -> Any:
        by_identity = not self.hash_runs_code(tx)
        if self.sets_none("__hash__"):
            tx.raise_(TypeError, f"unhashable type: '{tp_name(self.cls)}'")
        if by_identity:
            return IdKey(self.identity()) if self.inner is None else self.inner.key(tx)
        return UserKey(tx, self, self.tp_hash(tx).as_constant())

    def tp_repr(self, tx: Any) -> VariableTracker:
        method = self.special(tx, "__repr__")
        if method is not None:
            return tx.checked_text("__repr__", tx.call(method, []))
        if isinstance(self.inner, ConstantVariable):
            return self.inner.tp_repr(tx)
        return tx.repr_of_container(self) if self.inner is not None else tx.default_repr(self)

    def tp_str(self, tx: Any) -> VariableTracker:
        method = self.special(tx, "__str__")
        if method is not None:
            return tx.checked_text("__str__", tx.call(method, []))
        if isinstance(self.inner, ConstantVariable) and not special_is_python(tx, self.cls, "__repr__"):
            return self.inner.tp_str(tx)
        return self.tp_repr(tx)

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        method = self.special(tx, "__format__")
        if method is not None:
            return tx.checked_text("__format__", tx.call(method, [tx.wrap(spec)]))
        if isinstance(self.inner, ConstantVariable) and spec and self.inner.py_type() is not bytes:
            return self.inner.tp_format(tx, spec)           # without a spec they ask PyObject_Str
        if spec:
            tx.raise_(TypeError, f"unsupported format string passed to {tp_name(self.cls)}.__format__")
        return self.tp_str(tx)

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        """A user's own descriptor found in a class."""
        getter = self.special(tx, "__get__")
        part = self.inner
        if getter is None and part is not None and part.descr_get is not None:
            return part.descr_get(tx, self, obj)
        if getter is None and part is not None and part.tp_descr_get is not None:     # a property's subclass
            found = part.tp_descr_get(tx, obj, cls)
            return self if found is part else found
        if getter is None:
            return tx.unsupported(self, "__get__()") if hasattr(self.cls, "__get__") else self
        return tx.call(getter, [obj if obj is not None else tx.wrap(None), tx.class_of(cls)])

    def tp_descr_set(self, tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
        name = "__set__" if value is not None else "__delete__"
        setter = self.special(tx, name)
        if setter is None and self.inner is not None and self.inner.tp_descr_set is not None:
            self.inner.tp_descr_set(tx, obj, value)
            return
        if setter is None:
            if hasattr(self.cls, name):
                tx.unsupported(self, f"{name}()")
            tx.raise_(AttributeError, name)
        tx.call(setter, [obj] if value is None else [obj, value])

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        if self.inner is None or special_is_python(tx, self.cls, "__iter__") or self.inner.fast_items is None:
            return None
        return self.inner.fast_items(tx)

    def string_items(self, tx: Any) -> dict[str, VariableTracker]:
        """As keyword arguments: any mapping with ``keys`` and ``__getitem__``."""
        return tx.mapping_to_kwargs(self)

    def as_constant(self) -> Any:
        raise NotConstant(self)


def inner_children(inner: VariableTracker | None) -> list[VariableTracker]:
    """What the builtin part holds; a number or text holds nothing."""
    return [] if inner is None else inner.children()


def as_hash(value: int) -> int:
    """What ``hash()`` makes of an int that ``__hash__`` returned (slot_tp_hash)."""
    class Carrier:
        def __hash__(self) -> int:
            return value
    return hash(Carrier())


class UserKey:
    """Key of an object with its own ``__eq__`` or ``__hash__``: dict look-ups run the user's code, in CPython's order."""

    __slots__ = ("tx", "value", "hash", "made_at")

    def __init__(self, tx: Any, value: VariableTracker, hash: int) -> None:
        self.tx, self.value, self.hash, self.made_at = tx, value, hash, tx.root_step

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, UserKey):
            return compare.same_or_equal(self.tx, self.value, other.value)
        if isinstance(other, IdKey):
            return False
        return compare.truth(self.tx, compare.compare(self.tx, "==", self.value, self.tx.wrap(other)))


def raw_slot_is_set(raw: types.MemberDescriptorType, obj: Any) -> bool:
    try:
        raw.__get__(obj)
    except AttributeError:
        return False
    return True


def attrs_static(cls: type, name: str) -> Any:
    for klass in cls.__mro__:
        if name in vars(klass):
            return vars(klass)[name]
    return None


def c_owner(cls: type, name: str) -> bool:
    """Whether a builtin other than object provides `name` before any Python ``__eq__``."""
    for klass in cls.__mro__[:-1]:
        if "__eq__" in vars(klass):
            return name in vars(klass)
    return False


def set_instance_dict(obj: Any, namespace: dict) -> None:
    """subtype_setdict, whatever the class has under the name."""
    raws = [vars(klass).get("__dict__") for klass in type(obj).__mro__]
    next(raw for raw in raws if isinstance(raw, types.GetSetDescriptorType)).__set__(obj, namespace)


def object_dict(tx: Any, obj: ObjectVariable) -> VariableTracker:
    if isinstance(attrs_static(obj.cls, "__dict__"), property) or not obj.has_instance_dict():
        value = generic_getattr(tx, obj, "__dict__")
        if value is None:
            attribute_error(tx, obj, "__dict__")
        return value
    return tx.instance_namespace(obj)


OBJECT_ATTRIBUTES = {
    "__class__": lambda tx, obj: tx.type_of(obj)
    if type_lookup(tx, obj.cls, "__class__").owner is object else generic_getattr(tx, obj, "__class__"),
    "__dict__": object_dict,
}

IMMUTABLE_BASES = (tuple, frozenset, str, bytes, int, float, complex)


def builtin_base(cls: type) -> type:
    """The most derived builtin class an instance's memory comes from."""
    for klass in cls.__mro__:
        if klass.__flags__ & IMMUTABLE_TYPE or adopt(klass):        # a class statement makes none that is immutable
            return klass
    return object


def fill_builtin_part(out: Any, obj: ObjectVariable) -> None:
    """Write the builtin part of a new object through the base class's own methods."""
    base = obj.inner.owner
    if issubclass(base, dict):
        for key, value in obj.inner.entries.values():
            out.call_function(base.__setitem__, obj, key, value)
            out.op("POP")
        return
    items = inner_children(obj.inner)
    out.begin_call_of(list.extend if base is list else base.update)
    out.load(obj)
    for item in items:
        out.load(item)
    out.op("BUILD_TUPLE", len(items))
    out.call(2)
    out.op("POP")


INSTANCE_KINDS: dict[type, type[ObjectVariable]] = {}     # base class -> kind of its instances made while tracing


def kind_of_instance(cls: type) -> type[ObjectVariable]:
    return next((INSTANCE_KINDS[base] for base in cls.__mro__ if base in INSTANCE_KINDS), ObjectVariable)


def is_user_object(obj: Any) -> bool:
    """An instance of a class defined in Python, whose memory is object's or a modelled builtin's."""
    cls = type(obj)
    return not is_static(cls) and builtin_base(cls) is object and not issubclass(cls, type) \
        and cls.__module__ != "builtins" and not has_own_access(cls)


def has_own_access(cls: type) -> bool:
    """Whether a C base reads or writes attributes in its own way, as threading.local does; object's slots refuse it."""
    return any(type(vars(klass).get(name)) is types.WrapperDescriptorType
               for klass in cls.__mro__[:-1] for name in ("__getattribute__", "__setattr__"))


@builds_when("user object", is_user_object)
def build_object(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    return ObjectVariable(type(obj), obj, source)


