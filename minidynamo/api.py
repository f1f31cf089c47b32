"""The public door: what users call. Each function here is short; the work is in the layers below."""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import torch
from torch import nn

from minidynamo import reasons
from minidynamo.base.config import config
from minidynamo.base.text import a_type, count_of, name_of, type_name
from minidynamo.compiler import backends
from minidynamo.compiler.backends import list_backends, register_backend
from minidynamo.compiler.frame import Options
from minidynamo.hook import adapter
from minidynamo.hook.module import OptimizedModule, around
from minidynamo.hook.skip import family_of
from minidynamo.model import marks
from minidynamo.observe import RECORDS, counters, set_logs
from minidynamo.reasons import Stop
from minidynamo.reasons.errors import UserError
from minidynamo.tools import explain as tools
from minidynamo.tools.explain import Explanation

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "counters", "disable", "explain", "graph_break",
    "is_compile_supported", "is_compiling", "list_backends", "mark_dynamic", "mark_static", "nonstrict_trace",
    "opaque", "optimize", "register_backend", "reset", "set_logs",
]


# ------------------------------------------------------------------ optimize
@overload
def optimize(fn: F, /, **settings: Any) -> F: ...
@overload
def optimize(fn: None = None, /, **settings: Any) -> Callable[[F], F]: ...


def optimize(fn: Any = None, /, *, backend: Any = "eager", fullgraph: bool = False,    # type: ignore[misc]
             dynamic: bool | None = None,
             mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False) -> Any:
    """Capture the tensor work of `fn` as graphs, and run everything else as Python does.

    `fn` is a function, method, callable object, partial or nn.Module; without it, a decorator is returned.

    backend    a name of `list_backends()`, or ``callable(gm, example_inputs) -> callable``
    fullgraph  raise `exc.Unsupported` where the graph would have to break
    dynamic    None: sizes become symbolic when they change; True: at once; False: never
    mode, options   as torch.compile's, for the backends that take them
    disable    return `fn` as it is
    """
    settings = {"backend": backend, "fullgraph": fullgraph, "dynamic": dynamic, "mode": mode, "options": options,
                "disable": disable}
    if fn is None:
        return functools.partial(_optimize, settings=settings)
    return _optimize(fn, settings)


def _optimize(fn: Any, settings: dict[str, Any]) -> Any:
    _check_target(fn)
    _check_settings(settings)
    if settings["disable"] or config.disable:
        return fn
    behind = marks.wrapped_by(fn)
    if behind is not None and behind[0] == "optimized":
        fn = behind[1]
    callback = _callback(settings)
    if isinstance(fn, nn.Module):
        original = fn._orig_mod if isinstance(fn, OptimizedModule) else fn
        root = _named_like(adapter.hooked(adapter.root_of(original), callback), original.forward)
        forward = _named_like(adapter.hooked(original.forward, callback), original.forward)
        return around(original, root, forward, functools.partial(_optimize, settings=settings))
    return _named_like(adapter.hooked(_frame_of(fn), callback), fn)


def _check_target(fn: Any) -> None:
    if inspect.isclass(fn):
        raise UserError(f"optimize takes functions and objects, not the class {name_of(fn)}; "
                        "optimize its instances, or decorate its methods")
    if not callable(fn):
        raise UserError(f"optimize takes something that can be called, not {a_type(fn)}")


def _check_settings(settings: dict[str, Any]) -> None:
    if settings["mode"] is not None and settings["options"] is not None:
        raise UserError("give mode or options, not both: a mode is a set of options")
    if settings["dynamic"] not in (None, True, False):
        raise UserError(f"dynamic is None, True or False, not {settings['dynamic']!r}")
    if not isinstance(settings["options"], (dict, types.NoneType)):
        raise UserError(f"options is a dict, not {a_type(settings['options'])}")


def _callback(settings: dict[str, Any]) -> Callable[..., Any]:
    """One callback for equal settings, so that their entries are shared."""
    backend = settings["backend"]
    try:
        hash(backend)
        same: Any = backend
    except TypeError:
        same = id(backend)          # the callback keeps the backend, so the id stays its own
    key = (same, settings["mode"], repr(settings["options"]), settings["dynamic"], bool(settings["fullgraph"]))
    fn, name = backends.resolve(backend, settings["mode"], settings["options"], settings["dynamic"])
    return adapter.callback_for(Options(fn, name, bool(settings["fullgraph"]), settings["dynamic"]), key)


def _frame_of(fn: Any) -> Any:
    """`fn`, or a Python function around it where `fn` itself has no frame that can be traced."""
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inner.__func__ if isinstance(inner, types.MethodType) else inner
    if not isinstance(inner, types.FunctionType):
        inner = getattr(type(inner), "__call__", None)
    if isinstance(inner, types.FunctionType) and family_of(inner.__code__.co_filename) == "user":
        return fn
    return adapter.root_of(fn)


def _named_like(wrapper: Callable[..., Any], fn: Any) -> Any:
    """Name, text, signature and attributes of a function; of other objects what they have of these."""
    updated = ("__dict__",) if isinstance(fn, types.FunctionType) else ()
    return functools.update_wrapper(wrapper, fn, updated=updated)


# ------------------------------------------------------------------ keeping things out
def disable(fn: Any = None, recursive: bool = True) -> Any:
    """Never trace `fn`.  `recursive`: nor anything it calls; otherwise what it calls is still compiled."""
    if fn is None:
        return functools.partial(disable, recursive=recursive)
    if not callable(fn):
        raise UserError(f"disable takes something that can be called, not {a_type(fn)}")
    if inspect.isclass(fn):
        return _disable_class(fn, recursive)
    if recursive:
        if isinstance(fn, nn.Module):
            return around(fn, adapter.unhooked(fn), adapter.unhooked(fn.forward), disable)
        return _named_like(adapter.unhooked(fn), fn)
    target = marks.unwrap(fn.forward if isinstance(fn, nn.Module) else fn)
    if not isinstance(target, types.FunctionType):
        target = getattr(type(target), "__call__", None)
    if not isinstance(target, types.FunctionType):
        raise UserError(f"disable(recursive=False) needs a Python function, and {name_of(fn)} has none")
    marks.mark(marks.DISABLED, target)
    adapter.skip_code(target.__code__)
    return fn


def _disable_class(cls: type, recursive: bool) -> type:
    """The methods of the class's own that make and call instances."""
    for name in ("__init__", "__call__", "forward"):
        if name in vars(cls):
            setattr(cls, name, disable(vars(cls)[name], recursive))
    return cls


def graph_break(msg: str = "") -> None:
    """End the graph here.  Does nothing outside compiled code."""


def is_compiling() -> bool:
    """True while the caller is being traced."""
    return False


marks.mark(marks.BREAKS, graph_break)
marks.mark(marks.COMPILING, is_compiling)


# ------------------------------------------------------------------ what calls mean
@overload
def allow_in_graph(fn: list[F]) -> list[F]: ...
@overload
def allow_in_graph(fn: F) -> F: ...


def allow_in_graph(fn: Any) -> Any:
    """Put calls of `fn` into the graph as one node, without looking inside.

    Arguments and results must be tensors, numbers and plain containers of these.  Unlike with
    `nonstrict_trace`, nothing else is flattened, and backends see the call of `fn` itself.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    _check_callable(fn, "allow_in_graph")
    marks.mark(marks.ALLOW_IN_GRAPH, fn)
    return fn


def nonstrict_trace(fn: F) -> F:
    """A function that is opaque to the frontend and traced by the backend (AOT) instead.

    Arguments and results are flattened with ``torch.utils._pytree``; leaves are tensors, numbers, strings, None.
    """
    if not callable(fn):
        raise UserError(Stop(reasons.NONSTRICT_NOT_CALLABLE, {"name": repr(fn)[:60], "type": type_name(fn)}).render())

    return _named_like(_nonstrict(fn), fn)


def _nonstrict(fn: Any) -> Callable[..., Any]:
    """A function of its own, known by its code, so that `fn` stays as it is everywhere else."""
    def nonstrict(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)
    return nonstrict


marks.WRAPPERS.add(_nonstrict(None).__code__, "nonstrict")


def assume_constant_result(fn: F) -> F:
    """Call `fn` once while tracing and keep its result for ever."""
    _check_callable(fn, "assume_constant_result")
    marks.mark(marks.CONSTANT_RESULT, fn)
    return fn


def opaque(fn: F, when: str = "break") -> F:
    """Say when a function that cannot be traced may run.

    ``"now"``: while tracing, its result is a constant; ``"later"``: after the graph, its result is unused;
    ``"break"``: between two graphs.
    """
    _check_callable(fn, "opaque")
    if when not in marks.WHEN:
        raise UserError(f"opaque(when=...) is one of {', '.join(marks.WHEN)}, not {when!r}")
    adapter.keep_out(marks.unwrap(fn))
    marks.mark(marks.OPAQUE, fn, (when, adapter.unhooked(marks.unwrap(fn))))
    return fn


for _door in (allow_in_graph, nonstrict_trace, assume_constant_result, opaque, disable, optimize):
    marks.mark(marks.DOORS, _door)


def _check_callable(fn: Any, door: str) -> None:
    if not callable(fn):
        raise UserError(f"{door} takes something that can be called, not {a_type(fn)}")


# ------------------------------------------------------------------ sizes
def mark_dynamic(tensor: torch.Tensor, index: int | Iterable[int], *, min: int | None = None,
                 max: int | None = None) -> None:
    """Dimensions of this tensor are symbolic from the first compile on."""
    dims = _dims(tensor, index, "mark_dynamic")
    for dim in dims:
        if (min is not None and tensor.shape[dim] < min) or (max is not None and tensor.shape[dim] > max):
            raise UserError(f"mark_dynamic: size {tensor.shape[dim]} of dimension {dim} is not between {min} and {max}")
    known: set[int] = getattr(tensor, "_minidynamo_dynamic_dims", set())
    ranges: dict[int, tuple[int | None, int | None]] = getattr(tensor, "_minidynamo_dynamic_range", {})
    tensor._minidynamo_dynamic_dims = known | dims                                      # type: ignore[attr-defined]
    tensor._minidynamo_dynamic_range = {**ranges, **dict.fromkeys(dims, (min, max))}    # type: ignore[attr-defined]


def mark_static(tensor: torch.Tensor, index: int | Iterable[int] | None = None) -> None:
    """Dimensions of this tensor (all by default) never become symbolic."""
    dims = _dims(tensor, range(tensor.dim()) if index is None else index, "mark_static")
    known: set[int] = getattr(tensor, "_minidynamo_static_dims", set())
    tensor._minidynamo_static_dims = known | dims                                       # type: ignore[attr-defined]


def _dims(tensor: Any, index: int | Iterable[int], door: str) -> set[int]:
    if not isinstance(tensor, torch.Tensor):
        raise UserError(f"{door} takes a tensor, not {a_type(tensor)}")
    found = set()
    for dim in (index,) if isinstance(index, int) else index:
        if not -tensor.dim() <= dim < tensor.dim():
            raise UserError(f"{door}: the tensor has {count_of(tensor.dim(), 'dimension')}, there is none at {dim}")
        found.add(dim % tensor.dim())
    return found


# ------------------------------------------------------------------ everything else
def reset() -> None:
    """Forget everything compiled, counted and remembered; options stay."""
    adapter.reset()
    counters.clear()
    RECORDS.clear()


def explain(fn: Callable[..., Any], **settings: Any) -> Callable[..., Explanation]:
    """``explain(fn)(*args)`` compiles `fn` afresh, runs it, and returns the report of what was done, and why.

    `settings` are those of `optimize`; an optimized `fn` brings its own.  The report has graphs, breaks, guards,
    effects, recompiles, timings; print it.
    """
    known = adapter.options_of(fn)
    if known is not None:
        settings = {"backend": known.backend, "fullgraph": known.fullgraph, "dynamic": known.dynamic, **settings}
    _check_target(fn)
    return tools.explain(optimize, fn, settings)


def is_compile_supported(device: Any) -> bool:
    """Whether compiled code can run on `device` ("cpu", "cuda:1", a torch.device); never raises."""
    try:
        found = torch.device(device)
        if found.type == "cpu":
            return found.index in (None, 0)
        module = torch.get_device_module(found)
        return bool(module.is_available()) and (found.index is None or found.index < module.device_count())
    except Exception:       # unknown names, odd objects, drivers that fail: all mean no
        return False
