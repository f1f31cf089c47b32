"""Changed: what a trace has changed and must write back; Effect: the same as data for reports."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

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


class Changed:
    """What a trace can change: an object of the user's, a namespace, the outside by a call put off.

    An optional slot that a kind does not have is None.
    """

    __slots__ = ()
    kind: ClassVar[str] = "change"
    source: Any = None                              # where the user's object is

    obj: Any = None                                 # the user's object, where the kind keeps it
    replay: Callable[[Any], None] | None = None     # write the final state; the argument is a ``codegen.Restore``
    verify: Callable[[], None] | None = None        # raise CannotRebuild if that cannot be done

    def effect_children(self, tx: Any) -> list[Any]:
        """The values that `replay` needs."""
        return []

    def effects(self, where: Where | None) -> list[Effect]:
        """As data."""
        target = self.source.text() if self.source is not None else f"a new {self.kind}"
        return [Effect(self.kind, target, where)]
