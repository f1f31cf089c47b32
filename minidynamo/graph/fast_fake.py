"""Fast fakes: a FakeTensorMode that remembers what ATen ops make of given metadata.

Torch's own mode takes a hundred microseconds and more for an op, its own cache included.  Here an op seen before costs
about twenty: the key is the operator with the metadata of its fakes and its constants, the entry says how to make the
results.  Autograd, autocast and views' bookkeeping run above, in C++, on every call.  Whatever is not plainly a
function of metadata (symbolic sizes, constants with values, data dependent shapes, sparse layouts, other subclasses,
operators that are not built in) goes the long way.
"""
from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _python_dispatch

Key = tuple[Any, ...]


class New(NamedTuple):
    """A fresh tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class View(NamedTuple):
    """A tensor over the storage of the argument at `base`."""

    base: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device


class Same(NamedTuple):
    """The very argument at `index`, written in place."""

    index: int                            # type: ignore[assignment]     # hides tuple.index


class Many(NamedTuple):
    """Several results, as a tuple or list."""

    kind: type
    parts: tuple[Any, ...]


class NotRemembered(Exception):
    """A result, or an argument, that has to be worked out each time."""


# Fingerprint of the process's flags -> key -> entry.  Entries hold no tensor.
_CACHES: dict[Any, dict[Key, Any]] = {}
_LIMIT = 20_000
_NEVER_TAGS = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view})
_NEVER_NAMES = frozenset({"aten::_unsafe_view", "aten::lift", "aten::lift_fresh", "aten::lift_fresh_copy", "aten::set_",
                          "aten::resize_", "aten::resize_as_", "aten::_resize_output_", "aten::detach_",
                          "aten::_local_scalar_dense", "aten::sym_size", "aten::sym_stride", "aten::sym_numel",
                          "aten::is_pinned", "aten::is_coalesced", "aten::dense_dim", "aten::sparse_dim",
                          "aten::copy_sparse_to_sparse_", "aten::requires_grad_", "aten::record_stream"})
_LITERALS = frozenset({int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout,
                       torch.memory_format})
_DEVICE = torch.ops.prim.device.default
# Per operator: None (never), or whether it is a view.
_KINDS: dict[Any, bool | None] = {}


def flags() -> Any:
    """What may change an operator's metadata rule besides its arguments."""
    return (torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), torch._C._get_mkldnn_enabled(),
            torch._C._get_cudnn_enabled(), torch._C._get_cudnn_deterministic(), torch._C._get_nnpack_enabled(),
            torch._C._get_flash_sdp_enabled(), torch._C._get_math_sdp_enabled(),
            torch._C._get_mem_efficient_sdp_enabled())


def kind_of(func: Any) -> bool | None:
    """Whether results may be remembered (None: no), and whether the operator makes views."""
    try:
        return _KINDS[func]
    except KeyError:
        known = None
        if isinstance(func, torch._ops.OpOverload) and func.namespace in ("aten", "prims") \
                and func._schema.name not in _NEVER_NAMES and not _NEVER_TAGS & set(func.tags):
            known = func.is_view
        _KINDS[func] = known
        return known


def metadata(mode: FakeTensorMode, t: Any) -> Key:
    """Everything about a fake that an operator may look at."""
    if type(t) is not FakeTensor or t.fake_mode is not mode or t.constant is not None \
            or t._has_symbolic_sizes_strides or t.layout is not torch.strided:
        raise NotRemembered
    return (t.dtype, t.shape, t.stride(), t.storage_offset(), t.fake_device, t.requires_grad,
            t.is_conj(), t.is_neg(), t.is_inference())


def part_of_key(mode: FakeTensorMode, value: Any) -> Any:
    kind = type(value)
    if kind in _LITERALS:
        return (kind, value)
    if kind is FakeTensor:
        return metadata(mode, value)
    if kind is list or kind is tuple or kind is torch.Size:
        return (kind, *[part_of_key(mode, v) for v in value])
    raise NotRemembered


def key_of(mode: FakeTensorMode, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Key:
    parts = [func, torch.is_grad_enabled()]
    parts += [part_of_key(mode, value) for value in args]
    if kwargs:
        for name, value in kwargs.items():
            parts.append((name, part_of_key(mode, value)))
    return tuple(parts)


def hasten(mode: FakeTensorMode) -> None:
    """A trace starts: `mode` remembers.  Its flags stay as they are meanwhile, since changing one breaks the graph.

    The method is the object's own: higher-order operators have rules for exactly ``FakeTensorMode``.  Torch would also
    wrap a subclass's method so that its own compiler stays out, at some cost; the hook is off while we trace.
    """
    now = flags()
    remembered = _CACHES.get(now)
    if remembered is None or len(remembered) > _LIMIT:
        remembered = _CACHES[now] = {}
    slow = mode.__torch_dispatch__
    get = remembered.get

    def dispatch(mode: FakeTensorMode, func: Any, kinds: Sequence[type], args: Sequence[Any] = (),
                 kwargs: Mapping[str, Any] | None = None) -> Any:
        if kind_of(func) is None:
            return args[0].fake_device if func is _DEVICE else slow(func, kinds, args, kwargs or {})
        try:
            key = key_of(mode, func, args, kwargs)
        except NotRemembered:
            return slow(func, kinds, args, kwargs or {})
        entry = get(key)
        if entry is not None:
            return make(mode, entry, args)
        result = slow(func, kinds, args, kwargs or {})
        try:
            remembered[key] = entry_of(mode, func, result, args, kwargs or {}, key)
        except NotRemembered:
            pass                    # worked out each time
        return result

    mode.given = {}                                                 # type: ignore[attr-defined]
    mode.__torch_dispatch__ = types.MethodType(dispatch, mode)      # type: ignore[method-assign]


def slow_down(mode: FakeTensorMode) -> None:
    """Backends get the mode as torch made it."""
    vars(mode).pop("__torch_dispatch__", None)
    vars(mode).pop("given", None)


class Inside:
    """``with mode:``, without asking anew which devices this machine has where no fake mode is active yet."""

    __slots__ = ("mode", "avoids", "entered")

    def __init__(self, mode: FakeTensorMode) -> None:
        self.mode, self.avoids = mode, mode.avoid_device_init
        self.entered: list[tuple[bool, bool] | None] = []       # what to put back; None where torch's own way was taken
        with mode:
            pass                                    # what torch does on the first entry only

    def __enter__(self) -> None:
        if torch._C._get_dispatch_mode(FAKE_KEY) is not None:
            self.mode.__enter__()
            self.entered.append(None)
            return
        # Calls of C alone, so that a stack that is deep enough to come in is deep enough to go out.
        self.entered.append((torch._C._only_lift_cpu_tensors(), _python_dispatch._is_in_torch_dispatch_mode))
        if self.avoids:
            torch._C._set_only_lift_cpu_tensors(True)
        _python_dispatch._is_in_torch_dispatch_mode = True
        torch._C._set_dispatch_mode(self.mode)

    def __exit__(self, *exc: Any) -> None:
        prior = self.entered.pop()
        if prior is None:
            self.mode.__exit__(*exc)
            return
        torch._C._unset_dispatch_mode(FAKE_KEY)
        only_lift, _python_dispatch._is_in_torch_dispatch_mode = prior
        torch._C._set_only_lift_cpu_tensors(only_lift)


FAKE_KEY = torch._C._TorchDispatchModeKey.FAKE


# ---------------------------------------------------------------- inputs
def plain_fake(mode: FakeTensorMode, t: torch.Tensor) -> FakeTensor | None:
    """The fake that ``mode.from_tensor`` makes of a leaf with memory of its own and no attributes; None for any other."""
    if not t.is_leaf or t.layout is not torch.strided or t.is_nested or not t.dim() or t._is_view() \
            or t.storage_offset() or t.device.type == "meta" or t.is_inference() or t.is_conj() or t.is_neg() \
            or torch._is_functional_tensor(t) or t.__dict__ or t.grad is not None or t.requires_grad and t.grad_dtype != t.dtype:
        return None
    converter = mode.fake_tensor_converter
    known, storage = converter.meta_converter.describer, t.untyped_storage()
    elem = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
    if storage in known.lookup_storage or elem.untyped_storage().nbytes() != storage.nbytes():
        return None
    fake = fake_over(mode, elem, t.device)
    fake.requires_grad = t.requires_grad
    if type(t) is torch.nn.Parameter:
        fake._is_param = True
    converter.meta_converter.storage_memo[known.get_storage_id(storage)] = fake.untyped_storage()
    converter.set_tensor_memo(t, fake)
    return fake


# ---------------------------------------------------------------- making results
def fake_over(mode: FakeTensorMode, elem: torch.Tensor, device: torch.device) -> FakeTensor:
    """``FakeTensor(mode, elem, device)``, with the attributes that torch has given the first one on that device."""
    given: dict[torch.device, dict[str, Any]] | None = vars(mode).get("given")
    attributes = None if given is None else given.get(device)
    if attributes is None or mode._allow_unsafe_data_ptr_access:
        fake = FakeTensor(mode, elem, device)
        if given is not None:
            given[device] = dict(vars(fake))
        return fake
    fake = torch.Tensor._make_subclass(FakeTensor, elem, False, dispatch_device=True, device_for_backend_keys=device)
    torch._C._set_throw_on_mutable_data_ptr(fake)
    vars(fake).update(attributes)
    return fake


def make(mode: FakeTensorMode, entry: Any, args: Sequence[Any]) -> Any:
    kind = type(entry)
    if kind is New:
        elem = torch.empty_strided(entry.shape, entry.stride, dtype=entry.dtype, device="meta")
        return fake_over(mode, elem, entry.device)
    if kind is Same:
        return args[entry.index]
    if kind is View:
        elem = torch.empty(0, dtype=entry.dtype, device="meta")
        elem.set_(args[entry.base].untyped_storage(), entry.offset, entry.shape, entry.stride)
        return fake_over(mode, elem, entry.device)
    made = [None if part is None else make(mode, part, args) for part in entry.parts]
    return made if entry.kind is list else tuple(made)


# ---------------------------------------------------------------- learning from a result
def entry_of(mode: FakeTensorMode, func: Any, result: Any, args: Sequence[Any], kwargs: Mapping[str, Any],
             key: Key) -> Any:
    """How to make `result` again; NotRemembered where that would not be the same."""
    inside = [v for part in (*args, *kwargs.values()) if isinstance(part, (list, tuple)) for v in part
              if type(v) is FakeTensor]
    if func._schema.is_mutable and key_of(mode, func, args, kwargs) != key:
        raise NotRemembered                  # writing must have left all metadata alone
    storages = {t.untyped_storage()._cdata: i for i, t in reversed(list(enumerate(args))) if type(t) is FakeTensor}
    others = {t.untyped_storage()._cdata for t in inside}
    others |= {v.untyped_storage()._cdata for v in kwargs.values() if type(v) is FakeTensor}
    if type(result) in (tuple, list):
        parts = [None if r is None else part_entry(mode, func, r, args, storages, others) for r in result]
        own = [r.untyped_storage()._cdata for r, part in zip(result, parts, strict=True) if type(part) is New]
        if len(set(own)) != len(own):
            raise NotRemembered
        return Many(type(result), tuple(parts))
    return part_entry(mode, func, result, args, storages, others)


def part_entry(mode: FakeTensorMode, func: Any, result: Any, args: Sequence[Any], storages: dict[int, int],
               others: set[int]) -> Any:
    if type(result) is not FakeTensor:
        raise NotRemembered
    for index, value in enumerate(args):
        if value is result:
            if not func._schema.is_mutable:
                raise NotRemembered
            return Same(index)
    dtype, shape, stride, offset, device, *rest = metadata(mode, result)
    if any(rest) or result.real_tensor is not None:
        raise NotRemembered
    storage = result.untyped_storage()
    if storage._cdata in others:
        raise NotRemembered
    base = storages.get(storage._cdata)
    if base is not None:
        if not func.is_view:
            raise NotRemembered
        return View(base, tuple(shape), tuple(stride), offset, dtype, device)
    entry = New(tuple(shape), tuple(stride), dtype, device)
    fresh = make(mode, entry, args)
    if func.is_view or offset or fresh.untyped_storage().nbytes() != storage.nbytes():
        raise NotRemembered
    return entry
