"""torch.ops and modules with another behind them: namespaces, packets and overloads; a call of one is one graph node."""
from __future__ import annotations

import types
from typing import Any

import torch

from minidynamo.guards.kinds import SameObject
from minidynamo.model.tables import builds
from minidynamo.model.variable import VariableTracker
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Attr
from minidynamo.variables import torch_ops
from minidynamo.variables.bases import HashedByIdentity, HeldObject
from minidynamo.variables.constants import ConstantVariable


class OpsVariable(HeldObject, HashedByIdentity):
    """``torch.ops``, ``torch.ops.aten``, a packet or an overload: what it finds by name it keeps for good."""

    __slots__ = ()
    kind = "torch operator"

    def as_object(self) -> Any:
        return self.obj

    def rebuild(self, out: Any) -> None:
        out.load_object_unchecked(self.obj)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        try:
            found = getattr(self.obj, name)
        except AttributeError:
            attribute_error(tx, self, name)
        if isinstance(found, KINDS):
            return tx.build(found, Attr(self.source, name))
        if isinstance(found, str):
            return ConstantVariable(found)
        return tx.unsupported(self, f".{name}")

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if not torch_ops.is_graph_op(self.obj):
            return super().tp_call(tx, args, kwargs)
        marked = torch_ops.call_marked(tx, self.obj, args, kwargs)
        return torch_ops.call_op(tx, self.obj, args, kwargs) if marked is None else marked


KINDS = (torch._ops._Ops, torch._ops._OpNamespace, torch._ops.OpOverloadPacket, torch._ops.OpOverload)


@builds(*KINDS, torch._ops.TorchBindOpOverload)
def build_ops(tx: Any, obj: Any, source: Any) -> OpsVariable:
    tx.guard(SameObject(source, obj))
    return OpsVariable(obj, source)


class BackingModuleVariable(HeldObject, HashedByIdentity):
    """A module object whose class answers missing names from another module: ``torch._VF``, ``torch.backends.*``."""

    __slots__ = ("behind",)
    kind = "module"

    def __init__(self, obj: Any, behind: Any, source: Any) -> None:
        super().__init__(obj, source)
        self.behind = behind

    def as_object(self) -> Any:
        return self.obj

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        """What the class defines (flags that read C state) breaks; then its own names, then those behind."""
        own = type(self.obj).__mro__[:-2]                       # without ModuleType and object
        if name.startswith("__") or any(name in vars(cls) for cls in own):
            return tx.unsupported(self, f".{name}")
        for module in (self.obj, self.behind):
            found = getattr(module, "__dict__", {}).get(name, self)
            if found is self and isinstance(getattr(module, name, None), types.BuiltinFunctionType):
                found = getattr(module, name)                   # a C object's method
            if found is not self:
                return tx.build(found, Attr(self.source, name))
        return tx.unsupported(self, f".{name}")


@builds(type(torch._VF))
def build_vf(tx: Any, obj: Any, source: Any) -> BackingModuleVariable:
    tx.guard(SameObject(source, obj))
    return BackingModuleVariable(obj, torch._C._VariableFunctions, source)


@builds(*torch.backends.PropModule.__subclasses__())
def build_backend(tx: Any, obj: Any, source: Any) -> BackingModuleVariable:
    tx.guard(SameObject(source, obj))
    return BackingModuleVariable(obj, obj.m, source)
