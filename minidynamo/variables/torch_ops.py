"""torch functions: which are graph ops, how arguments become graph arguments, rules answered while tracing."""
from __future__ import annotations

import functools
import types
from typing import Any

import torch
import torch.overrides

from minidynamo import reasons
from minidynamo.code import decode
from minidynamo.graph.tape import values_of
from minidynamo.guards.enum_fetch import allowed_by_torch
from minidynamo.model import marks
from minidynamo.model.services import service
from minidynamo.model.tables import PROXIES, TORCH_RULES
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.reasons import Stop
from minidynamo.variables import tensors
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.sequences import ListVariable, NamedTupleVariable, SizeVariable, TuplePart, TupleVariable

# Tensor methods that only read metadata: the fake answers, the graph needs no node.
METADATA_METHODS = frozenset({
    "size", "dim", "ndimension", "numel", "nelement", "stride", "element_size", "is_contiguous", "is_floating_point",
    "is_complex", "is_signed", "get_device", "storage_offset", "is_conj", "is_neg", "is_inference", "has_names",
    "dense_dim", "sparse_dim", "is_pinned", "is_same_size", "__len__"})
# Methods that reach past the graph, by the reason (of one field) that says how.
REACHING = (
    (reasons.DATA_DEPENDENT_VALUE, "item __bool__ __int__ __float__ __complex__ __hash__ __contains__ is_nonzero equal "
                                   "allclose"),
    (reasons.ITERATE_TENSOR_VALUES, "tolist numpy __array__ cpu_numpy"),
    (reasons.TENSOR_AS_INDEX, "__index__"),
    (reasons.FORMAT_TENSOR, "__repr__ __str__ __format__"),
    (reasons.TENSOR_DATA_ACCESS, "data_ptr storage untyped_storage _typed_storage share_memory_ is_shared __dlpack__ "
                                 "__dlpack_device__ __cuda_array_interface__ is_set_to set_ _is_view _base map_ map2_ "
                                 "apply_ pin_memory record_stream"),
    (reasons.DEEPCOPY_TENSOR, "__reduce_ex__ __reduce__ __deepcopy__ __setstate__"),
    (reasons.AUTOGRAD_CALL, "backward retain_grad reinforce"),
    (reasons.HOOK_REGISTRATION, "register_hook register_post_accumulate_grad_hook"),
)
DATA_METHODS = {name: reason for reason, names in REACHING for name in names.split()}
RESIZING = frozenset({"resize_", "resize_as_"})
NOT_OPS = frozenset({"manual_seed", "seed", "compile", "set_default_device"})


@functools.cache
def op_ids() -> dict[int, Any]:
    """Functions that become one graph node, by id (ids stay: the values are kept)."""
    found: dict[int, Any] = {}
    for fn in torch.overrides.get_testing_overrides():
        if callable(fn) and getattr(fn, "__name__", "") not in NOT_OPS and not isinstance(fn, types.MethodWrapperType):
            found[id(fn)] = fn
    for owner in (torch._C._VariableFunctions, torch._C._nn, torch._C._linalg, torch._C._special, torch._C._fft,
                  torch._C._nested, torch._C._sparse):
        for name in dir(owner):
            fn = getattr(owner, name)
            if isinstance(fn, types.BuiltinFunctionType) and name not in NOT_OPS:
                found[id(fn)] = fn
    for name in ("tensor", "as_tensor", "asarray", "from_numpy", "arange", "full", "zeros", "ones", "empty"):
        found[id(getattr(torch, name))] = getattr(torch, name)
    for cls in (torch._C.TensorBase, torch.Tensor):
        for raw in vars(cls).values():
            if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType)) or (
                    isinstance(raw, types.FunctionType) and id(raw) in found):
                found[id(raw)] = raw
    for name in dir(object):        # what tensors inherit from object is not theirs
        found.pop(id(getattr(object, name)), None)
    return found


@functools.cache
def method_names() -> dict[int, str]:
    """Tensor methods by id of the raw attribute."""
    return {id(raw): name for cls in (torch._C.TensorBase, torch.Tensor) for name, raw in vars(cls).items()
            if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType, types.FunctionType))}


def is_graph_op(fn: Any) -> bool:
    kind = type(fn)
    if kind is torch._ops.OpOverloadPacket or isinstance(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return True
    return id(fn) in op_ids() or fn in marks.ALLOW_IN_GRAPH


# ---------------------------------------------------------------- arguments
@service
def proxy(tx: Any, value: VariableTracker) -> Any:
    """A value as a graph argument: nodes for tensors, literals, and containers of them."""
    value = real(tx, value)
    maker = PROXIES.get(type(value))
    if maker is not None:
        return maker(tx, value)
    try:
        return plain_argument(tx, value.as_constant())
    except NotConstant:
        inner = value.inner
        if inner is not None:
            return proxy(tx, inner)
        tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=tx.where().text(),
                why=f"a {value.py_type().__name__} cannot be an argument of a graph node")


def plain_argument(tx: Any, value: Any) -> Any:
    """A constant as a graph can hold it: a literal, or the number in an int or float subclass (an IntEnum)."""
    kind = type(value)
    if kind in LITERAL_TYPES or kind in (tuple, slice, torch.Size):
        return value
    for plain in (int, float, complex, str):
        if isinstance(value, plain):
            return plain(value)
    tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=tx.where().text(),
            why=f"a {kind.__name__} cannot be an argument of a graph node")


def proxy_named(tx: Any, value: NamedTupleVariable) -> Any:
    items = [proxy(tx, v) for v in value.items]
    return value.cls(*items) if hasattr(value.cls, "_fields") else tuple(items)


PROXIES.update({
    ConstantVariable: lambda tx, v: v.value,
    TupleVariable: lambda tx, v: tuple([proxy(tx, i) for i in v.items]),
    SizeVariable: lambda tx, v: tuple([proxy(tx, i) for i in v.items]),
    ListVariable: lambda tx, v: [proxy(tx, i) for i in v.items],
    NamedTupleVariable: proxy_named,
    TuplePart: lambda tx, v: tuple([proxy(tx, i) for i in v.items]),
})


# ---------------------------------------------------------------- calls
def call_op(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """One graph node, unless the call only reads metadata or needs data; None asks for the body to be inlined."""
    name = method_names().get(id(fn))
    asked = tx.asks((*args, *kwargs.values()))
    if asked and type(fn) is types.FunctionType and why_not_inlined(fn) is None:
        return None                         # torch's Python asks for itself
    if asked:
        return tx.ask_overriding(fn, asked, args, kwargs)
    if name is not None:
        if not args or not isinstance(args[0], tensors.TensorVariable):
            if args and isinstance(args[0], tensors.SubclassVariable):
                tx.stop(reasons.TENSOR_SUBCLASS, type=args[0].py_type().__name__)
            tx.stop(reasons.UNSUPPORTED_CALL, call=name, kind="a tensor method on something else")
        return call_tensor_method(tx, name, fn, args, kwargs)
    if any(isinstance(a, tensors.SubclassVariable) for a in (*args, *kwargs.values())):
        tx.stop(reasons.TENSOR_SUBCLASS, type="an argument")
    try:
        nodes = [proxy(tx, a) for a in args]
        named = {k: proxy(tx, v) for k, v in kwargs.items()}
    except Stop:
        if type(fn) is types.FunctionType and why_not_inlined(fn) is None:
            return None                     # torch's Python around smaller ops: a callable given to it is traced
        raise
    if named.get("requires_grad"):
        # A leaf made in a graph would not be one when it leaves a compiled graph.
        tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=tx.where().text(), why="requires_grad=True makes a leaf")
    result = tx.emit(fn, nodes, named)
    out = kwargs.get("out")
    return result if out is None else out_result(out, result)


def out_result(out: VariableTracker, result: VariableTracker) -> VariableTracker:
    """``out=`` gives back the very tensors it was given."""
    return out if isinstance(out, tensors.TensorVariable) else result


def call_tensor_method(tx: Any, name: str, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    if name in METADATA_METHODS:
        return read_metadata(tx, fn, args, kwargs)
    slot = SLOT_METHODS.get(name)
    if slot is not None:
        return slot(tx, *args)
    reason = DATA_METHODS.get(name)
    if reason is not None and not (name == "item" and tx.config.capture_scalar_outputs):
        tx.stop(reason, **{reason.fields[0]: f"{name}()"})
    if name in RESIZING and args[0].obj is not None:        # AOT backends cannot resize a graph's input
        tx.stop(reasons.METADATA_MUTATION, op=f"{name}()")
    nodes = [proxy(tx, a) for a in args]
    named = {k: proxy(tx, v) for k, v in kwargs.items()}
    return tx.emit(name, nodes, named, method=True)


def read_metadata(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
    """A function that reads sizes, types and flags only: the fakes answer, the graph needs no node."""
    values = values_of([proxy(tx, a) for a in args])
    named = values_of({k: proxy(tx, v) for k, v in kwargs.items()})
    try:
        value = fn(*values, **named)
    except Exception as error:
        tx.op_error(fn.__name__, error)
    return tensors.from_value(tx, value, None)


SLOT_METHODS: dict[str, Any] = {
    "__setitem__": lambda tx, t, k, v: t.mp_ass_subscript(tx, k, v) or tx.wrap(None),
    "__getitem__": lambda tx, t, k: t.mp_subscript(tx, k),
    "__iter__": lambda tx, t: t.tp_iter(tx),
    "requires_grad_": lambda tx, t, flag=ConstantVariable(True): requires_grad(tx, t, flag),
}


def requires_grad(tx: Any, tensor: Any, flag: VariableTracker) -> VariableTracker:
    """``requires_grad_()``: a leaf made in a graph would not be one when it leaves a compiled graph."""
    if bool(flag.as_constant()) != tensor.fake.requires_grad:
        tx.stop(reasons.METADATA_MUTATION, op="requires_grad_()")
    return tensor


def call_marked(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """What the user declared: allow_in_graph, nonstrict_trace, assume_constant_result, opaque."""
    if fn in marks.CONSTANT_RESULT:
        return tx.call_now(fn, args, kwargs)
    if fn in marks.ALLOW_IN_GRAPH or type(fn) is types.FunctionType and allowed_by_torch(fn):
        return tx.call_allowed(fn, args, kwargs)
    declared = marks.OPAQUE.get(fn)
    if declared is not None:
        return tx.call_opaque(fn, *declared, args, kwargs)
    if fn in marks.DOORS:
        tx.stop(reasons.NONSTRICT_INSIDE, name=fn.__name__)
    inside = kept_out(fn)
    if inside is None and isinstance(fn, types.FunctionType) and "_torchdynamo_disable" in vars(fn):
        tx.stop(reasons.DISABLED_FUNCTION, name=fn.__qualname__)
    if inside is not None:
        return call_torch_disabled(tx, inside, args, kwargs)
    if fn in marks.COMPILING:
        return ConstantVariable(True)
    if fn in marks.BREAKS:
        msg = args[0] if args else kwargs.get("msg")
        tx.stop(reasons.GRAPH_BREAK_ASKED, msg=str(msg.as_constant()) if msg is not None else "")
    return None


TORCH_DISABLED = torch._disable_dynamo(lambda: None).__code__


def kept_out(fn: Any) -> Any:
    """The function inside what torch wraps around its own functions to keep them out of its own frontend; None for others.

    Optimizers are wrapped once torch's own frontend compiles something in the process.
    """
    if getattr(fn, "__code__", None) is TORCH_DISABLED:
        return fn.__wrapped__
    if isinstance(fn, types.FunctionType) and "_torchdynamo_disable" in vars(fn) and fn.__module__.startswith("torch.optim."):
        return vars(fn).get("_torchdynamo_orig_callable")
    return None


def call_torch_disabled(tx: Any, inside: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """A function torch keeps out of its own frontend, by its rule here (torch wraps ``manual_seed`` late) or by its body."""
    rule = TORCH_RULES.get(inside)
    result = None if rule is None else rule(tx, *args, **kwargs)
    if result is None:
        why = why_not_inlined(inside)
        if why is not None:
            tx.stop(reasons.SKIPPED_FUNCTION, name=why)
        result = tx.call_polyfill(inside, args, kwargs)
    return result


def does_nothing(fn: types.FunctionType) -> bool:
    """A body that only returns None: marks that torch leaves in its code for its own frontend."""
    return [op.name for op in decode(fn.__code__).ops] == ["LOAD_CONST", "RETURN"]


NOT_INLINED = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "torch.jit", "torch._C",
               "torch.onnx", "torch.export", "torch._export", "torch.distributed", "torch.utils.data",
               "torch.autograd", "torch._higher_order_ops", "torch.utils.checkpoint", "torch.func", "torch.library",
               "torch._library", "torch._subclasses", "torch.profiler", "torch.multiprocessing", "torch.serialization",
               "torch._logging", "torch._guards", "torch._ops", "torch.testing._comparison", "torch.package", "torch.hub",
               "torch.utils._python_dispatch",
               "importlib", "threading", "linecache", "traceback", "gc", "pdb", "logging", "warnings",
               "multiprocessing", "concurrent", "asyncio", "subprocess", "socket", "tempfile", "shutil",
               "tokenize", "ast", "dis", "sysconfig", "site", "weakref", "_weakrefset", "tracemalloc",
               "numpy", "sympy")
INLINED_ANYWAY = ("torch.autograd.grad_mode", "torch.distributions", "asyncio.coroutines")
# Functions of such modules that only read: whether a message would be logged, what a weak container holds.
READERS = frozenset({
    *(f"logging.Logger.{name}" for name in ("debug", "info", "warning", "error", "critical", "log", "isEnabledFor",
                                            "getEffectiveLevel", "hasHandlers")),
    *(f"logging.{name}" for name in ("debug", "info", "warning", "error", "critical", "log")),
    *(f"weakref.{kind}.{name}" for kind in ("WeakKeyDictionary", "WeakValueDictionary")
      for name in ("__getitem__", "__contains__", "__len__", "get")),
    "_weakrefset.WeakSet.__contains__", "_weakrefset.WeakSet.__len__"})


def why_not_inlined(fn: types.FunctionType) -> str | None:
    """A function whose body must run natively, by the module it is defined in."""
    module = fn.__globals__.get("__name__") or ""
    if not runs_natively(module) or not module.startswith("minidynamo.") and does_nothing(fn):
        return None
    name = f"{module}.{fn.__qualname__}"
    return None if name in READERS else name


@functools.cache
def runs_natively(module: str) -> bool:
    def within(prefixes: Any) -> bool:
        return any(module == p or module.startswith(p + ".") for p in prefixes)
    if module.startswith("minidynamo."):
        return not module.startswith("minidynamo.polyfills")
    return within(NOT_INLINED) and not within(INLINED_ANYWAY)


STOCK_FILE = torch.nn.modules.module.__file__


def stock_behind(fn: types.FunctionType) -> types.FunctionType | None:
    """The method of nn.Module that `fn` was put in front of.

    torch's own frontend replaces ``Module.__init__`` once it is loaded, to number modules for its own use.
    """
    if vars(torch.nn.Module).get("__init__") is not fn and vars(torch.nn.Module).get("__setstate__") is not fn:
        return None
    for cell in fn.__closure__ or ():
        inside = cell.cell_contents
        if isinstance(inside, types.FunctionType) and inside.__code__.co_filename == STOCK_FILE:
            return inside
    return None
