"""torch.autograd.Function: ``apply`` as one node, whose forward and backward only torch and the backend look into."""
from __future__ import annotations

import dis
import types
from typing import Any

import torch

from minidynamo import reasons
from minidynamo.model.tables import torch_rule
from minidynamo.protocol.attrs import type_lookup
from minidynamo.sources import Attr
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.nonstrict import call_body
from minidynamo.variables.reach import Reach

FORWARD = ("forward", "setup_context")
BACKWARD = ("backward", "vjp", "jvp")
WRITES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"})


@torch_rule(torch.autograd.Function.apply.__func__)
def call_apply(tx, cls, /, *args, **kwargs):
    """The class's own functions are guarded; what they read is found as for ``nonstrict_trace``."""
    if not isinstance(cls, ClassVariable):
        tx.stop(reasons.AUTOGRAD_FUNCTION, name="apply", why="a receiver that is not a class")
    name = cls.cls.__qualname__
    forward = functions_of(tx, cls, FORWARD)
    backward = functions_of(tx, cls, BACKWARD)
    check_backward(tx, name, backward)
    return call_body(tx, cls.cls.apply, name, [*forward, *backward], list(args), kwargs)


def functions_of(tx: Any, cls: ClassVariable, names: tuple[str, ...]) -> list[tuple[Any, Any]]:
    """The static methods a user's class defines, with their sources."""
    found = []
    for name in names:
        entry = type_lookup(tx, cls.cls, name)
        if entry is None or getattr(entry.owner, "__module__", "").startswith("torch."):
            continue
        raw = entry.raw
        if entry.source is None or not isinstance(raw, staticmethod) or not isinstance(raw.__func__, types.FunctionType):
            tx.stop(reasons.AUTOGRAD_FUNCTION, name=cls.cls.__qualname__, why=f"{name}() that is not a static method")
        tx.guard_same(entry.source, raw)
        found.append((raw.__func__, Attr(entry.source, "__func__")))
    return found


def check_backward(tx: Any, name: str, functions: list[tuple[Any, Any]]) -> None:
    """The backward pass runs later, or is traced once by the backend: it may only compute from what it is given."""
    reach = Reach(tx)
    for fn, source in functions:
        reach.add(fn, source)
    reach.search()
    for obj in reach.keep:
        if isinstance(obj, (torch.Tensor, list, dict, set, torch.nn.Module)):
            tx.stop(reasons.AUTOGRAD_FUNCTION, name=name, why=f"a {type(obj).__name__} from outside in its backward pass")
        if isinstance(obj, types.FunctionType) and does_more(obj):
            tx.stop(reasons.AUTOGRAD_FUNCTION, name=name, why="a backward pass that does more than compute")


def does_more(fn: types.FunctionType) -> bool:
    module = fn.__globals__.get("__name__") or ""
    if module.partition(".")[0] == "torch":
        return False
    return "print" in fn.__code__.co_names or any(op.opname in WRITES for op in dis.get_instructions(fn))


