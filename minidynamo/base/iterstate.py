"""Iterators' state: what a C iterator holds, read and set without the warning that 3.12 gives a user who does so."""
from __future__ import annotations

import re
import warnings
from typing import Any

# Put in front of the filters as they are: to go through catch_warnings would make Python forget what it has warned of.
_IGNORED: Any = ("ignore", re.compile("Pickle, copy, and deepcopy support will be removed from itertools"),
                 DeprecationWarning, None, 0)


def state_of(iterator: Any) -> Any:
    """``iterator.__reduce__()``."""
    filters: Any = warnings.filters
    filters.insert(0, _IGNORED)
    try:
        return iterator.__reduce__()
    finally:
        filters.remove(_IGNORED)


def set_state(iterator: Any, state: Any) -> Any:
    """``iterator.__setstate__(state)``; gives the iterator."""
    filters: Any = warnings.filters
    filters.insert(0, _IGNORED)
    try:
        iterator.__setstate__(state)
    finally:
        filters.remove(_IGNORED)
    return iterator
