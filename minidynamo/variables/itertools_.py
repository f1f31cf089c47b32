"""itertools: each type is a kind of its own, lazy, with the state of the C struct (Modules/itertoolsmodule.c)."""
from __future__ import annotations

import itertools
import sys
from typing import Any

from minidynamo.base.iterstate import set_state, state_of
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Equal, TypeIs
from minidynamo.model.tables import Methods, builds, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import iters, numbers
from minidynamo.sources import Fetch
from minidynamo.variables.constants import LITERAL_TYPES, NONE, ConstantVariable
from minidynamo.variables.input_iterators import build_other, take
from minidynamo.variables.iterators import IteratorVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable, inner


def step(tx: Any, iterator: VariableTracker) -> VariableTracker | None:
    """PyIter_Next."""
    value = real(tx, iterator).tp_iternext(tx)
    return None if value is None else real(tx, value)


def is_none(value: VariableTracker | None) -> bool:
    return value is None or value.py_type() is type(None)


class Lazy(IteratorVariable):
    """An itertools object: its parts by name, and how to make it from them."""

    __slots__ = ()
    PARTS: tuple[str, ...] = ()

    def children(self) -> list[VariableTracker]:
        found: list[VariableTracker] = []
        for name in self.PARTS:
            value = getattr(self, name)
            found.extend(value if isinstance(value, list) else [] if value is None else [value])
        return found

    def make(self, out: Any, function: Any, *args: Any) -> None:
        out.call_function(function, *args)


class Count(Lazy):
    """``count``."""

    __slots__ = ("value", "step", "taken")
    PARTS = ("value", "step")
    cls = itertools.count

    def __init__(self, value: VariableTracker, step: VariableTracker, source: Any = None) -> None:
        self.value, self.step, self.taken, self.source = value, step, 0, source

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        value = self.value
        self.advance(tx, value=numbers.binary(tx, "+", value, self.step), taken=self.taken + 1)
        return value

    def rebuild(self, out: Any) -> None:
        self.make(out, itertools.count, self.value, self.step)

    def replay(self, out: Any) -> None:
        out.call_function(take, self, self.taken)
        out.op("POP")

    def tp_repr(self, tx: Any) -> VariableTracker:
        plain = self.step.__class__ is ConstantVariable and type(self.step.value) in (int, bool) and self.step.value == 1
        more = "" if plain else f", {tx.text_of(self.step)}"
        return ConstantVariable(f"count({tx.text_of(self.value)}{more})")


@meaning(itertools.count)
def call_count(tx, start=None, step=None):
    for value in (start, step):
        if value is not None and not any(hasattr(value.py_type(), n)
                                         for n in ("__index__", "__int__", "__float__", "__complex__")):
            tx.raise_(TypeError, "a number is required")
    start, step = start or ConstantVariable(0), step or ConstantVariable(1)
    if issubclass(start.py_type(), int) and step.__class__ is ConstantVariable and type(step.value) is int and step.value == 1:
        start = numbers.unary(tx, "int", inner(start))               # the fast mode counts in C
    return Count(start, step)


def count_state(counter: Any) -> Any:
    """What a count gives next, and its step."""
    return (*state_of(counter)[1], 1)[:2]


@builds(itertools.count)
def build_count(tx: Any, obj: Any, source: Any) -> VariableTracker:
    state = count_state(obj)
    if any(type(part) not in LITERAL_TYPES for part in state):
        return build_other(tx, obj, source)
    tx.guard(TypeIs(source, itertools.count))
    tx.guard(Equal(Fetch(source, count_state, "count_state"), state))
    return Count(*[ConstantVariable(part) for part in state], source)


class Cycle(Lazy):
    """``cycle``."""

    __slots__ = ("iterator", "saved", "index")
    PARTS = ("iterator", "saved")
    cls = itertools.cycle

    def __init__(self, iterator: VariableTracker) -> None:
        self.iterator: VariableTracker | None = iterator
        self.saved: list[VariableTracker] = []
        self.index, self.source = 0, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.iterator is not None:
            value = step(tx, self.iterator)
            if value is not None:
                self.advance(tx, saved=[*self.saved, value])
                return value
            self.advance(tx, iterator=None)
        if not self.saved:
            return None
        value = self.saved[self.index]
        self.advance(tx, index=(self.index + 1) % len(self.saved))
        return value

    def rebuild(self, out: Any) -> None:
        self.make(out, cycle_of, ListVariable(self.saved), self.iterator or NONE, self.index)


def cycle_of(saved: list, iterator: Any, index: int) -> Any:
    if iterator is not None:
        made = itertools.cycle(iterator)
        set_state(made, (saved, False))
    else:
        made = itertools.cycle(iter(saved[index:]))
        set_state(made, (saved, True))
    return made


@meaning(itertools.cycle)
def call_cycle(tx, iterable, /):
    return Cycle(iterable.tp_iter(tx))


class Repeat(Lazy):
    """``repeat``."""

    __slots__ = ("value", "left")
    PARTS = ("value",)
    cls = itertools.repeat

    def __init__(self, value: VariableTracker, left: int | None) -> None:
        self.value, self.left, self.source = value, left, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.left == 0:
            return None
        if self.left is not None:
            self.advance(tx, left=self.left - 1)
        return real(tx, self.value)

    def rebuild(self, out: Any) -> None:
        self.make(out, itertools.repeat, self.value, *([] if self.left is None else [self.left]))

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(f"repeat({tx.text_of(self.value)}{'' if self.left is None else f', {self.left}'})")

    def length_hint(self, tx: Any) -> int:
        if self.left is None:
            tx.raise_(TypeError, "len() of unsized object")
        return self.left


@meaning(itertools.repeat)
def call_repeat(tx, object, times=None):
    return Repeat(object, None if times is None else max(numbers.index(tx, times), 0))


class Chain(Lazy):
    """``chain`` (chain_next)."""

    __slots__ = ("iterables", "active")
    PARTS = ("iterables", "active")
    cls = itertools.chain

    def __init__(self, iterables: VariableTracker) -> None:
        self.iterables: VariableTracker | None = iterables
        self.active: VariableTracker | None = None
        self.source = None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        while self.iterables is not None:
            if self.active is None:
                following = step(tx, self.iterables)
                if following is None:
                    self.advance(tx, iterables=None)
                    return None
                self.advance(tx, active=following.tp_iter(tx))
            value = step(tx, self.active)
            if value is not None:
                return value
            self.advance(tx, active=None)
        return None

    def rebuild(self, out: Any) -> None:
        self.make(out, chain_of, *[v for v in (self.iterables, self.active) if v is not None])


def chain_of(*state: Any) -> Any:
    made = itertools.chain()
    if state:
        set_state(made, state)
    return made


@meaning(itertools.chain)
def call_chain(tx, *iterables):
    return Chain(tx.sequence_iterator(TupleVariable(list(iterables))))


class ChainMethods(Methods, of=itertools.chain):
    """chain's other constructor."""

    def from_iterable(tx, cls, iterable, /):
        return Chain(iterable.tp_iter(tx))


class Islice(Lazy):
    """``islice`` (islice_next)."""

    __slots__ = ("iterator", "next", "stop", "step", "count")
    PARTS = ("iterator",)
    cls = itertools.islice

    def __init__(self, iterator: VariableTracker, start: int, stop: int | None, by: int) -> None:
        self.iterator: VariableTracker | None = iterator
        self.next, self.stop, self.step, self.count, self.source = start, stop, by, 0, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.iterator is None:
            return None
        while self.count < self.next:
            if step(tx, self.iterator) is None:
                self.advance(tx, iterator=None)
                return None
            self.advance(tx, count=self.count + 1)
        value = None if self.stop is not None and self.count >= self.stop else step(tx, self.iterator)
        if value is None:
            self.advance(tx, iterator=None)
            return None
        following = self.next + self.step
        self.advance(tx, count=self.count + 1, next=following if self.stop is None else min(following, self.stop))
        return value

    def rebuild(self, out: Any) -> None:
        if self.iterator is None:
            self.make(out, itertools.islice, TupleVariable([]), 0)
            return
        stop = None if self.stop is None else self.stop - self.count
        self.make(out, itertools.islice, self.iterator, self.next - self.count, stop, self.step)


@meaning(itertools.islice)
def call_islice(tx, iterable, first, /, *rest):
    def bound(value: VariableTracker | None, default: Any, words: str, least: int) -> Any:
        if value is None or is_none(value):
            return default
        number = value.nb_unary(tx, "index")
        known = None if number is NotImplemented else number.as_constant()
        if known is None or not least <= known <= sys.maxsize:
            tx.raise_(ValueError, words)
        return known
    if len(rest) > 2:
        return None
    limits = "for islice() must be None or an integer: 0 <= x <= sys.maxsize."
    if not rest:
        return Islice(iterable.tp_iter(tx), 0, bound(first, None, f"Stop argument {limits}", 0), 1)
    both = "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."
    start = bound(first, 0, both, 0)
    stop = bound(rest[0], None, f"Stop argument {limits}", 0)
    by = bound(rest[1] if len(rest) > 1 else None, 1, "Step for islice() must be a positive integer or None.", 1)
    return Islice(iterable.tp_iter(tx), start, stop, by)


class WithFunction(Lazy):
    """starmap, takewhile, dropwhile, filterfalse: a function and an iterator; ``flag`` as in the C struct."""

    __slots__ = ("function", "iterator", "flag")
    PARTS = ("function", "iterator")

    def __init__(self, function: VariableTracker, iterator: VariableTracker) -> None:
        self.function, self.iterator, self.flag, self.source = function, iterator, False, None

    def test(self, tx: Any, value: VariableTracker) -> bool:
        return cmp.truth(tx, tx.call(real(tx, self.function), [value]))

    def rebuild(self, out: Any) -> None:
        if self.flag:
            self.make(out, WITH_FLAG[self.cls], self.function, self.iterator)
        else:
            self.make(out, self.cls, self.function, self.iterator)


class Starmap(WithFunction):
    __slots__ = ()
    cls = itertools.starmap

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        value = step(tx, self.iterator)
        if value is None:
            return None
        if not iters.has_iter(value):
            tx.raise_(TypeError, f"'{tp_name(value.py_type())}' object is not iterable")
        return tx.call(real(tx, self.function), iters.collect(tx, value))


class Takewhile(WithFunction):
    __slots__ = ()
    cls = itertools.takewhile

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        value = None if self.flag else step(tx, self.iterator)
        if value is None:
            return None
        if self.test(tx, value):
            return value
        self.advance(tx, flag=True)
        return None


class Dropwhile(WithFunction):
    __slots__ = ()
    cls = itertools.dropwhile

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        while (value := step(tx, self.iterator)) is not None:
            if self.flag:
                return value
            if not self.test(tx, value):
                self.advance(tx, flag=True)
                return value
        return None


class Filterfalse(WithFunction):
    __slots__ = ()
    cls = itertools.filterfalse

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        function = real(tx, self.function)
        plain = is_none(function) or getattr(function, "cls", None) is bool
        while (value := step(tx, self.iterator)) is not None:
            if not (cmp.truth(tx, value) if plain else self.test(tx, value)):
                return value
        return None


def flagged(cls: type) -> Any:
    def make(function: Any, iterator: Any) -> Any:
        return set_state(cls(function, iterator), True)
    return make


WITH_FLAG = {cls: flagged(cls) for cls in (itertools.takewhile, itertools.dropwhile)}


def function_and_iterable(kind: type) -> Any:
    return lambda tx, function, iterable, /: kind(function, iterable.tp_iter(tx))


for kind_ in (Starmap, Takewhile, Dropwhile, Filterfalse):
    meaning(kind_.cls)(function_and_iterable(kind_))


class Compress(Lazy):
    """``compress``."""

    __slots__ = ("data", "selectors")
    PARTS = ("data", "selectors")
    cls = itertools.compress

    def __init__(self, data: VariableTracker, selectors: VariableTracker) -> None:
        self.data, self.selectors, self.source = data, selectors, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        while (value := step(tx, self.data)) is not None:
            chosen = step(tx, self.selectors)
            if chosen is None:
                return None
            if cmp.truth(tx, chosen):
                return value
        return None

    def rebuild(self, out: Any) -> None:
        self.make(out, itertools.compress, self.data, self.selectors)


@meaning(itertools.compress)
def call_compress(tx, data, selectors):
    return Compress(data.tp_iter(tx), selectors.tp_iter(tx))


class Pairwise(Lazy):
    """``pairwise``."""

    __slots__ = ("iterator", "old")
    PARTS = ("iterator", "old")
    cls = itertools.pairwise

    def __init__(self, iterator: VariableTracker) -> None:
        self.iterator: VariableTracker | None = iterator
        self.old: VariableTracker | None = None
        self.source = None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.iterator is None:
            return None
        if self.old is None:
            old = step(tx, self.iterator)
            if old is None:
                self.advance(tx, iterator=None)
                return None
            self.advance(tx, old=old)
        old = self.old
        new = None if self.iterator is None else step(tx, self.iterator)
        if new is None:
            self.advance(tx, iterator=None, old=None)
            return None
        self.advance(tx, old=new)
        return TupleVariable([old, new])

    def rebuild(self, out: Any) -> None:
        self.make(out, pairwise_of, self.iterator or TupleVariable([]), *([] if self.old is None else [self.old]))


def pairwise_of(iterator: Any, *old: Any) -> Any:
    return itertools.pairwise(itertools.chain(old, iterator) if old else iterator)


@meaning(itertools.pairwise)
def call_pairwise(tx, iterable, /):
    return Pairwise(iterable.tp_iter(tx))


class Accumulate(Lazy):
    """``accumulate``."""

    __slots__ = ("iterator", "function", "total", "initial")
    PARTS = ("iterator", "function", "total", "initial")
    cls = itertools.accumulate

    def __init__(self, iterator: VariableTracker, function: VariableTracker | None, initial: VariableTracker | None) -> None:
        self.iterator, self.function, self.initial, self.source = iterator, function, initial, None
        self.total: VariableTracker | None = None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.initial is not None:
            total = self.initial
            self.advance(tx, initial=None, total=total)
            return total
        value = step(tx, self.iterator)
        if value is None:
            return None
        if self.total is None:
            total = value
        elif self.function is None:
            total = numbers.binary(tx, "+", self.total, value)
        else:
            total = tx.call(real(tx, self.function), [self.total, value])
        self.advance(tx, total=total)
        return total

    def rebuild(self, out: Any) -> None:
        if self.total is None:
            out.call_function(accumulate_of, self.iterator, self.function or NONE, self.initial or NONE)
        else:
            out.call_function(accumulate_of, self.iterator, self.function or NONE, NONE, self.total)


def accumulate_of(iterator: Any, function: Any, initial: Any, *total: Any) -> Any:
    made = itertools.accumulate(iterator, function, initial=initial)
    if total:
        set_state(made, total[0])
    return made


@meaning(itertools.accumulate)
def call_accumulate(tx, iterable, func=None, *, initial=None):
    return Accumulate(iterable.tp_iter(tx), None if is_none(func) else func, None if is_none(initial) else initial)


class ZipLongest(Lazy):
    """``zip_longest``."""

    __slots__ = ("iterators", "fill", "over")
    PARTS = ("iterators", "fill")
    cls = itertools.zip_longest

    def __init__(self, iterators: list[VariableTracker], fill: VariableTracker) -> None:
        self.iterators, self.fill, self.source = iterators, fill, None
        self.over: frozenset[int] = frozenset()

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if len(self.over) == len(self.iterators):
            return None
        items = []
        for at, iterator in enumerate(self.iterators):
            value = None if at in self.over else step(tx, iterator)
            if value is None and at not in self.over:
                self.advance(tx, over=self.over | {at})
                if len(self.over) == len(self.iterators):
                    return None
            items.append(self.fill if value is None else value)
        return TupleVariable(items)

    def rebuild(self, out: Any) -> None:
        live = [TupleVariable([]) if at in self.over else it for at, it in enumerate(self.iterators)]
        out.call_function(zip_longest_of, self.fill, *live)


def zip_longest_of(fill: Any, *iterators: Any) -> Any:
    return itertools.zip_longest(*iterators, fillvalue=fill)


@meaning(itertools.zip_longest)
def call_zip_longest(tx, *iterables, **kwargs):
    fill = kwargs.pop("fillvalue", NONE)
    if kwargs:
        tx.raise_(TypeError, "zip_longest() got an unexpected keyword argument")
    return ZipLongest([i.tp_iter(tx) for i in iterables], fill)
