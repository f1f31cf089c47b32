"""Weak references: calling one gives the object it refers to, or None; making one to an object of the user's is a path."""
from __future__ import annotations

import types
import weakref
from typing import Any, NoReturn

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.services import service
from minidynamo.model.tables import builds, meaning
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import compare
from minidynamo.sources import Fetch
from minidynamo.variables.bases import TypeAttributesOnly
from minidynamo.variables.constants import ConstantVariable

TARGET = weakref.ref.__call__


class WeakrefVariable(TypeAttributesOnly):
    """``weakref.ref`` of a user's object; it may be the user's own or be made by the program, which is one thing.

    Without a callback an object has one reference to it (get_basic_refs), so ``weakref.ref(obj)`` is a path from `obj`.
    """

    __slots__ = ("obj", "referent")
    kind = "weak reference"

    def __init__(self, obj: Any, source: Any, referent: VariableTracker | None = None) -> None:
        self.obj, self.source, self.referent = obj, source, referent

    def py_type(self) -> type:
        return type(self.obj)

    def children(self) -> list[VariableTracker]:
        return [] if self.referent is None else [self.referent]

    def rebuild(self, out: Any) -> None:
        out.call_function(weakref.ref, self.referent)

    def as_object(self) -> Any:
        return self.obj

    def identity(self) -> object:
        return self.obj

    def target(self, tx: Any) -> VariableTracker | None:
        """The object while it lives."""
        if self.referent is not None:
            return self.referent
        found = TARGET(self.obj)
        return None if found is None else real(tx, tx.build(found, Fetch(self.source, TARGET, "weakref_target")))

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if args or kwargs:
            return super().tp_call(tx, args, kwargs)
        found = self.target(tx)
        if found is None:
            return real(tx, tx.build(None, Fetch(self.source, TARGET, "weakref_target")))
        return found

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        """weakref_richcompare: the objects while both live, else the references themselves."""
        if symbol not in ("==", "!=") or not isinstance(other, WeakrefVariable):
            return NotImplemented
        mine, theirs = self.target(tx), other.target(tx)
        if mine is None or theirs is None:
            return tx.unsupported(self, f"{symbol} of an object that is gone")
        return compare.compare(tx, symbol, mine, theirs)

    def tp_hash(self, tx: Any) -> VariableTracker:
        """weakref_hash: the object's; one that is gone has it only if it was asked for before."""
        found = self.target(tx)
        return tx.unsupported(self, "hash() of an object that is gone") if found is None else found.tp_hash(tx)

    def hash_runs_code(self, tx: Any) -> bool:
        found = self.target(tx)
        return found is None or found.hash_runs_code(tx)

    def key(self, tx: Any) -> Any:
        found = self.target(tx)
        return tx.unsupported(self, "hash() of an object that is gone") if found is None else ("weakref", found.key(tx))


def made_here(value: VariableTracker) -> bool:
    """An object of this trace: only the running program will know when it dies."""
    if value.source is not None or value.py_type() in (types.MethodType, types.BuiltinFunctionType):
        return False
    try:
        value.as_object()
    except NotConstant:
        return bool(value.py_type().__weakrefoffset__) and getattr(value, "fn", None) is None
    return False


@service
def leave_if_watched(tx: Any, fn: Any, args: list, kwargs: dict) -> None:
    """A function of weakref's that is Python's to run must not be given an object that this trace makes.

    The object would outlive its last variable: the callers of resume functions hold what they hand over.
    """
    if getattr(fn, "__module__", None) not in WATCHERS and not (isinstance(fn, type) and issubclass(fn, weakref.ref)):
        return
    for value in (*args, *kwargs.values()):
        if value.py_type().__module__ in WATCHERS:          # a weak container, by its method
            continue
        items = value.children() if value.py_type() in (list, tuple, dict, set) else []
        for each in (value, *items):
            each = real(tx, each)
            in_this_call = tx.frame is not tx.root and each.made_at == tx.root_step
            if made_here(each) and not in_this_call:
                watched(tx, fn)


def watched(tx: Any, fn: Any) -> NoReturn:
    tx.stop(reasons.WATCHED_DEATH, name=getattr(fn, "__qualname__", repr(fn)))


WATCHERS = frozenset({"weakref", "_weakref", "_weakrefset"})


@meaning(weakref.ref)
def call_ref(tx, obj, callback=None, /):
    """weakref___new__."""
    if not obj.py_type().__weakrefoffset__:
        tx.raise_(TypeError, f"cannot create weak reference to '{tp_name(obj.py_type())}' object")
    if made_here(obj):
        watched(tx, weakref.ref)
    plain = callback is None or callback.__class__ is ConstantVariable and callback.value is None
    if not plain:
        return None                     # Python makes it: the callback may run at any time from then on
    if obj.source is None:              # a class, say: it is known, and stays
        return WeakrefVariable(weakref.ref(obj.as_object()), None, obj)
    found = obj.source.fetch(tx.entry_locals, tx.entry_globals)
    return real(tx, tx.build(weakref.ref(found), Fetch(obj.source, weakref.ref, "weakref.ref")))


@builds(weakref.ref, weakref.KeyedRef)
def build_weakref(tx: Any, obj: Any, source: Any) -> WeakrefVariable:
    tx.guard(TypeIs(source, type(obj)))
    return WeakrefVariable(obj, source)
