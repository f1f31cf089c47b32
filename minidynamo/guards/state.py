"""Guards on process state: grad mode and its like, mode stacks, the default device, shadowed names."""
from __future__ import annotations

from typing import Any

import torch
from torch._C._dynamo import guards as c_guards
from torch.utils import _device

from minidynamo.base.text import name_of
from minidynamo.guards.guard import Guard, Names, Tree, guard_kind
from minidynamo.guards.hold import Held, hold, held_key, holds_object
from minidynamo.guards.literals import short
from minidynamo.sources import Builtin


class _State(Guard):
    """A guard of no source."""

    __slots__ = ()

    def current(self) -> bool:
        raise NotImplementedError

    def check(self, L: Any, G: dict[str, Any]) -> bool:
        try:
            return self.current()
        except Exception:
            return False

    def describe(self, L: Any, G: dict[str, Any]) -> tuple[str, str]:
        return self.expected(), self.difference()

    def difference(self) -> str:
        return "changed"


PROBE = torch.empty(0, device="cpu")


def dispatch_state() -> tuple[int, int]:
    """The dispatcher's keys of this thread: inference mode, functorch, Python dispatch modes."""
    return (torch._C._dispatch_tls_local_include_set().raw_repr(),
            torch._C._dispatch_tls_local_exclude_set().raw_repr())


@guard_kind(cost=3)
class GlobalState(_State):
    """Grad mode, autocast, determinism, threads, default dtype, dispatcher keys: as when made."""

    __slots__ = ("state", "dispatch")

    def __init__(self) -> None:
        self.state, self.dispatch = c_guards.GlobalStateGuard(), dispatch_state()
        super().__init__(None, (self.state.__getstate__(), self.dispatch))

    def expression(self, names: Names) -> str:
        return f"{names.const(self.current, 'same_global_state')}()"

    def current(self) -> bool:
        return self.state.check() and dispatch_state() == self.dispatch

    def attach(self, tree: Tree) -> None:
        tree.root.add_global_state_guard(self.state, self.parts(), None)
        if dispatch_state() == self.dispatch:
            # A tensor guard compares keys under the thread's own: a probe reads them in C++.
            tree.constant_manager(PROBE).add_tensor_match_guard(
                PROBE, [0], [1], "probe", self.parts(), None, torch.Tensor, torch._C._dispatch_keys(PROBE))
        else:
            tree.root.add_lambda_guard(lambda _: dispatch_state() == self.dispatch, self.parts(), None)

    def expected(self) -> str:
        return "the global state at tracing"

    def difference(self) -> str:
        changed = self.state.reason().strip()
        return changed or ("dispatcher keys" if dispatch_state() != self.dispatch else "the same")


def mode_stack() -> list[Any]:
    return [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]


def _held_mode(mode: Any) -> tuple[Held, Any]:
    if type(mode) is _device.DeviceContext:         # made anew by each set_default_device
        return hold(type(mode)), mode.device
    return hold(mode), None


@guard_kind(cost=3)
class ModeStack(_State):
    """The torch function modes that are active, bottom first: the same objects.

    Device contexts are compared by device. With `by_type` only types count, for modes that the
    caller guards by other means.
    """

    __slots__ = ("modes", "by_type")

    def __init__(self, modes: list[Any], by_type: bool = False) -> None:
        self.by_type = by_type
        self.modes = [(hold(type(mode)), None) if by_type else _held_mode(mode) for mode in modes]
        super().__init__(None, (by_type, tuple((held_key(held), device) for held, device in self.modes)))

    def expression(self, names: Names) -> str:
        if not names.readable:
            return f"{names.const(self.current, 'same_mode_stack')}()"
        return f"torch_function_modes() == {self.expected()}"

    def current(self) -> bool:
        if torch._C._len_torch_function_stack() != len(self.modes):
            return False
        return all(map(self._same, self.modes, mode_stack()))

    def _same(self, mode: tuple[Held, Any], now: Any) -> bool:
        held, device = mode
        if device is not None:
            return type(now) is held() and now.device == device
        return type(now) is held() if self.by_type else holds_object(held, now)

    def attach(self, tree: Tree) -> None:
        if not self.modes:
            tree.root.add_torch_function_mode_stack_guard([], self.parts(), None)
        else:
            tree.root.add_lambda_guard(lambda _: self.current(), self.parts(), None)

    def expected(self) -> str:
        return "[" + ", ".join(short(held()) for held, _ in self.modes) + "]"

    def difference(self) -> str:
        return "[" + ", ".join(name_of(type(mode)) for mode in mode_stack()) + "]"


@guard_kind(cost=2)
class DefaultDevice(_State):
    """The device set by ``torch.set_default_device``; None when none is.

    A ``with torch.device(...)`` block shows in `ModeStack` only.
    """

    __slots__ = ("device",)

    def __init__(self, device: torch.device | None) -> None:
        self.device = device
        super().__init__(None, device)

    def expression(self, names: Names) -> str:
        if names.readable:
            return f"default_device() == {self.expected()}"
        return f"{names.const(self.current, 'same_default_device')}()"

    def current(self) -> bool:
        return _device.CURRENT_DEVICE == self.device

    def attach(self, tree: Tree) -> None:
        if self.current():
            tree.root.add_default_device_guard(self.parts(), None)     # compares with the current one
        else:
            tree.root.add_lambda_guard(lambda _: self.current(), self.parts(), None)

    def expected(self) -> str:
        return str(self.device)

    def difference(self) -> str:
        return str(_device.CURRENT_DEVICE)


@guard_kind(cost=2)
class NoBuiltinShadow(Guard):
    """Globals without `name`, so that it means the builtin (or nothing).

    `scope` is an inlined function's own globals dict; None for the frame's.
    """

    __slots__ = ("name", "scope", "scope_name")

    def __init__(self, name: str, scope: dict[str, Any] | None = None, scope_name: str = "") -> None:
        self.name, self.scope, self.scope_name = name, scope, scope_name
        super().__init__(Builtin(name), (name, None if scope is None else id(scope)))

    @property
    def sources(self) -> tuple[Builtin, ...]:
        return ()

    def expression(self, names: Names) -> str:
        scope = "G" if self.scope is None else names.const(self.scope, f"globals_of({self.scope_name!r})")
        return f"{self.name!r} not in {scope}"

    def check(self, L: Any, G: dict[str, Any]) -> bool:
        return self.name not in (G if self.scope is None else self.scope)

    def attach(self, tree: Tree) -> None:
        tree.scope_manager(self.scope).add_dict_contains_guard(False, self.name, self.parts(), None)

    def describe(self, L: Any, G: dict[str, Any]) -> tuple[str, str]:
        return self.text(), f"{self.name} is a global" if not self.check(L, G) else "the same"
