"""Backends: names to functions ``(gm, example_inputs) -> callable``, torch's own reached lazily."""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, MethodType
from typing import Any

import torch

from minidynamo.base.text import a_type, name_of
from minidynamo.reasons.errors import UserError

Backend = Callable[..., Any]

BACKENDS: dict[str, Backend] = {}
# Tags keep a backend out of `list_backends()`, as in torch's registry.
TAGS: dict[str, tuple[str, ...]] = {}
# Public names of torch's compile wrappers: they look a name up in torch's registry.
INDUCTOR = "inductor"


def register_backend(compiler_fn: Backend | None = None, name: str | None = None,
                     tags: tuple[str, ...] = ()) -> Any:
    """Make a backend known by name; works as a function and as a decorator."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise UserError(f"a backend is a callable, not {a_type(compiler_fn)}")
    name = name or name_of(compiler_fn).rpartition(".")[2]
    if name in BACKENDS and BACKENDS[name] is not compiler_fn:
        raise UserError(f"there is a backend {name!r} already")
    BACKENDS[name], TAGS[name] = compiler_fn, tuple(tags)
    return compiler_fn


@register_backend
def eager(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Run the graph as it was captured."""
    return gm.forward


def list_backends(exclude_tags: tuple[str, ...] | None = ("debug", "experimental")) -> list[str]:
    """Names that `optimize` accepts: ours and all of torch's registry."""
    hidden = set(exclude_tags or ())
    ours = {name for name in BACKENDS if not hidden & set(TAGS[name])}
    return sorted(ours | set(torch.compiler.list_backends(tuple(hidden))))


def resolve(backend: str | Backend, mode: str | None = None, options: dict[str, Any] | None = None,
            dynamic: bool | None = None) -> tuple[Backend, str]:
    """The backend function and its name; torch's registry is asked on the first use of a name."""
    if not isinstance(backend, str):
        if not callable(backend):
            raise UserError(f"backend must be a name or a callable, not {a_type(backend)}")
        extra = _extra(mode, options)
        return (functools.partial(backend, **extra) if extra else backend), name_of(backend)
    found = BACKENDS.get(backend)
    if found is not None:
        if mode not in (None, "default") or options:
            raise UserError(f"the backend {backend!r} takes no mode and no options; backend=\"inductor\" does")
        return found, backend
    if backend == INDUCTOR:
        return _Lazy(lambda: torch._TorchCompileInductorWrapper(mode or "default", options, dynamic)), backend
    return _torch_backend(backend, mode, options, dynamic), backend


def _extra(mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if mode not in (None, "default"):
        found["mode"] = mode
    if options:
        found["options"] = options
    return found


def _torch_backend(name: str, mode: str | None, options: dict[str, Any] | None, dynamic: bool | None) -> Backend:
    """A backend of torch's registry.  "aot_eager" is always there, so its look-up can wait."""
    make = functools.partial(torch._TorchCompileWrapper, name, mode, options, dynamic)
    if name == "aot_eager":
        return _Lazy(make)
    if name not in torch.compiler.list_backends(()):
        raise UserError(f"no backend is called {name!r}; there are {', '.join(list_backends())}, and aot_eager")
    return make()


class _Lazy:
    """A backend made on its first graph, because looking torch's up imports a second of code."""

    def __init__(self, make: Callable[[], Backend]) -> None:
        self._make = make
        self._made: Backend | None = None

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any], **kwargs: Any) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made(gm, example_inputs, **kwargs)


def shield(compiled: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[CodeType, ...]]:
    """The graph's callable such that the hook stays out of it, and the code to tell the hook about.

    A graph's own ``forward`` has code of its own, which can be marked.  Anything else may share its
    code with functions that must stay visible, so it is called through `_shielded`.
    """
    if isinstance(compiled, torch.fx.GraphModule):
        compiled = compiled.forward
    if isinstance(compiled, MethodType) and isinstance(compiled.__self__, torch.fx.GraphModule):
        code = getattr(compiled.__func__, "__code__", None)
        if code is not None and code.co_filename.startswith("<eval_with_key>"):
            return compiled, (code,)
    return _shielded(compiled), ()


def _shielded(compiled: Callable[..., Any]) -> Callable[..., Any]:
    def run_graph(*args: Any) -> Any:
        return compiled(*args)
    return run_graph


SHIELD_CODE: CodeType = _shielded(len).__code__
