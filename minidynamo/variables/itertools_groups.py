"""itertools over whole pools and shared places: product, permutations, combinations, groupby, tee, batched; length hints."""
from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Iterator
from typing import Any

from minidynamo.base.iterstate import set_state
from minidynamo.model.tables import Methods, builds, meaning
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import iters, numbers
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.input_iterators import build_other
from minidynamo.variables.iterators import advanced
from minidynamo.variables.itertools_ import NONE, Lazy, is_none, step
from minidynamo.variables.sequences import TupleVariable, inner


# ---------------------------------------------------------------- combinatorics: the real one runs over indices
class Arrangement(Lazy):
    """product, permutations, combinations …: tuples of items of the pools, in the order of the real one over indices."""

    __slots__ = ("cls", "pools", "args", "count", "running")

    def __init__(self, cls: type, pools: list[list[VariableTracker]], args: tuple[int, ...]) -> None:
        self.cls, self.pools, self.args, self.count, self.source = cls, pools, args, 0, None
        self.running: tuple[int, Iterator[Any]] = (0, self.indices())

    def indices(self) -> Iterator[Any]:
        return self.cls(*[range(len(pool)) for pool in self.pools], *self.args)  # type: ignore[no-any-return]

    def children(self) -> list[VariableTracker]:
        return [item for pool in self.pools for item in pool]

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.running[0] != self.count:                     # a break took some steps back
            self.running = self.count, advanced(self.indices(), self.count)
        chosen = next(self.running[1], None)
        self.running = self.count + 1, self.running[1]
        self.advance(tx, count=self.count + 1)
        if chosen is None:
            return None
        pools = self.pools * len(chosen) if len(self.pools) == 1 else self.pools
        return TupleVariable([pool[at] for pool, at in zip(pools, chosen)])

    def rebuild(self, out: Any) -> None:
        out.call_function(ARRANGED[self.cls], self.count, *self.args, *[TupleVariable(pool) for pool in self.pools])


def arranged(cls: Any, extra: int) -> Any:
    def make(count: int, *rest: Any) -> Any:
        made = cls(*rest[extra:], *rest[:extra])
        for _ in range(count):
            next(made, None)
        return made
    return make


ARRANGED = {itertools.product: arranged(itertools.product, 0), itertools.permutations: arranged(itertools.permutations, 1),
            itertools.combinations: arranged(itertools.combinations, 1),
            itertools.combinations_with_replacement: arranged(itertools.combinations_with_replacement, 1)}


@meaning(itertools.product)
def call_product(tx, *iterables, repeat=None):
    times = 1 if repeat is None else numbers.index(tx, repeat)
    if times < 0:
        tx.raise_(ValueError, "repeat argument cannot be negative")
    pools = [[real(tx, v) for v in iters.listed(tx, i)] for i in (iterables if times else ())]
    return Arrangement(itertools.product, pools * times, ())


@meaning(itertools.permutations)
def call_permutations(tx, iterable, r=None):
    pool = [real(tx, v) for v in iters.listed(tx, iterable)]
    length = len(pool)
    if r is not None and not is_none(r):
        if not issubclass(r.py_type(), int):
            tx.raise_(TypeError, "Expected int as r")
        length = inner(r).as_constant()
        if length < 0:
            tx.raise_(ValueError, "r must be non-negative")
    return Arrangement(itertools.permutations, [pool], (length,))


def combinations(cls: type) -> Any:
    def call(tx, iterable, r):
        pool = [real(tx, v) for v in iters.listed(tx, iterable)]
        length = numbers.index(tx, r)
        if length < 0:
            tx.raise_(ValueError, "r must be non-negative")
        return Arrangement(cls, [pool], (length,))
    return call


for cls_ in (itertools.combinations, itertools.combinations_with_replacement):
    meaning(cls_)(combinations(cls_))


# ---------------------------------------------------------------- groupby
class Groupby(Lazy):
    """``groupby``; its groups share its place."""

    __slots__ = ("iterator", "function", "target", "key", "value", "group")
    PARTS = ("iterator", "function", "target", "key", "value")
    cls = itertools.groupby

    def __init__(self, iterator: VariableTracker, function: VariableTracker | None) -> None:
        self.iterator, self.function, self.source = iterator, function, None
        self.target: VariableTracker | None = None
        self.key: VariableTracker | None = None
        self.value: VariableTracker | None = None
        self.group: Group | None = None

    def move(self, tx: Any) -> bool:
        """groupby_step; False at the end."""
        value = step(tx, self.iterator)
        if value is None:
            return False
        key = value if self.function is None else tx.call(real(tx, self.function), [value])
        self.advance(tx, value=value, key=key)
        return True

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        self.advance(tx, group=None)
        while True:
            if self.key is not None and (self.target is None or not cmp.same_or_equal(tx, self.target, self.key)):
                break
            if not self.move(tx):
                return None
        self.advance(tx, target=self.key)
        group = Group(self, self.target, tx.root_step)
        self.advance(tx, group=group)
        return TupleVariable([self.key, group])

    def rebuild(self, out: Any) -> None:
        if self.group is not None and self.key is None:
            raise CannotRebuild(self, "a groupby on its way")
        state = [v for v in (self.value, self.target, self.key) if v is not None]
        out.call_function(groupby_of, self.iterator, self.function or NONE, *(state if len(state) == 3 else []))


def groupby_of(iterator: Any, function: Any, *state: Any) -> Any:
    made = itertools.groupby(iterator, function)
    if state:
        set_state(made, state)
    return made


class Group(Lazy):
    """One group of a groupby (_grouper_next)."""

    __slots__ = ("parent", "target", "made_at")
    PARTS = ("parent", "target")
    cls = type(next(itertools.groupby("a"))[1])

    def __init__(self, parent: Groupby, target: VariableTracker | None, made_at: int) -> None:
        self.parent, self.target, self.made_at, self.source = parent, target, made_at, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        parent = self.parent
        if parent.group is not self:
            return None
        if parent.value is None and not parent.move(tx):
            return None
        if not cmp.same_or_equal(tx, self.target, parent.key):
            return None
        value = parent.value
        parent.advance(tx, value=None)
        return value

    def children(self) -> list[VariableTracker]:
        raise CannotRebuild(self, "a group of a groupby")


@meaning(itertools.groupby)
def call_groupby(tx, iterable, key=None):
    return Groupby(iterable.tp_iter(tx), None if is_none(key) else key)


# ---------------------------------------------------------------- tee
class TeeBuffer(VariableTracker):
    """What the tees of one iterator share: the iterator and the items it has given."""

    __slots__ = ("iterator", "items")
    kind = "tee buffer"

    def __init__(self, iterator: VariableTracker) -> None:
        self.iterator, self.source = iterator, None
        self.items: list[VariableTracker] = []

    def children(self) -> list[VariableTracker]:
        return [self.iterator, *self.items]

    def rebuild(self, out: Any) -> None:
        out.call_function(tee_buffer, self.iterator, *self.items)

    def item(self, tx: Any, at: int) -> VariableTracker | None:
        if at == len(self.items):
            value = step(tx, self.iterator)
            if value is None:
                return None
            tx.journal.append(self.items, value)
        return self.items[at]


class Tee(Lazy):
    """One of ``tee``'s iterators."""

    __slots__ = ("buffer", "index")
    PARTS = ("buffer",)
    cls = type(itertools.tee(())[0])

    def __init__(self, buffer: TeeBuffer, index: int) -> None:
        self.buffer, self.index, self.source = buffer, index, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        value = self.buffer.item(tx, self.index)
        if value is not None:
            self.advance(tx, index=self.index + 1)
        return value

    def rebuild(self, out: Any) -> None:
        out.call_function(tee_at, self.buffer, self.index)


def tee_buffer(iterator: Any, *items: Any) -> Any:
    return itertools.tee(itertools.chain(items, iterator) if items else iterator, 1)[0]


def tee_at(buffer: Any, index: int) -> Any:
    return advanced(buffer.__copy__(), index)


class TeeMethods(Methods, of=Tee.cls):
    """A tee copies itself."""

    def __copy__(tx, self, /):
        return Tee(self.buffer, self.index)


@meaning(itertools.tee)
def call_tee(tx, iterable, n=None, /):
    number = 2 if n is None else numbers.index(tx, n)
    if number < 0:
        tx.raise_(ValueError, "n must be >= 0")
    if number == 0:
        return TupleVariable([])
    iterator = iterable.tp_iter(tx)
    if not isinstance(iterator, Tee) and hasattr(iterator.py_type(), "__copy__"):
        return None
    first = iterator if isinstance(iterator, Tee) else Tee(TeeBuffer(iterator), 0)
    return TupleVariable([first, *[Tee(first.buffer, first.index) for _ in range(number - 1)]])


# ---------------------------------------------------------------- batched (3.12)
class Batched(Lazy):
    """``batched``."""

    __slots__ = ("iterator", "n", "strict")
    PARTS = ("iterator",)
    cls = getattr(itertools, "batched", type(None))

    def __init__(self, iterator: VariableTracker, n: int, strict: bool) -> None:
        self.iterator, self.n, self.strict, self.source = iterator, n, strict, None

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        items: list[VariableTracker] = []
        while len(items) < self.n and (value := step(tx, self.iterator)) is not None:
            items.append(value)
        if items and self.strict and len(items) < self.n:
            tx.raise_(ValueError, "batched(): incomplete batch")
        return TupleVariable(items) if items else None

    def rebuild(self, out: Any) -> None:
        out.call_function(batched_of, self.iterator, self.n, self.strict)


def batched_of(iterator: Any, n: int, strict: bool) -> Any:
    return Batched.cls(iterator, n, strict=strict) if strict else Batched.cls(iterator, n)


if hasattr(itertools, "batched"):
    @meaning(itertools.batched)
    def call_batched(tx, iterable, n, *, strict=None):
        number = numbers.index(tx, n)
        if number < 1:
            tx.raise_(ValueError, "n must be at least one")
        return Batched(iterable.tp_iter(tx), number, strict is not None and cmp.truth(tx, strict))


@meaning(operator.length_hint)
def call_length_hint(tx, obj, default=None, /):
    """PyObject_LengthHint."""
    default = default or ConstantVariable(0)
    if not issubclass(default.py_type(), int):
        numbers.index(tx, default)
    hint = iters.length_hint(tx, obj)
    return default if hint is None else hint


@meaning(*[cls.__length_hint__ for cls in (  # type: ignore[attr-defined]
    type(iter([])), type(iter(())), type(iter("")), type(iter("é")), type(iter(b"")), type(iter(range(0))), type(reversed([])),
    type(iter(range(1 << 70))), type(iter({})), type(iter({}.values())), type(iter({}.items())), type(iter(set())), reversed,
    itertools.repeat)])
def length_hint(tx, self, /):
    return tx.unsupported(self, "__length_hint__()") if self.length_hint is None else ConstantVariable(self.length_hint(tx))


# From outside they are advanced by Python: their state cannot be set.
builds(*[cls for cls in vars(itertools).values() if isinstance(cls, type) and cls is not itertools.count],
       type(iter(collections.deque())), type(reversed(collections.deque())), type(iter(collections.OrderedDict())),
       type(reversed({})), type(reversed({}.values())), type(reversed({}.items())))(build_other)
