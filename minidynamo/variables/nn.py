"""nn.Module instances: calls without hooks go straight to ``forward``; registered names are read from the tables.

Everything here is a short cut for what inlining ``torch/nn/modules/module.py`` would give, taken only
where the class leaves torch's own method in place; otherwise that code is inlined like any other.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import fx, nn
from torch.fx import graph_module
from torch.nn.modules import module as nn_module

from minidynamo.guards.kinds import InInstanceDict, Length, SameObject, TypeIs
from minidynamo.model.tables import builds_when, meaning
from minidynamo.model.variable import VariableTracker
from minidynamo.protocol import attrs, compare
from minidynamo.protocol.attrs import attribute_error, generic_getattr, type_lookup
from minidynamo.sources import DictItem, DictRoot
from minidynamo.sources.source import instance_dict
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.namespaces import PartialDict
from minidynamo.variables.objects import INSTANCE_KINDS, OBJECT_ATTRIBUTES, ObjectVariable

TABLES = ("_parameters", "_buffers", "_modules")
HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
CALL_NAMES = ("_compiled_call_impl", "_call_impl")
GLOBAL_HOOKS = ("_global_backward_pre_hooks", "_global_backward_hooks", "_global_forward_hooks",
                "_global_forward_pre_hooks")
STOCK = {name: vars(nn.Module)[name] for name in ("__call__", "_call_impl", "__getattr__", "__setattr__", "__delattr__")}
CALL_WRAPPED = next(const for const in fx.GraphModule.recompile.__code__.co_consts
                    if getattr(const, "co_name", None) == "call_wrapped")
REGISTERED = (nn.Parameter, nn.Module, nn.Buffer)


class NNModuleVariable(ObjectVariable):
    """An nn.Module instance."""

    __slots__ = ()
    kind = "nn.Module"

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        """slot_tp_getattr_hook with ``nn.Module.__getattr__`` as the hook."""
        fixed = OBJECT_ATTRIBUTES.get(name)
        if fixed is not None or not (is_stock(tx, self.cls, "__getattr__")
                                     and not attrs.special_is_python(tx, self.cls, "__getattribute__")):
            return super().tp_getattro(tx, name)
        value = tx.catching_attribute_error(lambda: generic_getattr(tx, self, name), self.cls)
        if value is None:
            value = self.registered(tx, name)
        if value is None:
            attribute_error(tx, self, name)
        return value

    def registered(self, tx: Any, name: str) -> VariableTracker | None:
        """nn.Module.__getattr__: the first table that has the name."""
        for which in TABLES:
            table = self.instance_get(tx, which)
            if table is None:
                continue
            if isinstance(table, PartialDict):
                value = table.find_name(tx, name)
            elif compare.truth(tx, compare.contains(tx, table, tx.wrap(name))):
                value = table.mp_subscript(tx, tx.wrap(name))
            else:
                value = None
            if value is not None:
                return value
        return None

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        if name in TABLES and name not in self.fields and self.obj is not None:
            table = instance_dict(self.obj).get(name)
            if type(table) is dict and id(table) not in tx.by_id and all(type(key) is str for key in table):
                source = self.attr_source(name)
                tx.guard(TypeIs(source, dict))
                return tx.enter(table, PartialDict(tx, table, source))
        return super().instance_get(tx, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        """nn.Module.__setattr__ of a name and a value that no table is concerned with is object's."""
        method = "__setattr__" if value is not None else "__delattr__"
        if is_stock(tx, self.cls, method) and not (value is not None and issubclass(value.py_type(), REGISTERED)) \
                and self.tables_lack(tx, name):
            attrs.generic_setattr(tx, self, name, value)
        else:
            super().tp_setattro(tx, name, value)

    def tables_lack(self, tx: Any, name: str) -> bool:
        for which in TABLES:
            table = self.instance_get(tx, which)
            if not isinstance(table, PartialDict) or table.has_name(tx, name):
                return False
        return True

    # ---- calls
    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        """nn.Module._call_impl without hooks is ``self.forward(*args, **kwargs)``."""
        if not self.calls_forward(tx):
            return super().tp_call(tx, args, kwargs)
        return tx.call(self.tp_getattro(tx, "forward"), args, kwargs)

    def calls_forward(self, tx: Any) -> bool:
        """Whether a call comes down to ``forward``; what says so is guarded, cheaply."""
        if not (self.call_is_stock(tx) and is_stock(tx, self.cls, "_call_impl")) \
                or any(self.fields.get(name) is not None for name in CALL_NAMES):
            return False
        if any(getattr(nn_module, name) for name in GLOBAL_HOOKS) or torch._C._get_tracing_state() \
                or tx.scope_of(nn_module.__dict__).written:
            return False
        if any(id(getattr(nn_module, name)) in tx.by_id for name in GLOBAL_HOOKS):
            return False                     # the trace itself has touched them: the real code decides
        own = {} if self.obj is None else instance_dict(self.obj)
        if any(name in own for name in CALL_NAMES) or not all(self.has_no(own, name, tx) for name in HOOKS):
            return False
        guard_no_hooks(tx, self)
        return True

    def call_is_stock(self, tx: Any) -> bool:
        """nn.Module's own ``__call__``, or that of a GraphModule, which only words errors of fx's generated code."""
        found = type_lookup(tx, self.cls, "__call__")
        if found is None or found.value is not None or found.owner is not self.cls \
                or not issubclass(self.cls, fx.GraphModule) or getattr(found.raw, "__code__", None) is not CALL_WRAPPED:
            return is_stock(tx, self.cls, "__call__")
        inside = type_lookup(tx, self.cls, "_wrapped_call")
        if inside is None or type(inside.raw) is not graph_module._WrappedCall or inside.raw.cls_call is not None \
                or any("__call__" in vars(klass) for klass in self.cls.__mro__[1:] if klass is not nn.Module):
            return False
        attrs.class_value(tx, found)
        tx.guard(SameObject(inside.source, inside.raw))
        return is_stock(tx, nn.Module, "__call__")

    def has_no(self, own: dict, which: str, tx: Any) -> bool:
        """Whether a table of hooks is there and empty."""
        hooks = self.fields.get(which)
        if hooks is None and which in own and which not in self.fields:
            if id(own[which]) not in tx.by_id:
                return not own[which]
            hooks = tx.by_id[id(own[which])]
        return isinstance(hooks, DictVariable) and not hooks.entries


def is_stock(tx: Any, cls: type, name: str) -> bool:
    """Whether the class's method is nn.Module's own, guarded."""
    found = type_lookup(tx, cls, name)
    if found is None or found.value is not None or found.owner is not nn.Module or found.raw is not STOCK[name]:
        return False
    attrs.class_value(tx, found)
    return True


def guard_no_hooks(tx: Any, module: NNModuleVariable) -> None:
    """Names and tables that the trace wrote itself need no guard."""
    if module.obj is not None:
        for name in CALL_NAMES:
            if name not in module.fields:
                tx.guard(InInstanceDict(module.source, name, False))
        for name in HOOKS:
            if name not in module.fields:
                tx.guard(Length(module.attr_source(name), 0, dict))
    scope = DictRoot(nn_module.__dict__, nn_module.__name__)
    for name in GLOBAL_HOOKS:
        tx.guard(Length(DictItem(scope, name), 0, dict))


@builds_when("nn module", lambda obj: issubclass(type(obj), nn.Module) and type(obj).__module__ != "builtins",
             before=("user object",))
def build_nn_module(tx: Any, obj: nn.Module, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    return NNModuleVariable(type(obj), obj, source)


INSTANCE_KINDS[nn.Module] = NNModuleVariable


@meaning(torch._C._log_api_usage_once)
def log_api_usage_once(tx, event, /):
    """Telemetry of torch builds that have it; nothing that a program could notice."""
    return ConstantVariable(None)
