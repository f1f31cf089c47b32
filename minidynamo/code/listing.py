"""listing(): a code object's instructions as text, without asking any constant for its repr."""
from __future__ import annotations

import dis
import io
from types import CodeType

from minidynamo.base.text import show


class _Shown:
    """Stands in for a constant in `dis`'s output: new code holds the user's objects and compiled graphs."""

    __slots__ = ("text",)

    def __init__(self, constant: object) -> None:
        self.text = f"<code {constant.co_qualname}>" if isinstance(constant, CodeType) else show(constant)

    def __repr__(self) -> str:
        return self.text


def listing(code: CodeType) -> str:
    """What ``dis.dis(code)`` prints, nested code left out."""
    out = io.StringIO()
    names = tuple(const if type(const) is tuple and all(type(item) is str for item in const) else _Shown(const)
                  for const in code.co_consts)          # KW_NAMES must stay readable
    dis.dis(code.replace(co_consts=names), file=out, depth=0)
    return out.getvalue().rstrip()
