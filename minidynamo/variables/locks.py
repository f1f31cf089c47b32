"""Locks made while tracing (Modules/_threadmodule.c): nobody else can hold one yet."""
from __future__ import annotations

import _thread
from typing import Any

from minidynamo import reasons
from minidynamo.model.tables import meaning
from minidynamo.model.variable import VariableTracker
from minidynamo.protocol.attrs import attribute_error
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable

RLOCK, LOCK = _thread.RLock, _thread.LockType
MAKERS = {RLOCK: _thread.RLock, LOCK: _thread.allocate_lock}


class LockVariable(HashedByIdentity):
    """A lock and how often it is held."""

    __slots__ = ("cls", "held")
    kind = "lock"

    def __init__(self, cls: type) -> None:
        self.cls, self.held, self.source = cls, 0, None

    def py_type(self) -> type:
        return self.cls

    def rebuild(self, out: Any) -> None:
        out.call_function(MAKERS[self.cls])
        for _ in range(self.held):
            out.op("COPY", 1)
            out.op("LOAD_ATTR", "acquire")
            out.op("STORE_LOCAL", "___acquire")
            out.begin_call()
            out.op("LOAD_LOCAL", "___acquire")
            out.callable_done()
            out.call(0)
            out.op("POP")

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        raw = vars(self.cls).get(name)
        if raw is None:
            attribute_error(tx, self, name)
        return tx.bound_c_method(self, raw)


def made_lock(tx: Any, lock: VariableTracker) -> LockVariable:
    if not isinstance(lock, LockVariable):
        tx.stop(reasons.UNSUPPORTED_CALL, call="acquire()", kind="a lock that other threads may hold")
    return lock


def acquire(tx, self, *args, **kwargs):
    lock = made_lock(tx, self)
    if args or kwargs or lock.held and lock.cls is LOCK:
        tx.stop(reasons.UNSUPPORTED_CALL, call="acquire()", kind="a lock that would wait")
    tx.journal.set(lock, "held", lock.held + 1)
    return ConstantVariable(True)


def release(tx, self, *exc):
    lock = made_lock(tx, self)
    if not lock.held:
        tx.raise_(RuntimeError, "cannot release un-acquired lock" if lock.cls is RLOCK else "release unlocked lock")
    tx.journal.set(lock, "held", lock.held - 1)
    return ConstantVariable(None)


def locked(tx, self):
    return ConstantVariable(bool(made_lock(tx, self).held))


for cls_ in MAKERS:
    for name_, function_ in (("acquire", acquire), ("__enter__", acquire), ("release", release), ("__exit__", release),
                             ("locked", locked)):
        if name_ in vars(cls_):
            meaning(vars(cls_)[name_])(function_)


@meaning(_thread.RLock)
def make_rlock(tx):
    return LockVariable(RLOCK)


@meaning(_thread.allocate_lock)
def make_lock(tx):
    return LockVariable(LOCK)
