"""Dicts and their views."""
from __future__ import annotations

import collections
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import DictKeys, Length, TypeIs
from minidynamo.model.tables import PROXIES, Methods, builds, meaning, wraps
from minidynamo.model.variable import CannotRebuild, VariableTracker, keys_born, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import iters
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import DictItem, DictKey, DictValue, dict_keys, nth_value
from minidynamo.variables.bases import TypeAttributesOnly, Unhashable
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.sequences import TupleVariable, inner

Entry = tuple[VariableTracker, VariableTracker]


class DictVariable(Unhashable, TypeAttributesOnly):
    """An exact dict.  ``entries`` maps hashable stand-ins of the keys to (key, value)."""

    __slots__ = ("entries", "original", "version")
    kind = "dict"
    owner: type = dict

    def __init__(self, entries: dict[Any, Entry], source: Any = None) -> None:
        self.entries, self.source = entries, source
        self.original = dict(entries) if source is not None else None
        self.version = 0                      # grows with each change of the key set, for iterators

    @classmethod
    def of_pairs(cls, tx: Any, pairs: list[Entry]) -> DictVariable:
        entries: dict[Any, Entry] = {}
        for key, value in pairs:
            stand_in = key.key(tx)
            old = entries.get(stand_in)
            entries[stand_in] = (old[0] if old else key, value)
        return cls(entries)

    @classmethod
    def from_names(cls, tx: Any, items: dict[str, VariableTracker]) -> DictVariable:
        return cls({name: (ConstantVariable(name), value) for name, value in items.items()})

    def py_type(self) -> type:
        return self.owner

    def children(self) -> list[VariableTracker]:
        if self.lost_at is not None:
            raise CannotRebuild(self, "a dict whose keys would run their __hash__ once more")
        return [v for entry in self.entries.values() for v in entry]

    @property
    def lost_at(self) -> int | None:
        return keys_born(self.entries)

    def string_items(self, tx: Any) -> dict[str, VariableTracker]:
        """As keyword arguments; keys that are not strings raise."""
        result = {}
        for key, value in self.entries.values():
            if key.py_type() is not str:
                tx.raise_(TypeError, "keywords must be strings")
            result[key.as_constant()] = real(tx, value)
        return result

    # ---- making it again
    def rebuild(self, out: Any) -> None:
        for key, value in self.entries.values():
            out.load(key)
            out.load(value)
        out.op("BUILD_MAP", len(self.entries))

    def create(self, out: Any) -> None:
        out.op("BUILD_MAP", 0)

    def fill(self, out: Any) -> None:
        for key, value in self.entries.values():
            self.write(out, "__setitem__", key, value)

    def replay(self, out: Any) -> None:
        """Make the user's dict equal to ours; cleared first where keys went away or changed order."""
        kept = [k for k in self.original if k in self.entries]
        if len(kept) != len(self.original) or kept != list(self.entries)[:len(kept)] \
                or any(self.original[k][0] is not self.entries[k][0] for k in kept):
            self.write(out, "clear")
            self.fill(out)
            return
        for stand_in, (key, value) in self.entries.items():
            if stand_in not in self.original or self.original[stand_in][1] is not value:
                self.write(out, "__setitem__", key, value)

    def write(self, out: Any, method: str, *values: VariableTracker) -> None:
        out.call_function(getattr(self.owner, method), self, *values)
        out.op("POP")

    # ---- reading
    def find(self, tx: Any, key: VariableTracker) -> VariableTracker | None:
        stand_in, found = cmp.find_key(tx, self.entries, key)
        return real(tx, self.entries[stand_in][1]) if found else None

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        value = self.find(tx, key)
        if value is None:
            tx.raise_(KeyError, key)
        return value

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return ConstantVariable(cmp.find_key(tx, self.entries, item)[1])

    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.entries))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.entries))

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.dict_iterator(self, "keys")

    def key_list(self) -> list[VariableTracker]:
        return [k for k, _ in self.entries.values()]

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        return self.key_list()

    # ---- mutation
    def set_item(self, tx: Any, key: VariableTracker, value: VariableTracker) -> None:
        stand_in, found = cmp.find_key(tx, self.entries, key)
        if not found:
            tx.journal.set(self, "version", self.version + 1)
            tx.journal.put(self.entries, stand_in, (key, value))
        else:
            tx.journal.put(self.entries, stand_in, (self.entries[stand_in][0], value))
        tx.modified(self)

    def delete_item(self, tx: Any, key: VariableTracker) -> VariableTracker | None:
        """Remove and return the value; None if it is not there."""
        stand_in, found = cmp.find_key(tx, self.entries, key)
        if not found:
            return None
        entries = dict(self.entries)
        entry = entries.pop(stand_in)
        self.replace(tx, entries)
        return real(tx, entry[1])

    def replace(self, tx: Any, entries: dict[Any, Entry]) -> None:
        tx.journal.set(self, "version", self.version + 1)
        tx.journal.set(self, "entries", entries)
        tx.modified(self)

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        if value is not None:
            self.set_item(tx, key, value)
        elif self.delete_item(tx, key) is None:
            tx.raise_(KeyError, key)

    def update(self, tx: Any, other: VariableTracker) -> None:
        """dict_update_arg: a mapping by ``keys()``, or pairs."""
        for key, value in pairs_of(tx, other):
            self.set_item(tx, key, value)

    def merge(self, tx: Any, other: VariableTracker, function: VariableTracker) -> None:
        """DICT_MERGE: keyword arguments must not repeat; `function` is to be called with them (_PyStack_UnpackDict)."""
        for key, value in pairs_of(tx, other):
            if key.py_type() is not str:
                tx.raise_(TypeError, "keywords must be strings")
            if key.key(tx) in self.entries:
                tx.raise_(TypeError, f"{function.shown_name()} got multiple values for keyword argument '{key.as_constant()}'")
            self.set_item(tx, key, value)

    # ---- operators
    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol != "|" or not isinstance(inner(other), DictVariable):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        result = copied(tx, left)
        result.update(tx, right)
        return result

    def binary_of_class(self, tx: Any, holder: VariableTracker, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        """dict_or, for a subclass."""
        if symbol != "|" or not isinstance(inner(other), DictVariable):
            return NotImplemented
        left, right = (other, holder) if reflected else (holder, other)
        result = copied(tx, left)
        result.update(tx, right)
        return result

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol != "|=":
            return NotImplemented
        self.update(tx, other)
        return self

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        other = inner(other)
        if not isinstance(other, DictVariable) or symbol not in ("==", "!="):
            return NotImplemented
        return ConstantVariable(self.same_entries(tx, other) is (symbol == "=="))

    def same_entries(self, tx: Any, other: DictVariable) -> bool:
        if len(self.entries) != len(other.entries):
            return False
        for stand_in, (_, value) in list(self.entries.items()):
            theirs = other.entries.get(stand_in)
            if theirs is None or not cmp.same_or_equal(tx, real(tx, value), real(tx, theirs[1])):
                return False
        return True

    def tp_repr(self, tx: Any) -> VariableTracker:
        return tx.repr_of_container(self)


def copied(tx: Any, mapping: VariableTracker) -> DictVariable:
    """PyDict_Copy: a subclass that iterates otherwise is asked for its keys and items, unless it is empty."""
    result = DictVariable({})
    if inner(mapping).entries:      # type: ignore[attr-defined]
        result.update(tx, mapping)
    return result


def pairs_of(tx: Any, other: VariableTracker) -> list[Entry]:
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    plain = inner(other)
    if isinstance(plain, DictVariable) and not tx.overrides(other, "__iter__"):      # all that dict_merge asks
        return [(k, real(tx, v)) for k, v in plain.entries.values()]
    keys = tx.catching(AttributeError, lambda: other.tp_getattro(tx, "keys"))
    if keys is not None:
        return [(k, other.mp_subscript(tx, k)) for k in iters.iterate(tx, tx.call(keys, []))]
    pairs = []
    for at, item in enumerate(iters.iterate(tx, other)):
        if not iters.has_iter(item):
            tx.raise_(TypeError, f"cannot convert dictionary update sequence element #{at} to a sequence")
        parts = iters.collect(tx, item)
        if len(parts) != 2:
            tx.raise_(ValueError, f"dictionary update sequence element #{at} has length {len(parts)}; 2 is required")
        pairs.append((real(tx, parts[0]), real(tx, parts[1])))
    return pairs


class DictMethods(Methods, of=dict):
    """dict's methods."""

    def get(tx, self, key, default=None, /):
        value = inner(self).find(tx, key)
        return (default or tx.wrap(None)) if value is None else value

    def setdefault(tx, self, key, default=None, /):
        value = inner(self).find(tx, key)
        if value is None:
            value = default or tx.wrap(None)
            inner(self).set_item(tx, key, value)
        return value

    def pop(tx, self, key, default=None, /):
        value = inner(self).delete_item(tx, key)
        if value is None and default is None:
            tx.raise_(KeyError, key)
        return default if value is None else value

    def popitem(tx, self, /):
        me = inner(self)
        if not me.entries:
            tx.raise_(KeyError, "popitem(): dictionary is empty")
        entries = dict(me.entries)
        _, (key, value) = entries.popitem()
        me.replace(tx, entries)
        return TupleVariable([key, value])

    def keys(tx, self, /):
        return DictViewVariable(self, "keys")

    def values(tx, self, /):
        return DictViewVariable(self, "values")

    def items(tx, self, /):
        return DictViewVariable(self, "items")

    def clear(tx, self, /):
        inner(self).replace(tx, {})
        return tx.wrap(None)

    def copy(tx, self, /):
        return copied(tx, self)

    def update(tx, self, other=None, /, **kwargs):
        if other is not None:
            inner(self).update(tx, other)
        for name, value in kwargs.items():
            inner(self).set_item(tx, tx.wrap(name), value)
        return tx.wrap(None)

    def fromkeys(tx, cls, iterable, value=ConstantVariable(None), /):
        """_PyDict_FromKeys: an instance of the class, filled by its own ``__setitem__`` where it is not a dict."""
        result = tx.call(cls, [])
        for key in iters.iterate(tx, iterable):
            result.mp_ass_subscript(tx, key, value)
        return result

    def __reversed__(tx, self, /):
        return tx.dict_iterator(self, "keys", True)


VIEWS: dict[type, dict[str, type]] = {
    cls: {what: type(getattr(cls(), what)()) for what in ("keys", "values", "items")}
    for cls in (dict, collections.OrderedDict)}


class DictViewVariable(VariableTracker):
    """``keys()``, ``values()`` or ``items()``: live."""

    __slots__ = ("mapping", "what")
    kind = "dict view"

    def __init__(self, mapping: VariableTracker, what: str, source: Any = None) -> None:
        self.mapping, self.what, self.source = mapping, what, source

    def py_type(self) -> type:
        return VIEWS.get(inner(self.mapping).owner, VIEWS[dict])[self.what]

    def children(self) -> list[VariableTracker]:
        return [self.mapping]

    def reversed_iterator(self, tx: Any) -> VariableTracker:
        return tx.dict_iterator(self.mapping, self.what, True)

    def rebuild(self, out: Any) -> None:
        out.call_function(getattr(inner(self.mapping).owner, self.what), self.mapping)

    def fast_items(self, tx: Any) -> list[VariableTracker] | None:
        entries = list(inner(self.mapping).entries.values())
        if self.what == "items":
            return [TupleVariable([k, v]) for k, v in entries]
        return [k if self.what == "keys" else v for k, v in entries]

    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(inner(self.mapping).entries))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(inner(self.mapping).entries))

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.dict_iterator(self.mapping, self.what)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        me = inner(self.mapping)
        if self.what == "keys":
            return me.sq_contains(tx, item)
        if self.what == "values":
            return None
        if not isinstance(item, TupleVariable) or len(item.items) != 2:
            return ConstantVariable(False)
        found = me.find(tx, real(tx, item.items[0]))
        return ConstantVariable(found is not None and cmp.same_or_equal(tx, found, real(tx, item.items[1])))

    def as_set(self, tx: Any) -> VariableTracker:
        return tx.make_set([real(tx, i) for i in self.fast_items(tx)])

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if self.what == "values" or symbol not in "-&|^":
            return NotImplemented
        mine, theirs = self.as_set(tx), tx.make_set([real(tx, i) for i in iters.collect(tx, other)])
        return theirs.nb_binary(tx, symbol, mine, False) if reflected else mine.nb_binary(tx, symbol, theirs, False)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if self.what == "values" or not (isinstance(other, DictViewVariable) or tx.is_set(other)):
            return NotImplemented
        theirs = other.as_set(tx) if isinstance(other, DictViewVariable) else other
        return self.as_set(tx).tp_richcompare(tx, symbol, theirs)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if not hasattr(self.py_type(), name):
            attribute_error(tx, self, name)
        if name == "__class__":
            return tx.wrap(self.py_type())
        return tx.bound_c_method(self, getattr(self.py_type(), name))

    def tp_repr(self, tx: Any) -> VariableTracker:
        listed = tx.text_of(tx.list_of(self.fast_items(tx)))
        return ConstantVariable(f"{tp_name(self.py_type())}({listed})")


@builds(dict)
def build_dict(tx: Any, obj: dict, source: Any) -> VariableTracker:
    return DictVariable(dict_entries(tx, obj, source, dict), source)


def dict_entries(tx: Any, obj: dict, source: Any, exact: type) -> dict[Any, Entry]:
    """Guarded entries: literal keys by value and order, other keys by position."""
    tx.guard(TypeIs(source, exact))
    entries: dict[Any, Entry] = {}
    keys = list(dict_keys(obj))
    if all(type(k) in LITERAL_TYPES for k in keys):
        tx.guard(DictKeys(source, tuple(keys)))
        for key in keys:
            entries[key] = (ConstantVariable(key), tx.lazy(dict.__getitem__(obj, key), DictItem(source, key)))
        return entries
    tx.guard(Length(source, len(keys), dict))
    for at, key in enumerate(keys):
        built = tx.build(key, DictKey(source, at))
        if built.hash_runs_code(tx):
            tx.stop(reasons.OPAQUE_VALUE, text="a key with its own __hash__", kind="dict from outside")
        entries[built.key(tx)] = (built, tx.lazy(nth_value(obj, at), DictValue(source, at)))
    return entries


@wraps(dict)
def wrap_dict(tx: Any, obj: dict) -> VariableTracker:
    return DictVariable.of_pairs(tx, [(tx.wrap(k), tx.wrap(v)) for k, v in obj.items()])


@meaning(dict)
def call_dict(tx, other=None, /, **kwargs):
    result = DictVariable({})
    if other is not None:
        result.update(tx, other)
    for name, value in kwargs.items():
        result.set_item(tx, tx.wrap(name), value)
    return result


PROXIES[DictVariable] = lambda tx, v: {k.as_constant(): tx.proxy(i) for k, i in v.entries.values()}
