"""C functions of functools as Python to inline (Modules/_functoolsmodule.c)."""
from __future__ import annotations

import functools
from typing import Any

from minidynamo.model.tables import polyfill


@polyfill(functools.reduce)
def reduce(function: Any, sequence: Any, /, *initial: Any) -> Any:
    """functools_reduce."""
    if len(initial) > 1:
        raise TypeError(f"reduce expected at most 3 arguments, got {2 + len(initial)}")
    iterator: Any = None
    try:
        iterator = iter(sequence)
    except TypeError:
        pass
    if iterator is None:
        raise TypeError("reduce() arg 2 must support iteration")
    if initial:
        result = initial[0]
    else:
        for result in iterator:  # noqa: B007
            break
        else:
            raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        result = function(result, item)
    return result
