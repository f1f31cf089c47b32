"""Guards on tensors: everything that tracing with a fake tensor has read, and who aliases whom."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from minidynamo.base.text import name_of
from minidynamo.guards.guard import Guard, Names, Tree, guard_kind
from minidynamo.guards.hold import hold, held_key
from minidynamo.guards.literals import literal_key
from minidynamo.guards.values import IsNone, TypeIs
from minidynamo.sources import Source


def moved_strides(tensor: torch.Tensor, dynamic_dims: frozenset[int]) -> frozenset[int]:
    """The dims whose stride a dynamic size may move: those at or outside a dynamic dim."""
    strides = tensor.stride()
    inner = [strides[dim] for dim in dynamic_dims]
    return frozenset(dim for dim in range(len(strides))
                     if any(strides[dim] > stride for stride in inner))


@guard_kind(cost=6)
class TensorMatch(Guard):
    """Python type, dtype, device, layout, requires_grad, dispatch keys, sizes and strides.

    Conjugate and negative bits, subclass wrappers and inference tensors come with the dispatch
    keys. Sizes of `dynamic_dims` are free, and so are the strides that those sizes move, unless
    `dynamic_strides` says which: relations between them are left to `ShapeExpr`.
    """

    __slots__ = ("held", "dtype", "device", "layout", "requires_grad", "ndim", "sizes", "strides",
                 "keys", "_sample")

    def __init__(self, source: Source, tensor: torch.Tensor, dynamic_dims: Iterable[int] = (),
                 skip_sizes: bool = False, dynamic_strides: Iterable[int] | None = None) -> None:
        self.held = hold(type(tensor))
        with torch._C.DisableTorchFunction():        # a subclass's or a mode's code must not run
            self._read(tensor, dynamic_dims, skip_sizes, dynamic_strides)
        super().__init__(source, (held_key(self.held), literal_key((self.dtype, self.device, self.layout)),
                                  self.requires_grad, self.ndim, self.sizes, self.strides,
                                  self.keys.raw_repr()))

    def _read(self, tensor: torch.Tensor, dynamic_dims: Iterable[int], skip_sizes: bool,
              dynamic_strides: Iterable[int] | None) -> None:
        self.dtype, self.device, self.layout = tensor.dtype, tensor.device, tensor.layout
        self.requires_grad, self.ndim = tensor.requires_grad, tensor.ndim
        dynamic = frozenset(range(self.ndim)) if skip_sizes else frozenset(dynamic_dims)
        self.sizes = self.strides = (None,) * self.ndim
        strided = self.layout is torch.strided and not tensor.is_nested
        if not tensor.is_nested:
            self.sizes = tuple(None if dim in dynamic else int(size)
                               for dim, size in enumerate(tensor.shape))
        if strided:
            free = frozenset(range(self.ndim)) if skip_sizes else moved_strides(tensor, dynamic) \
                if dynamic_strides is None else frozenset(dynamic_strides)
            self.strides = tuple(None if dim in free else int(stride)
                                 for dim, stride in enumerate(tensor.stride()))
        self.keys = torch._C._dispatch_keys(tensor)
        self._sample = hold(tensor)          # C++ copies facts from a tensor; not kept alive

    def fixed_facts(self) -> Any:
        """Unlike for two guards only if no tensor meets both."""
        return (held_key(self.held), str(self.dtype), str(self.device), str(self.layout), self.requires_grad, self.ndim,
                self.keys.raw_repr())

    def expression(self, names: Names) -> str:
        read = names.source(self.source)
        if not names.readable:
            return f"{names.const(self.holds, 'is_tensor')}({read})"
        shape = ", ".join("_" if size is None else str(size) for size in self.sizes)
        facts = [shape and f"[{shape}]", str(self.dtype)[6:], str(self.device)]
        if any(stride is not None for stride in self.strides):
            facts.append("strides=[" + ", ".join("_" if s is None else str(s) for s in self.strides) + "]")
        if self.layout is not torch.strided:
            facts.append(str(self.layout)[6:])
        if self.requires_grad:
            facts.append("requires_grad")
        return f"tensor_match({read}, {self._type_name()!r}, {', '.join(filter(None, facts))!r})"

    def _type_name(self) -> str:
        return name_of(self.held()) if self.held() is not None else "<dead>"

    def facts(self, value: torch.Tensor) -> Iterable[tuple[str, Any, Any]]:
        """Each fact's name, what was expected and what `value` has, cheapest first."""
        yield "dtype", self.dtype, value.dtype
        yield "device", self.device, value.device
        yield "layout", self.layout, value.layout
        yield "requires_grad", self.requires_grad, value.requires_grad
        yield "dimensions", self.ndim, value.ndim
        if any(size is not None for size in self.sizes):
            yield "shape", self.sizes, tuple(
                None if size is None else have for size, have in zip(self.sizes, value.shape))
        if any(stride is not None for stride in self.strides):
            yield "strides", self.strides, tuple(
                None if stride is None else have for stride, have in zip(self.strides, value.stride()))
        yield "dispatch keys", self.keys.raw_repr(), torch._C._dispatch_keys(value).raw_repr()

    def differing(self, value: Any) -> tuple[str, Any, Any] | None:
        if type(value) is not self.held():
            return "type", self.held(), type(value)
        with torch._C.DisableTorchFunction():
            return next((fact for fact in self.facts(value) if fact[1] != fact[2]), None)

    def holds(self, value: Any) -> bool:
        return self.differing(value) is None

    def attach(self, tree: Tree) -> None:
        manager, sample = tree.manager(self.source), self._sample()
        if sample is None or not self.holds(sample):      # gone, or changed since it was read
            manager.add_lambda_guard(self.holds, self.parts(), None)
            return
        tree.watch(self.held)
        manager.add_tensor_match_guard(sample, list(self.sizes), list(self.strides), self.source.text(),
                                       self.parts(), None, self.held(), self.keys)

    def implies(self) -> Iterable[Guard]:
        if self.held() is not None:
            yield TypeIs(self.source, self.held())
            yield IsNone(self.source, False)

    def pins_type(self) -> type | None:
        return self.held()

    def describe(self, L: Any, G: dict[str, Any]) -> tuple[str, str]:
        try:
            fact = self.differing(self.source.fetch(L, G))
        except Exception as error:
            return self.text(), f"cannot be read: {type(error).__name__}"
        if fact is None:
            return self.text(), "the same"
        name, expected, got = fact
        if name == "type":
            return f"type {self._type_name()}", f"type {name_of(got)}"
        return f"{name} {_show(expected)}", f"{name} {_show(got)}"


def _show(fact: Any) -> str:
    return "[" + ", ".join("_" if n is None else str(n) for n in fact) + "]" \
        if type(fact) is tuple else str(fact)
