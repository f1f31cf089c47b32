"""Tensor subclasses with a ``__torch_function__`` of their own: what torch would ask it is asked while tracing.

The tape holds the plain tensor behind an instance; an instance made while tracing is that tensor with a class.
"""
from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from minidynamo import reasons
from minidynamo.graph.fake import CannotFake
from minidynamo.guards.kinds import TensorMatch, TypeIs
from minidynamo.model.services import service
from minidynamo.model.tables import PROXIES, meaning, torch_rule
from minidynamo.model.variable import VariableTracker
from minidynamo.protocol import numbers
from minidynamo.protocol.attrs import attribute_error, generic_getattr, type_lookup
from minidynamo.sources import DictItem, DictRoot, Fetch
from minidynamo.variables import tensors, torch_ops
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.descriptors import GetSetVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable, NamedTupleVariable, TupleVariable

GETTERS = (tensors.STATIC | tensors.VIEWS | {"shape"}) & {
    name for name, raw in vars(torch._C.TensorBase).items() if isinstance(raw, types.GetSetDescriptorType)}


class OverridingTensorVariable(tensors.TensorVariable):
    """An instance of a subclass that overrides ``__torch_function__``."""

    __slots__ = ("cls",)
    kind = "tensor subclass"

    def __init__(self, node: Any, cls: type, source: Any = None, obj: Any = None) -> None:
        super().__init__(node, source, obj)
        self.cls = cls

    def py_type(self) -> type:
        return self.cls

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(of_class)
        out.graph_output(self.node)
        out.load(out.tx.class_of(self.cls))
        out.call(2)
        if self.fields:
            out.keep(self)
            self.replay(out)

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        found = type_lookup(tx, self.cls, name)
        if name != "__class__" and name not in self.fields and found is not None and found.value is None \
                and found.owner is torch._C.TensorBase and isinstance(found.raw, types.GetSetDescriptorType):
            if name not in GETTERS:
                tx.stop(reasons.TENSOR_SUBCLASS, type=self.cls.__name__)
            if tx.torch_function_off:
                return super().tp_getattro(tx, name)
            getter = tx.bound_c_method(GetSetVariable(found.raw, named_source(name, found.raw)), GET)
            return ask(tx, getter, [self], [self], None)
        if name in self.fields or name == "__class__":
            return super().tp_getattro(tx, name)
        value = generic_getattr(tx, self, name)
        return attribute_error(tx, self, name) if value is None else value

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if hasattr(torch._C.TensorBase, name):
            tx.stop(reasons.TENSOR_SUBCLASS, type=self.cls.__name__)
        super().tp_setattro(tx, name, value)

    # ---- operators
    def nb_unary(self, tx: Any, symbol: str) -> Any:
        return super().nb_unary(tx, symbol) if tx.torch_function_off else operate(tx, numbers.UNARY[symbol], self)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        tx.stop(reasons.DATA_DEPENDENT_BRANCH, text=tx.where().text())

    def sq_length(self, tx: Any) -> VariableTracker:
        return super().sq_length(tx) if tx.torch_function_off else operate(tx, len, self)

    def tp_iter(self, tx: Any) -> VariableTracker:
        return super().tp_iter(tx) if tx.torch_function_off else tx.stop(reasons.TENSOR_SUBCLASS, type=self.cls.__name__)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        if tx.torch_function_off:
            return super().mp_subscript(tx, key)
        return ask(tx, function_value(tx, torch._C.TensorBase.__getitem__), [self], [self, key], None)

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        if tx.torch_function_off:
            super().mp_ass_subscript(tx, key, value)
        else:
            tx.stop(reasons.TENSOR_SUBCLASS, type=self.cls.__name__)


def of_class(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """What ``_convert`` does to a result."""
    return torch.Tensor.as_subclass(tensor, cls)


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, seen without its class."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


# ---------------------------------------------------------------- asking
@service
def asks(tx: Any, values: Iterable[VariableTracker]) -> list[OverridingTensorVariable]:
    """Arguments, and items of lists and tuples there, that torch would ask first; none while that is switched off."""
    if tx.torch_function_off:
        return []
    found = []
    for value in values:
        parts = value.items if isinstance(value, (ListVariable, TupleVariable)) else (value,)
        found += [part for part in map(tx.real, parts) if isinstance(part, OverridingTensorVariable)]
    return found


def ask(tx: Any, func: VariableTracker, holders: list, args: list, kwargs: dict | None) -> VariableTracker:
    """``cls.__torch_function__(func, types, args, kwargs)``; C leaves out keyword arguments that were not given."""
    cls = holders[0].cls
    if any(holder.cls is not cls for holder in holders):
        tx.stop(reasons.TENSOR_SUBCLASS, type="two classes in one call")
    kind = tx.type_of(holders[0])
    given = [func, TupleVariable([kind]), TupleVariable(list(args))]
    if kwargs is not None:
        given.append(DictVariable.from_names(tx, kwargs))
    result = tx.call(kind.tp_getattro(tx, "__torch_function__"), given)
    if isinstance(result, ConstantVariable) and result.value is NotImplemented:
        tx.stop(reasons.TENSOR_SUBCLASS, type=cls.__name__)
    return result


@service
def ask_overriding(tx: Any, fn: Any, holders: list, args: list, kwargs: dict) -> VariableTracker:
    return ask(tx, function_value(tx, fn), holders, args, kwargs or None)


class Asked(Exception):
    """What torch would hand to ``__torch_function__``."""

    def __init__(self, func: Any, args: tuple, kwargs: dict | None) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs


class Probe(torch.Tensor):
    """Stands for an instance, to learn what an operator asks."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Asked(func, args, kwargs)


@service
def operate(tx: Any, function: Callable[..., Any], *values: VariableTracker) -> VariableTracker:
    """An operator: which function it stands for, and with which arguments, torch itself says."""
    stand_ins = [torch.zeros(()).as_subclass(Probe) if isinstance(v, OverridingTensorVariable)
                 else torch.zeros(()) if isinstance(v, tensors.TensorVariable) else v.as_constant() for v in values]
    try:
        function(*stand_ins)
    except Asked as asked:
        if asked.kwargs:
            tx.stop(reasons.TENSOR_SUBCLASS, type="an operator with keyword arguments")
        back = {id(s): v for s, v in zip(stand_ins, values)}
        args = [back[id(a)] if id(a) in back else tx.wrap(a) for a in asked.args]
        holders = [v for v in values if isinstance(v, OverridingTensorVariable)]
        kwargs = None if asked.kwargs is None else {}
        return ask(tx, function_value(tx, asked.func), holders, args, kwargs)
    return tx.stop(reasons.TENSOR_SUBCLASS, type="an operand")


FUNCTIONS: dict[str, Any] = {}
GET = vars(types.GetSetDescriptorType)["__get__"]


def named_source(name: str, obj: Any) -> Any:
    FUNCTIONS[name] = obj
    return DictItem(DictRoot(FUNCTIONS, "torch functions"), name)


def function_value(tx: Any, fn: Any) -> VariableTracker:
    return tx.build(fn, named_source(f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', fn)}.{id(fn)}", fn))


# ---------------------------------------------------------------- switching it off
class DisabledVariable(VariableTracker):
    """``torch._C.DisableTorchFunctionSubclass()``; a break inside one starts where it was made."""

    __slots__ = ("made_at", "before")
    kind = "region without __torch_function__"

    def __init__(self, tx: Any) -> None:
        self.made_at, self.source, self.before = tx.root_step, None, False

    def py_type(self) -> type:
        return torch._C.DisableTorchFunctionSubclass


@meaning(torch._C.DisableTorchFunctionSubclass)
def disable_subclass(tx, /):
    return DisabledVariable(tx)


@meaning(vars(torch._C.DisableTorchFunctionSubclass)["__enter__"])
def enter_disabled(tx, self, /):
    tx.journal.set(self, "before", tx.torch_function_off)
    tx.journal.set(tx, "torch_function_off", True)
    return ConstantVariable(None)


@meaning(vars(torch._C.DisableTorchFunctionSubclass)["__exit__"])
def exit_disabled(tx, self, *exc):
    tx.journal.set(tx, "torch_function_off", self.before)
    return ConstantVariable(None)


# ---------------------------------------------------------------- torch's own part
@torch_rule(torch.Tensor.__torch_function__.__func__)
def base_torch_function(tx, cls, func, types, args=None, kwargs=None):
    """``Tensor.__torch_function__``: the function itself, and its results in the class."""
    if not isinstance(cls, ClassVariable) or not all(isinstance(t, ClassVariable) for t in map(tx.real, types.items)):
        return None
    if not all(issubclass(cls.cls, tx.real(t).cls) for t in types.items):
        return ConstantVariable(NotImplemented)
    given = [] if args is None else tx.collect(args)
    named = {} if kwargs is None or isinstance(kwargs, ConstantVariable) else kwargs.string_items(tx)
    off, before = tx.torch_function_off, len(tx.tape.nodes)
    tx.journal.set(tx, "torch_function_off", True)
    try:
        result = tx.call(func, given, named)
    finally:
        tx.journal.set(tx, "torch_function_off", off)
    return converted(tx, result, cls.cls, set(tx.tape.nodes[before:]))


def converted(tx: Any, value: VariableTracker, cls: type, new: set[Any]) -> VariableTracker:
    """torch._tensor._convert; nobody else has the tensors of the nodes `new`."""
    if isinstance(value, tensors.TensorVariable) and not issubclass(value.py_type(), cls):
        return instance(tx, value, cls, new)
    if type(value) in (TupleVariable, ListVariable):
        return type(value)([converted(tx, tx.real(v), cls, new) for v in value.items])
    if type(value) is NamedTupleVariable and value.source is None:
        return NamedTupleVariable([converted(tx, tx.real(v), cls, new) for v in value.items], None, value.cls)
    return value


def instance(tx: Any, value: tensors.TensorVariable, cls: type, new: Collection[Any] = ()) -> VariableTracker:
    """``value.as_subclass(cls)``: an alias, with a node of its own, or in-place operations would mistake one for the other."""
    if cls is torch.Tensor or cls is value.py_type():
        return value
    if isinstance(value, OverridingTensorVariable) or not takes_part(cls):
        tx.stop(reasons.TENSOR_SUBCLASS, type=cls.__name__)
    node = value.node
    if node not in new or tx.tensor_of.get(node) is not value:
        node = tx.emit_node(torch.ops.aten.alias.default, (node,), {})
    made = OverridingTensorVariable(node, cls)
    tx.journal.put(tx.tensor_of, node, made)
    return made


@torch_rule(torch.overrides.handle_torch_function)
def handle_torch_function(tx, public_api, relevant_args, *args, **kwargs):
    holders = asks(tx, tx.collect(relevant_args))
    return ask(tx, public_api, holders, list(args), kwargs) if holders else None


def as_subclass(tx: Any, tensor: Any, cls: VariableTracker) -> VariableTracker:
    if not isinstance(cls, ClassVariable) or isinstance(tensor, OverridingTensorVariable):
        tx.stop(reasons.TENSOR_SUBCLASS, type="as_subclass()")
    return instance(tx, tensor, cls.cls)


torch_ops.SLOT_METHODS["as_subclass"] = as_subclass


# ---------------------------------------------------------------- inputs
def takes_part(cls: type) -> bool:
    """A user's subclass that overrides ``__torch_function__`` only."""
    return cls.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl \
        and isinstance(cls.__torch_function__, types.MethodType) \
        and not cls.__module__.startswith("torch.") and not any("__slots__" in vars(k) for k in cls.__mro__[:-3])


@service
def overriding_tensor(tx: Any, obj: torch.Tensor, source: Any) -> VariableTracker | None:
    """The instance as its plain tensor; None where that is not the same to autograd."""
    if not takes_part(type(obj)):
        return None
    plain = as_plain(obj)
    if plain.requires_grad or plain.layout is not torch.strided:
        return None
    inside = Fetch(source, as_plain, "plain tensor of")
    try:
        fake = tx.shapes.fakify(plain, inside)
    except CannotFake:
        return None
    tx.keep.append(plain)
    sizes, strides = tx.shapes.pattern(plain)
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(TensorMatch(inside, plain, [i for i, n in enumerate(sizes) if n is None],
                         dynamic_strides=[i for i, n in enumerate(strides) if n is None]))
    node = tx.tape.input(plain, inside, fake=fake)
    value = tx.tensor_of[node] = OverridingTensorVariable(node, type(obj), source, obj)
    tx.journal.append(tx.input_tensors, value)
    return value


PROXIES[OverridingTensorVariable] = lambda tx, v: v.node
