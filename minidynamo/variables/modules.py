"""Python modules: attribute reads go to the module's namespace, writes are global writes."""
from __future__ import annotations

import types
from typing import Any

from minidynamo.guards.kinds import HasKey, SameObject
from minidynamo.model.tables import builds, builds_subclasses
from minidynamo.model.variable import VariableTracker
from minidynamo.protocol.attrs import attribute_error, generic_getattr, is_data_descriptor, special_is_python, type_lookup
from minidynamo.variables.bases import HashedByIdentity


class ModuleVariable(HashedByIdentity):
    """A module object."""

    __slots__ = ("module",)
    kind = "module"

    def __init__(self, module: types.ModuleType, source: Any = None) -> None:
        self.module, self.source = module, source

    def py_type(self) -> type:
        return type(self.module)

    def as_object(self) -> Any:
        return self.module

    def identity(self) -> object:
        return self.module

    def rebuild(self, out: Any) -> None:
        out.load_object_unchecked(self.module)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if type(self.module) is not types.ModuleType and special_is_python(tx, type(self.module), "__getattribute__"):
            tx.unsupported(self, f".{name} through __getattribute__")
        scope = tx.scope_of(module_dict(self.module))
        if name in scope.written:
            if scope.written[name] is not None:
                return scope.written[name]
        elif name in scope.seen:
            return scope.seen[name]
        elif name in scope.mapping:
            value = tx.build(scope.mapping[name], scope.source(name))
            tx.journal.put(scope.seen, name, value)
            return value
        elif type(self.module) is types.ModuleType or not special_is_python(tx, type(self.module), "__getattr__"):
            tx.guard(HasKey(scope.root_source(), name, False))
        if name == "__dict__":
            return tx.module_namespace(self)
        value = generic_getattr(tx, self, name)
        if value is not None:
            return value
        return self.missing(tx, scope, name)

    def missing(self, tx: Any, scope: Any, name: str) -> VariableTracker:
        """The class's or the module's own ``__getattr__`` (PEP 562)."""
        if type(self.module) is not types.ModuleType and special_is_python(tx, type(self.module), "__getattr__"):
            return tx.unsupported(self, f".{name} by __getattr__")
        if "__getattr__" in scope.mapping:
            return tx.unsupported(self, f".{name} by __getattr__")
        tx.raise_attribute_error(f"module '{self.module.__name__}' has no attribute '{name}'", self, name)
        return attribute_error(tx, self, name)

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        return None

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if special_is_python(tx, type(self.module), "__setattr__"):
            tx.unsupported(self, f".{name} = ...")
        found = type_lookup(tx, type(self.module), name)
        if found is not None and is_data_descriptor(found.raw):
            tx.unsupported(self, f".{name} = ... through its __set__")
        tx.write_global(tx.scope_of(module_dict(self.module)), name, value)


def module_dict(module: types.ModuleType) -> dict[str, Any]:
    """The namespace, with no user code run by asking for it."""
    return MODULE_DICT.__get__(module)


MODULE_DICT = vars(types.ModuleType)["__dict__"]


@builds(types.ModuleType)
def build_module(tx: Any, obj: types.ModuleType, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return ModuleVariable(obj, source)


builds_subclasses(types.ModuleType)(build_module)
