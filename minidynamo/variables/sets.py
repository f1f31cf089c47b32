"""set and frozenset: items are tracked values, keyed as dict keys are."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Equal, Length, SetItems, TypeIs
from minidynamo.model.tables import Methods, builds, meaning, wraps
from minidynamo.model.variable import CannotRebuild, NotConstant, VariableTracker, keys_born, real
from minidynamo.protocol import iters
from minidynamo.protocol.compare import find_key
from minidynamo.sources import Fetch
from minidynamo.variables.bases import TypeAttributesOnly, Unhashable
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.sequences import inner

OPERATIONS = "|&-^"


class UnknownOrder(Exception):
    """The order in which CPython would iterate cannot be told."""


class History:
    """How a set came to be, as a chain of CPython's own operations on the items' stand-ins.

    The order of a set follows from its hashes and from its past.  `order` does the same operations
    on a real set, which is exact where the stand-ins hash as the items do.
    """

    __slots__ = ("before", "operation", "argument")

    def __init__(self, before: History | None, operation: Callable[[Any, Any], Any], argument: Any) -> None:
        self.before, self.operation, self.argument = before, operation, argument

    def real(self) -> set:
        chain, node = [], self
        while node is not None:
            chain.append(node)
            node = node.before
        value: Any = set()
        for node in reversed(chain):
            argument = node.argument
            value = node.operation(value, argument.real() if argument.__class__ is History else argument)
        return value

    def order(self) -> list[Any]:
        return list(self.argument) if self.operation is given else list(self.real())


def given(_: Any, keys: Any) -> Any:
    """A set of the caller's: its order is known as long as it has not changed."""
    raise UnknownOrder


def changed_by(method: Any) -> Callable[[set, Any], set]:
    def operation(value: set, argument: Any) -> set:
        method(value, argument)
        return value
    return operation


ADD, DISCARD, UPDATE = changed_by(set.add), changed_by(set.discard), changed_by(set.update)
NEW_BY = {"|": set.union, "&": set.intersection, "-": set.difference, "^": set.symmetric_difference}
CHANGED_BY = {"|": UPDATE, "&": changed_by(set.intersection_update), "-": changed_by(set.difference_update),
              "^": changed_by(set.symmetric_difference_update)}


def hashes_alike(key: Any) -> bool:
    """Whether a stand-in has the hash of its item."""
    kind = type(key)
    return kind in LITERAL_TYPES or kind is range or kind in (tuple, frozenset) and all(map(hashes_alike, key))


def set_of(*items: Any) -> set:
    return set(items)


def roomy_set_of(*items: Any) -> set:
    """As set_update_internal makes one from a dict or set: its table is sized beforehand."""
    return set(dict.fromkeys(items))


def frozenset_of(*items: Any) -> frozenset:
    return frozenset(items)


def roomy_frozenset_of(*items: Any) -> frozenset:
    return frozenset(dict.fromkeys(items))


WAYS: dict[type, tuple[Callable[..., Any], ...]] = {
    set: (set_of, roomy_set_of), frozenset: (frozenset_of, roomy_frozenset_of)}


class SetVariable(Unhashable, TypeAttributesOnly):
    """A set; ``entries`` maps hashable stand-ins to the items."""

    __slots__ = ("entries", "original", "version", "history")
    kind = "set"
    owner: type = set

    def __init__(self, entries: dict[Any, VariableTracker], source: Any = None, history: History | None = None) -> None:
        self.entries, self.source, self.version = entries, source, 0
        self.original = entries if source is None else dict(entries)
        self.history = history or History(None, UPDATE if source is None else given, list(entries))

    @classmethod
    def of_items(cls, tx: Any, items: list[VariableTracker], history: History | None = None) -> SetVariable:
        entries: dict[Any, VariableTracker] = {}
        for item in items:
            stand_in, found = find_key(tx, entries, item)
            if not found:
                entries[stand_in] = item
        return cls(entries, history=history)

    def py_type(self) -> type:
        return self.owner

    @property
    def lost_at(self) -> int | None:
        return keys_born(self.entries)

    def children(self) -> list[VariableTracker]:
        if self.lost_at is not None:
            raise CannotRebuild(self, "a set whose items would run their __hash__ once more")
        if self.source is None and len(self.entries) > 1:
            self.building()                   # finds out while planning whether there is a way
        return list(self.entries.values())

    def rebuild(self, out: Any) -> None:
        make, keys = self.building()
        out.call_function(make, *[self.entries[k] for k in keys])

    def building(self) -> tuple[Callable[..., Any], list[Any]]:
        """A way to make a set of the items that iterates as this one does."""
        keys = list(self.entries)
        if not all(map(hashes_alike, keys)):
            return WAYS[self.owner][0], keys
        try:
            order = self.history.order()
        except UnknownOrder:
            return WAYS[self.owner][0], keys
        for way in WAYS[self.owner]:
            for candidate in (order, keys, order[::-1]):
                if list(way(*candidate)) == order:
                    return way, candidate
        raise CannotRebuild(self, "a set whose order comes from items it no longer has")

    def create(self, out: Any) -> None:
        out.op("BUILD_SET", 0)

    def fill(self, out: Any) -> None:
        self.write(out, "update", list(self.entries.values()))

    def replay(self, out: Any) -> None:
        """Take out what went and put in what came, through the base class's methods."""
        gone = [item for key, item in self.original.items() if self.entries.get(key) is not item]
        come = [item for key, item in self.entries.items() if self.original.get(key) is not item]
        if len(gone) == len(self.original):
            self.write(out, "clear", None)
        elif gone:
            self.write(out, "difference_update", gone)
        if come:
            self.write(out, "update", come)

    def write(self, out: Any, method: str, items: list[VariableTracker] | None) -> None:
        out.begin_call_of(getattr(set, method))
        out.load(self)
        if items is not None:
            for item in items:
                out.load(item)
            out.op("BUILD_TUPLE", len(items))
        out.call(1 if items is None else 2)
        out.op("POP")

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return [*self.original.values(), *self.entries.values()]

    def ordered(self, tx: Any) -> list[VariableTracker]:
        """The items in the order CPython would iterate."""
        if len(self.entries) <= 1:
            return list(self.entries.values())
        if self.history.operation is given:
            if self.source is not None and all(type(k) in LITERAL_TYPES for k in self.entries):
                tx.guard(Equal(Fetch(self.source, base_order, "order"), tuple(self.entries)))
            return list(self.entries.values())
        if all(map(hashes_alike, self.entries)):
            try:
                return [self.entries[k] for k in self.history.order()]
            except UnknownOrder:
                pass
        return tx.stop(reasons.OPAQUE_VALUE, text="the order of a set", kind=self.kind)

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return self.ordered(tx)

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.set_iterator(self)

    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.entries))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.entries))

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return ConstantVariable(find_set_key(tx, self, item)[1])

    # ---- mutation
    def add(self, tx: Any, item: VariableTracker) -> None:
        stand_in, found = find_key(tx, self.entries, item)
        if not found:
            tx.journal.set(self, "version", self.version + 1)
            tx.journal.put(self.entries, stand_in, item)
            tx.journal.set(self, "history", History(self.history, ADD, stand_in))
            tx.modified(self)

    def replace(self, tx: Any, entries: dict[Any, VariableTracker], history: History | None = None) -> None:
        tx.journal.set(self, "version", self.version + 1)
        tx.journal.set(self, "entries", entries)
        tx.journal.set(self, "history", history or History(None, UPDATE, list(entries)))
        tx.modified(self)

    def update(self, tx: Any, other: VariableTracker) -> None:
        if tx.is_set(other) or other.py_type() is dict:
            self.mutate_by(tx, "|", other)
            return
        for item in iters.iterate(tx, other):
            self.add(tx, item)

    def mutate_by(self, tx: Any, symbol: str, other: VariableTracker) -> None:
        entries, history = entries_of(tx, other)
        self.replace(tx, combine(symbol, self.entries, entries, tx.is_set(other)),
                     History(self.history, CHANGED_BY[symbol], history))

    # ---- operators
    def combined(self, tx: Any, symbol: str, other: VariableTracker) -> VariableTracker:
        entries, history = entries_of(tx, other)
        made = combine(symbol, self.entries, entries, tx.is_set(other))
        return type(self)(made, history=History(self.history, NEW_BY[symbol], history))

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol not in OPERATIONS or not tx.is_set(other):
            return NotImplemented
        if reflected:
            return inner(other).nb_binary(tx, symbol, self, False)
        return self.combined(tx, symbol, other)

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol[:-1] not in OPERATIONS or not tx.is_set(other):
            return NotImplemented
        self.mutate_by(tx, symbol[:-1], other)
        return self

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not tx.is_set(other):
            return NotImplemented
        mine, theirs = self.entries.keys(), inner(other).entries.keys()
        return ConstantVariable({"==": mine == theirs, "!=": mine != theirs, "<": mine < theirs, "<=": mine <= theirs,
                                 ">": mine > theirs, ">=": mine >= theirs}[symbol])

    def tp_repr(self, tx: Any) -> VariableTracker:
        return tx.repr_of_container(self)



class FrozensetVariable(SetVariable):
    """A frozenset: a literal only when every item is one."""

    __slots__ = ()
    kind = "frozenset"
    owner = frozenset

    def as_constant(self) -> Any:
        if not all(type(k) in LITERAL_TYPES for k in self.entries):
            raise NotConstant(self)
        return frozenset(self.entries)

    create = property()      # immutable: it cannot be made before its items  # type: ignore[assignment]

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return NotImplemented

    def tp_hash(self, tx: Any) -> VariableTracker:
        return ConstantVariable(hash(frozenset([item.true_hash(tx) for item in self.entries.values()])))

    def key(self, tx: Any) -> Any:
        return frozenset(self.entries)


def combine(symbol: str, left: dict, right: dict, both_sets: bool) -> dict[Any, VariableTracker]:
    """The items of a set operation; & takes them from the smaller set (set_intersection)."""
    if symbol == "|":
        return {**left, **{k: v for k, v in right.items() if k not in left}}
    if symbol == "&":
        walked, tested = (left, right) if both_sets and len(right) > len(left) else (right, left)
        return {k: v for k, v in walked.items() if k in tested}
    if symbol == "-":
        return {k: v for k, v in left.items() if k not in right}
    return {**{k: v for k, v in left.items() if k not in right}, **{k: v for k, v in right.items() if k not in left}}


def entries_of(tx: Any, other: VariableTracker) -> tuple[dict[Any, VariableTracker], Any]:
    """The items of any iterable, and what a real set operation would be given for it."""
    if tx.is_set(other):
        return inner(other).entries, inner(other).history
    if not iters.has_iter(other):
        tx.raise_(TypeError, f"'{tp_name(other.py_type())}' object is not iterable")
    made = SetVariable.of_items(tx, [real(tx, i) for i in iters.collect(tx, other)])
    keys = list(made.entries)
    return made.entries, dict.fromkeys(keys) if other.py_type() is dict else keys


def find_set_key(tx: Any, me: SetVariable, item: VariableTracker) -> Any:
    """set_contains: a set as the item is looked up as a frozenset."""
    if isinstance(inner(item), SetVariable) and inner(item).owner is set and item.py_type().__hash__ is None:
        stand_in = frozenset(inner(item).entries)
        return stand_in, stand_in in me.entries
    return find_key(tx, me.entries, item)


def binary_method(symbol: str) -> Any:
    def method(tx, self, *others):
        me = inner(self)
        result = type(me)(dict(me.entries), history=History(me.history, copied, None))
        for other in others:
            result = result.combined(tx, symbol, other)
        return result
    return method


def copied(value: set, _: Any) -> set:
    return value.copy()


def update_method(symbol: str) -> Any:
    def method(tx, self, *others):
        for other in others:
            if symbol == "|":
                inner(self).update(tx, other)
            else:
                inner(self).mutate_by(tx, symbol, other)
        return tx.wrap(None)
    return method


def relation_method(test: Any) -> Any:
    def method(tx, self, other, /):
        return tx.wrap(test(inner(self).entries.keys(), entries_of(tx, other)[0].keys()))
    return method


class SetMethods(Methods, of=set):
    """set's methods."""

    union, intersection = binary_method("|"), binary_method("&")
    difference = binary_method("-")
    update, intersection_update = update_method("|"), update_method("&")
    difference_update = update_method("-")
    issubset = relation_method(lambda a, b: a <= b)
    issuperset = relation_method(lambda a, b: a >= b)
    isdisjoint = relation_method(lambda a, b: a.isdisjoint(b))

    def symmetric_difference(tx, self, other, /):
        return inner(self).combined(tx, "^", other)

    def symmetric_difference_update(tx, self, other, /):
        inner(self).mutate_by(tx, "^", other)
        return tx.wrap(None)

    def add(tx, self, item, /):
        inner(self).add(tx, item)
        return tx.wrap(None)

    def discard(tx, self, item, /):
        remove_item(tx, self, item)
        return tx.wrap(None)

    def remove(tx, self, item, /):
        if not remove_item(tx, self, item):
            tx.raise_(KeyError, item)
        return tx.wrap(None)

    def pop(tx, self, /):
        me = inner(self)
        if not me.entries:
            tx.raise_(KeyError, "pop from an empty set")
        item = me.ordered(tx)[0]
        remove_item(tx, self, item)
        return item

    def clear(tx, self, /):
        inner(self).replace(tx, {}, History(None, UPDATE, ()))
        return tx.wrap(None)

    def copy(tx, self, /):
        return copy_of(inner(self), SetVariable)


class FrozensetMethods(Methods, of=frozenset):
    """frozenset's methods."""

    union, intersection = binary_method("|"), binary_method("&")
    difference = binary_method("-")
    symmetric_difference = SetMethods.symmetric_difference
    issubset, issuperset, isdisjoint = SetMethods.issubset, SetMethods.issuperset, SetMethods.isdisjoint

    def copy(tx, self, /):
        return self if self.py_type() is frozenset else copy_of(inner(self), FrozensetVariable)


def remove_item(tx: Any, self: VariableTracker, item: VariableTracker) -> bool:
    me = inner(self)
    stand_in, found = find_set_key(tx, me, item)
    if not found:
        return False
    entries = dict(me.entries)
    del entries[stand_in]
    me.replace(tx, entries, History(me.history, DISCARD, stand_in))
    return True


def copy_of(me: SetVariable, kind: type) -> SetVariable:
    return kind(dict(me.entries), history=History(me.history, copied, None))


def base_order(value: Any) -> tuple[Any, ...]:
    """The items of a set in its own order, read by the base class."""
    return tuple(set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value))


@functools.cache
def nth_item(at: int) -> Callable[[Any], Any]:
    """A function that reads the item at a place in a set's order."""
    return lambda value: base_order(value)[at]


@builds(set, frozenset)
def build_set(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """Sets of literals are guarded by their items; others break when touched."""
    kind = SetVariable if type(obj) is set else FrozensetVariable
    tx.guard(TypeIs(source, type(obj)))
    return kind(set_entries(tx, obj, source, type(obj)), source)


def set_entries(tx: Any, obj: Any, source: Any, base: type) -> dict[Any, VariableTracker]:
    """Guarded items, read by the base class: literals by value, other objects by place and identity."""
    items = list(base.__iter__(obj))
    if all(type(item) in LITERAL_TYPES for item in items):
        tx.guard(SetItems(source, frozenset(items)))
        return {item: ConstantVariable(item) for item in items}
    tx.guard(Length(source, len(items), base))
    entries = {}
    for at, item in enumerate(items):
        built = tx.build(item, Fetch(source, nth_item(at), f"item_{at}"))
        if built.hash_runs_code(tx):
            tx.stop(reasons.OPAQUE_VALUE, text="an item with its own __hash__", kind="set from outside")
        entries[built.key(tx)] = built
    return entries


@wraps(set)
def wrap_set(tx: Any, obj: set) -> VariableTracker:
    return SetVariable.of_items(tx, [tx.wrap(i) for i in obj])


@wraps(frozenset)
def wrap_frozenset(tx: Any, obj: frozenset) -> VariableTracker:
    return FrozensetVariable.of_items(tx, [tx.wrap(i) for i in obj])


@meaning(set)
def call_set(tx, iterable=None, /):
    return made_from(tx, SetVariable, iterable)


def made_from(tx: Any, kind: type, iterable: VariableTracker | None) -> SetVariable:
    """``set(iterable)``, ``frozenset(iterable)``."""
    if iterable is None:
        return kind({})
    entries, history = entries_of(tx, iterable)
    return kind(dict(entries), history=History(None, UPDATE, history))


@meaning(frozenset)
def call_frozenset(tx, iterable=None, /):
    if isinstance(iterable, FrozensetVariable):
        return iterable
    return made_from(tx, FrozensetVariable, iterable)
