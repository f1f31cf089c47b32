"""Chromium trace: spans and events as JSON that Perfetto opens (``MINIDYNAMO_TRACE=out.json``)."""
from __future__ import annotations

import atexit
import json
import os
import threading
from typing import Any

from minidynamo.observe.recorder import Span


class ChromiumWriter:
    """A sink that keeps complete events and writes them as one JSON array."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        atexit.register(self.write)

    def span_started(self, span: Span) -> None:
        pass

    def span_ended(self, span: Span) -> None:
        stack: list[str] = []
        at: Span | None = span
        while at is not None:
            stack.append(at.name)
            at = at.parent
        self._row(span.name, "X", span.start_us, span.compile_id,
                  {"stack": stack[::-1], **span.meta}, dur=span.elapsed_us)

    def event(self, name: str, at_us: int, compile_id: str | None, fields: dict[str, Any]) -> None:
        self._row(name, "i", at_us, compile_id, fields, s="p")

    def _row(self, name: str, phase: str, at: int, compile_id: str | None, args: dict[str, Any], **more: Any) -> None:
        self.rows.append({"name": name, "ph": phase, "ts": at, "pid": os.getpid(), "tid": threading.get_native_id(),
                          "cat": "minidynamo", "args": {"compile_id": compile_id, **args}, **more})

    def write(self) -> None:
        """Replace the file by all rows so far."""
        part = f"{self.path}.part"
        with open(part, "w", encoding="utf-8") as out:
            json.dump(self.rows, out, default=str)
        os.replace(part, self.path)
