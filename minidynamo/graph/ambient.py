"""Ambient state: what torch code may switch inside a graph, and how to read, set, undo and compare it.

The tracer makes every switch for real, so that fakes see it; the journal undoes it at a break, and the
tracer puts everything back at the end.  The graph carries the same calls; an exit sets what then
differs from the entry, because a compiled graph may have been traced through its switches.
"""
from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

# Devices whose autocast state the graph may switch; the others break.
AUTOCAST_DEVICES = ("cpu", "cuda")


class Switch(NamedTuple):
    """One setter: ``read(*head)`` is the value that ``setter(*head, value)`` sets."""

    read: Callable[..., Any]
    heads: tuple[tuple[Any, ...], ...] = ((),)


_DEVICES = tuple([(device,) for device in AUTOCAST_DEVICES])
AMBIENT: dict[Any, Switch] = {
    torch._C._set_grad_enabled: Switch(torch.is_grad_enabled),
    torch.set_autocast_enabled: Switch(torch.is_autocast_enabled, _DEVICES),
    torch.set_autocast_dtype: Switch(torch.get_autocast_dtype, _DEVICES),
    torch.set_autocast_cache_enabled: Switch(torch.is_autocast_cache_enabled),
}

Setting = tuple[Any, tuple[Any, ...]]       # (setter, all of its arguments)


def is_switch(target: Any) -> bool:
    """Whether a graph node's target is one of the setters (a user's callable may have no hash)."""
    return type(target) is types.BuiltinFunctionType and target in AMBIENT


def current(setter: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with which `setter` would set what is set now, for a call with `args`."""
    head = args[:-1]
    return (*head, AMBIENT[setter].read(*head))


def snapshot() -> list[Setting]:
    """Everything in the table as it is."""
    return [(setter, (*head, switch.read(*head))) for setter, switch in AMBIENT.items() for head in switch.heads]


def changes(before: list[Setting]) -> list[Setting]:
    """What is set now and was not set so in `before`."""
    return [now for was, now in zip(before, snapshot(), strict=True) if was != now]


def restore(before: list[Setting]) -> None:
    """Set what differs from `before` back."""
    for (setter, args), now in zip(before, snapshot(), strict=True):
        if now[1] != args:
            setter(*args)


GRAD_MODE = torch._C._set_grad_enabled
OPS = ("call_function", "call_method")


def one_grad_mode(nodes: Sequence[Any], live: bytearray) -> bool | None:
    """The grad mode that all ops of a graph run in, if the graph itself sets it before the first one.

    Its switches are then dead: the graph is called in that mode instead.  Backends that trace for gradients
    are thereby spared graphs that need none, as those of optimizers.
    """
    mode, found, switches = None, set(), []
    for node in nodes:
        if node.kind in OPS and live[node.index]:
            if node.target is GRAD_MODE:
                mode = node.args[0]
                switches.append(node.index)
            else:
                found.add(mode)
    if len(found) != 1 or found == {None}:
        return None
    for index in switches:
        live[index] = 0
    return bool(found.pop())


class in_grad_mode:
    """A graph's callable, called in a grad mode that is put back after it."""

    def __init__(self, call: Callable[..., Any], mode: bool) -> None:
        self.call, self.mode = call, mode

    def __call__(self, *args: Any) -> Any:
        before = torch.is_grad_enabled()
        GRAD_MODE(self.mode)
        try:
            return self.call(*args)
        finally:
            GRAD_MODE(before)


def nesting_by(steps: int) -> None:
    """Enter (or with a negative number leave) so many autocast regions."""
    for _ in range(abs(steps)):
        (torch.autocast_increment_nesting if steps > 0 else torch.autocast_decrement_nesting)()
