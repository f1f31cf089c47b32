"""The enum that torch's guard managers ask for; the only place of the project naming torch._dynamo.

The C++ code imports the same module for this enum when the first child manager is made, so
importing it here costs nothing more. Nothing else of torch._dynamo is used.
"""
from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def plain_manager() -> Any:
    """The enum member that asks for a plain guard manager (imports on first use, 1.5 s)."""
    return importlib.import_module("torch._dynamo.guards").GuardManagerType.GUARD_MANAGER
