"""Guards on builtin containers and iterators, read through the builtin base class."""
from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

from minidynamo.base.iterstate import state_of
from minidynamo.guards.guard import Guard, Names, Tree, guard_kind
from minidynamo.guards.literals import literal_key, short
from minidynamo.guards.values import IsNone, TypeIs
from minidynamo.sources import Source, dict_keys

_C_LENGTHS = (list, tuple, set, frozenset, str, bytes, collections.deque)


@guard_kind(cost=2)
class Length(Guard):
    """How many items the builtin base class counts."""

    __slots__ = ("n", "owner")

    def __init__(self, source: Source, n: int, owner: type) -> None:
        self.n, self.owner = n, owner
        super().__init__(source, (n, owner))

    def expression(self, names: Names) -> str:
        length = names.const(self.owner.__len__, f"{self.owner.__name__}.__len__")
        return f"{length}({names.source(self.source)}) == {self.n}"

    def holds(self, value: Any) -> bool:
        return self.owner.__len__(value) == self.n

    def attach(self, tree: Tree) -> None:
        manager = tree.manager(self.source)
        if issubclass(self.owner, dict):
            manager.add_dict_length_check_guard(self.n, self.parts(), None)
        elif tree.exact_type(self.source) is self.owner and self.owner in _C_LENGTHS:
            # The C++ leaf calls a subclass's __len__ and breaks on what has none: type first.
            manager.add_type_match_guard(id(self.owner), self.parts(), None)
            manager.add_length_check_guard(self.n, self.parts(), None)
        else:
            manager.add_lambda_guard(self.holds, self.parts(), None)

    def rests_on(self, pinned: type | None) -> str | None:
        if issubclass(self.owner, dict):
            return "items"
        return "identity" if self.owner in (tuple, frozenset, str, bytes) else None

    def expected(self) -> str:
        return f"length {self.n}"

    def seen(self, value: Any) -> str:
        return f"length {self.owner.__len__(value)}"


@guard_kind(cost=4)
class DictKeys(Guard):
    """Exactly these literal keys, in this order."""

    __slots__ = ("keys", "_types", "_plain")

    def __init__(self, source: Source, keys: tuple[Any, ...]) -> None:
        self.keys = tuple(keys)
        self._types = [id(type(key)) for key in self.keys]
        self._plain = all(type(key) in (str, int, bool, bytes) for key in self.keys)
        super().__init__(source, literal_key(self.keys))

    def expression(self, names: Names) -> str:
        if names.readable:
            return f"tuple({names.source(self.source)}) == {short(self.keys, 400)}"
        return f"{names.const(self.holds, 'has_keys')}({names.source(self.source)})"

    def holds(self, value: Any) -> bool:
        if dict.__len__(value) != len(self.keys):
            return False
        keys = tuple(dict_keys(value))
        if self._plain:      # types first, so that == runs no user code
            return [id(type(key)) for key in keys] == self._types and keys == self.keys
        return literal_key(keys) == self.key

    def attach(self, tree: Tree) -> None:
        manager = tree.manager(self.source)
        parts = self.parts()
        manager.add_dict_length_check_guard(len(self.keys), parts, None)
        if not self.keys:
            return
        if tree.exact_type(self.source) is dict:
            # Mostly the very key objects of the trace are there; comparing addresses is quickest.
            manager.add_type_match_guard(id(dict), parts, None)
            holds, ids = self.holds, [*map(id, self.keys)]
            manager.add_lambda_guard(lambda value: [*map(id, value)] == ids or holds(value), parts, None)
        else:
            manager.add_lambda_guard(self.holds, parts, None)

    def implies(self) -> Iterable[Guard]:
        yield Length(self.source, len(self.keys), dict)
        for key in self.keys:
            yield HasKey(self.source, key, True)

    def rests_on(self, pinned: type | None) -> str | None:
        return "items" if pinned is dict else None      # an OrderedDict is put into another order unseen

    def expected(self) -> str:
        return f"keys {short(self.keys)}"

    def seen(self, value: Any) -> str:
        return f"keys {short(tuple(dict_keys(value)))}"


@guard_kind(cost=2)
class HasKey(Guard):
    """Whether a dict has a literal key."""

    __slots__ = ("item", "present")

    def __init__(self, source: Source, key: Any, present: bool) -> None:
        self.item, self.present = key, present
        super().__init__(source, (literal_key(key), present))

    def expression(self, names: Names) -> str:
        contains = names.const(dict.__contains__, "dict.__contains__")
        key = names.const(self.item, short(self.item))
        return f"{'' if self.present else 'not '}{contains}({names.source(self.source)}, {key})"

    def holds(self, value: Any) -> bool:
        return dict.__contains__(value, self.item) is self.present

    def attach(self, tree: Tree) -> None:
        manager = tree.manager(self.source)
        if not self.present and not issubclass(tree.exact_type(self.source) or object, dict):
            manager.add_lambda_guard(self.holds, self.parts(), None)   # C++ lets a non-dict pass
        else:
            manager.add_dict_contains_guard(self.present, self.item, self.parts(), None)

    def rests_on(self, pinned: type | None) -> str | None:
        return "items"

    def seen(self, value: Any) -> str:
        return f"{'no key' if self.present else 'a key'} {short(self.item)}"


def set_items(value: Any) -> Iterable[Any]:
    try:
        return set.__iter__(value)
    except TypeError:
        return frozenset.__iter__(value)


@guard_kind(cost=5)
class SetItems(Guard):
    """Exactly these literals in a set or frozenset."""

    __slots__ = ("items",)

    def __init__(self, source: Source, items: frozenset[Any]) -> None:
        self.items = frozenset(items)
        super().__init__(source, literal_key(self.items))

    def expression(self, names: Names) -> str:
        if names.readable:
            listed = "{" + ", ".join(sorted(map(short, self.items))) + "}" if self.items else "set()"
            return f"{names.source(self.source)} == {listed}"
        return f"{names.const(self.holds, 'has_items')}({names.source(self.source)})"

    def holds(self, value: Any) -> bool:
        return frozenset(map(literal_key, set_items(value))) == self.key[1]

    def implies(self) -> Iterable[Guard]:
        return (IsNone(self.source, False),)

    def seen(self, value: Any) -> str:
        return "{" + ", ".join(sorted(map(short, set_items(value)))) + "}"


def range_left(iterator: Any) -> range:
    """What a range iterator has still to give."""
    _, (items,), *state = iterator.__reduce__()
    return items[state[0] if state and state[0] else 0:]


RANGE_ITERATORS = (type(iter(range(1))), type(iter(range(1 << 70))))
LIST_ITERATOR, TUPLE_ITERATOR = type(iter([])), type(iter(()))


@guard_kind(cost=6)
class RangeIteratorAt(Guard):
    """A range iterator that has ``range(start, stop, step)`` still to give."""

    __slots__ = ("left",)

    def __init__(self, source: Source, start: int, stop: int, step: int) -> None:
        self.left = range(start, stop, step)
        super().__init__(source, (start, stop, step))

    def expression(self, names: Names) -> str:
        if names.readable:
            return f"range_left({names.source(self.source)}) == {self.left}"
        return f"{names.const(self.holds, 'has_range_left')}({names.source(self.source)})"

    def holds(self, value: Any) -> bool:
        return any(type(value) is kind for kind in RANGE_ITERATORS) and \
            literal_key(range_left(value)) == literal_key(self.left)

    def seen(self, value: Any) -> str:
        return f"{range_left(value)} left"


def iterator_items(iterator: Any) -> list[Any] | tuple[Any, ...]:
    """The list or tuple that an iterator walks (empty once exhausted); for a `Fetch` source."""
    return state_of(iterator)[1][0]


def iterator_position(iterator: Any) -> int:
    """The index of the item that comes next, or -1 once exhausted."""
    state = state_of(iterator)
    return state[2] if len(state) > 2 else -1


@guard_kind(cost=4)
class TupleIteratorLen(Guard):
    """A tuple iterator with `n` items still to give.

    Its items are ``Item(Fetch(source, iterator_items, ...), index, tuple)``, counted in the
    whole tuple; guard `TupleIteratorAt` too where absolute indices are read.
    """

    __slots__ = ("n",)

    def __init__(self, source: Source, n: int) -> None:
        self.n = n
        super().__init__(source, n)

    def expression(self, names: Names) -> str:
        read = names.source(self.source)
        kind = names.const(TUPLE_ITERATOR, "tuple_iterator")
        return f"type({read}) is {kind} and {read}.__length_hint__() == {self.n}"

    def holds(self, value: Any) -> bool:
        return type(value) is TUPLE_ITERATOR and value.__length_hint__() == self.n

    def attach(self, tree: Tree) -> None:
        tree.manager(self.source).add_tuple_iterator_length_guard(
            self.n, id(TUPLE_ITERATOR), self.parts(), None)

    def implies(self) -> Iterable[Guard]:
        return TypeIs(self.source, TUPLE_ITERATOR), IsNone(self.source, False)

    def pins_type(self) -> type | None:
        return TUPLE_ITERATOR

    def seen(self, value: Any) -> str:
        return f"{value.__length_hint__()} left"


class _IteratorAt(Guard):
    """An iterator of exactly `iterates` at a position; -1 once exhausted.

    The list or tuple behind is ``Fetch(source, iterator_items, "iterator_items")``: guard its
    length and read its items as those of any other.
    """

    __slots__ = ("position",)
    iterates: type

    def __init__(self, source: Source, position: int) -> None:
        self.position = position
        super().__init__(source, position)

    def expression(self, names: Names) -> str:
        read = names.source(self.source)
        kind = names.const(self.iterates, self.iterates.__name__)
        where = names.const(iterator_position, "iterator_position")
        return f"type({read}) is {kind} and {where}({read}) == {self.position}"

    def holds(self, value: Any) -> bool:
        return type(value) is self.iterates and iterator_position(value) == self.position

    def implies(self) -> Iterable[Guard]:
        return TypeIs(self.source, self.iterates), IsNone(self.source, False)

    def pins_type(self) -> type | None:
        return self.iterates

    def seen(self, value: Any) -> str:
        return f"position {iterator_position(value)}"


@guard_kind(cost=5)
class ListIteratorAt(_IteratorAt):
    """A list iterator at a position."""

    __slots__ = ()
    iterates = LIST_ITERATOR


@guard_kind(cost=5)
class TupleIteratorAt(_IteratorAt):
    """A tuple iterator at a position."""

    __slots__ = ()
    iterates = TUPLE_ITERATOR
