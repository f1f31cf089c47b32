"""math.prod as Python to inline (Modules/mathmodule.c)."""
from __future__ import annotations

import math
from typing import Any

from minidynamo.model.tables import polyfill


@polyfill(math.prod)
def prod(iterable: Any, /, *, start: Any = 1) -> Any:
    """math_prod_impl; its fast paths for ints and floats give what the operator gives."""
    for item in iterable:
        start = start * item
    return start
