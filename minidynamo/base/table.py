"""Table: the one registry class. Entries are declared once; a duplicate fails at import."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class DuplicateEntry(Exception):
    """Two declarations for one key."""


class Table(Generic[T]):
    """A named mapping from keys to declarations.

    Keys may be unhashable builtins' methods or user objects, so look-up is by ``key`` when it
    is hashable and never calls user code: entries are keyed by identity of the object.
    """

    all: dict[str, Table[Any]] = {}

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self.entries: dict[int, T] = {}
        self.keys: dict[int, object] = {}
        if name in Table.all:
            raise DuplicateEntry(f"table {name!r} exists already")
        Table.all[name] = self

    def add(self, key: object, entry: T, *, replace: bool = False) -> None:
        """Enter `key`; raises DuplicateEntry when it is there, unless `replace`."""
        if id(key) in self.entries and not replace:
            raise DuplicateEntry(f"{self.name}: {key!r} is declared twice")
        self.entries[id(key)] = entry
        self.keys[id(key)] = key          # keeps the key alive, so its id stays its own

    def of(self, *keys: object) -> Callable[[T], T]:
        """Decorator form of `add` for one entry under several keys."""
        def enter(entry: T) -> T:
            for key in keys:
                self.add(key, entry)
            return entry
        return enter

    def get(self, key: object) -> T | None:
        """The entry of exactly this object, or None."""
        return self.entries.get(id(key))

    def __contains__(self, key: object) -> bool:
        return id(key) in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[object]:
        return iter(self.keys.values())

    def update(self, keys: Iterable[object], entry: T) -> None:
        for key in keys:
            self.add(key, entry)
