"""Journal: the one undo log. A break rewinds one instruction; nothing is traced twice.

An entry is ``(function, arguments)``, run newest first by ``rewind``.  The two verbs every
mutation goes through are ``set`` (an attribute) and ``did`` (anything else, with its inverse).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


class CannotRewind(Exception):
    """Something happened since the mark that no inverse exists for; the trace must start again."""


def _barrier(why: str) -> None:
    raise CannotRewind(why)


def _restore_key(target: dict, key: Any, old: Any) -> None:
    if old is _MISSING:
        target.pop(key, None)
    else:
        target[key] = old


def _splice(target: list, start: int, stop: int, values: list) -> None:
    target[start:stop] = values


class Journal:
    """Undo log; a mark is an integer."""

    __slots__ = ("log",)

    def __init__(self) -> None:
        self.log: list[tuple[Callable[..., object], tuple]] = []

    def mark(self) -> int:
        return len(self.log)

    def rewind(self, mark: int) -> None:
        """Undo everything newer than `mark`; raises CannotRewind at a barrier."""
        log = self.log
        while len(log) > mark:
            undo, args = log.pop()
            undo(*args)

    def did(self, undo: Callable[..., object], *args: Any) -> None:
        """Record how to undo what was just done."""
        self.log.append((undo, args))

    def set(self, obj: object, name: str, value: object) -> None:
        """``obj.name = value``, undoable; `obj` is ours, never the user's."""
        self.log.append((setattr, (obj, name, getattr(obj, name))))
        setattr(obj, name, value)

    def put(self, target: dict, key: Any, value: Any) -> None:
        """``target[key] = value``, undoable.  The dict's order is not restored for changed keys."""
        self.log.append((_restore_key, (target, key, target.get(key, _MISSING))))
        target[key] = value

    def append(self, target: list, value: Any) -> None:
        """``target.append(value)``, undoable."""
        target.append(value)
        self.log.append((target.pop, ()))

    def splice(self, target: list, start: int, stop: int, values: list) -> None:
        """``target[start:stop] = values``, undoable; of a long list it copies only what goes."""
        self.log.append((_splice, (target, start, start + len(values), target[start:stop])))
        target[start:stop] = values

    def barrier(self, why: str) -> None:
        """Nothing before this point can be restored by rewinding."""
        self.log.append((_barrier, (why,)))
