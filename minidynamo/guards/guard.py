"""Guard: one fact about the frame's inputs, as data; printed, evaluated and lowered from one place."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from minidynamo.base.table import Table
from minidynamo.guards.hold import Held, Keep
from minidynamo.guards.literals import short
from minidynamo.sources import Source

KINDS: Table[type[Guard]] = Table("guard kinds", "facts that compiled code depends on")


class Names(Protocol):
    """How a guard's expression names its parts: for the reader, or for a compiled function."""

    readable: ClassVar[bool]

    def source(self, source: Source) -> str: ...
    def const(self, value: Any, hint: str) -> str: ...
    def is_object(self, expression: str, held: Held, hint: str) -> str: ...


class ReadableNames:
    """Names for people: sources over L and G, constants by their own names."""

    readable = True

    def source(self, source: Source) -> str:
        return source.text()

    def const(self, value: Any, hint: str) -> str:
        return hint

    def is_object(self, expression: str, held: Held, hint: str) -> str:
        return f"{expression} is {hint}"


READABLE = ReadableNames()


class Tree(Protocol):
    """What attaching needs of ``lower_tree.TreeBuilder``."""

    root: Any
    enum: Any
    managers: dict[Source, Any]
    types: dict[Source, type]
    kept: list[Any]

    def another(self) -> Tree: ...
    def manager(self, source: Source) -> Any: ...
    def instance_dict_manager(self, source: Source) -> Any: ...
    def code_manager(self, source: Source) -> Any: ...
    def scope_manager(self, scope: dict[str, Any] | None) -> Any: ...
    def constant_manager(self, value: Any) -> Any: ...
    def watch(self, held: Held) -> int: ...
    def keep(self, obj: Any) -> int: ...
    def exact_type(self, source: Source) -> type | None: ...
    def check_last(self, guard: Guard) -> None: ...


class Guard:
    """Base of all kinds; immutable, compared by kind and `key`.

    A kind of one source declares `expression` (how it reads), `holds` (what it means) and
    `attach` (its leaf in the tree; a Python leaf unless it knows a C++ one). Kinds of none or
    several sources declare `check` instead of `holds`.
    """

    __slots__ = ("source", "key", "user_frame", "_hash")
    cost: ClassVar[int] = 1

    def __init__(self, source: Source | None, key: Any) -> None:
        self.source, self.key = source, key
        self.user_frame: Any = None        # where the guard was asked for; not part of equality
        self._hash = hash((type(self), source, key))

    @property
    def sources(self) -> tuple[Source, ...]:
        return () if self.source is None else (self.source,)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._hash == other._hash
                                 and self.key == other.key and self.source == other.source)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text()}>"

    def expression(self, names: Names) -> str:
        raise NotImplementedError

    def text(self) -> str:
        """A Python expression over L and G."""
        return self.expression(READABLE)

    def holds(self, value: Any) -> bool:
        """Whether the fact is true of the source's value."""
        raise NotImplementedError

    def check(self, L: Any, G: dict[str, Any]) -> bool:
        """Whether the fact is true of a frame; what cannot be read does not hold."""
        try:
            return self.holds(self.source.fetch(L, G))
        except Exception:
            return False

    def attach(self, tree: Tree) -> None:
        """Enter the guard in the C++ tree."""
        tree.manager(self.source).add_lambda_guard(self.holds, self.parts(), None)

    def parts(self) -> list[str]:
        return [self.text()]

    def implies(self) -> Iterable[Guard]:
        """All guards that hold whenever this one does (transitively, and never mutually)."""
        return ()

    def rests_on(self, pinned: type | None) -> str | None:
        """What the fact lasts with: while the source is the same object, and "identity": always; "items": while
        nothing is written to that dict; "attributes": nor to its ``__dict__``.  None: it may change all the same.

        `pinned` is the exact type of the source's value, where that is known.
        """
        return None

    def pins_type(self) -> type | None:
        """The exact type that the source's value must have, if this guard fixes it."""
        return None

    def describe(self, L: Any, G: dict[str, Any]) -> tuple[str, str]:
        """What was expected, and what there is."""
        try:
            return self.expected(), self.seen(self.source.fetch(L, G))
        except Exception as error:
            return self.expected(), f"cannot be read: {type(error).__name__}"

    def expected(self) -> str:
        return self.text()

    def seen(self, value: Any) -> str:
        return short(value)


K = TypeVar("K", bound=type)


def guard_kind(cost: int = 1) -> Callable[[K], K]:
    """Enter a kind in the table; `cost` is its rough price in units of a pointer comparison."""
    def enter(kind: K) -> K:
        kind.cost = cost
        KINDS.add(kind, kind)
        return kind
    return enter


def hint_of(held: Held) -> str:
    obj = held()
    return "<dead>" if obj is None and type(held) is not Keep else short(obj)
