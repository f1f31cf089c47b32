"""Builtin iterators that come from outside: where they stand is guarded, advancing one is written back."""
from __future__ import annotations

import collections
import gc
import itertools
import sys
from typing import Any

from minidynamo.base.iterstate import state_of
from minidynamo.guards.kinds import (
    Equal, ListIteratorAt, Predicate, RangeIteratorAt, TupleIteratorAt, TypeIs, iterator_items, iterator_position,
    range_left)
from minidynamo.model.tables import builds
from minidynamo.model.variable import VariableTracker
from minidynamo.sources import Fetch
from minidynamo.variables.constants import LITERAL_TYPES
from minidynamo.variables.iterators import (
    DictIterator, FilterIterator, InputIterator, MapIterator, RangeIterator, ReversedIterator, SequenceIterator,
    SetIterator, ZipIterator)

LIST_ITERATOR, TUPLE_ITERATOR = type(iter([])), type(iter(()))
TEXT_ITERATORS = (type(iter("")), type(iter("é")), type(iter(b"")))
RANGE_ITERATORS = (type(iter(range(0))), type(iter(range(1 << 70))))
CALL_ITERATOR = type(iter(int, 1))


# ---------------------------------------------------------------- writing back
def take(iterator: Any, count: int) -> None:
    """Advance a C iterator that runs no user code."""
    collections.deque(itertools.islice(iterator, count), maxlen=0)


def move_to(iterator: Any, index: int | None) -> None:
    """Set an iterator by index; None: exhaust it."""
    iterator.__setstate__(sys.maxsize if index is None else index)
    if index is None:
        next(iterator, None)


def move_back_to(iterator: Any, index: int | None) -> None:
    """Set a reversed iterator; None: exhaust it."""
    iterator.__setstate__(-1 if index is None else index)
    if index is None:
        next(iterator, None)


class Given:
    """Mixed into kinds that stand for the caller's iterator."""

    __slots__ = ()

    def replayed(self, out: Any, function: Any, *args: Any) -> None:
        out.call_function(function, self, *args)
        out.op("POP")


class GivenRange(Given, RangeIterator):
    """A range iterator of the caller's."""

    __slots__ = ()

    def replay(self, out: Any) -> None:
        self.replayed(out, take, self.index)


class GivenSequence(Given, SequenceIterator):
    """A list, tuple, text or ``__getitem__`` iterator of the caller's."""

    __slots__ = ()

    def replay(self, out: Any) -> None:
        self.replayed(out, move_to, self.index)


class GivenReversed(Given, ReversedIterator):
    """A reversed iterator of the caller's."""

    __slots__ = ()

    def replay(self, out: Any) -> None:
        self.replayed(out, move_back_to, self.index)


class GivenDict(Given, DictIterator):
    """A dict iterator of the caller's; ``start`` is where it stood."""

    __slots__ = ("start",)

    def replay(self, out: Any) -> None:
        self.replayed(out, take, len(self.keys) + 1 if self.index is None else self.index - self.start)


class GivenSet(Given, SetIterator):
    """A set iterator of the caller's; ``start`` is where it stood."""

    __slots__ = ("start",)

    def replay(self, out: Any) -> None:
        self.replayed(out, take, len(self.items) + 1 if self.index is None else self.index - self.start)


# ---------------------------------------------------------------- by index
@builds(*RANGE_ITERATORS)
def build_range_iterator(tx: Any, obj: Any, source: Any) -> VariableTracker:
    left = range_left(obj)
    tx.guard(RangeIteratorAt(source, left.start, left.stop, left.step))
    return GivenRange(left, 0, source)


def by_index(guard: Any) -> Any:
    def build(tx: Any, obj: Any, source: Any) -> VariableTracker:
        position = iterator_position(obj)
        tx.guard(guard(source, position))
        sequence = tx.build(iterator_items(obj), Fetch(source, iterator_items, "iterator_items"))
        return GivenSequence(sequence, None if position < 0 else position, source)
    return build


builds(LIST_ITERATOR)(by_index(ListIteratorAt))
builds(TUPLE_ITERATOR)(by_index(TupleIteratorAt))


@builds(*TEXT_ITERATORS)
def build_text_iterator(tx: Any, obj: Any, source: Any) -> VariableTracker:
    position, text = iterator_position(obj), iterator_items(obj)
    if position < 0 or type(text) not in LITERAL_TYPES:
        return build_other(tx, obj, source)
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Equal(Fetch(source, iterator_position, "iterator_position"), position))
    return GivenSequence(tx.build(text, Fetch(source, iterator_items, "iterator_items")), position, source)


@builds(type(reversed([])), reversed)
def build_reversed(tx: Any, obj: Any, source: Any) -> VariableTracker:
    position = iterator_position(obj)
    sequence = iterator_items(obj)
    if position < 0 or not isinstance(sequence, (list, tuple)):
        return build_other(tx, obj, source)
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Equal(Fetch(source, iterator_position, "iterator_position"), position))
    return GivenReversed(tx.build(sequence, Fetch(source, iterator_items, "iterator_items")), position, source)


# ---------------------------------------------------------------- dicts and sets
def iterated(iterator: Any) -> Any:
    """The very dict or set that an iterator walks."""
    return next(held for held in gc.get_referents(iterator) if isinstance(held, (dict, set, frozenset)))


def items_left(iterator: Any) -> int:
    return iterator.__length_hint__()


WHAT = {type(iter({})): "keys", type(iter({}.values())): "values", type(iter({}.items())): "items"}


def stands_plainly(iterator: Any) -> bool:
    """Whether what an iterator has left is the end of what its dict or set holds."""
    try:
        left = iterator.__reduce__()[1][0]
    except RuntimeError:                # it changed size under its iterator
        return False
    if not left or len(left) != items_left(iterator):
        return False
    owner = iterated(iterator)
    what = WHAT.get(type(iterator))
    have = list(getattr(dict, what)(owner)) if what is not None else list(type(owner).__iter__(owner))
    have = have[len(have) - len(left):]
    if what == "items":
        return len(have) == len(left) and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(have, left))
    return len(have) == len(left) and all(map(lambda a, b: a is b, have, left))


def build_walker(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """A dict or set iterator on its way."""
    if not stands_plainly(obj) or type(iterated(obj)) is collections.OrderedDict:
        return build_other(tx, obj, source)
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Predicate(source, stands_plainly, "stands_plainly"))
    left = items_left(obj)
    tx.guard(Equal(Fetch(source, items_left, "items_left"), left))
    owner = tx.build(iterated(obj), Fetch(source, iterated, "iterated"))
    what = WHAT.get(type(obj))
    made: Any = GivenDict(owner, what, source=source) if what is not None else \
        GivenSet(owner, tx.builtin_part(owner).ordered(tx), source)
    made.start = made.index = len(made.keys if what is not None else made.items) - left
    return made


builds(*WHAT, type(iter(set())))(build_walker)


# ---------------------------------------------------------------- made of other iterators: these hold no state of their own
def part(at: int) -> Any:
    def read(iterator: Any) -> Any:
        return state_of(iterator)[1][at]
    return read


PARTS = [part(at) for at in range(16)]


def parts_of(tx: Any, obj: Any, source: Any) -> list[VariableTracker] | None:
    parts = state_of(obj)[1]
    if len(parts) > len(PARTS):
        return None
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Equal(Fetch(source, part_count, "part_count"), len(parts)))
    return [tx.build(value, Fetch(source, PARTS[at], f"part_{at}")) for at, value in enumerate(parts)]


def part_count(iterator: Any) -> int:
    return len(state_of(iterator)[1])


def is_strict(iterator: Any) -> bool:
    return len(state_of(iterator)) > 2


@builds(zip)
def build_zip(tx: Any, obj: Any, source: Any) -> VariableTracker:
    parts = parts_of(tx, obj, source)
    if parts is None:
        return build_other(tx, obj, source)
    tx.guard(Equal(Fetch(source, is_strict, "is_strict"), is_strict(obj)))
    return ZipIterator(parts, is_strict(obj), source)


@builds(map)
def build_map(tx: Any, obj: Any, source: Any) -> VariableTracker:
    parts = parts_of(tx, obj, source)
    return build_other(tx, obj, source) if parts is None else MapIterator(parts[0], parts[1:], source)


@builds(filter)
def build_filter(tx: Any, obj: Any, source: Any) -> VariableTracker:
    parts = parts_of(tx, obj, source)
    return build_other(tx, obj, source) if parts is None else FilterIterator(parts[0], parts[1], source)


@builds(enumerate, CALL_ITERATOR)
def build_other(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """Iterators whose state cannot be set from outside: Python itself advances them."""
    tx.guard(TypeIs(source, type(obj)))
    return InputIterator(obj, source)
