"""Builtin iterators: over sequences, ranges, dicts and sets; zip, map, filter, enumerate, reversed, iter(f, x)."""
from __future__ import annotations

import collections
import sys
from typing import Any

from minidynamo import reasons
from minidynamo.model.variable import CannotRebuild, VariableTracker, defines, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import numbers
from minidynamo.protocol.attrs import attribute_error
from minidynamo.variables.bases import HashedByIdentity, HeldObject
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.sequences import TupleVariable, inner


class IteratorVariable(HashedByIdentity):
    """What all builtin iterators share."""

    __slots__ = ()
    kind = "iterator"
    cls: type

    def py_type(self) -> type:
        return self.cls

    def tp_iter(self, tx: Any) -> VariableTracker:
        return self

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if not defines(self.py_type(), name):
            attribute_error(tx, self, name)
        if name == "__class__":
            return tx.wrap(self.py_type())
        return tx.bound_c_method(self, getattr(self.py_type(), name))

    def advance(self, tx: Any, **state: Any) -> None:
        for name, value in state.items():
            tx.journal.set(self, name, value)
        tx.modified(self)

    def replay(self, out: Any) -> None:
        raise CannotRebuild(self, "an iterator of the caller's that was advanced")


def advanced(iterator: Any, count: int) -> Any:
    """`iterator` after `count` items."""
    for _ in range(count):
        next(iterator)
    return iterator


def exhausted(iterator: Any) -> Any:
    """`iterator` run dry."""
    for _ in iterator:
        pass
    return iterator


class SequenceIterator(IteratorVariable):
    """Live iterator by index: list, tuple, str, bytes, or any ``__getitem__``."""

    __slots__ = ("sequence", "index", "made_at")
    TYPES = {list: type(iter([])), tuple: type(iter(())), str: type(iter("")), bytes: type(iter(b"")),
             bytearray: type(iter(bytearray()))}

    def __init__(self, sequence: VariableTracker, index: int | None = 0, source: Any = None) -> None:
        self.sequence, self.index, self.source = sequence, index, source

    def py_type(self) -> type:
        part = inner(self.sequence)
        if part.__class__ is ConstantVariable:
            return type(iter(part.value))
        owner = getattr(part, "owner", None) or part.py_type()
        return self.TYPES.get(owner, type(iter(_Getitem())))

    def children(self) -> list[VariableTracker]:
        return [self.sequence]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        index = self.index
        if index is None:
            return None
        part = inner(self.sequence)
        items = getattr(part, "items", None)
        if items is not None and not callable(items):
            value = real(tx, items[index]) if index < len(items) else None
        elif part.__class__ is ConstantVariable:
            value = ConstantVariable(part.value[index]) if index < len(part.value) else None
        else:
            if index == sys.maxsize:
                tx.raise_(OverflowError, "iter index too large")
            value = tx.catching((IndexError, StopIteration), lambda: self.sequence.mp_subscript(tx, ConstantVariable(index)))
        self.advance(tx, index=None if value is None else index + 1)
        return value

    def rebuild(self, out: Any) -> None:
        out.call_function(sequence_iterator_at, self.sequence, self.index)

    def length_hint(self, tx: Any) -> int:
        part = inner(self.sequence)
        size = len(part.value) if part.__class__ is ConstantVariable else len(part.items)
        return 0 if self.index is None else max(size - self.index, 0)


class _Getitem:
    def __getitem__(self, index: int) -> Any:
        raise IndexError


def base_iter(value: Any) -> Any:
    """``iter(value)`` by the builtin base class, whatever a subclass says."""
    for base in (list, tuple, dict, set, frozenset, str, bytes, bytearray):
        if isinstance(value, base):
            return base.__iter__(value)
    return iter(value)            # by __getitem__: there is no __iter__


def sequence_iterator_at(sequence: Any, index: int | None) -> Any:
    """A sequence iterator that goes on at `index`; None: exhausted."""
    if index is None:
        return exhausted(base_iter(sequence))
    iterator = base_iter(sequence)
    if index:
        iterator.__setstate__(index)
    return iterator


def base_iterator_at(collection: Any, index: int | None) -> Any:
    """An iterator of the base class after `index` items; None: exhausted."""
    iterator = base_iter(collection)
    return exhausted(iterator) if index is None else advanced(iterator, index)


class RangeIterator(IteratorVariable):
    """Iterator over a range of literal ints."""

    __slots__ = ("value", "index")
    cls = type(iter(range(0)))

    def __init__(self, value: range, index: int = 0, source: Any = None) -> None:
        self.value, self.index, self.source = value, index, source

    def py_type(self) -> type:
        return type(iter(self.value))

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        index = self.index
        try:
            value = self.value[index]
        except IndexError:
            return None
        self.advance(tx, index=index + 1)
        return ConstantVariable(value)

    def length_hint(self, tx: Any) -> int:
        return len(self.rest())

    def rest(self) -> range:
        return self.value[self.index:]

    def rebuild(self, out: Any) -> None:
        rest = self.rest()
        out.call_function(range, rest.start, rest.stop, rest.step)
        out.op("GET_ITER")


class DictIterator(IteratorVariable):
    """Iterator over a dict or a view; notices a change of size (dictiter_iternextkey)."""

    __slots__ = ("mapping", "what", "backwards", "keys", "index", "version")

    def __init__(self, mapping: Any, what: str, backwards: bool = False, source: Any = None) -> None:
        self.mapping, self.what, self.source = mapping, what, source      # a dict, or an instance of a subclass
        self.backwards = backwards
        self.keys: list[Any] = list(reversed(inner(mapping).entries) if backwards else inner(mapping).entries)
        self.index: int | None = 0
        self.version = inner(mapping).version

    def py_type(self) -> type:
        empty = collections.OrderedDict() if self.is_ordered() else {}
        return type((reversed if self.backwards else iter)(getattr(empty, self.what)()))

    def length_hint(self, tx: Any) -> int:
        same = self.index is not None and len(inner(self.mapping).entries) == len(self.keys)
        return len(self.keys) - self.index if same else 0

    def is_ordered(self) -> bool:
        return inner(self.mapping).owner is collections.OrderedDict

    def children(self) -> list[VariableTracker]:
        return [self.mapping]

    def reads_when_made(self) -> VariableTracker:
        return inner(self.mapping)

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.index is None:
            return None
        mapping = inner(self.mapping)
        if self.is_ordered():
            if self.index < len(self.keys) and mapping.version != self.version:
                self.advance(tx, index=None)
                tx.raise_(RuntimeError, "OrderedDict mutated during iteration")
        elif len(mapping.entries) != len(self.keys):
            self.advance(tx, keys=[], index=0)
            tx.raise_(RuntimeError, "dictionary changed size during iteration")
        if mapping.version != self.version:
            tx.stop(reasons.MUTATED_WHILE_ITERATED, text="the dict")
        if self.index >= len(self.keys):
            self.advance(tx, index=None)
            return None
        key, value = mapping.entries[self.keys[self.index]]
        self.advance(tx, index=self.index + 1)
        if self.what == "items":
            return TupleVariable([key, value])
        return key if self.what == "keys" else real(tx, value)

    def rebuild(self, out: Any) -> None:
        if self.index is not None and inner(self.mapping).version != self.version:
            raise CannotRebuild(self, "an iterator over a dict that has changed")
        out.call_function(DICT_ITERATORS[inner(self.mapping).owner, self.what, self.backwards], self.mapping, self.index)


def dict_iterator_maker(owner: type, what: str, backwards: bool) -> Any:
    view = getattr(owner, what)

    def make(mapping: Any, index: int | None) -> Any:
        """An iterator of the base class after `index` items; None: exhausted."""
        iterator = (reversed if backwards else iter)(view(mapping))
        return exhausted(iterator) if index is None else advanced(iterator, index)
    return make


DICT_ITERATORS = {(owner, what, backwards): dict_iterator_maker(owner, what, backwards)
                  for owner in (dict, collections.OrderedDict, collections.defaultdict)
                  for what in ("keys", "values", "items") for backwards in (False, True)}


class SetIterator(IteratorVariable):
    """Iterator over a set, in the order of a real set of the same literals."""

    __slots__ = ("owner", "items", "index", "version")
    cls = type(iter(set()))

    def __init__(self, owner: Any, items: list[VariableTracker], source: Any = None) -> None:
        self.owner, self.items, self.source = owner, items, source        # a set, or an instance of a subclass
        self.index: int | None = 0
        self.version = inner(owner).version

    def children(self) -> list[VariableTracker]:
        return [self.owner]

    def reads_when_made(self) -> VariableTracker:
        return inner(self.owner)

    def length_hint(self, tx: Any) -> int:
        same = self.index is not None and len(inner(self.owner).entries) == len(self.items)
        return len(self.items) - self.index if same else 0

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.index is None:
            return None
        if len(inner(self.owner).entries) != len(self.items):
            self.advance(tx, items=[], index=0)
            tx.raise_(RuntimeError, "Set changed size during iteration")
        if self.version != inner(self.owner).version:
            tx.stop(reasons.MUTATED_WHILE_ITERATED, text="the set")
        if self.index >= len(self.items):
            self.advance(tx, index=None)
            return None
        self.advance(tx, index=self.index + 1)
        return real(tx, self.items[self.index - 1])

    def rebuild(self, out: Any) -> None:
        if self.version != inner(self.owner).version and self.index is not None:
            raise CannotRebuild(self, "an iterator over a set that has changed")
        out.call_function(base_iterator_at, self.owner, self.index)


class ZipIterator(IteratorVariable):
    """``zip`` (zip_next): a short argument after the first ends it, or raises when strict."""

    __slots__ = ("iterators", "strict")
    cls = zip

    def __init__(self, iterators: list[VariableTracker], strict: bool, source: Any = None) -> None:
        self.iterators, self.strict, self.source = iterators, strict, source

    def children(self) -> list[VariableTracker]:
        return self.iterators

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if not self.iterators:
            return None
        items = []
        for at, iterator in enumerate(self.iterators):
            item = real(tx, iterator).tp_iternext(tx)
            if item is None:
                if self.strict:
                    self.check_strict(tx, at)
                return None
            items.append(item)
        return TupleVariable(items)

    def check_strict(self, tx: Any, at: int) -> None:
        if at:
            plural = "s 1-" if at > 1 else " "
            tx.raise_(ValueError, f"zip() argument {at + 1} is shorter than argument{plural}{at}")
        for later in range(1, len(self.iterators)):
            if real(tx, self.iterators[later]).tp_iternext(tx) is not None:
                plural = "s 1-" if later > 1 else " "
                tx.raise_(ValueError, f"zip() argument {later + 1} is longer than argument{plural}{later}")

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(zip)
        for iterator in self.iterators:
            out.load(iterator)
        if self.strict:
            out.load_const(True)
        out.call(len(self.iterators) + self.strict, ("strict",) if self.strict else ())


class MapIterator(IteratorVariable):
    """``map``."""

    __slots__ = ("function", "iterators")
    cls = map

    def __init__(self, function: VariableTracker, iterators: list[VariableTracker], source: Any = None) -> None:
        self.function, self.iterators, self.source = function, iterators, source

    def children(self) -> list[VariableTracker]:
        return [self.function, *self.iterators]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        items = []
        for iterator in self.iterators:
            item = real(tx, iterator).tp_iternext(tx)
            if item is None:
                return None
            items.append(item)
        function = real(tx, self.function)
        if getattr(function, "fn", None) is id and any(isinstance(inner(real(tx, i)), MAKE_TUPLES) for i in self.iterators):
            tx.stop(reasons.ID_OF_VALUE, call="id() of what nobody keeps")        # its memory is used again
        return tx.call(function, items)

    def rebuild(self, out: Any) -> None:
        out.call_function(map, *self.children())


class FilterIterator(IteratorVariable):
    """``filter``."""

    __slots__ = ("function", "iterator")
    cls = filter

    def __init__(self, function: VariableTracker, iterator: VariableTracker, source: Any = None) -> None:
        self.function, self.iterator, self.source = function, iterator, source

    def children(self) -> list[VariableTracker]:
        return [self.function, self.iterator]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        function = real(tx, self.function)
        plain = isinstance(function, ConstantVariable) and function.value is None
        while (item := real(tx, self.iterator).tp_iternext(tx)) is not None:
            item = real(tx, item)
            if cmp.truth(tx, item if plain else tx.call(function, [item])):
                return item
        return None

    def rebuild(self, out: Any) -> None:
        out.call_function(filter, self.function, self.iterator)


class EnumerateIterator(IteratorVariable):
    """``enumerate``."""

    __slots__ = ("iterator", "count")
    cls = enumerate

    def __init__(self, iterator: VariableTracker, count: VariableTracker, source: Any = None) -> None:
        self.iterator, self.count, self.source = iterator, count, source

    def children(self) -> list[VariableTracker]:
        return [self.iterator, self.count]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        item = real(tx, self.iterator).tp_iternext(tx)
        if item is None:
            return None
        count = real(tx, self.count)
        self.advance(tx, count=numbers.binary(tx, "+", count, ConstantVariable(1)))
        return TupleVariable([count, item])

    def rebuild(self, out: Any) -> None:
        out.call_function(enumerate, self.iterator, self.count)


MAKE_TUPLES = (EnumerateIterator, ZipIterator)


class ReversedIterator(IteratorVariable):
    """``reversed`` of a sequence (reversed_next, listreviter_next); at -1 it is at the end, at None exhausted."""

    __slots__ = ("sequence", "index")

    def __init__(self, sequence: VariableTracker, index: int | None, source: Any = None) -> None:
        self.sequence, self.index, self.source = sequence, index, source

    def py_type(self) -> type:
        return type(reversed([])) if getattr(inner(self.sequence), "owner", None) is list else reversed

    def children(self) -> list[VariableTracker]:
        return [self.sequence]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        index = self.index
        if index is None:
            return None
        items = getattr(inner(self.sequence), "items", None)
        if index < 0:
            value = None
        elif isinstance(items, list):                       # listreviter_next reads the list itself
            value = real(tx, items[index]) if index < len(items) else None
        else:
            value = tx.catching((IndexError, StopIteration), lambda: self.sequence.mp_subscript(tx, ConstantVariable(index)))
        self.advance(tx, index=None if value is None else index - 1)
        return value

    def length_hint(self, tx: Any) -> int:
        if self.index is None:
            return 0
        return self.index + 1 if self.index < cmp.length(tx, self.sequence).as_constant() else 0

    def rebuild(self, out: Any) -> None:
        out.call_function(reversed_at, self.sequence, self.index)


def reversed_at(sequence: Any, index: int | None) -> Any:
    """``reversed(sequence)`` that gives item `index` next, None: exhausted; of lists by the base class."""
    iterator = list.__reversed__(sequence) if isinstance(sequence, list) else reversed(sequence)
    if index is None:
        return exhausted(iterator)
    iterator.__setstate__(index)
    return iterator


class CallIterator(IteratorVariable):
    """``iter(callable, sentinel)``."""

    __slots__ = ("function", "sentinel")
    cls = type(iter(int, 1))

    def __init__(self, function: VariableTracker | None, sentinel: VariableTracker, source: Any = None) -> None:
        self.function, self.sentinel, self.source = function, sentinel, source

    def children(self) -> list[VariableTracker]:
        return [v for v in (self.function, self.sentinel) if v is not None]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.function is None:
            return None
        value = tx.catching(StopIteration, lambda: tx.call(real(tx, self.function), []))
        if value is None or cmp.same_or_equal(tx, real(tx, self.sentinel), value):
            self.advance(tx, function=None)
            return None
        return value

    def rebuild(self, out: Any) -> None:
        if self.function is None:
            raise CannotRebuild(self, "an exhausted callable iterator")
        out.call_function(iter, self.function, self.sentinel)


# ---------------------------------------------------------------- iterators of the caller's
class InputIterator(HeldObject, IteratorVariable):
    """A C iterator that came from outside: carried; using it breaks unless its family has a kind."""

    __slots__ = ()
    kind = "iterator of the caller's"

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        tx.unsupported(self, "next()")
