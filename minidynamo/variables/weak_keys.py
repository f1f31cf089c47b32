"""A WeakKeyDictionary made while tracing, with classes as keys, and what ABCs say of themselves: functools.singledispatch.

A class is held by itself (its MRO), so it dies in a garbage collection only: at no moment that a program can rely on.
Keys of other kinds die when their last reference goes, which only Python knows.
"""
from __future__ import annotations

import _abc
import weakref
from typing import Any

from minidynamo.guards.kinds import Predicate
from minidynamo.model.tables import meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import ListVariable

WeakKeys = weakref.WeakKeyDictionary
OWN = frozenset(vars(WeakKeys()))


class WeakKeysVariable(ObjectVariable):
    """A WeakKeyDictionary made while tracing."""

    __slots__ = ("items",)
    kind = "dictionary of weak keys"

    def __init__(self) -> None:
        super().__init__(WeakKeys)
        self.items = DictVariable({})

    def children(self) -> list[VariableTracker]:
        return self.items.children()

    def rebuild(self, out: Any) -> None:
        self.create(out)
        out.keep(self)
        self.fill(out)

    def create(self, out: Any) -> None:
        out.call_function(WeakKeys)

    def fill(self, out: Any) -> None:
        for key, value in self.items.entries.values():
            out.call_function(WeakKeys.__setitem__, self, key, value)
            out.op("POP")

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        return tx.unsupported(self, f".{name}") if name in OWN else None      # type: ignore[no-any-return]

    def instance_set(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        tx.unsupported(self, f".{name} = ...")


class ClassReference(HashedByIdentity):
    """The weak reference in the KeyError for a class that is no key."""

    __slots__ = ("cls",)
    kind = "weak reference"

    def __init__(self, cls: VariableTracker) -> None:
        self.cls, self.source = cls, None

    def py_type(self) -> type:
        return weakref.ref

    def children(self) -> list[VariableTracker]:
        return [self.cls]

    def rebuild(self, out: Any) -> None:
        out.call_function(weakref.ref, self.cls)


@meaning(WeakKeys)
def call_weak_keys(tx, dict=None):
    if dict is not None and dict.py_type() is not type(None):
        return None
    made = WeakKeysVariable()
    made.made_at = tx.root_step
    return made


def only_classes(method: Any) -> Any:
    """The method of a dictionary of this kind; anything but a class is Python's to keep."""
    def call(tx, self, *args):
        if not isinstance(self, WeakKeysVariable):
            return None
        if args and not isinstance(args[0], ClassVariable):
            raise CannotRebuild(self, "one whose keys may die at any time")        # so Python makes it from the start
        return method(tx, self.items, *args)
    return call


def get_item(tx: Any, items: DictVariable, key: VariableTracker) -> VariableTracker:
    value = items.find(tx, key)
    if value is None:
        tx.raise_(KeyError, ClassReference(key))
    return value                    # type: ignore[return-value]


def get(tx: Any, items: DictVariable, key: VariableTracker, default: VariableTracker = NONE) -> VariableTracker:
    value = items.find(tx, key)
    return default if value is None else value


def set_item(tx: Any, items: DictVariable, key: VariableTracker, value: VariableTracker) -> VariableTracker:
    items.set_item(tx, key, value)
    return NONE


def delete_item(tx: Any, items: DictVariable, key: VariableTracker) -> VariableTracker:
    if items.delete_item(tx, key) is None:
        tx.raise_(KeyError, ClassReference(key))
    return NONE


def clear(tx: Any, items: DictVariable) -> VariableTracker:
    items.replace(tx, {})
    return NONE


METHODS = {"__getitem__": get_item, "get": get, "__setitem__": set_item, "__delitem__": delete_item, "clear": clear,
           "__contains__": lambda tx, items, key: items.sq_contains(tx, key), "__len__": lambda tx, items: items.sq_length(tx)}
for name_, method_ in METHODS.items():
    meaning(getattr(WeakKeys, name_))(only_classes(method_))


# ---------------------------------------------------------------- abstract classes
class TokenIs:
    """Predicate: no class has been registered with an abstract one since."""

    def __init__(self) -> None:
        self.token = _abc.get_cache_token()

    def __call__(self, _: Any) -> bool:
        return _abc.get_cache_token() == self.token


@meaning(_abc.get_cache_token)
def call_cache_token(tx):
    fact = TokenIs()
    tx.guard(Predicate(tx.builtins_source, fact, f"abc.get_cache_token() is {fact.token}"))
    return ConstantVariable(fact.token)


class SubclassesAre:
    """Predicate: the subclasses of a class, which is held weakly, by identity."""

    def __init__(self, cls: type, ids: list[int]) -> None:
        self.cls, self.ids = weakref.ref(cls), ids

    def __call__(self, _: Any) -> bool:
        cls = self.cls()
        return cls is not None and list(map(id, type.__subclasses__(cls))) == self.ids


@meaning(type.__subclasses__)
def call_subclasses(tx, cls, /):
    """type___subclasses___impl."""
    found = type.__subclasses__(cls.cls)
    if id(cls.cls) not in tx.made_classes:
        outside = [id(c) for c in found if id(c) not in tx.made_classes]
        tx.guard(Predicate(tx.builtins_source, SubclassesAre(cls.cls, outside), f"{cls.cls.__qualname__}.__subclasses__()"))
    return ListVariable([real(tx, tx.class_of(c)) for c in found])
