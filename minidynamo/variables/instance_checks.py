"""isinstance() and issubclass(), to the letter of Objects/abstract.c."""
from __future__ import annotations

import abc
import weakref
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import Predicate
from minidynamo.model.tables import meaning
from minidynamo.model.variable import VariableTracker, is_subtype, real
from minidynamo.protocol import attrs, compare
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import TupleVariable

NOT_A_CLASS = {"isinstance": "isinstance() arg 2 must be a type, a tuple of types, or a union",
               "issubclass": "issubclass() arg 2 must be a class, a tuple of classes, or a union"}
SYSTEM_HOOKS = frozenset({"_collections_abc", "collections.abc", "abc", "typing", "numbers", "io", "os"})


@meaning(isinstance)
def call_isinstance(tx, obj, classes, /):
    return ConstantVariable(is_instance(tx, obj, classes))


@meaning(issubclass)
def call_issubclass(tx, cls, classes, /):
    return ConstantVariable(is_subclass(tx, cls, classes))


def alternatives(tx: Any, classes: VariableTracker) -> list[VariableTracker] | None:
    """The parts of a tuple or a union of classes; None for anything else."""
    if isinstance(classes, TupleVariable):
        return [real(tx, part) for part in classes.items]
    return tx.union_members(classes)


def is_instance(tx: Any, obj: VariableTracker, cls: VariableTracker) -> bool:
    """object_recursive_isinstance."""
    if isinstance(cls, ClassVariable):
        if obj.py_type() is cls.cls:
            return True
        if type(cls.cls) is type:
            return object_isinstance(tx, obj, cls)
    tx.refuse_checks(cls, "isinstance")
    parts = alternatives(tx, cls)
    if parts is not None:
        return any(is_instance(tx, obj, part) for part in parts)
    return by_hook(tx, "__instancecheck__", obj, cls, object_isinstance)


def is_subclass(tx: Any, derived: VariableTracker, cls: VariableTracker) -> bool:
    """object_issubclass."""
    if isinstance(cls, ClassVariable) and type(cls.cls) is type:
        return derived is cls or recursive_issubclass(tx, derived, cls)
    tx.refuse_checks(cls, "issubclass")
    parts = alternatives(tx, cls)
    if parts is not None:
        return any(is_subclass(tx, derived, part) for part in parts)
    return by_hook(tx, "__subclasscheck__", derived, cls, recursive_issubclass)


def by_hook(tx: Any, name: str, obj: VariableTracker, cls: VariableTracker, plain: Any) -> bool:
    """What the type of `cls` says, or the plain rule."""
    kind = cls.py_type()
    found = attrs.type_lookup(tx, kind, name)
    if found is None or found.value is None and found.raw is vars(type)[name]:
        return plain(tx, obj, cls)
    if found.value is None and found.raw is vars(abc.ABCMeta).get(name) and isinstance(cls, ClassVariable):
        return abstract_check(tx, name, obj, cls)
    return compare.truth(tx, tx.call(attrs.describe(tx, found, cls, kind), [obj]))


def abstract_check(tx: Any, name: str, obj: VariableTracker, cls: ClassVariable) -> bool:
    """ABCMeta's checks: real ones, on real classes, where no hook of the user's takes part."""
    if name == "__subclasscheck__" and not isinstance(obj, ClassVariable):
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    hook = attrs.type_lookup(tx, cls.cls, "__subclasshook__")
    owner = hook.owner.__module__
    if owner not in SYSTEM_HOOKS and hook.owner is not object:
        answer = tx.call(attrs.describe(tx, hook, None, cls.cls), [obj if name == "__subclasscheck__" else tx.type_of(obj)])
        if not (isinstance(answer, ConstantVariable) and answer.value is NotImplemented):
            return compare.truth(tx, answer)
        tx.stop(reasons.UNSUPPORTED_CALL, call=name, kind="an abstract class with its own __subclasshook__")
    if name == "__instancecheck__" and claimed_class(tx, obj) is not None:
        tx.stop(reasons.UNSUPPORTED_CALL, call=name, kind="an object that claims another class")
    kind = obj.cls if name == "__subclasscheck__" else obj.py_type()
    answer = issubclass(kind, cls.cls)
    if id(kind) not in tx.made_classes and id(cls.cls) not in tx.made_classes:      # register() may change it
        tx.guard(Predicate(tx.builtins_source, StillSubclass(kind, cls.cls, answer),
                           f"issubclass({kind.__qualname__}, {cls.cls.__qualname__}) is {answer}"))
    return answer


class StillSubclass:
    """Predicate: what an abstract class said about a class; both are held weakly."""

    def __init__(self, kind: type, cls: type, answer: bool) -> None:
        self.kind, self.cls, self.answer = weakref.ref(kind), weakref.ref(cls), answer

    def __call__(self, _: Any) -> bool:
        kind, cls = self.kind(), self.cls()
        return kind is not None and cls is not None and issubclass(kind, cls) is self.answer


# ---------------------------------------------------------------- the plain rules
def object_isinstance(tx: Any, obj: VariableTracker, cls: VariableTracker) -> bool:
    """object_isinstance: the type, then what ``__class__`` says."""
    if isinstance(cls, ClassVariable):
        if is_subtype(obj.py_type(), cls.cls):
            return True
        claimed = claimed_class(tx, obj)
        return claimed is not None and claimed.cls is not obj.py_type() and is_subtype(claimed.cls, cls.cls)
    bases_or_error(tx, cls, "isinstance")
    claimed = attrs.getattr_or_none(tx, obj, "__class__")
    return claimed is not None and abstract_issubclass(tx, claimed, cls)


def claimed_class(tx: Any, obj: VariableTracker) -> ClassVariable | None:
    """``obj.__class__`` where user code may answer; None where it is the type."""
    if not isinstance(obj, ObjectVariable):
        return None
    found = attrs.type_lookup(tx, obj.cls, "__class__")
    if found.owner is object and not attrs.special_is_python(tx, obj.cls, "__getattribute__"):
        return None
    value = attrs.getattr_or_none(tx, obj, "__class__")
    return value if isinstance(value, ClassVariable) else None


def recursive_issubclass(tx: Any, derived: VariableTracker, cls: VariableTracker) -> bool:
    """recursive_issubclass: two classes by MRO, others by ``__bases__``."""
    if isinstance(derived, ClassVariable) and isinstance(cls, ClassVariable):
        return type.__subclasscheck__(cls.cls, derived.cls)
    if abstract_bases(tx, derived) is None:
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    bases_or_error(tx, cls, "issubclass")
    return abstract_issubclass(tx, derived, cls)


@meaning(vars(type)["__instancecheck__"])
def call_type_instancecheck(tx, cls, obj, /):
    """What ``super().__instancecheck__(obj)`` of a metaclass comes to (type___instancecheck__)."""
    return ConstantVariable(object_isinstance(tx, obj, cls))


@meaning(vars(type)["__subclasscheck__"])
def call_type_subclasscheck(tx, cls, derived, /):
    return ConstantVariable(recursive_issubclass(tx, derived, cls))


def abstract_bases(tx: Any, value: VariableTracker) -> list[VariableTracker] | None:
    """abstract_get_bases: ``value.__bases__`` if it is a tuple."""
    bases = attrs.getattr_or_none(tx, value, "__bases__")
    return [real(tx, b) for b in bases.items] if isinstance(bases, TupleVariable) else None


def bases_or_error(tx: Any, cls: VariableTracker, what: str) -> None:
    if abstract_bases(tx, cls) is None:
        tx.raise_(TypeError, NOT_A_CLASS[what])


def abstract_issubclass(tx: Any, derived: VariableTracker, cls: VariableTracker) -> bool:
    """abstract_issubclass: depth first over ``__bases__``."""
    if compare.is_same(tx, derived, cls):
        return True
    return any(abstract_issubclass(tx, base, cls) for base in abstract_bases(tx, derived) or [])
