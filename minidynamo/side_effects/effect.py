"""Effect: one change of a user's object that the output code replays, as data for reports."""
from __future__ import annotations

from typing import NamedTuple

from minidynamo.reasons import Where


class Effect(NamedTuple):
    """What is changed, and the line that changed it first.

    The trace itself keeps final states, not a list of steps: each changed object is written back once,
    in the order of first changes, so one object is one effect.
    """

    kind: str                   # "list", "object", "global", "cell", "torch state"
    target: str                 # a Python expression over L and G, or a name
    where: Where | None = None

    def text(self) -> str:
        at = f"   # {self.where.place()}" if self.where is not None and self.where.lineno else ""
        return f"{self.kind} {self.target}{at}"
