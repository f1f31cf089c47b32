"""C slots and constructors called by name: ``list.__len__(x)``, ``object.__setattr__(x, n, v)``, ``dict.__new__(C)``."""
from __future__ import annotations

import collections
import types
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.code import facts
from minidynamo.model.services import service
from minidynamo.model.slots import BINARY_DUNDER, COMPARE_DUNDER
from minidynamo.model.tables import meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol import attrs, calls, compare, iters
from minidynamo.variables import exception_fields, exception_groups, exceptions
from minidynamo.variables.classes import ClassVariable, type_call
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.buffers import BytearrayVariable
from minidynamo.variables.deques import DequeVariable
from minidynamo.variables.descriptors import PropertyVariable
from minidynamo.variables.exceptions import ExceptionVariable
from minidynamo.variables.iterators import IteratorVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.objects import kind_of_instance, ObjectVariable, builtin_base
from minidynamo.variables.ordered import DefaultDictVariable, OrderedDictVariable
from minidynamo.variables.sequences import ListVariable, TuplePart, inner
from minidynamo.variables.sets import FrozensetVariable, SetVariable

NOT_IMPLEMENTED = ConstantVariable(NotImplemented)


def returned(result: Any) -> VariableTracker:
    """A slot's Python-level NotImplemented as a value."""
    return NOT_IMPLEMENTED if result is NotImplemented else result


def binary_slot(symbol: str, reflected: bool) -> Any:
    return lambda tx, self, other: returned(inner(self).nb_binary(tx, symbol, other, reflected))


def inplace_slot(symbol: str) -> Any:
    def call(tx, self, other):
        result = inner(self).nb_inplace(tx, symbol + "=", other)
        return self if result is inner(self) else returned(result)
    return call


def compare_slot(symbol: str) -> Any:
    return lambda tx, self, other: returned(inner(self).tp_richcompare(tx, symbol, inner(other)))


def unary_slot(symbol: str) -> Any:
    return lambda tx, self: inner(self).nb_unary(tx, symbol)


def divmod_slot(name: str) -> Any:
    def call(tx, self, other):
        """long_divmod and float_divmod, asked on the numbers themselves; other types have their own."""
        if not issubclass(self.py_type(), (int, float)):
            return tx.unsupported(self, "divmod()")
        pair = compare.constants(inner(self), inner(other))
        if pair is None:
            unknown = [v for v in (inner(self), inner(other)) if issubclass(v.py_type(), (int, float))
                       and v.__class__ is not ConstantVariable]
            return tx.unsupported(unknown[0], "divmod()") if unknown else NOT_IMPLEMENTED
        try:
            result = getattr(type(pair[0]), name)(*pair)
        except ZeroDivisionError as error:
            tx.raise_real(error)
        return NOT_IMPLEMENTED if result is NotImplemented else tx.wrap_tuple([tx.wrap(part) for part in result])
    return call


def next_slot(tx: Any, self: VariableTracker) -> VariableTracker:
    value = inner(self).tp_iternext(tx)
    if value is None:
        tx.raise_stop_iteration(self)
    return real(tx, value)


def set_slot(tx: Any, self: VariableTracker, key: VariableTracker, value: VariableTracker) -> VariableTracker:
    inner(self).mp_ass_subscript(tx, key, value)
    return NONE


def delete_slot(tx: Any, self: VariableTracker, key: VariableTracker) -> VariableTracker:
    inner(self).mp_ass_subscript(tx, key, None)
    return NONE


def contains_slot(tx: Any, self: VariableTracker, item: VariableTracker) -> VariableTracker:
    return inner(self).sq_contains(tx, item) or tx.unsupported(self, "in")


# What a wrapper descriptor of a builtin type does, by its name; the builtin part answers.
SLOTS: dict[str, Any] = {
    "__len__": lambda tx, self: inner(self).sq_length(tx),
    "__iter__": lambda tx, self: tx.base_iterator(self),
    "__next__": next_slot,
    "__getitem__": lambda tx, self, key: (self.base_subscript if isinstance(self, ObjectVariable)
                                          else self.mp_subscript)(tx, key),
    "__setitem__": set_slot,
    "__delitem__": delete_slot,
    "__contains__": contains_slot,
    "__hash__": lambda tx, self: inner(self).tp_hash(tx),
    "__repr__": lambda tx, self: inner(self).tp_repr(tx),
    "__str__": lambda tx, self: inner(self).tp_str(tx),
    "__bool__": lambda tx, self: inner(self).nb_bool(tx),
    "__call__": lambda tx, self, *args, **kwargs: self.tp_call(tx, list(args), kwargs),
    "__divmod__": divmod_slot("__divmod__"), "__rdivmod__": divmod_slot("__rdivmod__"),
    "__neg__": unary_slot("-"), "__pos__": unary_slot("+"), "__invert__": unary_slot("~"), "__abs__": unary_slot("abs"),
    "__int__": unary_slot("int"), "__float__": unary_slot("float"), "__index__": unary_slot("index"),
    **{f"__{stem}__": binary_slot(symbol, False) for symbol, stem in BINARY_DUNDER.items()},
    **{f"__r{stem}__": binary_slot(symbol, True) for symbol, stem in BINARY_DUNDER.items()},
    **{f"__i{stem}__": inplace_slot(symbol) for symbol, stem in BINARY_DUNDER.items()},
    **{name: compare_slot(symbol) for symbol, name in COMPARE_DUNDER.items()},
}


# ---------------------------------------------------------------- object's own
def object_getattribute(tx, self, name, /):
    text = name.as_constant()
    if isinstance(self, ClassVariable):
        return tx.unsupported(self, "object.__getattribute__")
    if isinstance(self, ObjectVariable):
        if text == "__dict__" and self.has_instance_dict():
            return tx.instance_namespace(self)
        if text == "__class__":
            return tx.type_of(self)
        value = attrs.generic_getattr(tx, self, text)
        return attrs.attribute_error(tx, self, text) if value is None else value
    return self.tp_getattro(tx, text)


def object_setattr(tx, self, name, value=None, /):
    if isinstance(self, ExceptionVariable) and value is not None and name.as_constant() in exceptions.EXCEPTION_WRITERS:
        exceptions.EXCEPTION_WRITERS[name.as_constant()](tx, self, value)
    elif isinstance(self, ObjectVariable):
        attrs.generic_setattr(tx, self, name.as_constant(), value)
    else:
        self.tp_setattro(tx, name.as_constant(), value)
    return NONE


def object_eq(tx, self, other, /):
    return ConstantVariable(True) if compare.is_same(tx, self, other) else NOT_IMPLEMENTED


def object_ne(tx, self, other, /):
    result = self.tp_richcompare(tx, "==", other)
    return NOT_IMPLEMENTED if result is NotImplemented else ConstantVariable(not compare.truth(tx, result))


def object_init(tx, self, *args, **kwargs):
    """object_init: arguments are refused by whoever does not override the other half."""
    if args or kwargs:
        cls = self.py_type()
        if not keeps(tx, cls, "__init__"):
            tx.raise_(TypeError, "object.__init__() takes exactly one argument (the instance to initialize)")
        if keeps(tx, cls, "__new__"):
            tx.raise_(TypeError, f"{cls.__name__}.__init__() takes exactly one argument (the instance to initialize)")
    return NONE


def check_object_new(tx: Any, cls: type) -> None:
    """object_new, given arguments."""
    if not keeps(tx, cls, "__new__"):
        tx.raise_(TypeError, "object.__new__() takes exactly one argument (the type to instantiate)")
    if keeps(tx, cls, "__init__"):
        tx.raise_(TypeError, f"{cls.__name__}() takes no arguments")


def keeps(tx: Any, cls: type, name: str) -> bool:
    """Whether the class has object's own `name`."""
    return attrs.type_lookup(tx, cls, name).owner is object


def object_hash(tx, self, /):
    return tx.hash_by_address(self)


def object_init_subclass(tx, cls, /, *args, **kwargs):
    if args or kwargs:
        words = "keyword arguments" if kwargs else f"arguments ({len(args)} given)"
        tx.raise_(TypeError, f"{cls.cls.__name__}.__init_subclass__() takes no {words}")
    return NONE


OBJECT_SLOTS: dict[str, Any] = {
    "__getattribute__": object_getattribute, "__setattr__": object_setattr, "__delattr__": object_setattr,
    "__eq__": object_eq, "__ne__": object_ne, "__init__": object_init, "__hash__": object_hash,
    "__repr__": lambda tx, self: tx.default_repr(self),
    "__str__": lambda tx, self: self.tp_repr(tx),
    **{name: (lambda tx, self, other: NOT_IMPLEMENTED) for name in ("__lt__", "__le__", "__gt__", "__ge__")},
}


def object_format(tx, self, spec, /):
    if spec.as_constant():
        tx.raise_(TypeError, f"unsupported format string passed to {tp_name(self.py_type())}.__format__")
    return tx.to_str(self)


meaning(vars(object)["__format__"])(object_format)
meaning(vars(object)["__init_subclass__"])(object_init_subclass)


# What the constructors of containers call themselves where there are too many arguments; None: by the class's name.
NAMES = {list: "list", tuple: "tuple", dict: "dict", set: None, frozenset: None}


def check_part_arguments(tx: Any, cls: type, base: type, other: str, args: list, kwargs: dict) -> None:
    """At most one argument, and no names unless the class has an `other` constructor method of its own."""
    if base not in NAMES:
        return
    if kwargs and base is not dict and (base is set or getattr(cls, other) is getattr(base, other)):
        tx.raise_(TypeError, f"{base.__name__}() takes no keyword arguments")
    if len(args) > 1:
        tx.raise_(TypeError, f"{NAMES[base] or cls.__name__} expected at most 1 argument, got {len(args)}")


def container_init(tx: Any, self: VariableTracker, args: list, kwargs: dict) -> VariableTracker | None:
    """list.__init__, dict.__init__, set.__init__ on a subclass's builtin part; None for other C types."""
    part = inner(self)
    check_part_arguments(tx, self.py_type(), getattr(part, "owner", object), "__new__", args, kwargs)
    if part.init is not None:
        part.init(tx, self, args, kwargs)
    elif isinstance(part, DictVariable):
        if args:
            part.update(tx, args[0])
        for name, value in kwargs.items():
            part.set_item(tx, tx.wrap(name), value)
    elif isinstance(part, ListVariable):
        part.store(tx, iters.listed(tx, args[0]) if args else [])
    elif isinstance(part, SetVariable):
        part.replace(tx, {})
        if args:
            part.update(tx, args[0])
    else:
        return None             # C state that is not modelled
    return NONE


def call_slot_wrapper(tx: Any, raw: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """A wrapper descriptor (or ``__getitem__``-like method) of a builtin type; None if it has no meaning here."""
    owner = getattr(raw, "__objclass__", None)
    if owner is None or not args or isinstance(raw, types.ClassMethodDescriptorType):
        return None
    name, self = raw.__name__, args[0]
    if not issubclass(self.py_type(), owner):
        tx.raise_(TypeError, f"descriptor '{name}' requires a '{owner.__name__}' object but received "
                             f"a '{self.py_type().__name__}'")
    if owner is object:
        slot = OBJECT_SLOTS.get(name)
        return None if slot is None else slot(tx, *args, **kwargs)
    if owner is type:
        return class_slot(tx, name, args, kwargs)
    if name == "__init__":
        if issubclass(owner, BaseException):
            exception_fields.init_exception(tx, self, args[1:], kwargs)
            return NONE
        return container_init(tx, self, args[1:], kwargs)
    if issubclass(owner, BaseException):
        return exception_slot(tx, name, args)
    if name in ("__getattribute__", "__setattr__", "__delattr__"):
        return OBJECT_SLOTS[name](tx, *args)
    slot = SLOTS.get(name)
    return None if slot is None else calls.call_meaning(tx, slot, raw, args, kwargs)


def exception_slot(tx: Any, name: str, args: list) -> VariableTracker | None:
    self = args[0]
    if name in ("__str__", "__repr__"):
        plain = ExceptionVariable(exceptions.builtin_exception(self.py_type()), self.args)
        if name == "__str__":
            return plain.tp_str(tx)
        return ConstantVariable(plain.tp_repr(tx).as_constant().replace(plain.cls.__name__, self.py_type().__name__, 1))
    return object_setattr(tx, *args) if name in ("__setattr__", "__delattr__") else (
        object_getattribute(tx, *args) if name == "__getattribute__" else None)


def class_slot(tx: Any, name: str, args: list, kwargs: dict) -> VariableTracker | None:
    """type.__call__, type.__getattribute__, type.__setattr__ as a metaclass reaches them."""
    cls = args[0]
    if name == "__call__":
        return type_call(tx, cls, args[1:], kwargs)
    if name == "__init__":
        return type_init(tx, args[1:], kwargs)
    if name == "__getattribute__":
        return cls.tp_getattro(tx, args[1].as_constant())
    if name == "__repr__":
        return ConstantVariable(type.__repr__(cls.cls))
    if name in ("__setattr__", "__delattr__"):
        cls.set_own(tx, args[1].as_constant(), args[2] if name == "__setattr__" else None)
        return NONE
    return None


def type_init(tx: Any, args: list, kwargs: dict) -> VariableTracker:
    """type_init: the work was done by ``type.__new__``."""
    if len(args) == 1 and kwargs:
        tx.raise_(TypeError, "type.__init__() takes no keyword arguments")
    if len(args) not in (1, 3):
        tx.raise_(TypeError, "type.__init__() takes 1 or 3 arguments")
    return NONE


# ---------------------------------------------------------------- constructors
@service
def new_instance(tx: Any, cls: ClassVariable, base: type, args: list, kwargs: dict) -> VariableTracker:
    """``base.__new__(cls, ...)`` where `base` is the C class that has the ``__new__``."""
    made = cls.cls
    if made.__flags__ & (1 << 20):            # Py_TPFLAGS_IS_ABSTRACT
        names = sorted(made.__abstractmethods__)
        words, quote = ("without an implementation for", "'") if facts.ABSTRACT_METHODS_ARE_QUOTED else ("with", "")
        tx.raise_(TypeError, f"Can't instantiate abstract class {made.__name__} {words} abstract method"
                             f"{'s' if len(names) > 1 else ''} {', '.join(quote + name + quote for name in names)}")
    if base is type:
        return tx.type_new(cls, args, kwargs)
    if issubclass(made, BaseExceptionGroup):
        return exception_groups.new_group(tx, made, args, kwargs)
    if issubclass(base, BaseException):
        return exception_fields.new_exception(tx, made, args)
    if base is object:
        if builtin_base(made) is not object:
            tx.stop(reasons.METACLASS_CALL, name=made.__qualname__, why="its memory is not object's")
        if args or kwargs:
            check_object_new(tx, made)
        check_finalizer(tx, made)
        instance = kind_of_instance(made)(made)
        instance.made_at = tx.root_step
        return instance
    kind = kind_of_instance(made)
    if hasattr(kind, "new"):
        check_finalizer(tx, made)
        return kind.new(tx, made)                   # type: ignore[no-any-return]
    real_base = builtin_base(made)                  # OrderedDict inherits dict's __new__
    maker = PARTS.get(real_base if issubclass(real_base, base) else base)
    if maker is None or made is base:
        return tx.call_unknown_c(made, args, kwargs)
    if real_base is float and made.__init__ is not float.__init__:
        kwargs = {}                                   # float_new leaves names to a subclass's own __init__
    if real_base in (tuple, frozenset):
        check_part_arguments(tx, made, real_base, "__init__", args, kwargs)
    check_finalizer(tx, made)
    part = maker(tx, args, kwargs)
    if part.belongs_to is not None:
        part.belongs_to(made)
    instance = ObjectVariable(made, inner=part)
    instance.made_at = tx.root_step
    return instance


def check_finalizer(tx: Any, cls: type) -> None:
    """slot_tp_finalize: ``__del__`` runs when the last reference goes."""
    if attrs.type_lookup(tx, cls, "__del__") is not None:
        raise tx.dropped(cls.__qualname__, tx.frame is tx.root)


def literal_part(base: type) -> Any:
    def make(tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return tx.call(tx.class_of(base), args, kwargs)
    return make


def iterator_part(base: type) -> Any:
    """The iterator inside an instance of a subclass; such an instance cannot be made again."""
    return lambda tx, args, kwargs: OnlyInside(tx.call(tx.class_of(base), args, kwargs), base)


class OnlyInside(IteratorVariable):
    """An iterator that is the builtin part of an object made while tracing."""

    __slots__ = ("iterator", "cls")

    def __init__(self, iterator: VariableTracker, base: type) -> None:
        self.iterator, self.cls, self.source = iterator, base, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        return self.iterator.tp_iternext(tx)

    def children(self) -> list[VariableTracker]:
        raise CannotRebuild(self, "an instance of a subclass of an iterator type")


PARTS: dict[type, Any] = {
    list: lambda tx, args, kwargs: ListVariable([]),
    dict: lambda tx, args, kwargs: DictVariable({}),
    collections.OrderedDict: lambda tx, args, kwargs: OrderedDictVariable({}),
    collections.defaultdict: lambda tx, args, kwargs: DefaultDictVariable({}, NONE),
    collections.deque: lambda tx, args, kwargs: DequeVariable([], None),
    bytearray: lambda tx, args, kwargs: BytearrayVariable(b""),
    property: lambda tx, args, kwargs: PropertyVariable.of(NONE, NONE, NONE, NONE),
    **{base: iterator_part(base) for base in (enumerate, zip, map, filter, reversed)},
    set: lambda tx, args, kwargs: SetVariable({}),
    tuple: lambda tx, args, kwargs: TuplePart(iters.listed(tx, args[0]) if args else []),
    frozenset: lambda tx, args, kwargs: FrozensetVariable.of_items(
        tx, [real(tx, i) for i in iters.collect(tx, args[0])] if args else []),
    **{base: literal_part(base) for base in (int, float, complex, str, bytes)},
}


FILLED_BY_INIT = (list, dict, set, bytearray, collections.OrderedDict, collections.defaultdict, collections.deque)


def c_new(tx: Any, raw: types.BuiltinFunctionType, args: list, kwargs: dict) -> VariableTracker:
    """A call of ``C.__new__`` itself: the class is the first argument."""
    cls = args[0]
    if not isinstance(cls, ClassVariable):
        tx.raise_(TypeError, f"{raw.__self__.__name__}.__new__(X): X is not a type object ({cls.py_type().__name__})")
    if cls.cls is raw.__self__ and raw.__self__ is not object and not issubclass(cls.cls, BaseException):
        if cls.cls in FILLED_BY_INIT:
            return tx.call(cls, [])
        return tx.call(cls, args[1:], kwargs)
    return new_instance(tx, cls, raw.__self__, args[1:], kwargs)
