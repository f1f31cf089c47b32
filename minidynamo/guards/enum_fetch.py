"""The enum that torch's guard managers ask for, and what users marked by torch.compiler.allow_in_graph.

The only place of the project naming torch._dynamo.  The C++ code imports the same module for this enum when the
first child manager is made, so importing it here costs nothing more; the marks are read only where they have been made.
"""
from __future__ import annotations

import functools
import importlib
import sys
from typing import Any


@functools.cache
def plain_manager() -> Any:
    """The enum member that asks for a plain guard manager (imports on first use, 1.5 s)."""
    return importlib.import_module("torch._dynamo.guards").GuardManagerType.GUARD_MANAGER


def allowed_by_torch(fn: Any) -> bool:
    """Whether a function, not torch's own, was given to ``torch.compiler.allow_in_graph``."""
    kept = getattr(sys.modules.get("torch._dynamo.trace_rules"), "_allowed_callable_ids", None)
    return id(fn) in (getattr(kept, "function_ids", None) or ()) \
        and (getattr(fn, "__module__", None) or "torch").partition(".")[0] != "torch"
