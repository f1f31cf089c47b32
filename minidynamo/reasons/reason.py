"""Reason: why something was given up, declared once; Stop: the signal that carries one."""
from __future__ import annotations

import dataclasses
import string
from typing import Any, Literal

from minidynamo.base.text import indent
from minidynamo.reasons.where import Where

Category = Literal["user asked", "data-dependent", "unsupported", "limit", "nothing to do", "our bug"]

# Every reason by id.  A plain dict, not a `Table`: its keys are strings compared by value.
REASONS: dict[str, Reason] = {}


class BadReason(Exception):
    """A declaration whose text, fields or hints do not fit together."""


@dataclasses.dataclass(frozen=True, eq=False)
class Reason:
    """One declaration.  `fields` are the ``{names}`` of the text, checked here at import."""

    id: str
    title: str
    explain: str
    hints: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    category: Category = "unsupported"
    no_hint: str = ""           # why there is nothing to advise, when there is not

    def __post_init__(self) -> None:
        found = {name for text in (self.title, self.explain, *self.hints)
                 for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        if found != set(self.fields):
            raise BadReason(f"{self.id}: the text uses {sorted(found)}, the fields are {sorted(self.fields)}")
        if not self.hints and not self.no_hint:
            raise BadReason(f"{self.id}: give a hint, or say in `no_hint` why there is none")
        if self.id in REASONS:
            raise BadReason(f"{self.id} is declared twice: {REASONS[self.id].title!r} and {self.title!r}")
        REASONS[self.id] = self

    def text(self, fields: dict[str, Any]) -> str:
        """The sentence with its fields filled in; a missing field is shown, never raised."""
        return self.explain.format_map(_Shown(fields))

    def advice(self, fields: dict[str, Any]) -> list[str]:
        return [hint.format_map(_Shown(fields)) for hint in self.hints]

    def __repr__(self) -> str:
        return f"<Reason {self.id} {self.title}>"


class _Shown(dict):
    def __missing__(self, key: str) -> str:
        return f"<{key}>"


class Stop(Exception):
    """Tracing cannot go past this point; a signal between our own parts, never shown to users as such."""

    def __init__(self, reason: Reason, fields: dict[str, Any] | None = None, where: Where | None = None) -> None:
        super().__init__(reason.id)
        self.reason, self.fields, self.where = reason, fields or {}, where

    @property
    def id(self) -> str:
        return self.reason.id

    def text(self) -> str:
        return self.reason.text(self.fields)

    def render(self) -> str:
        """The four parts: title, the user's line with a caret, the sentence, the hints."""
        return render(self.reason, self.fields, self.where)

    def __str__(self) -> str:
        return self.render()


def render(reason: Reason, fields: dict[str, Any], where: Where | None) -> str:
    """A reason as the user reads it."""
    out = [f"{reason.id}  {reason.title.format_map(_Shown(fields))}"]
    if where is not None:
        out.extend(f"  called at {at.place()}" for at in list(where.frames())[:-1])
        out.append(f"  at {where.place()}")
        out.append(where.snippet("  "))
    out.append(indent(reason.text(fields)))
    out.extend(f"  hint: {hint}" for hint in reason.advice(fields))
    return "\n".join(out)
