"""Optimized modules: an nn.Module that is its original in everything but the call.

`around(module, ...)` makes an object of a subclass of the module's class that *shares the
original's ``__dict__``*.  Parameters, buffers, hooks, attributes, train/eval and state_dict keys are
the original's own, in both directions, and ``isinstance`` holds; only ``__call__`` and ``forward``
lead through the given callables.
"""
from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

from torch import nn

Remake = Callable[[nn.Module], nn.Module]


class OptimizedModule:
    """What all optimized modules have in common; first in their MRO."""

    _minidynamo_original: nn.Module
    _minidynamo_remake: Remake

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """The user's own hook is for the user's own subclasses."""

    @property
    def _orig_mod(self) -> nn.Module:
        """The module behind this one, under the name torch.compile's users know."""
        return type(self)._minidynamo_original

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        kind = type(self)
        made = kind._minidynamo_remake(copy.deepcopy(kind._minidynamo_original, memo))
        memo[id(self)] = made
        return made

    def __copy__(self) -> nn.Module:
        kind = type(self)
        return kind._minidynamo_remake(copy.copy(kind._minidynamo_original))

    def __reduce_ex__(self, protocol: Any) -> Any:
        kind = type(self)
        return kind._minidynamo_remake, (kind._minidynamo_original,)


def around(module: nn.Module, call: Callable[..., Any], forward: Callable[..., Any], remake: Remake) -> nn.Module:
    """An optimized module; `remake` makes one again from a copy (it is pickled by reference)."""
    cls = type(module)

    def fill(body: dict[str, Any]) -> None:
        body.update(
            __module__=cls.__module__, __qualname__=cls.__qualname__, __doc__=cls.__doc__,
            # Static: the call leads to `call` at once, with no frame in between.
            __call__=staticmethod(call), forward=staticmethod(forward),
            _minidynamo_original=module, _minidynamo_remake=staticmethod(remake))
        if hasattr(cls, "__del__"):
            body["__del__"] = lambda self: None        # the original's own runs once

    made = types.new_class(cls.__name__, (OptimizedModule, cls), {}, fill)
    new: nn.Module = object.__new__(made)
    object.__setattr__(new, "__dict__", module.__dict__)
    return new
