"""Classes: which are C's own, in the sense of this Python."""
from __future__ import annotations

from minidynamo.code.version import version

IMMUTABLE_TYPE, HEAP_TYPE = 1 << 8, 1 << 9      # Py_TPFLAGS_*


def is_static(cls: type) -> bool:
    """Whether `cls` is a static type of C.  Later Pythons make some of them on the heap; nothing else is new about those."""
    flags = cls.__flags__
    return not flags & HEAP_TYPE or bool(flags & IMMUTABLE_TYPE) and cls.__module__ in version.NO_LONGER_STATIC
