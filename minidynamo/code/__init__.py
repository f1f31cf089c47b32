"""Code: neutral ops for Python 3.11 to 3.13; decode, assemble, write and analyse them."""
from __future__ import annotations

import sys

from minidynamo.code.assemble import assemble
from minidynamo.code.classes import is_static
from minidynamo.code.comprehensions import plain_name
from minidynamo.code.decode import DecodeError, decode, remember, remembered
from minidynamo.code.listing import listing
from minidynamo.code.liveness import StackError, live_locals, loops, stack_depths
from minidynamo.code.program import NO_POSITION, Handler, Op, Position, Program
from minidynamo.code.version import version
from minidynamo.code.writer import Label, UnsafeConstant, Writer, is_safe_constant

null_first: bool = version.null_first
"""Where NULL stands: below the callable (3.11, 3.12) or above it (3.13)."""

python_version: tuple[int, int] = sys.version_info[:2]
"""For tests; the project itself asks for one of ``code.facts``."""

__all__ = [
    "NO_POSITION", "DecodeError", "Handler", "Label", "Op", "Position", "Program", "StackError",
    "UnsafeConstant", "Writer", "assemble", "decode", "is_safe_constant", "is_static", "listing", "live_locals",
    "loops", "null_first", "plain_name", "python_version", "remember", "remembered", "stack_depths",
]
