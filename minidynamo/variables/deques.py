"""collections.deque and its iterators (Modules/_collectionsmodule.c)."""
from __future__ import annotations

import collections
import sys
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Equal, Length, TypeIs
from minidynamo.model.tables import C_MEMBERS, Methods, builds, meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import iters, numbers
from minidynamo.sources import Attr, Fetch
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.iterators import IteratorVariable, advanced
from minidynamo.variables.sequences import ListVariable, inner, repeated, sequence_compare, ssize
from minidynamo.variables.subclasses import PARTS

deque = collections.deque
MUTATED = "deque mutated during iteration"


class DequeVariable(ListVariable):
    """An exact deque, or the part of a subclass's instance; ``version`` is the C struct's ``state``."""

    __slots__ = ("maxlen", "version")
    kind = "deque"
    owner = deque

    def __init__(self, items: list[VariableTracker], maxlen: int | None, source: Any = None) -> None:
        super().__init__(items, source)
        self.maxlen, self.version = maxlen, 0

    # ---- making it again
    def rebuild(self, out: Any) -> None:
        out.call_function(deque_of, self.maxlen, *self.items)

    def create(self, out: Any) -> None:
        out.call_function(deque_of, self.maxlen)

    def fill(self, out: Any) -> None:
        self.write(out, "extend", self.items)

    def write_into(self, out: Any, holder: VariableTracker) -> None:
        out.call_function(deque.__init__, holder, (), self.maxlen)
        out.op("POP")
        for item in self.items:
            out.call_function(deque.append, holder, item)
            out.op("POP")

    def replay(self, out: Any) -> None:
        kept = self.original
        if len(self.items) >= len(kept) and all(a is b for a, b in zip(self.items, kept)):
            self.write(out, "extend", self.items[len(kept):])
            return
        if not self.version:                # only items were assigned: an iterator of the caller's goes on
            for at, (now, before) in enumerate(zip(self.items, kept)):
                if now is not before:
                    out.call_function(deque.__setitem__, self, at, now)
                    out.op("POP")
            return
        out.call_function(deque.clear, self)
        out.op("POP")
        self.write(out, "extend", self.items)

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return self.items

    def write(self, out: Any, method: str, items: list[VariableTracker]) -> None:
        out.begin_call_of(getattr(deque, method))
        out.load(self)
        for item in items:
            out.load(item)
        out.op("BUILD_TUPLE", len(items))
        out.call(2)
        out.op("POP")

    # ---- slots
    def tp_iter(self, tx: Any) -> VariableTracker:
        return DequeIterator(self, False)

    def reversed_iterator(self, tx: Any) -> VariableTracker:
        return DequeIterator(self, True)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        for mine in self.watched(tx):
            if cmp.same_or_equal(tx, mine, item):
                return ConstantVariable(True)
        return ConstantVariable(False)

    def watched(self, tx: Any) -> Any:
        """The items in turn; a RuntimeError where the deque changes between them."""
        version = self.version
        for item in list(self.items):
            yield real(tx, item)
            if self.version != version:
                tx.raise_(RuntimeError, MUTATED)

    def position(self, tx: Any, key: VariableTracker, what: str) -> Any:
        number = key.nb_unary(tx, "index")
        if number is NotImplemented:
            text = f"sequence index must be integer, not '{tp_name(key.py_type())}'" if what == "" else \
                f"'{tp_name(key.py_type())}' object cannot be interpreted as an integer"
            tx.raise_(TypeError, text)
        try:
            return range(len(self.items))[number.as_constant()]
        except (IndexError, OverflowError):
            tx.raise_(IndexError, "deque index out of range")

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return real(tx, self.items[self.position(tx, key, "")])

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        where = self.position(tx, key, "assignment ")
        if value is None:
            self.splice(tx, where, where + 1, [])
        else:
            super().splice(tx, where, where + 1, [value])        # deque_ass_item leaves the state as it is

    def of_same_kind(self, items: list[VariableTracker]) -> VariableTracker:
        made = DequeVariable([], self.maxlen)
        made.items = made.trimmed(items)
        return made

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "+" and not reflected:
            part = inner(other)
            if not isinstance(part, DequeVariable):
                tx.raise_(TypeError, f'can only concatenate deque (not "{tp_name(other.py_type())}") to deque')
            return self.of_same_kind(self.items + part.items)
        if symbol == "*":
            times = other.nb_unary(tx, "index")
            if times is not NotImplemented:
                return self.of_same_kind(repeated(tx, self.items, times))
        return NotImplemented

    def binary_of_class(self, tx: Any, holder: VariableTracker, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        """deque_concat and deque_repeat start from a copy, which is of the subclass."""
        if symbol == "+" and not reflected:
            if not isinstance(inner(other), DequeVariable):
                tx.raise_(TypeError, f'can only concatenate deque (not "{tp_name(other.py_type())}") to deque')
            result = copy_of(tx, holder)
            extend(tx, inner(result), other, False)
            return result
        if symbol == "*":
            times = other.nb_unary(tx, "index")
            if times is not NotImplemented:
                result = copy_of(tx, holder)
                inner(result).nb_inplace(tx, "*=", times)
                return result
        return NotImplemented

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol == "+=":
            extend(tx, self, other, False)
            return self
        if symbol == "*=":
            times = other.nb_unary(tx, "index")
            if times is not NotImplemented:
                self.store(tx, self.trimmed(repeated(tx, self.items, times)))
                return self
        return NotImplemented

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        part = inner(other)
        if not isinstance(part, DequeVariable):
            return NotImplemented
        return sequence_compare(tx, symbol, self, part)

    # ---- mutation
    def trimmed(self, items: list[VariableTracker], left: bool = False) -> list[VariableTracker]:
        if self.maxlen is None or len(items) <= self.maxlen:
            return items
        return items[:self.maxlen] if left else items[len(items) - self.maxlen:]

    def store(self, tx: Any, items: list[VariableTracker], same_state: bool = False) -> None:
        if not same_state:
            tx.journal.set(self, "version", self.version + 1)
        super().store(tx, items)

    def splice(self, tx: Any, start: int, stop: int, values: list[VariableTracker]) -> None:
        tx.journal.set(self, "version", self.version + 1)
        super().splice(tx, start, stop, values)

    def append(self, tx: Any, value: VariableTracker) -> None:
        """deque_append_internal: then an item too many leaves at the other end."""
        self.splice(tx, len(self.items), len(self.items), [value])
        if self.maxlen is not None and len(self.items) > self.maxlen:
            self.splice(tx, 0, 1, [])

    def appendleft(self, tx: Any, value: VariableTracker) -> None:
        self.splice(tx, 0, 0, [value])
        if self.maxlen is not None and len(self.items) > self.maxlen:
            self.splice(tx, self.maxlen, self.maxlen + 1, [])

    def init(self, tx: Any, holder: VariableTracker, args: list, kwargs: dict) -> None:
        init(tx, self, *args, **kwargs)

    def limit_of(self, tx: Any, maxlen: VariableTracker) -> int | None:
        if maxlen.py_type() is type(None):
            return None
        if not issubclass(maxlen.py_type(), int):
            tx.raise_(TypeError, "an integer is required")
        number = inner(maxlen).as_constant()
        if number > sys.maxsize:
            tx.raise_(OverflowError, "Python int too large to convert to C ssize_t")
        if number < 0:
            tx.raise_(ValueError, "maxlen must be non-negative")
        return int(number)


def deque_of(maxlen: int | None, *items: Any) -> Any:
    return deque(items, maxlen)


def init(tx: Any, part: DequeVariable, iterable: Any = None, maxlen: VariableTracker = NONE) -> None:
    """deque_init."""
    tx.journal.set(part, "maxlen", part.limit_of(tx, maxlen))
    if part.items:
        part.store(tx, [])
    if iterable is not None:
        extend(tx, part, iterable, False)


def extend(tx: Any, me: DequeVariable, iterable: VariableTracker, left: bool) -> None:
    """deque_extend, deque_extendleft: items arrive one by one."""
    if inner(iterable) is me:
        iterable = ListVariable(list(me.items))
    if not iters.has_iter(iterable):
        tx.raise_(TypeError, f"'{tp_name(iterable.py_type())}' object is not iterable")
    known = iterable.fast_items and iterable.fast_items(tx)
    if known is not None:
        known = list(known)
        if known:
            me.store(tx, me.trimmed([*known[::-1], *me.items] if left else [*me.items, *known], left))
        return
    for item in iters.iterate(tx, iterable):
        (me.appendleft if left else me.append)(tx, item)


class DequeMethods(Methods, of=deque):
    """deque's methods."""

    def append(tx, self, x, /):
        inner(self).append(tx, x)
        return NONE

    def appendleft(tx, self, x, /):
        inner(self).appendleft(tx, x)
        return NONE

    def extend(tx, self, iterable, /):
        extend(tx, inner(self), iterable, False)
        return NONE

    def extendleft(tx, self, iterable, /):
        extend(tx, inner(self), iterable, True)
        return NONE

    def pop(tx, self, /):
        return take(tx, inner(self), -1)

    def popleft(tx, self, /):
        return take(tx, inner(self), 0)

    def clear(tx, self, /):
        inner(self).store(tx, [])
        return NONE

    def copy(tx, self, /):
        return copy_of(tx, self)

    __copy__ = copy

    def count(tx, self, x, /):
        total = 0
        for item in inner(self).watched(tx):
            total += cmp.same_or_equal(tx, item, x)
        return tx.wrap(total)

    def index(tx, self, value, start=None, stop=None, /):
        me = inner(self)
        first, last, _ = slice(start and numbers.index(tx, start), stop and numbers.index(tx, stop)).indices(len(me.items))
        version = me.version
        for at in range(first, last):
            same = cmp.same_or_equal(tx, real(tx, me.items[at]), value)
            if same:
                return tx.wrap(at)
            if me.version != version:
                tx.raise_(RuntimeError, MUTATED)
        tx.raise_(ValueError, f"{tx.text_of(value)} is not in deque")

    def insert(tx, self, index, value, /):
        me = inner(self)
        where = ssize(tx, index)
        if me.maxlen is not None and len(me.items) >= me.maxlen:
            tx.raise_(IndexError, "deque already at its maximum size")
        where = max(where + len(me.items), 0) if where < 0 else min(where, len(me.items))
        me.splice(tx, where, where, [value])
        return NONE

    def remove(tx, self, value, /):
        me, version = inner(self), inner(self).version
        for at, item in enumerate(list(me.items)):
            same = cmp.same_or_equal(tx, real(tx, item), value)
            if me.version != version:
                tx.raise_(IndexError, "deque mutated during remove().")
            if same:
                me.splice(tx, at, at + 1, [])
                return NONE
        tx.raise_(ValueError, f"{tx.text_of(value)} is not in deque")

    def reverse(tx, self, /):
        inner(self).store(tx, inner(self).items[::-1], same_state=True)
        return NONE

    def rotate(tx, self, n=None, /):
        me = inner(self)
        steps = 1 if n is None else numbers.index(tx, n)
        if len(me.items) > 1:
            steps %= len(me.items)
            me.store(tx, me.items[len(me.items) - steps:] + me.items[:len(me.items) - steps], same_state=steps == 0)
        return NONE

    def __reversed__(tx, self, /):
        return DequeIterator(self, True)


def copy_of(tx: Any, holder: VariableTracker) -> VariableTracker:
    """deque_copy: through the subclass's constructor."""
    me = inner(holder)
    if me is holder:
        return me.of_same_kind(list(me.items))
    limit = [] if me.maxlen is None else [tx.wrap(me.maxlen)]
    result = tx.call(tx.type_of(holder), [holder, *limit])
    if not issubclass(result.py_type(), deque):
        tx.raise_(TypeError, f"{tp_name(holder.py_type())}() must return a deque, not {tp_name(result.py_type())}")
    return result


def take(tx: Any, me: DequeVariable, at: int) -> VariableTracker:
    if not me.items:
        tx.raise_(IndexError, "pop from an empty deque")
    at %= len(me.items)
    value = me.items[at]
    me.splice(tx, at, at + 1, [])
    return real(tx, value)


class DequeIterator(IteratorVariable):
    """``iter`` and ``reversed`` of a deque (dequeiter_next)."""

    __slots__ = ("sequence", "backwards", "index", "version")

    def __init__(self, sequence: VariableTracker, backwards: bool, source: Any = None) -> None:
        self.sequence, self.backwards, self.source = sequence, backwards, source
        self.index, self.version = 0, inner(sequence).version

    def py_type(self) -> type:
        return type((reversed if self.backwards else iter)(deque()))

    def children(self) -> list[VariableTracker]:
        return [self.sequence]

    def reads_when_made(self) -> VariableTracker:
        return inner(self.sequence)

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        items = inner(self.sequence).items
        if inner(self.sequence).version != self.version:
            self.advance(tx, index=len(items))
            tx.raise_(RuntimeError, MUTATED)
        if self.index >= len(items):
            return None
        self.advance(tx, index=self.index + 1)
        return real(tx, items[-self.index if self.backwards else self.index - 1])

    def rebuild(self, out: Any) -> None:
        if inner(self.sequence).version != self.version:
            raise CannotRebuild(self, "an iterator over a deque that has changed")
        out.call_function(reversed_deque_at if self.backwards else deque_at, self.sequence, self.index)


def deque_at(items: Any, index: int) -> Any:
    return advanced(deque.__iter__(items), index)


def reversed_deque_at(items: Any, index: int) -> Any:
    return advanced(deque.__reversed__(items), index)


def set_nothing(tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
    tx.raise_attribute_error(f"attribute 'maxlen' of '{deque.__module__}.deque' objects is not writable", obj, "maxlen")


C_MEMBERS.add(vars(deque)["maxlen"], (lambda tx, obj: tx.wrap(inner(obj).maxlen), set_nothing))


def nth(at: int) -> Any:
    return lambda items: deque.__getitem__(items, at)


NTH: dict[int, Any] = {}


def deque_part(tx: Any, obj: Any, source: Any) -> DequeVariable:
    """The items by position; the limit by value."""
    limit = vars(deque)["maxlen"].__get__(obj)
    tx.guard(TypeIs(source, type(obj)))
    tx.guard(Equal(Attr(source, "maxlen"), limit))
    tx.guard(Length(source, deque.__len__(obj), deque))
    items = [tx.lazy(item, Fetch(source, NTH.setdefault(at, nth(at)), f"item_{at}"))
             for at, item in enumerate(deque.__iter__(obj))]
    return DequeVariable(items, limit, source)


builds(deque)(deque_part)
PARTS[deque] = deque_part


@meaning(deque)
def call_deque(tx, iterable=None, maxlen=NONE):
    made = DequeVariable([], None)
    init(tx, made, iterable, maxlen)
    return made
