"""Version: picks the table of the running Python.  The only version test in the project."""
from __future__ import annotations

import opcode as _opcode
import sys

if sys.version_info[:2] == (3, 11):
    from minidynamo.code import v311 as version
elif sys.version_info[:2] == (3, 12):
    from minidynamo.code import v312 as version
elif sys.version_info[:2] == (3, 13):
    from minidynamo.code import v313 as version
else:
    raise ImportError("minidynamo reads the bytecode of Python 3.11, 3.12 and 3.13 only")


def _caches() -> dict[str, int]:
    """Inline cache units behind each opcode: a list by number up to 3.12, then a dict."""
    entries = _opcode._inline_cache_entries     # type: ignore[attr-defined]
    if isinstance(entries, dict):
        return dict(entries)
    return {name: entries[number] for name, number in _opcode.opmap.items() if number < 256}


CACHES = _caches()

__all__ = ["CACHES", "version"]
