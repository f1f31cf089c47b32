"""Ops that write into memory that another argument reads: whether they fail is known only when they run."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from minidynamo.graph.fake import layout
from minidynamo.graph.tape import Node

# These copy, or write what does not depend on the old content.
TOLERANT = frozenset({"copy_", "fill_", "zero_", "set_", "resize_", "resize_as_", "detach_", "requires_grad_", "unsqueeze_",
                      "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_"})
OPERATORS = frozenset({"iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor",
                       "ilshift", "irshift"})


def may_overlap(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a written tensor shares storage with another argument of other layout."""
    out = kwargs.get("out")
    if out is None:
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        in_place = name.endswith("_") and not name.endswith("__") and name not in TOLERANT or name in OPERATORS
        if not in_place or not args:
            return False
        out, args = args[0], args[1:]
    written = fakes_in(out)
    if not written:
        return False
    return any(shares(w, r) for w in written for r in fakes_in([list(args), {k: v for k, v in kwargs.items() if k != "out"}]))


def shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a is b or a.layout is not torch.strided or b.layout is not torch.strided:
        return False
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata and layout(a) != layout(b)


def fakes_in(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, Node):
        tree = tree.value
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    return [t for item in tree for t in fakes_in(item)] if isinstance(tree, (list, tuple)) else []
