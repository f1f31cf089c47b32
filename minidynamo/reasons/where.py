"""Where: a place in the user's source, kept as numbers and turned into text only when shown."""
from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

from minidynamo.base.text import near

NOWHERE = (None, None, None, None)


class Where:
    """One line of one frame, and the frame that called it.

    `position` is a ``(lineno, end_lineno, col, end_col)`` tuple as ``co_positions`` yields it
    (columns count utf-8 bytes), so making a `Where` costs one allocation and no file access.
    """

    __slots__ = ("filename", "name", "position", "parent")

    def __init__(self, filename: str, name: str, position: Any = NOWHERE, parent: Where | None = None) -> None:
        self.filename, self.name, self.position, self.parent = filename, name, position, parent

    @property
    def lineno(self) -> int:
        return self.position[0] or 0

    def frames(self) -> Iterator[Where]:
        """From the outermost call inwards; this place last."""
        if self.parent is not None:
            yield from self.parent.frames()
        yield self

    def line(self) -> str:
        """The source line, or an empty string where there is no source."""
        return linecache.getline(self.filename, self.lineno).rstrip("\n") if self.lineno else ""

    def columns(self) -> tuple[int, int] | None:
        """Start and end of the position on its first line, in characters."""
        _, end_line, col, end_col = self.position
        line = self.line()
        if not line or col is None or end_col is None:
            return None
        raw = line.encode()
        start = len(raw[:col].decode(errors="replace"))
        if end_line != self.lineno:                        # goes on below: mark to the line's end
            return start, len(line)
        return start, max(len(raw[:end_col].decode(errors="replace")), start + 1)

    def text(self) -> str:
        """The expression at this place as the user wrote it (its first line)."""
        span = self.columns()
        if span is None:
            return self.line().strip()
        more = " …" if self.position[1] != self.lineno else ""
        return self.line()[span[0]:span[1]] + more

    def place(self) -> str:
        """``file.py:4 in f``"""
        return f"{near(self.filename)}:{self.lineno} in {self.name}"

    def snippet(self, margin: str = "") -> str:
        """The line with its number, and a caret line below it."""
        line = self.line()
        if not line:
            return f"{margin}{self.lineno:>4} | <no source>"
        body = line.strip()
        shown = f"{margin}{self.lineno:>4} |     {body}"
        span = self.columns()
        if span is None:
            return shown
        cut = len(line) - len(line.lstrip())
        start, end = max(span[0] - cut, 0), min(span[1] - cut, len(body))
        return f"{shown}\n{margin}     |     {' ' * start}{'^' * max(end - start, 1)}"

    def stack_trace(self) -> str:
        """As a traceback prints its frames, outermost first."""
        parts = []
        for at in self.frames():
            line = at.line().strip()
            parts.append(f'  File "{at.filename}", line {at.lineno}, in {at.name}\n' + (f"    {line}\n" if line else ""))
        return "".join(parts)

    def __repr__(self) -> str:
        return f"<Where {self.place()}>"
