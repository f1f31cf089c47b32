"""minidynamo: a small, sound bytecode tracing frontend for PyTorch."""
from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from minidynamo.base.config import config

if TYPE_CHECKING:
    from minidynamo import exc, testing
    from minidynamo.api import (
        OptimizedModule,
        allow_in_graph,
        assume_constant_result,
        counters,
        disable,
        explain,
        graph_break,
        is_compile_supported,
        is_compiling,
        list_backends,
        mark_dynamic,
        mark_static,
        nonstrict_trace,
        opaque,
        optimize,
        register_backend,
        reset,
        set_logs,
    )

__version__ = "0.1.0"
__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "counters", "disable", "exc", "explain",
    "graph_break", "is_compile_supported", "is_compiling", "list_backends", "mark_dynamic", "mark_static",
    "nonstrict_trace", "opaque", "optimize", "register_backend", "reset", "set_logs", "testing",
]

# ``import minidynamo.config`` is this very object.
sys.modules[f"{__name__}.config"] = config

_MODULES = ("exc", "testing")
_DOOR = [name for name in __all__ if name not in ("config", *_MODULES)]


def __getattr__(name: str) -> Any:
    """The public names, loaded together on the first use of one: ``minidynamo.code`` needs no torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()
    door = importlib.import_module(f"{__name__}.api")
    found.update({public: getattr(door, public) for public in _DOOR})
    found.update({module: importlib.import_module(f"{__name__}.{module}") for module in _MODULES})
    return found[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
