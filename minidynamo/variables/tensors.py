"""Tensors and symbolic numbers: values that live on the tape."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from minidynamo import reasons
from minidynamo.graph.fake import CannotFake
from minidynamo.guards.kinds import InInstanceDict, Predicate, TensorMatch
from minidynamo.model.tables import PROXIES, builds, builds_subclasses
from minidynamo.model.variable import IdKey, VariableTracker
from minidynamo.protocol import numbers
from minidynamo.protocol.attrs import attribute_error, generic_getattr, type_lookup
from minidynamo.sources import Attr
from minidynamo.variables.bases import HeldObject
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.sequences import ListVariable, NamedTupleVariable, SizeVariable, TupleVariable
from minidynamo.variables.symbols import COMPARE, SymVariable, select_symbols

# Attributes that the fake answers as eager would, without a graph node.
STATIC = frozenset({
    "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "is_cuda", "is_cpu", "is_sparse", "is_quantized",
    "is_meta", "is_mps", "is_xpu", "is_mkldnn", "is_nested", "is_sparse_csr", "itemsize", "nbytes", "names", "is_ipu",
    "is_vulkan", "is_xla", "is_maia", "is_mtia", "retains_grad", "output_nr", "name"})
NOT_COMPARED = frozenset({"is_leaf", "names", "name"})        # by the guards of every tensor
NOT_FAKED = frozenset({"retains_grad", "output_nr"})          # a fake input is another place in autograd's graph
VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})


@functools.cache
def reads_as(name: str, value: Any) -> Callable[[torch.Tensor], bool]:
    def holds(tensor: torch.Tensor) -> bool:
        with torch._C.DisableTorchFunction():
            return bool(getattr(tensor, name) == value)
    return holds


class TensorVariable(VariableTracker):
    """A tensor: `node` is its place on the tape, ``node.value`` its fake."""

    __slots__ = ("node", "obj", "fields")
    kind = "tensor"

    def __init__(self, node: Any, source: Any = None, obj: Any = None) -> None:
        self.node, self.source, self.obj = node, source, obj
        self.fields: dict[str, VariableTracker | None] = {}

    @property
    def fake(self) -> torch.Tensor:
        return self.node.value

    def py_type(self) -> type:
        if self.obj is not None:
            return type(self.obj)
        return torch.nn.Parameter if isinstance(self.node.value, torch.nn.Parameter) else torch.Tensor

    def identity(self) -> object:
        return self if self.obj is None else self.obj

    def rebuild(self, out: Any) -> None:
        out.graph_output(self.node)
        for name, value in self.fields.items():
            if value is not None:
                out.keep(self)
                out.set_attribute(self, name, value)

    def children(self) -> list[VariableTracker]:
        return [v for v in self.fields.values() if v is not None]

    def replay(self, out: Any) -> None:
        for name, value in self.fields.items():
            out.set_attribute(self, name, value)

    def key(self, tx: Any) -> Any:
        return IdKey(self.identity())

    def tp_hash(self, tx: Any) -> VariableTracker:
        if self.obj is None:
            tx.stop(reasons.HASH_OF_TENSOR, kind="tensor")
        return ConstantVariable(id(self.obj))

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in self.fields:
            value = self.fields[name]
            return attribute_error(tx, self, name) if value is None else value
        if name == "shape":
            return size_of(tx, self.fake.shape)
        if name in STATIC and (self.obj is None or name not in NOT_FAKED):
            value = getattr(self.fake, name)
            if name in NOT_COMPARED and self.obj is not None and self.source is not None:
                real_value = getattr(self.obj, name)
                tx.guard(Predicate(self.source, reads_as(name, real_value), f".{name} is {real_value}"))
            if name == "device":
                value = torch.device(value)                # THPVariable_device makes a new object each time
            return from_value(tx, value, self.node)
        reader = TENSOR_ATTRIBUTES.get(name)
        if reader is not None:
            return reader(tx, self)
        if name in VIEWS:
            return tx.emit(getattr, (self.node, name), {})
        value = generic_getattr(tx, self, name)
        if value is None:
            attribute_error(tx, self, name)
        return value

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        if name in self.fields:
            return self.fields[name]
        if self.obj is None or self.source is None:
            return None
        own = self.obj.__dict__
        if name in own:
            return tx.build(own[name], Attr(self.source, name))
        tx.guard(InInstanceDict(self.source, name, False))
        return None

    def has_instance_dict(self) -> bool:
        return True

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        found = type_lookup(tx, self.py_type(), name)
        if found is not None or value is None:
            set_tensor_attribute(tx, self, name, value)
            return
        tx.journal.put(self.fields, name, value)
        tx.modified(self)

    # ---- operators
    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if not is_operand(tx, other):
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        if tx.asks(pair):
            return tx.operate(numbers.BINARY[symbol], *pair)
        return tx.emit(numbers.BINARY[symbol], [tx.proxy(v) for v in pair], {})

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not is_operand(tx, other):
            return NotImplemented
        if tx.asks((self, other)):
            return tx.operate(numbers.INPLACE[symbol], self, other)
        return tx.emit(numbers.INPLACE[symbol], [self.node, tx.proxy(other)], {})

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        if symbol in ("index", "int", "float", "complex"):
            if symbol == "index" and (self.fake.dtype.is_floating_point or self.fake.dtype.is_complex):
                return NotImplemented
            if tx.config.capture_scalar_outputs and symbol != "complex" and self.fake.numel() == 1:
                return numbers.unary(tx, symbol, tx.emit("item", (self.node,), {}, method=True))
            tx.stop(reasons.DATA_DEPENDENT_VALUE, op=f"{symbol}()")
        return tx.emit(numbers.UNARY[symbol], [self.node], {})

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not is_operand(tx, other):
            return NotImplemented
        if tx.asks((self, other)):
            return tx.operate(COMPARE[symbol], self, other)
        return tx.emit(COMPARE[symbol], [self.node, tx.proxy(other)], {})

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        tx.stop(reasons.DATA_DEPENDENT_BRANCH, text=tx.where().text())

    def sq_length(self, tx: Any) -> VariableTracker:
        if self.fake.dim() == 0:
            tx.raise_(TypeError, "len() of a 0-d tensor")
        return from_value(tx, self.fake.shape[0], self.node)

    def tp_iter(self, tx: Any) -> VariableTracker:
        if self.fake.dim() == 0:
            tx.raise_(TypeError, "iteration over a 0-d tensor")
        return tx.sequence_iterator(tx.emit(torch.unbind, (self.node, 0), {}))

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return None

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        selected = select_symbols(tx, self.node, self.fake.dim(), key)
        if selected is not None:
            view, rest = selected
            return tx.emit(operator.getitem, (view, tx.proxy(rest)), {}) if rest.items else tx.from_node(view)
        return tx.emit(operator.getitem, (self.node, tx.proxy(key)), {})

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        if value is None:
            tx.raise_(TypeError, "Tensor does not support deleting items")
        selected = select_symbols(tx, self.node, self.fake.dim(), key) or (self.node, key)
        tx.emit_node(operator.setitem, (selected[0], tx.proxy(selected[1]), tx.proxy(value)), {})

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        tx.stop(reasons.DATA_DEPENDENT_VALUE, op="in")

    def tp_repr(self, tx: Any) -> VariableTracker:
        tx.stop(reasons.FORMAT_TENSOR, text=tx.where().text())

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        tx.stop(reasons.FORMAT_TENSOR, text=tx.where().text())


def set_tensor_attribute(tx: Any, tensor: Any, name: str, value: VariableTracker | None) -> None:
    """Writing a C attribute of a tensor: ``.grad`` is written back at the exit, the others break."""
    if name == "grad" and value is not None and may_be_grad(tx, tensor, value):
        tx.journal.put(tensor.fields, name, value)
        tx.modified(tensor)
        return
    tx.stop(reasons.METADATA_MUTATION, op=f".{name} = ..." if value is not None else f"del .{name}")


def may_be_grad(tx: Any, tensor: Any, value: VariableTracker) -> bool:
    """THPVariable_set_grad's conditions, where they are sure to hold for a user's leaf."""
    if tensor.obj is None or tensor.source is None or not tensor.fake.is_leaf:
        return False
    if not isinstance(value, TensorVariable):
        return isinstance(value, ConstantVariable) and value.value is None
    mine, theirs = tensor.fake, value.fake
    return value is not tensor and mine.dtype == theirs.dtype and mine.device == theirs.device \
        and mine.shape == theirs.shape and mine.layout == theirs.layout and not theirs.requires_grad


def is_operand(tx: Any, value: VariableTracker) -> bool:
    """What torch's binary operators take beside a tensor (THPUtils_checkScalar); others answer NotImplemented."""
    if isinstance(value, (TensorVariable, SymVariable)):
        return True
    kind = value.py_type()
    if issubclass(kind, (int, float, complex)):
        return True
    if hasattr(kind, "__torch_function__") or kind.__module__ == "numpy":
        tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=tx.where().text(), why=f"a {kind.__name__} is an operand")
    return False


def size_of(tx: Any, size: Any) -> VariableTracker:
    return SizeVariable([from_value(tx, n, None) for n in size])


def read_grad(tx: Any, tensor: TensorVariable) -> VariableTracker:
    """``x.grad``: the user's, where x is the user's leaf (others warn); a new non-leaf has none."""
    if tensor.obj is not None and tensor.source is not None and tensor.obj.is_leaf:
        return tx.build(tensor.obj.grad, Attr(tensor.source, "grad"))
    if tensor.fake.is_leaf and not tensor.fake.requires_grad:
        return ConstantVariable(None)
    return tx.unsupported(tensor, ".grad")


def read_grad_fn(tx: Any, tensor: TensorVariable) -> VariableTracker:
    if tensor.fake.grad_fn is None:
        return ConstantVariable(None)
    return tx.unsupported(tensor, ".grad_fn")


TENSOR_ATTRIBUTES = {
    "grad": read_grad,
    "grad_fn": read_grad_fn,
    "__class__": lambda tx, t: tx.class_of(t.py_type()),
}


# ---------------------------------------------------------------- results
def from_node(tx: Any, node: Any) -> VariableTracker:
    """The value of a node just put on the tape."""
    if node.alias_of is not None:
        node = node.alias_of
    known = tx.tensor_of.get(node)
    if known is not None:
        return known
    return from_value(tx, node.value, node)


def from_value(tx: Any, value: Any, node: Any) -> VariableTracker:
    """A fake result as a value; containers get one item node per tensor."""
    if isinstance(value, torch.Tensor):
        if node.alias_of is not None:
            node = node.alias_of
        known = tx.tensor_of.get(node)
        if known is None:
            known = tx.tensor_of[node] = TensorVariable(node)
        return known
    kind = type(value)
    if kind in SymVariable.TYPES:
        made = SymVariable(value)
        known = made.known()
        return made if known is None else ConstantVariable(known)
    if kind is torch.Size:
        return size_of(tx, value)
    if isinstance(value, (tuple, list)):
        items = [from_value(tx, v, tx.tape.item(node, i, v) if needs_node(v) else node) for i, v in enumerate(value)]
        if kind is tuple:
            return TupleVariable(items)
        return ListVariable(items) if kind is list else NamedTupleVariable(items, None, kind)
    return tx.wrap(value)


def needs_node(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, tuple, list))


# ---------------------------------------------------------------- inputs
@builds(torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
def build_tensor(tx: Any, obj: torch.Tensor, source: Any) -> VariableTracker:
    """A tensor from outside becomes a graph input, guarded by its metadata."""
    try:
        fake = tx.shapes.fakify(obj, source)
    except CannotFake as error:
        tx.stop(reasons.UNSUPPORTED_TENSOR, kind=str(error))
    sizes, strides = tx.shapes.pattern(obj)
    tx.guard(TensorMatch(source, obj, [i for i, n in enumerate(sizes) if n is None],
                         dynamic_strides=[i for i, n in enumerate(strides) if n is None]
                         if obj.layout is torch.strided else None))
    node = tx.tape.input(obj, source, fake=fake)
    value = tx.tensor_of[node] = TensorVariable(node, source, obj)
    tx.journal.append(tx.input_tensors, value)
    return value


@builds_subclasses(torch.Tensor)
def build_tensor_subclass(tx: Any, obj: torch.Tensor, source: Any) -> VariableTracker:
    """Subclasses that change nothing about torch functions are tensors; others break when used."""
    cls = type(obj)
    if cls.__torch_function__ is torch._C._disabled_torch_function_impl and \
            cls.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl:
        return build_tensor(tx, obj, source)
    value = tx.overriding_tensor(obj, source)
    if value is not None:
        return value
    tx.guard_same(source, obj)
    return SubclassVariable(obj, source)


class SubclassVariable(HeldObject):
    """A tensor subclass with code of its own."""

    __slots__ = ()
    kind = "tensor subclass"

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        tx.stop(reasons.TENSOR_SUBCLASS, type=type(self.obj).__name__)

    nb_binary = nb_inplace = nb_unary = tp_richcompare = nb_bool = sq_length = tp_iter = mp_subscript = (
        lambda self, tx, *args: tx.stop(reasons.TENSOR_SUBCLASS, type=type(self.obj).__name__))


PROXIES[TensorVariable] = lambda tx, v: v.node
