"""GuardSet: guards in the order asked for, each once; rewindable; implied ones dropped at the end."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from minidynamo.guards.kinds import Guard, SameObject, TensorMatch, TensorsNotAliased, TypeIs
from minidynamo.sources import Source, TypeOf


class GuardSet:
    """A list of distinct guards. A mark is its length."""

    __slots__ = ("guards", "index")

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self.index: dict[Guard, int] = {}

    def add(self, guard: Guard) -> bool:
        """Enter `guard`; False when it was there."""
        if guard in self.index:
            return False
        self.index[guard] = len(self.guards)
        self.guards.append(guard)
        return True

    def mark(self) -> int:
        return len(self.guards)

    def rewind(self, mark: int) -> None:
        """Forget the guards added since `mark`."""
        for guard in self.guards[mark:]:
            del self.index[guard]
        del self.guards[mark:]

    def __iter__(self) -> Iterator[Guard]:
        return iter(self.guards)

    def __len__(self) -> int:
        return len(self.guards)

    def __contains__(self, guard: Guard) -> bool:
        return guard in self.index

    def final(self) -> list[Guard]:
        """The guards to check, in an order in which each access is safe when it is reached.

        The tracer reads from the top down, so the order of asking is such an order. A guard
        that others imply is dropped, and one that implies an earlier guard moves to its place:
        both read the same source, so what follows is as safe as before.
        """
        place: dict[Guard, int] = {}
        for guard in divided(map(canonical, self.guards)):
            place.setdefault(guard, len(place))
        first, dropped = dict(place), set()
        for guard in place:
            for implied in guard.implies():
                if implied in place and implied != guard:
                    dropped.add(implied)
                    first[guard] = min(first[guard], place[implied])
        return sorted((guard for guard in place if guard not in dropped), key=first.__getitem__)


def divided(guards: Iterable[Guard]) -> Iterator[Guard]:
    """With distinct tensors compared only where their other guards leave open that they are one object."""
    guards = list(guards)
    matches = {guard.source: guard for guard in guards if type(guard) is TensorMatch}
    for guard in guards:
        if type(guard) is not TensorsNotAliased or not all(source in matches for source in guard.sources):
            yield guard
            continue
        alike: dict[Any, list[Source]] = {}
        for source in guard.sources:
            alike.setdefault(matches[source].fixed_facts(), []).append(source)
        yield from (TensorsNotAliased(tuple(group)) for group in alike.values() if len(group) > 1)


def canonical(guard: Guard) -> Guard:
    """The same fact in the form that protects most: a class's identity is its object's type."""
    if type(guard) is SameObject and type(guard.source) is TypeOf and issubclass(type(guard.held()), type):
        plain = TypeIs(guard.source.base, guard.held())
        plain.user_frame = guard.user_frame
        return plain
    return guard
