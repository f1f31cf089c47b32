"""set and frozenset: items are tracked values, keyed as dict keys are (R1, R3)."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import SetItems, TypeIs
from minidynamo.model.tables import Methods, builds, meaning, wraps
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import iters
from minidynamo.protocol.attrs import attribute_error, generic_getattr
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.sequences import inner

OPERATIONS = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric"}


class SetVariable(VariableTracker):
    """A set; ``entries`` maps hashable stand-ins to the items."""

    __slots__ = ("entries", "version")
    kind = "set"
    owner: type = set

    def __init__(self, entries: dict[Any, VariableTracker], source: Any = None) -> None:
        self.entries, self.source, self.version = entries, source, 0

    @classmethod
    def of_items(cls, tx: Any, items: list[VariableTracker]) -> SetVariable:
        entries: dict[Any, VariableTracker] = {}
        for item in items:
            entries.setdefault(item.key(tx), item)
        return cls(entries)

    def py_type(self) -> type:
        return self.owner

    def children(self) -> list[VariableTracker]:
        return list(self.entries.values())

    def rebuild(self, out: Any) -> None:
        for item in self.entries.values():
            out.load(item)
        out.op("BUILD_SET", len(self.entries))

    def create(self, out: Any) -> None:
        out.op("BUILD_SET", 0)

    def fill(self, out: Any) -> None:
        self.write(out, "update")

    def replay(self, out: Any) -> None:
        self.write(out, "clear")
        self.write(out, "update")

    def write(self, out: Any, method: str) -> None:
        out.begin_call()
        out.load_object_unchecked(getattr(set, method))
        out.callable_done()
        out.load(self)
        if method == "update":
            for item in self.entries.values():
                out.load(item)
            out.op("BUILD_TUPLE", len(self.entries))
        out.call(2 if method == "update" else 1)
        out.op("POP")

    def ordered(self, tx: Any) -> list[VariableTracker]:
        """The items in the order CPython would iterate: known for literals, by a real set of them."""
        if len(self.entries) <= 1:
            return list(self.entries.values())
        if all(type(k) in LITERAL_TYPES for k in self.entries):
            return [self.entries[k] for k in self.real_order()]
        return tx.stop(reasons.OPAQUE_VALUE, text="the order of a set", kind=self.kind)

    def real_order(self) -> list[Any]:
        return list(set(self.entries))

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return self.ordered(tx)

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.set_iterator(self)

    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.entries))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.entries))

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return ConstantVariable(set_key(tx, item) in self.entries)

    # ---- mutation
    def add(self, tx: Any, item: VariableTracker) -> None:
        stand_in = item.key(tx)
        if stand_in not in self.entries:
            tx.journal.set(self, "version", self.version + 1)
            tx.journal.put(self.entries, stand_in, item)
            tx.modified(self)

    def replace(self, tx: Any, entries: dict[Any, VariableTracker]) -> None:
        if len(entries) != len(self.entries):
            tx.journal.set(self, "version", self.version + 1)
        tx.journal.set(self, "entries", entries)
        tx.modified(self)

    def update(self, tx: Any, other: VariableTracker) -> None:
        for item in iters.iterate(tx, other) if not tx.is_set(other) else inner(other).children():
            self.add(tx, item)

    def mutate_by(self, tx: Any, symbol: str, other: VariableTracker) -> None:
        self.replace(tx, combine(tx, symbol, self.entries, entries_of(tx, other)))

    # ---- operators
    def same_kind(self, entries: dict[Any, VariableTracker]) -> VariableTracker:
        return type(self)(entries)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol not in OPERATIONS or not tx.is_set(other):
            return NotImplemented
        if reflected:
            return inner(other).nb_binary(tx, symbol, self, False)
        return self.same_kind(combine(tx, symbol, self.entries, inner(other).entries))

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

    def tp_hash(self, tx: Any) -> VariableTracker:
        tx.raise_(TypeError, f"unhashable type: '{self.py_type().__name__}'")

    def key(self, tx: Any) -> Any:
        tx.raise_(TypeError, f"unhashable type: '{self.py_type().__name__}'")

    def tp_repr(self, tx: Any) -> VariableTracker:
        return tx.repr_of_container(self)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        value = generic_getattr(tx, self, name)
        if value is None:
            attribute_error(tx, self, name)
        return value

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        return None

    def has_instance_dict(self) -> bool:
        return False


class FrozensetVariable(SetVariable):
    """A frozenset: a literal only when every item is one (R1)."""

    __slots__ = ()
    kind = "frozenset"
    owner = frozenset

    def as_constant(self) -> Any:
        if not all(type(k) in LITERAL_TYPES for k in self.entries):
            raise NotConstant(self)
        return frozenset(self.entries)

    def real_order(self) -> list[Any]:
        return list(frozenset(self.entries))

    def rebuild(self, out: Any) -> None:
        out.begin_call()
        out.load_object_unchecked(frozenset)
        out.callable_done()
        for item in self.entries.values():
            out.load(item)
        out.op("BUILD_TUPLE", len(self.entries))
        out.call(1)

    create = property()      # immutable: it cannot be made before its items  # type: ignore[assignment]

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return NotImplemented

    def tp_hash(self, tx: Any) -> VariableTracker:
        return ConstantVariable(hash(self.key(tx)))

    def key(self, tx: Any) -> Any:
        return frozenset(self.entries)


def combine(tx: Any, symbol: str, left: dict, right: dict) -> dict[Any, VariableTracker]:
    if symbol == "|":
        return {**right, **left} if False else {**left, **{k: v for k, v in right.items() if k not in left}}
    if symbol == "&":
        return {k: v for k, v in left.items() if k in right}
    if symbol == "-":
        return {k: v for k, v in left.items() if k not in right}
    return {**{k: v for k, v in left.items() if k not in right}, **{k: v for k, v in right.items() if k not in left}}


def entries_of(tx: Any, other: VariableTracker) -> dict[Any, VariableTracker]:
    if tx.is_set(other):
        return inner(other).entries
    return SetVariable.of_items(tx, [real(tx, i) for i in iters.collect(tx, other)]).entries


def set_key(tx: Any, item: VariableTracker) -> Any:
    """set_contains: a set as the item is looked up as a frozenset."""
    if isinstance(inner(item), SetVariable) and inner(item).owner is set:
        return frozenset(inner(item).entries)
    return item.key(tx)


def binary_method(symbol: str) -> Any:
    def method(tx, self, *others):
        me = inner(self)
        entries = me.entries
        for other in others:
            entries = combine(tx, symbol, entries, entries_of(tx, other))
        return me.same_kind(dict(entries))
    return method


def update_method(symbol: str) -> Any:
    def method(tx, self, *others):
        for other in others:
            inner(self).mutate_by(tx, symbol, other)
        return tx.wrap(None)
    return method


def relation_method(test: Any) -> Any:
    def method(tx, self, other, /):
        return tx.wrap(test(inner(self).entries.keys(), entries_of(tx, other).keys()))
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
        return inner(self).same_kind(combine(tx, "^", inner(self).entries, entries_of(tx, other)))

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
        inner(self).replace(tx, {})
        return tx.wrap(None)

    def copy(tx, self, /):
        return SetVariable(dict(inner(self).entries))


class FrozensetMethods(Methods, of=frozenset):
    """frozenset's methods."""

    union, intersection = binary_method("|"), binary_method("&")
    difference = binary_method("-")
    symmetric_difference = SetMethods.symmetric_difference
    issubset, issuperset, isdisjoint = SetMethods.issubset, SetMethods.issuperset, SetMethods.isdisjoint

    def copy(tx, self, /):
        return self if self.py_type() is frozenset else FrozensetVariable(dict(inner(self).entries))


def remove_item(tx: Any, self: VariableTracker, item: VariableTracker) -> bool:
    me = inner(self)
    stand_in = set_key(tx, item)
    if stand_in not in me.entries:
        return False
    entries = dict(me.entries)
    del entries[stand_in]
    me.replace(tx, entries)
    return True


@builds(set, frozenset)
def build_set(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """Sets of literals are guarded by their items; others break when touched."""
    kind = SetVariable if type(obj) is set else FrozensetVariable
    tx.guard(TypeIs(source, type(obj)))
    if all(type(item) in LITERAL_TYPES for item in obj):
        tx.guard(SetItems(source, frozenset(obj)))
        return kind({item: ConstantVariable(item) for item in obj}, source)
    return tx.build_set_of_objects(kind, obj, source)


@wraps(set)
def wrap_set(tx: Any, obj: set) -> VariableTracker:
    return SetVariable.of_items(tx, [tx.wrap(i) for i in obj])


@wraps(frozenset)
def wrap_frozenset(tx: Any, obj: frozenset) -> VariableTracker:
    return FrozensetVariable.of_items(tx, [tx.wrap(i) for i in obj])


@meaning(set)
def call_set(tx, iterable=None, /):
    return SetVariable.of_items(tx, [] if iterable is None else [real(tx, i) for i in iters.collect(tx, iterable)])


@meaning(frozenset)
def call_frozenset(tx, iterable=None, /):
    if isinstance(iterable, FrozensetVariable):
        return iterable
    return FrozensetVariable.of_items(tx, [] if iterable is None else [real(tx, i) for i in iters.collect(tx, iterable)])
