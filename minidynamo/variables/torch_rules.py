"""torch rules: functions answered while tracing (predicates, metadata, checks), and finfo and iinfo."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental import symbolic_shapes

from minidynamo import reasons
from minidynamo.guards.kinds import Equal, TypeIs
from minidynamo.model.tables import builds, meaning, torch_rule
from minidynamo.model.variable import NotConstant, VariableTracker
from minidynamo.protocol import compare
from minidynamo.sources import Attr
from minidynamo.variables import tensors, torch_ops
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.sequences import TupleVariable


def once(*functions: Any) -> list[Any]:
    """The functions, each object once: torch exports many under several names."""
    return list({id(fn): fn for fn in functions}.values())


# ---------------------------------------------------------------- where are we
def answers(value: Any) -> Any:
    return lambda tx, *args, **kwargs: ConstantVariable(value)


for fn_ in once(torch.jit.is_scripting, torch.jit.is_tracing, torch._jit_internal.is_scripting,
                torch.onnx.is_in_onnx_export, torch.compiler.is_exporting):
    torch_rule(fn_)(answers(False))
torch_rule(torch._C._get_tracing_state)(answers(None))
for fn_ in once(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, torch._utils.is_compiling):
    torch_rule(fn_)(answers(True))


@torch_rule(torch._C._is_torch_function_mode_enabled)
def is_torch_function_mode_enabled(tx):
    """Only a device context can be active here; other modes keep the frame from being traced."""
    return ConstantVariable(torch._C._is_torch_function_mode_enabled())


def has_torch_function(tx: Any, *args: VariableTracker) -> VariableTracker:
    """check_has_torch_function, for each argument; a value of a kind that has it breaks."""
    found = [v for arg in args for v in ([arg] if not isinstance(arg, TupleVariable) else arg.items)]
    if tx.asks(found):
        return ConstantVariable(True)
    for value in found:
        kind = tx.real(value).py_type()
        if not issubclass(kind, torch.Tensor) and hasattr(kind, "__torch_function__"):
            tx.stop(reasons.TENSOR_SUBCLASS, type=kind.__name__)
        if isinstance(value, tensors.SubclassVariable):
            tx.stop(reasons.TENSOR_SUBCLASS, type=kind.__name__)
    return ConstantVariable(False)


for fn_ in once(torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary,
                torch.overrides.has_torch_function_variadic):
    torch_rule(fn_)(has_torch_function)


# ---------------------------------------------------------------- predicates and metadata
@torch_rule(torch.is_tensor)
def is_tensor(tx, obj):
    return ConstantVariable(issubclass(obj.py_type(), torch.Tensor))


@torch_rule(torch.is_storage)
def is_storage(tx, obj):
    return ConstantVariable(obj.py_type() in torch._storage_classes)


@torch_rule(torch.overrides.is_tensor_like)
def is_tensor_like(tx, inp):
    kind = inp.py_type()
    return ConstantVariable(kind is torch.Tensor or hasattr(kind, "__torch_function__"))


def declare_metadata(fn: Any) -> None:
    def read(tx: Any, *args: Any, **kwargs: Any) -> VariableTracker | None:
        if tx.asks((*args, *kwargs.values())):
            return None
        if any(isinstance(v, tensors.SubclassVariable) for v in (*args, *kwargs.values())):
            tx.stop(reasons.TENSOR_SUBCLASS, type="an argument")
        return torch_ops.read_metadata(tx, fn, list(args), kwargs)
    torch_rule(fn)(read)


for fn_ in (torch.is_floating_point, torch.is_complex, torch.is_conj, torch.is_neg, torch.is_inference,
            torch.is_signed, torch.is_same_size, torch.is_distributed, torch.numel, torch.get_device,
            torch.result_type, torch.can_cast, torch.promote_types):
    declare_metadata(fn_)


@torch_rule(torch.broadcast_shapes)
def broadcast_shapes(tx, *shapes):
    """Known sizes are folded; symbolic ones are compared by the inlined function."""
    try:
        return tx.fold(torch.broadcast_shapes, list(shapes))
    except NotConstant:
        return None


def declare_shape_test(fn: Any) -> None:
    """Tests that torch's own shape code makes, of a literal or of a symbolic number."""
    def test(tx: Any, value: VariableTracker) -> VariableTracker:
        number = value.value if isinstance(value, tensors.SymVariable) else value.as_constant()
        return tensors.from_value(tx, fn(number), None)
    torch_rule(fn)(test)


for fn_ in (symbolic_shapes.guard_or_false, symbolic_shapes.guard_or_true, symbolic_shapes.guard_size_oblivious,
            symbolic_shapes.statically_known_true, symbolic_shapes.is_nested_int, symbolic_shapes.guard_bool,
            symbolic_shapes.guard_int):
    declare_shape_test(fn_)


# ---------------------------------------------------------------- checks
def checked(name: str, exc_type: type) -> Any:
    def check(tx: Any, cond: VariableTracker, message: VariableTracker | None = None) -> VariableTracker:
        """``torch._check``: true now, and guarded where it is symbolic; a false one raises natively."""
        if isinstance(cond, tensors.TensorVariable):
            tx.stop(reasons.DATA_DEPENDENT_BRANCH, text=tx.where().text())
        if not compare.truth(tx, cond):
            tx.stop(reasons.OP_RAISED, op=name, error=exc_type.__name__)
        return ConstantVariable(None)
    return check


for name_, type_ in (("_check", RuntimeError), ("_check_index", IndexError), ("_check_value", ValueError),
                     ("_check_type", TypeError), ("_check_not_implemented", NotImplementedError)):
    torch_rule(getattr(torch, name_))(checked(name_, type_))


# ---------------------------------------------------------------- finfo, iinfo
class TypeInfoVariable(VariableTracker):
    """``torch.finfo(dtype)`` and ``torch.iinfo(dtype)``: numbers that follow from the dtype."""

    __slots__ = ("value",)
    kind = "limits of a dtype"

    def __init__(self, value: Any, source: Any = None) -> None:
        self.value, self.source = value, source

    def py_type(self) -> type:
        return type(self.value)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        found = getattr(self.value, name, None)
        if isinstance(found, (int, float, str)):
            return ConstantVariable(found)
        return super().tp_getattro(tx, name)

    def rebuild(self, out: Any) -> None:
        dtype = getattr(torch, self.value.dtype)
        out.begin_call_of(type(self.value))
        out.load_object_unchecked(dtype)
        out.call(1)


@builds(torch.finfo, torch.iinfo)
def build_type_info(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Equal(Attr(source, "dtype"), obj.dtype))
    return TypeInfoVariable(obj, source)


def declare_type_info(kind: type) -> None:
    def make(tx: Any, type: VariableTracker | None = None) -> VariableTracker:
        try:
            return TypeInfoVariable(kind(type.as_constant()) if type is not None else kind())
        except TypeError as error:
            tx.raise_real(error)
    meaning(kind)(make)


for kind_ in (torch.finfo, torch.iinfo):
    declare_type_info(kind_)
