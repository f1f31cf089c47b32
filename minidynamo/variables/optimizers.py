"""torch.optim: what an optimizer's first step makes is made while tracing, so that its graph serves the later steps too."""
from __future__ import annotations

import types
from typing import Any

import torch

from minidynamo import reasons
from minidynamo.model.tables import torch_rule
from minidynamo.model.variable import VariableTracker
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable
from minidynamo.variables.tensors import TensorVariable

# Ops that cannot fail once their metadata is right: nothing that comes after them can be left undone.
SURE = frozenset({"_set_grad_enabled", "stack", "vector_norm", "norm", "linalg_vector_norm", "clamp", "clamp_", "mul", "mul_",
                  "add", "add_", "sub", "sub_", "div", "div_", "truediv", "sqrt", "detach", "to", "iadd", "imul", "itruediv"})
TRUE = ConstantVariable(True)
READ_BY_INIT = ("state", "param_groups", "defaults")


def declare_init(init: types.FunctionType) -> None:
    def init_group(tx: Any, self: VariableTracker, group: VariableTracker, *lists: VariableTracker, **named: Any) -> None:
        """``Optimizer._init_group``: the rule only makes the state that is missing; the body is inlined after it."""
        found = None if named else real_group(tx, self, group)
        if found is not None and all(type(part) is ListVariable and not part.items and part.source is None for part in lists):
            init(self.obj, found, *[[] for _ in lists])         # type: ignore[attr-defined]
    torch_rule(init)(init_group)


def real_group(tx: Any, optimizer: VariableTracker, group: VariableTracker) -> dict[str, Any] | None:
    """The user's parameter group, if it lacks state and nobody could tell that it got some before the trace is run.

    That is so where the trace has not looked at the state, has changed nothing the state is made from, and has
    recorded nothing that may fail before this call.  What is made does not depend on values: zeros, and numbers of the group.
    """
    if not isinstance(optimizer, ObjectVariable) or optimizer.source is None or tx.pure is not None \
            or any(name in optimizer.fields for name in READ_BY_INIT) or not all(map(sure, tx.tape.nodes)):
        return None
    obj = optimizer.obj
    found = next((g for g in obj.param_groups if tx.by_id.get(id(g)) is group), None)
    if found is None or id(obj.state) in tx.by_id or any(changed(tx, part) for part in (found, *found.values())):
        return None
    params = found["params"]
    if any(changed(tx, p) for p in params) or all(p.grad is None or obj.state.get(p) for p in params):
        return None
    return found


def changed(tx: Any, obj: Any) -> bool:
    known = tx.by_id.get(id(obj))
    return known is not None and id(known) in tx.changed


def sure(node: Any) -> bool:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.kind not in ("call_function", "call_method") or name in SURE or name.startswith("_foreach_")


for kind_ in vars(torch.optim).values():
    init_ = vars(kind_).get("_init_group") if isinstance(kind_, type) else None
    if isinstance(init_, types.FunctionType) and kind_ is not torch.optim.SGD:      # whose step makes the state, not this
        declare_init(init_)


# ---------------------------------------------------------------- zero_grad
def forget_gradients(self):
    for group in self.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def forget_module_gradients(self):
    for parameter in self.parameters():
        parameter.grad = None


def declare_zero_grad(fn: Any, polyfill: Any, mark: str, wanted: bool) -> None:
    def zero_grad(tx: Any, self: VariableTracker, set_to_none: VariableTracker = TRUE) -> VariableTracker | None:
        """Gradients that are dropped need not be looked at: whether there were any is no fact of the trace."""
        if not isinstance(set_to_none, ConstantVariable) or set_to_none.value is not True \
                or (tx.catching(AttributeError, lambda: self.tp_getattro(tx, mark)) is not None) is not wanted:
            return None
        return tx.call_polyfill(polyfill, [self], {})
    torch_rule(fn)(zero_grad)


declare_zero_grad(torch.optim.Optimizer.zero_grad.__wrapped__, forget_gradients, "_zero_grad_profile_name", True)
declare_zero_grad(torch.nn.Module.zero_grad, forget_module_gradients, "_is_replica", False)


# ---------------------------------------------------------------- numbers given as one tensor
def addcdiv_(tensors, first, second, scalars):
    for tensor, a, b, scalar in zip(tensors, first, second, scalars):
        tensor.addcdiv_(a, b, value=scalar)


def addcmul_(tensors, first, second, scalars):
    for tensor, a, b, scalar in zip(tensors, first, second, scalars):
        tensor.addcmul_(a, b, value=scalar)


def addcdiv(tensors, first, second, scalars):
    return tuple([tensor.addcdiv(a, b, value=scalar) for tensor, a, b, scalar in zip(tensors, first, second, scalars)])


def addcmul(tensors, first, second, scalars):
    return tuple([tensor.addcmul(a, b, value=scalar) for tensor, a, b, scalar in zip(tensors, first, second, scalars)])


def declare_scalars(fn: Any, one_by_one: Any) -> None:
    def call(tx: Any, tensors: VariableTracker, first: VariableTracker, second: VariableTracker, *scalars: VariableTracker,
             **named: VariableTracker) -> VariableTracker | None:
        """With its numbers in one tensor the op reads data, which a fake has none of; each single op keeps them in the graph."""
        given = [*scalars, *named.values()]
        if len(given) != 1 or not isinstance(given[0], TensorVariable):
            return None
        return tx.call_polyfill(one_by_one, [tensors, first, second, *given], {})
    torch_rule(fn)(call)


declare_scalars(torch._foreach_addcdiv_, addcdiv_)
declare_scalars(torch._foreach_addcmul_, addcmul_)
declare_scalars(torch._foreach_addcdiv, addcdiv)
declare_scalars(torch._foreach_addcmul, addcmul)


@torch_rule(torch._C._group_tensors_by_device_and_dtype)
def group_tensors(tx, tensorlistlist, with_indices=ConstantVariable(False)):
    """Devices and dtypes decide, so the real function is asked, with the fakes for the tensors."""
    lists = [[tx.real(item) for item in tx.collect(part)] for part in tx.collect(tensorlistlist)]
    known = {id(item.fake): item for part in lists for item in part if isinstance(item, TensorVariable)}
    fakes = [[item.fake if isinstance(item, TensorVariable) else item.as_constant() for item in part] for part in lists]
    try:
        groups = torch._C._group_tensors_by_device_and_dtype(fakes, with_indices.as_constant())
    except RuntimeError as error:
        tx.op_error("_group_tensors_by_device_and_dtype", error)
    return DictVariable.of_pairs(tx, [
        (TupleVariable([tx.wrap(device), tx.wrap(dtype)]), TupleVariable([
            ListVariable([ListVariable([known[id(t)] if t is not None else tx.wrap(None) for t in part]) for part in parts]),
            ListVariable([tx.wrap(n) for n in indices])]))
        for (device, dtype), (parts, indices) in groups.items()])


def declare_fused(fn: Any) -> None:
    def stop(tx: Any, *args: VariableTracker, **kwargs: VariableTracker) -> None:
        tx.stop(reasons.FAKE_UNSUPPORTED, op=fn.__name__,
                error="torch cannot make it functional, as backends ask, for lists without tensors")
    torch_rule(fn)(stop)


for fn_ in (torch._fused_adam_, torch._fused_adamw_, torch._fused_sgd_, torch._fused_adagrad_):
    declare_fused(fn_)
