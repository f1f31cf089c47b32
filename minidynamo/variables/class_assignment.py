"""``obj.__class__ = C`` (object_set_class in typeobject.c), and SimpleNamespace (namespaceobject.c)."""
from __future__ import annotations

import types
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.services import service
from minidynamo.model.tables import C_MEMBERS, builds, meaning
from minidynamo.model.variable import VariableTracker, defines, real
from minidynamo.protocol import compare
from minidynamo.protocol.attrs import IMMUTABLE_TYPE
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.objects import ObjectVariable, builtin_base

CLASS_SLOT = vars(object)["__class__"]


def read_class(tx: Any, obj: VariableTracker) -> VariableTracker:
    return tx.type_of(obj)


@service
def set_class(tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
    """object_set_class: CPython itself judges the layouts, on an empty instance of the old class."""
    if value is None:
        tx.raise_(TypeError, "can't delete __class__ attribute")
    if not isinstance(value, ClassVariable):
        tx.raise_(TypeError, f"__class__ must be set to a class, not '{value.py_type().__name__}' object")
    if (obj.py_type().__flags__ | value.cls.__flags__) & IMMUTABLE_TYPE:
        tx.raise_(TypeError, "__class__ assignment only supported for mutable types or ModuleType subclasses")
    if not isinstance(obj, ObjectVariable) or builtin_base(obj.cls) is not object or defines(obj.cls, "__del__") \
            or defines(value.cls, "__del__"):
        tx.stop(reasons.UNSUPPORTED_CALL, call=".__class__ = ...", kind="an object of this kind")
    probe = object.__new__(obj.cls)
    try:
        CLASS_SLOT.__set__(probe, value.cls)
    except TypeError as error:
        tx.raise_real(error)
    tx.journal.set(obj, "cls", value.cls)
    tx.journal.set(obj, "moved", value)
    tx.modified(obj)


C_MEMBERS.add(CLASS_SLOT, (read_class, set_class))


# ---------------------------------------------------------------- SimpleNamespace
class SimpleNamespaceVariable(ObjectVariable):
    """``types.SimpleNamespace``: an instance dict and nothing else."""

    __slots__ = ()
    kind = "namespace object"

    def names(self, tx: Any) -> Any:
        return tx.instance_namespace(self)

    def tp_repr(self, tx: Any) -> VariableTracker:
        """namespace_repr."""
        if self in tx.repr_running:
            return ConstantVariable("namespace(...)")
        tx.repr_running.append(self)
        try:
            pairs = [f"{key.as_constant()}={tx.text_of(real(tx, value))}" for key, value in self.names(tx).entries.values()]
        finally:
            tx.repr_running.pop()
        return ConstantVariable(f"namespace({', '.join(pairs)})")

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        """namespace_richcompare: the dicts."""
        if not isinstance(other, SimpleNamespaceVariable):
            return NotImplemented
        return compare.compare(tx, symbol, self.names(tx), other.names(tx))

    def tp_hash(self, tx: Any) -> VariableTracker:
        tx.raise_(TypeError, "unhashable type: 'types.SimpleNamespace'")

    def key(self, tx: Any) -> Any:
        return self.tp_hash(tx)


@meaning(types.SimpleNamespace)
def call_simple_namespace(tx, *args, **kwargs):
    """namespace_init."""
    if args:
        tx.raise_(TypeError, "no positional arguments expected")
    made = SimpleNamespaceVariable(types.SimpleNamespace)
    made.made_at = tx.root_step
    made.fields.update(kwargs)
    return made


@builds(types.SimpleNamespace)
def build_simple_namespace(tx: Any, obj: types.SimpleNamespace, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, types.SimpleNamespace))
    return SimpleNamespaceVariable(types.SimpleNamespace, obj, source)
