"""Skip rules: frames that are never traced as a root. Inlined calls do not come here."""
from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

import torch

import minidynamo.base
from minidynamo.base.config import config
from minidynamo.code import remembered
from minidynamo.model.marks import SKIPPED_CODE
from minidynamo.reasons import AUTOGRAD_FUNCTION, DISABLED_FRAME, GENERATOR_FRAME, MODULE_FRAME, SKIP_FILE, TRACE_LEFT, Reason
from minidynamo.variables import contexts

SUSPENDING = (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
              | inspect.CO_ITERABLE_COROUTINE)

OWN = os.path.dirname(os.path.dirname(os.path.abspath(minidynamo.base.__file__))) + os.sep
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
STDLIB = sysconfig.get_path("stdlib") + os.sep
PACKAGES = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})

# Files of torch that are programs like a user's own: traced when Python calls them outside a trace.
TORCH_TRACED = (
    "nn/modules/", "nn/functional.py", "nn/init.py", "nn/utils/", "nn/attention/", "nn/parallel/", "nn/qat/",
    "nn/quantized/", "ao/nn/", "optim/", "distributions/", "functional.py", "_refs/", "_numpy/",
    "signal/", "fft/", "linalg/", "special/", "sparse/", "utils/checkpoint.py", "testing/",
)
# ... except these, which are the machinery around them: one code object serves every module.
TORCH_MACHINERY = ("nn/modules/module.py", "nn/modules/lazy.py", "optim/optimizer.py", "optim/lr_scheduler.py")


class Skip(NamedTuple):
    """Why a frame is left alone.  `forever`: the code object alone decides."""

    reason: Reason
    fields: dict[str, str]
    forever: bool


def why_skip(code: CodeType, frame_locals: dict[str, Any]) -> Skip | None:
    """The rule that keeps this frame from being traced, or None."""
    if code.co_flags & SUSPENDING:
        return Skip(GENERATOR_FRAME, {"name": code.co_qualname}, True)
    if not code.co_flags & inspect.CO_NEWLOCALS:
        return Skip(MODULE_FRAME, {"name": code.co_qualname}, True)
    own = remembered(code)
    if own is not None and own.memo.get("plain"):
        return Skip(TRACE_LEFT, {"name": code.co_qualname}, True)
    if code in SKIPPED_CODE:
        return Skip(DISABLED_FRAME, {"name": code.co_qualname}, True)
    family = family_of(code.co_filename)
    if family == "user":
        if code.co_argcount and issubclass(type(frame_locals.get(code.co_varnames[0])), torch._C._FunctionBase):
            # Autograd makes a new context for each call; what holds for one holds for no other.
            return Skip(AUTOGRAD_FUNCTION, {"name": code.co_qualname, "why": "a context made by autograd"}, True)
        return None
    fields = {"name": code.co_qualname, "module": family}
    if family == "the standard library":
        if config.rewrite_frames_without_graph or holds_tensor(frame_locals.values()):
            return None
        return Skip(SKIP_FILE, fields, False)       # the next call may bring a tensor
    return Skip(SKIP_FILE, fields, True)


def why_skip_now() -> Skip | None:
    """What goes on in this thread that no frame can be traced in: not even our own torch calls would go unseen."""
    found = contexts.why_not_here()
    return None if found is None else Skip(*found, False)


_FAMILIES: dict[str, str] = {}


def family_of(filename: str) -> str:
    """Whose code a file is: "user", or the words for a message."""
    found = _FAMILIES.get(filename)
    if found is None:
        found = _FAMILIES[filename] = _family(filename)
    return found


def _family(filename: str) -> str:
    if filename.startswith("<frozen "):
        return "the import system"
    path = os.path.abspath(filename) if not filename.startswith("<") else filename
    if path.startswith(OWN):
        return "minidynamo"
    if path.startswith(TORCH):
        inside = path[len(TORCH):].replace(os.sep, "/")
        traced = inside.startswith(TORCH_TRACED) and inside not in TORCH_MACHINERY
        return "user" if traced else "the insides of torch"
    if path.startswith(STDLIB) and not path.startswith(PACKAGES):
        return "the standard library"
    return "user"


def holds_tensor(values: Iterable[Any]) -> bool:
    """Whether a tensor is among `values`, or directly inside a plain list, tuple or dict there."""
    for value in values:
        kind = type(value)              # isinstance would ask a user's __class__
        if issubclass(kind, torch.Tensor):
            return True
        if kind in (list, tuple):
            if any(issubclass(type(item), torch.Tensor) for item in value[:64]):
                return True
        elif kind is dict and len(value) <= 64 and any(issubclass(type(item), torch.Tensor) for item in value.values()):
            return True
    return False
