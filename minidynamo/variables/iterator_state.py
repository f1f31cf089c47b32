"""``__reduce__`` and ``__setstate__`` of iterators, by which copy and pickle take them (Objects/iterobject.c and its like)."""
from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from minidynamo.code import facts
from minidynamo.guards.kinds import range_left
from minidynamo.model.tables import CALLS
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare, numbers
from minidynamo.variables import itertools_ as tools
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.iterators import (
    CallIterator, DictIterator, EnumerateIterator, FilterIterator, MapIterator, RangeIterator, ReversedIterator, SequenceIterator,
    SetIterator, ZipIterator)
from minidynamo.variables.sequences import ListVariable, TupleVariable, inner

ITER_TYPES = {maker: [type(iter(value)) for value in values] for maker, values in (
    ("sequence", ([], (), "", "é", b"", bytearray(), type("G", (), {"__getitem__": lambda self, at: at})())),
    ("range", (range(0), range(1 << 70))), ("dict", ({}, {}.values(), {}.items())), ("set", (set(),)))}
ITER_TYPES["dict"] += [type(reversed(value)) for value in ({}, {}.values(), {}.items())]     # type: ignore[call-overload]


def triple(tx: Any, maker: Any, args: list[VariableTracker], *state: VariableTracker) -> VariableTracker:
    return TupleVariable([tx.object_value(maker), TupleVariable(args), *state])


def number(value: int) -> VariableTracker:
    return ConstantVariable(value)


def rest(tx: Any, iterator: VariableTracker, take: Callable[[Any], VariableTracker | None]) -> list[VariableTracker]:
    """What an iterator has left, which stays where it stands."""
    mark = {name: getattr(iterator, name) for name in ("keys", "items", "index") if hasattr(iterator, name)}
    items = []
    while (item := take(tx)) is not None:
        items.append(item)
    for name, value in mark.items():
        tx.journal.set(iterator, name, value)
    return items


# ---------------------------------------------------------------- over containers
def reduce_sequence(tx, self, cls, /):
    """listiter_reduce_general, tupleiter_reduce, unicodeiter_reduce …"""
    if self.index is None:
        empty: VariableTracker = TupleVariable([])
        if self.py_type() is type(iter([])):
            empty = ListVariable([])
        elif type(getattr(inner(self.sequence), "value", None)) is str:
            empty = ConstantVariable("")
        return triple(tx, iter, [empty])
    return triple(tx, iter, [self.sequence], number(self.index))


def set_sequence(tx, self, state, /):
    """listiter_setstate: within the bounds; an iterator that is exhausted stays so."""
    at = index_of(tx, state)
    if self.index is not None:
        part = inner(self.sequence)
        size = len(part.value) if part.__class__ is ConstantVariable else len(part.items) if hasattr(part, "items") \
            and not callable(part.items) else at
        ended = at < 0 and facts.ENDED_LIST_ITERATOR_IS_SET and self.py_type() is type(iter([]))
        self.advance(tx, index=None if ended else max(min(at, size), 0))
    return NONE


def index_of(tx: Any, state: VariableTracker) -> int:
    """PyLong_AsSsize_t."""
    if not issubclass(state.py_type(), int):
        tx.raise_(TypeError, "an integer is required")
    at = numbers.index(tx, state)
    if not -sys.maxsize - 1 <= at <= sys.maxsize:
        tx.raise_(OverflowError, "Python int too large to convert to C ssize_t")
    return at         # type: ignore[no-any-return]


def reduce_reversed(tx, self, cls, /):
    """reversed_reduce, listreviter_reduce."""
    of_list = self.py_type() is not reversed
    maker = iter if of_list else cls
    if of_list and facts.ENDED_LIST_ITERATOR_IS_SET and (self.index is None or self.index < 0):
        return triple(tx, reversed, [ListVariable([])])
    if self.index is None:
        return triple(tx, maker, [ListVariable([]) if of_list else TupleVariable([])])
    return triple(tx, reversed if of_list else cls, [self.sequence], number(self.index))


def set_reversed(tx, self, state, /):
    at = index_of(tx, state)
    if self.index is not None:
        size = compare.length(tx, self.sequence).as_constant()
        self.advance(tx, index=max(min(at, size - 1), -1))
    return NONE


def reduce_range(tx, self, cls, /):
    """rangeiter_reduce, as the real one does it."""
    iterator = iter(self.value)
    iterator.__setstate__(self.index)
    _, (left,), *state = iterator.__reduce__()
    return triple(tx, iter, [tx.wrap(left)], *map(tx.wrap, state))


def set_range(tx, self, state, /):
    if self.source is not None:
        return None
    iterator = iter(self.value)
    iterator.__setstate__(self.index)
    try:
        iterator.__setstate__(numbers.index(tx, state))
    except OverflowError as error:
        tx.raise_real(error)
    self.advance(tx, value=range_left(iterator), index=0)
    return NONE


def reduce_rest(tx, self, cls, /):
    """dictiter_reduce, setiter_reduce."""
    return triple(tx, iter, [ListVariable(rest(tx, self, self.tp_iternext))])


def reduce_call(tx, self, cls, /):
    """calliter_reduce."""
    return triple(tx, iter, [TupleVariable([])] if self.function is None else [self.function, self.sentinel])


# ---------------------------------------------------------------- over other iterators
def by_parts(maker: Any) -> Any:
    def reduce(tx, self, cls, /):
        args, state = maker(self)
        return triple(tx, cls, args, *state)
    return reduce


def set_strict(tx, self, state, /):
    """zip_setstate."""
    self.advance(tx, strict=compare.truth(tx, state))
    return NONE


REDUCE: list[tuple[list[type], type, Any, Any]] = [           # types, kind, __reduce__, __setstate__
    (ITER_TYPES["sequence"], SequenceIterator, reduce_sequence, set_sequence),
    ([type(reversed([])), reversed], ReversedIterator, reduce_reversed, set_reversed),
    (ITER_TYPES["range"], RangeIterator, reduce_range, set_range),
    (ITER_TYPES["dict"], DictIterator, reduce_rest, None),
    (ITER_TYPES["set"], SetIterator, reduce_rest, None),
    ([type(iter(int, 1))], CallIterator, reduce_call, None),
    ([enumerate], EnumerateIterator, by_parts(lambda it: ([it.iterator, it.count], [])), None),
    ([zip], ZipIterator, by_parts(lambda it: (it.iterators, [ConstantVariable(True)] if it.strict else [])), set_strict),
    ([map], MapIterator, by_parts(lambda it: ([it.function, *it.iterators], [])), None),
    ([filter], FilterIterator, by_parts(lambda it: ([it.function, it.iterator], [])), None),
]


# ---------------------------------------------------------------- itertools, where it still does so without a warning
def count_parts(it: Any) -> Any:
    plain = it.step.__class__ is ConstantVariable and type(it.step.value) is int and it.step.value == 1
    return [it.value] if plain and it.value.py_type() is int else [it.value, it.step], []


def chain_parts(it: Any) -> Any:
    return [], [] if it.iterables is None else [TupleVariable([v for v in (it.iterables, it.active) if v is not None])]


def set_chain(tx, self, state, /):
    """chain_setstate."""
    parts = [real(tx, v) for v in inner(state).items]
    self.advance(tx, iterables=parts[0], active=parts[1] if len(parts) > 1 else None)
    return NONE


def islice_parts(it: Any) -> Any:
    if it.iterator is None:
        return [SequenceIterator(ListVariable([])), number(0)], [number(0)]
    stop = NONE if it.stop is None else number(it.stop)
    return [it.iterator, number(it.next), stop, number(it.step)], [number(it.count)]


def set_islice(tx, self, state, /):
    self.advance(tx, count=index_of(tx, state))
    return NONE


def set_flag(tx, self, state, /):
    """takewhile_setstate, dropwhile_setstate."""
    self.advance(tx, flag=compare.truth(tx, state))
    return NONE


def set_total(tx, self, state, /):
    self.advance(tx, total=None if state.py_type() is type(None) else state)
    return NONE


def with_flag(it: Any) -> Any:
    return [it.function, it.iterator], [number(int(it.flag))]


def accumulate_parts(it: Any) -> Any:
    return [it.iterator, it.function or NONE], [it.total or NONE]


ITERTOOLS: list[tuple[list[type], type, Any, Any]] = [
    ([itertools.count], tools.Count, by_parts(count_parts), None),
    ([itertools.repeat], tools.Repeat,
     by_parts(lambda it: ([it.value] if it.left is None else [it.value, number(it.left)], [])), None),
    ([itertools.chain], tools.Chain, by_parts(chain_parts), set_chain),
    ([itertools.islice], tools.Islice, by_parts(islice_parts), set_islice),
    ([itertools.starmap], tools.Starmap, by_parts(lambda it: ([it.function, it.iterator], [])), None),
    ([itertools.filterfalse], tools.Filterfalse, by_parts(lambda it: ([it.function, it.iterator], [])), None),
    ([itertools.takewhile], tools.Takewhile, by_parts(with_flag), set_flag),
    ([itertools.dropwhile], tools.Dropwhile, by_parts(with_flag), set_flag),
    ([itertools.compress], tools.Compress, by_parts(lambda it: ([it.data, it.selectors], [])), None),
    ([itertools.accumulate], tools.Accumulate, by_parts(accumulate_parts), set_total),
]


def only(kind: type, method: Any, *more: str) -> Any:
    """The method for values of its kind; an iterator of the caller's that only Python can advance is left to it."""
    def call(tx, self, *args):
        part = inner(self)
        iterator = part.iterator if part is not self and hasattr(part, "iterator") else part       # of a subclass
        if not isinstance(iterator, kind):
            return None
        return method(tx, iterator, *args, *[self.py_type() for _ in more])
    return call


for types_, kind_, reduce_, set_ in REDUCE + ([] if facts.ITERTOOLS_STATE_WARNS else ITERTOOLS):
    for cls_ in types_:
        if vars(cls_)["__reduce__"] not in CALLS:
            CALLS.add(vars(cls_)["__reduce__"], only(kind_, reduce_, "cls"))
            if set_ is not None:
                CALLS.add(vars(cls_)["__setstate__"], only(kind_, set_))
