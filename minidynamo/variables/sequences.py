"""Lists, tuples, named tuples, torch.Size."""
from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Length, TypeIs
from minidynamo.model.tables import Methods, builds, meaning, wraps
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import LazyVariable, NotConstant, VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import iters, numbers
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Item, PlainItem
from minidynamo.variables.bases import TypeAttributesOnly, Unhashable
from minidynamo.variables.constants import ConstantVariable, slice_value


class SequenceVariable(TypeAttributesOnly):
    """What lists and tuples share; `items` may hold lazy values."""

    __slots__ = ("items",)
    owner: type = tuple
    items: list[VariableTracker]

    def __init__(self, items: list[VariableTracker], source: Any = None) -> None:
        self.items, self.source = items, source

    def py_type(self) -> type:
        return self.owner

    def children(self) -> list[VariableTracker]:
        return self.items

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return self.items

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if name == "__class__":
            tx.set_class(self, value)
        if hasattr(self.py_type(), name):
            tx.raise_attribute_error(f"'{tp_name(self.py_type())}' object attribute '{name}' is read-only", self, name)
        attribute_error(tx, self, name)

    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.items))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.items))

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.sequence_iterator(self)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        for mine in list(self.items):
            if cmp.same_or_equal(tx, real(tx, mine), item):
                return ConstantVariable(True)
        return ConstantVariable(False)

    def position(self, tx: Any, key: VariableTracker, what: str) -> int | slice:
        """A subscript as an index within range, or a slice of literals."""
        if key.py_type() is slice:
            return slice_value(tx, key)
        number = key.nb_unary(tx, "index")
        if number is NotImplemented:
            name = self.owner.__name__
            tx.raise_(TypeError, f"{name} indices must be integers or slices, not {tp_name(key.py_type())}")
        index = number.as_constant()
        try:
            where = range(len(self.items))[index]
        except (IndexError, OverflowError):
            tx.raise_(IndexError, f"{self.owner.__name__} {what}index out of range")
        return where

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        where = self.position(tx, key, "")
        if isinstance(where, slice):
            return self.of_same_kind(self.items[where])
        return real(tx, self.items[where])

    def of_same_kind(self, items: list[VariableTracker]) -> VariableTracker:
        return type(self)(items)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "+" and not reflected and isinstance(other, SequenceVariable) and other.owner is self.owner:
            return self.of_same_kind(self.items + other.items)
        if symbol == "*":
            times = other.nb_unary(tx, "index")
            if times is not NotImplemented:
                return self.of_same_kind(repeated(tx, self.items, times))
        return NotImplemented

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        inner = other.inner or other
        if not isinstance(inner, SequenceVariable) or inner.owner is not self.owner:
            return NotImplemented
        return sequence_compare(tx, symbol, self, inner)

    def tp_repr(self, tx: Any) -> VariableTracker:
        return tx.repr_of_container(self)


def repeated(tx: Any, items: list[VariableTracker], times: VariableTracker) -> list[VariableTracker]:
    """list_repeat, with sequence_repeat's check of the number."""
    try:
        return items * times.as_constant()
    except (OverflowError, MemoryError) as error:
        tx.raise_real(error)


def ssize(tx: Any, value: VariableTracker) -> int:
    """An index argument as ``PyLong_AsSsize_t`` takes it."""
    number = numbers.index(tx, value)
    if not -sys.maxsize - 1 <= number <= sys.maxsize:
        tx.raise_(OverflowError, "Python int too large to convert to C ssize_t")
    return number


def sequence_compare(tx: Any, symbol: str, left: Any, right: Any) -> VariableTracker:
    """list_richcompare and tuplerichcompare: the first pair that differs decides; items are read as they are now."""
    if symbol in ("==", "!=") and len(left.items) != len(right.items):
        return ConstantVariable(symbol == "!=")
    index = 0
    while index < len(left.items) and index < len(right.items):
        if not cmp.same_or_equal(tx, real(tx, left.items[index]), real(tx, right.items[index])):
            break
        index += 1
    if index >= len(left.items) or index >= len(right.items):
        return ConstantVariable(cmp.COMPARE[symbol](len(left.items), len(right.items)))
    if symbol in ("==", "!="):
        return ConstantVariable(symbol == "!=")
    return cmp.compare(tx, symbol, real(tx, left.items[index]), real(tx, right.items[index]))


class TupleVariable(SequenceVariable):
    """An exact tuple."""

    __slots__ = ()
    kind = "tuple"
    owner = tuple

    def identity(self) -> object:
        """The empty tuple is one object (tuple_get_empty)."""
        return self if self.items or type(self) is not TupleVariable else ()

    def as_constant(self) -> Any:
        if self.source is not None and any(type(i) is LazyVariable and i.built is None for i in self.items):
            raise NotConstant(self)
        return tuple([constant_of(i) for i in self.items])

    def rebuild(self, out: Any) -> None:
        for item in self.items:
            out.load(item)
        out.op("BUILD_TUPLE", len(self.items))

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        where = self.position(tx, key, "")
        if isinstance(where, slice):
            items = self.items[where]
            return self if len(items) == len(self.items) and type(self) is TupleVariable and (where.step or 1) == 1 \
                else TupleVariable(items)
        return real(tx, self.items[where])

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "+" and not reflected and isinstance(other, TupleVariable) and type(self) is TupleVariable:
            if not self.items and type(other) is TupleVariable:
                return other
            if not other.items:
                return self
        if symbol == "*" and type(self) is TupleVariable:
            times = other.nb_unary(tx, "index")
            if times is not NotImplemented and times.as_constant() == 1:
                return self                                 # tuplerepeat, of exact tuples only
        return super().nb_binary(tx, symbol, other, reflected)

    def of_same_kind(self, items: list[VariableTracker]) -> VariableTracker:
        return TupleVariable(items)

    def tp_hash(self, tx: Any) -> VariableTracker:
        return ConstantVariable(hash(tuple([real(tx, i).true_hash(tx) for i in self.items])))

    def key(self, tx: Any) -> Any:
        return tuple([real(tx, i).key(tx) for i in self.items])

    def hash_runs_code(self, tx: Any) -> bool:
        return any(real(tx, i).hash_runs_code(tx) for i in self.items)


class TuplePart(TupleVariable):
    """The builtin part of an instance of a subclass: what is read of it is never the part itself."""

    __slots__ = ()


def constant_of(value: VariableTracker) -> Any:
    if value.__class__ is LazyVariable:
        if value.built is None:
            raise NotConstant(value)
        value = value.built
    return value.as_constant()


class ListVariable(Unhashable, SequenceVariable):
    """An exact list."""

    __slots__ = ("original",)
    kind = "list"
    owner = list

    def __init__(self, items: list[VariableTracker], source: Any = None) -> None:
        super().__init__(items, source)
        self.original = list(items) if source is not None else None

    # ---- making it again
    def rebuild(self, out: Any) -> None:
        for item in self.items:
            out.load(item)
        out.op("BUILD_LIST", len(self.items))

    def create(self, out: Any) -> None:
        out.op("BUILD_LIST", 0)

    def fill(self, out: Any) -> None:
        self.write(out, "extend", self.items)

    def replay(self, out: Any) -> None:
        """Make the user's list equal to ours, through the base class's own methods."""
        self.write(out, "extend" if self.only_grew() else "__setitem__", self.effect_children(out.tx))

    def only_grew(self) -> bool:
        kept = self.original
        return len(self.items) >= len(kept) and all(a is b for a, b in zip(self.items, kept))

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return self.items[len(self.original):] if self.only_grew() else self.items

    def write(self, out: Any, method: str, items: list[VariableTracker]) -> None:
        out.begin_call_of(getattr(list, method))
        out.load(self)
        if method == "__setitem__":
            out.load_object_unchecked(slice(None))
        for item in items:
            out.load(item)
        out.op("BUILD_LIST", len(items))
        out.call(3 if method == "__setitem__" else 2)
        out.op("POP")

    # ---- mutation
    def store(self, tx: Any, items: list[VariableTracker]) -> None:
        """Replace all items."""
        tx.journal.set(self, "items", items)
        tx.modified(self)

    def splice(self, tx: Any, start: int, stop: int, values: list[VariableTracker]) -> None:
        """``self[start:stop] = values`` with indices within range: the way of all small changes."""
        tx.journal.splice(self.items, start, stop, values)
        tx.modified(self)

    def append(self, tx: Any, value: VariableTracker) -> None:
        tx.journal.append(self.items, value)
        tx.modified(self)

    def extend(self, tx: Any, values: VariableTracker) -> None:
        if values is self or values.fast_items and values.fast_items(tx) is not None:
            self.splice(tx, len(self.items), len(self.items), iters.listed(tx, values))
            return
        for value in iters.iterate(tx, values, sized=True):       # as list_extend: items arrive one by one
            self.append(tx, value)

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        where = self.position(tx, key, "assignment ")
        if not isinstance(where, slice):
            self.splice(tx, where, where + 1, [] if value is None else [value])
            return
        if value is None:
            items = self.items[:]
            del items[where]
        else:
            if not iters.has_iter(value):
                must = "can only assign an iterable" if (where.step or 1) == 1 else "must assign iterable to extended slice"
                tx.raise_(TypeError, must)
            new = iters.collect(tx, value)
            items = self.items[:]
            try:
                items[where] = new
            except ValueError as error:
                tx.raise_real(error)
        self.store(tx, items)

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol == "+=":
            if not iters.has_iter(other):
                tx.raise_(TypeError, f"'{tp_name(other.py_type())}' object is not iterable")
            self.extend(tx, other)
            return self
        if symbol == "*=":
            times = other.nb_unary(tx, "index")
            if times is NotImplemented:
                return NotImplemented
            self.store(tx, repeated(tx, self.items, times))
            return self
        return NotImplemented


class ListMethods(Methods, of=list):
    """list's methods."""

    def append(tx, self, object, /):
        inner(self).append(tx, object)
        return tx.wrap(None)

    def extend(tx, self, iterable, /):
        inner(self).extend(tx, iterable)
        return tx.wrap(None)

    def insert(tx, self, index, object, /):
        where = ssize(tx, index)
        size = len(inner(self).items)
        where = max(where + size, 0) if where < 0 else min(where, size)
        inner(self).splice(tx, where, where, [object])
        return tx.wrap(None)

    def pop(tx, self, index=None, /):
        me = inner(self)
        where = -1 if index is None else ssize(tx, index)
        size = len(me.items)
        if not size:
            tx.raise_(IndexError, "pop from empty list")
        where += size if where < 0 else 0
        if not 0 <= where < size:
            tx.raise_(IndexError, "pop index out of range")
        value = me.items[where]
        me.splice(tx, where, where + 1, [])
        return real(tx, value)

    def remove(tx, self, value, /):
        me = inner(self)
        for at, item in enumerate(list(me.items)):
            if cmp.same_or_equal(tx, real(tx, item), value):
                me.splice(tx, at, at + 1, [])
                return tx.wrap(None)
        tx.raise_(ValueError, "list.remove(x): x not in list")

    def clear(tx, self, /):
        if inner(self).items:
            inner(self).store(tx, [])
        return tx.wrap(None)

    def copy(tx, self, /):
        return ListVariable(list(inner(self).items))

    def reverse(tx, self, /):
        inner(self).store(tx, inner(self).items[::-1])
        return tx.wrap(None)

    def index(tx, self, value, start=None, stop=None, /):
        return sequence_index(tx, self, value, start, stop)

    def count(tx, self, value, /):
        return sequence_count(tx, self, value)

    def __reversed__(tx, self, /):
        return tx.reversed_sequence(self)

    def sort(tx, self, *, key=None, reverse=None):
        """list_sort_impl: the list is empty meanwhile, and gets its items back also when a comparison raises."""
        me = inner(self)
        items = [real(tx, i) for i in me.items]
        meanwhile = Emptied()
        me.store(tx, meanwhile)
        try:
            sort_items(tx, items, key, reverse)
        except Raised:
            me.store(tx, items)
            raise
        changed = me.items is not meanwhile or meanwhile.used
        me.store(tx, items)
        if changed:
            tx.raise_(ValueError, "list modified during sort")
        return tx.wrap(None)


class Emptied(list):
    """The items of a list while it is sorted: they know of any that came, also if it has gone again (``allocated`` in C)."""

    used = False

    def append(self, value: Any) -> None:
        self.used = True
        super().append(value)

    def __setitem__(self, at: Any, values: Any) -> None:
        self.used = self.used or bool(values)
        super().__setitem__(at, values)


class TupleMethods(Methods, of=tuple):
    """tuple's methods."""

    def index(tx, self, value, start=None, stop=None, /):
        return sequence_index(tx, self, value, start, stop)

    def count(tx, self, value, /):
        return sequence_count(tx, self, value)


def inner(value: VariableTracker) -> Any:
    """The builtin part of a value of a builtin's subclass, or the value."""
    return value.inner or value


def sequence_index(tx: Any, self: VariableTracker, value: Any, start: Any, stop: Any) -> VariableTracker:
    items = inner(self).items
    first, last, _ = slice(start and numbers.index(tx, start), stop and numbers.index(tx, stop)).indices(len(items))
    for at in range(first, last):
        if at < len(inner(self).items) and cmp.same_or_equal(tx, real(tx, inner(self).items[at]), value):
            return tx.wrap(at)
    if inner(self).owner is tuple:
        tx.raise_(ValueError, "tuple.index(x): x not in tuple")
    tx.raise_(ValueError, f"{tx.text_of(value)} is not in list")


def sequence_count(tx: Any, self: VariableTracker, value: VariableTracker) -> VariableTracker:
    return tx.wrap(sum(cmp.same_or_equal(tx, real(tx, i), value) for i in list(inner(self).items)))


def sort_items(tx: Any, items: list[VariableTracker], key: Any, reverse: Any) -> None:
    """Sort in place, stably, by the traced ``<``.

    CPython's own sort runs it, so comparisons come in its order, and an exception leaves the items as it would.
    """
    down = reverse is not None and numbers.index(tx, reverse) != 0
    keyed = key is not None and not (isinstance(key, ConstantVariable) and key.value is None)
    keys = [tx.call(key, [i]) for i in items] if keyed else list(items)
    constants = cmp.constants(*keys)
    if constants is not None:
        order = list(range(len(items)))
        before = list(items)
        try:
            order.sort(key=constants.__getitem__, reverse=down)
        except TypeError as error:
            tx.raise_real(error)
        finally:
            items[:] = [before[i] for i in order]
        return
    pairs = [SortKey(tx, k, i) for k, i in zip(keys, items)]
    try:
        pairs.sort(reverse=down)
    finally:
        items[:] = [p.item for p in pairs]


@functools.total_ordering
class SortKey:
    """Makes list.sort compare through the traced program."""

    __slots__ = ("tx", "key", "item")

    def __init__(self, tx: Any, key: VariableTracker, item: VariableTracker) -> None:
        self.tx, self.key, self.item = tx, key, item

    def __lt__(self, other: SortKey) -> bool:
        return cmp.truth(self.tx, cmp.compare(self.tx, "<", self.key, other.key))


class SizeVariable(TupleVariable):
    """``torch.Size``: a tuple of ints, some of them perhaps symbolic."""

    __slots__ = ()
    kind = "torch.Size"

    def py_type(self) -> type:
        return torch.Size

    def as_constant(self) -> Any:
        return torch.Size(super().as_constant())

    def of_same_kind(self, items: list[VariableTracker]) -> VariableTracker:
        return SizeVariable(items)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        where = self.position(tx, key, "")
        return SizeVariable(self.items[where]) if isinstance(where, slice) else real(tx, self.items[where])

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(torch.Size)
        super().rebuild(out)
        out.call(1)


class NamedTupleVariable(TupleVariable):
    """A tuple class made by ``namedtuple`` or a C struct sequence, without instance state."""

    __slots__ = ("cls",)
    kind = "namedtuple"

    def __init__(self, items: list[VariableTracker], source: Any, cls: type) -> None:
        super().__init__(items, source)
        self.cls = cls

    def py_type(self) -> type:
        return self.cls

    def as_constant(self) -> Any:
        raise NotConstant(self)

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(tuple.__new__ if hasattr(self.cls, "_fields") else self.cls)
        count = 1
        if hasattr(self.cls, "_fields"):
            out.load_object_unchecked(self.cls)
            count = 2
        super().rebuild(out)
        out.call(count)


@builds(tuple)
def build_tuple(tx: Any, obj: tuple, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, tuple))
    tx.guard(Length(source, len(obj), tuple))
    return TupleVariable([tx.lazy(v, PlainItem(source, i, tuple)) for i, v in enumerate(obj)], source)


@builds(torch.Size)
def build_size(tx: Any, obj: torch.Size, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, torch.Size))
    tx.guard(Length(source, len(obj), tuple))
    return SizeVariable([tx.lazy(v, Item(source, i, tuple)) for i, v in enumerate(obj)], source)


@wraps(tuple)
def wrap_tuple(tx: Any, obj: tuple) -> VariableTracker:
    return TupleVariable([tx.wrap(v) for v in obj])


@wraps(list)
def wrap_list(tx: Any, obj: list) -> VariableTracker:
    return ListVariable([tx.wrap(v) for v in obj])


@wraps(torch.Size)
def wrap_size(tx: Any, obj: torch.Size) -> VariableTracker:
    return SizeVariable([tx.wrap(v) for v in obj])


@meaning(list)
def call_list(tx, iterable=None, /):
    return ListVariable([] if iterable is None else iters.listed(tx, iterable))


@meaning(tuple)
def call_tuple(tx, iterable=None, /):
    if iterable is not None and type(iterable) is TupleVariable:
        return iterable
    return TupleVariable([] if iterable is None else iters.listed(tx, iterable))


@meaning(torch.Size)
def call_size(tx, iterable=None, /):
    return SizeVariable([] if iterable is None else [real(tx, i) for i in iters.collect(tx, iterable)])


@meaning(sorted)
def call_sorted(tx, iterable, /, *, key=None, reverse=None):
    items = [real(tx, i) for i in iters.listed(tx, iterable)]
    sort_items(tx, items, key, reverse)
    return ListVariable(items)




@meaning(torch.Size.numel)
def size_numel(tx, self, /):
    """THPSize_numel."""
    product = tx.wrap(1)
    for item in self.items:
        product = numbers.binary(tx, "*", product, real(tx, item))
    return product
