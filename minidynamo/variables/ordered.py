"""OrderedDict and defaultdict: dicts with an order or a default of their own (odictobject.c, _collectionsmodule.c)."""
from __future__ import annotations

import collections
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import C_MEMBERS, Methods, builds, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import calls, iters
from minidynamo.protocol import compare as cmp
from minidynamo.sources import Attr
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.mappings import DictMethods, DictVariable, Entry, dict_entries
from minidynamo.variables.sequences import TupleVariable, inner
from minidynamo.variables.subclasses import PARTS

OrderedDict, defaultdict = collections.OrderedDict, collections.defaultdict


class OrderedDictVariable(DictVariable):
    """An exact OrderedDict, or the part of a subclass's instance."""

    __slots__ = ()
    kind = "OrderedDict"
    owner = OrderedDict

    def init(self, tx: Any, holder: VariableTracker, args: list, kwargs: dict) -> None:
        update_method(tx, holder, tuple(args), kwargs, "__init__")

    def rebuild(self, out: Any) -> None:
        out.call_function(ordered_of, *[part for entry in self.entries.values() for part in entry])

    def create(self, out: Any) -> None:
        out.call_function(OrderedDict)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        """odict_or: a new one of the same class, updated."""
        if symbol != "|" or not isinstance(inner(other), DictVariable):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        result = OrderedDictVariable(dict(inner(left).entries))
        update(tx, result, right)
        return result

    def binary_of_class(self, tx: Any, holder: VariableTracker, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol != "|" or not isinstance(inner(other), DictVariable):
            return NotImplemented
        left, right = (other, holder) if reflected else (holder, other)
        result = tx.call(tx.type_of(holder), [left])
        update(tx, result, right)
        return result

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol != "|=":
            return NotImplemented
        update(tx, self, other)
        return self

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        """odict_richcompare: as a dict, and in order between two of the kind."""
        theirs = inner(other)
        if not isinstance(theirs, DictVariable) or symbol not in ("==", "!="):
            return NotImplemented
        same = self.same_entries(tx, theirs)
        if same and isinstance(theirs, OrderedDictVariable):
            same = all(cmp.same_or_equal(tx, a, b) for a, b in zip(self.key_list(), theirs.key_list()))
        return ConstantVariable(same is (symbol == "=="))


def ordered_of(*parts: Any) -> Any:
    """An OrderedDict of keys and values in turn."""
    return OrderedDict(zip(parts[::2], parts[1::2]))


def update(tx: Any, self: VariableTracker, other: VariableTracker) -> None:
    """mutable_mapping_update_arg: items are set through the mapping's own ``__setitem__``."""
    plain = inner(other)
    if plain is other and plain.py_type() is dict:
        pairs = [(k, real(tx, v)) for k, v in plain.entries.values()]
    else:
        pairs = pairs_of(tx, other)
    for key, value in pairs:
        self.mp_ass_subscript(tx, key, value)


def pairs_of(tx: Any, other: VariableTracker) -> Any:
    keys = tx.catching(AttributeError, lambda: other.tp_getattro(tx, "keys"))
    if keys is not None:
        for key in iters.iterate(tx, tx.call(keys, [])):
            yield key, other.mp_subscript(tx, key)
        return
    items = tx.catching(AttributeError, lambda: other.tp_getattro(tx, "items"))
    source = other if items is None else tx.call(items, [])
    for pair in iters.iterate(tx, source):
        parts = iters.collect(tx, pair) if iters.has_iter(pair) else tx.raise_(
            TypeError, f"'{tp_name(pair.py_type())}' object is not iterable")
        if len(parts) != 2:
            tx.raise_(ValueError, "too many values to unpack (expected 2)" if len(parts) > 2 else
                      f"need more than {len(parts)} value{'s' if len(parts) != 1 else ''} to unpack")
        yield real(tx, parts[0]), real(tx, parts[1])


def update_method(tx: Any, self: VariableTracker, args: tuple, kwargs: dict, name: str) -> None:
    if len(args) > 1:
        tx.raise_(TypeError, f"update() takes at most 1 positional argument ({len(args)} given)" if name == "update" else
                  f"expected at most 1 arguments, got {len(args)}")
    if args:
        update(tx, self, args[0])
    for key, value in kwargs.items():
        self.mp_ass_subscript(tx, tx.wrap(key), value)


class OrderedDictMethods(Methods, of=OrderedDict):
    """OrderedDict's methods."""

    keys, values, items, clear = DictMethods.keys, DictMethods.values, DictMethods.items, DictMethods.clear

    def copy(tx, self, /):
        if inner(self) is self:
            return OrderedDictVariable(dict(self.entries))
        result = tx.call(tx.type_of(self), [])
        for key, value in list(inner(self).entries.values()):
            result.mp_ass_subscript(tx, key, real(tx, value))
        return result

    def update(tx, self, /, *args, **kwargs):
        update_method(tx, self, args, kwargs, "update")
        return NONE

    def setdefault(tx, self, key, default=NONE):
        value = inner(self).find(tx, key)
        if value is None:
            value = default
            self.mp_ass_subscript(tx, key, value)
        return value

    def pop(tx, self, key, default=None):
        value = inner(self).delete_item(tx, key)
        if value is None and default is None:
            tx.raise_(KeyError, key)
        return default if value is None else value

    def popitem(tx, self, last=None):
        me = inner(self)
        if not me.entries:
            tx.raise_(KeyError, "dictionary is empty")
        stand_in = next(reversed(me.entries) if last is None or cmp.truth(tx, last) else iter(me.entries))
        entries = dict(me.entries)
        key, value = entries.pop(stand_in)
        me.replace(tx, entries)
        return TupleVariable([key, value])

    def move_to_end(tx, self, key, last=None):
        me = inner(self)
        stand_in, found = cmp.find_key(tx, me.entries, key)
        if not found:
            tx.raise_(KeyError, key)
        rest = {k: v for k, v in me.entries.items() if k != stand_in}
        moved = {stand_in: me.entries[stand_in]}
        me.replace(tx, {**rest, **moved} if last is None or cmp.truth(tx, last) else {**moved, **rest})
        return NONE

    def __reversed__(tx, self, /):
        return tx.dict_iterator(self, "keys", True)

    def fromkeys(tx, cls, iterable, value=NONE):
        result = tx.call(cls, [])
        for key in iters.iterate(tx, iterable):
            result.mp_ass_subscript(tx, key, value)
        return result


@builds(OrderedDict)
def build_ordered(tx: Any, obj: Any, source: Any) -> VariableTracker:
    return OrderedDictVariable(dict_entries(tx, obj, source, OrderedDict), source)


@meaning(OrderedDict)
def call_ordered(tx, *args, **kwargs):
    result = OrderedDictVariable({})
    update_method(tx, result, args, kwargs, "__init__")
    return result


# ---------------------------------------------------------------- defaultdict
class DefaultDictVariable(DictVariable):
    """An exact defaultdict, or the part of a subclass's instance."""

    __slots__ = ("factory", "old_factory")
    kind = "defaultdict"
    owner = defaultdict

    def __init__(self, entries: dict[Any, Entry], factory: VariableTracker, source: Any = None) -> None:
        super().__init__(entries, source)
        self.factory = self.old_factory = factory

    def children(self) -> list[VariableTracker]:
        return [self.factory, *super().children()]

    def init(self, tx: Any, holder: VariableTracker, args: list, kwargs: dict) -> None:
        init_default(tx, self, args[0] if args else NONE, tuple(args[1:]), kwargs)

    def rebuild(self, out: Any) -> None:
        out.call_function(default_of, self.factory, *[part for entry in self.entries.values() for part in entry])

    def create(self, out: Any) -> None:
        out.call_function(defaultdict)

    def fill(self, out: Any) -> None:
        self.write_into(out, self)

    def write_into(self, out: Any, holder: VariableTracker) -> None:
        """Fill a new object through the base class."""
        out.set_attribute(holder, "default_factory", self.factory)
        for key, value in self.entries.values():
            out.call_function(dict.__setitem__, holder, key, value)
            out.op("POP")

    def replay(self, out: Any) -> None:
        super().replay(out)
        if self.factory is not self.old_factory:
            out.set_attribute(self, "default_factory", self.factory)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        value = self.find(tx, key)
        return missing(tx, self, key) if value is None else value

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        """defdict_or: a new one with the factory of the defaultdict."""
        if symbol != "|" or not isinstance(inner(other), DictVariable):
            return NotImplemented
        left, right = (inner(other), self) if reflected else (self, inner(other))
        result = DefaultDictVariable(dict(left.entries), self.factory)
        result.update(tx, right)
        return result

    def binary_of_class(self, tx: Any, holder: VariableTracker, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol != "|" or not isinstance(inner(other), DictVariable):
            return NotImplemented
        left, right = (other, holder) if reflected else (holder, other)
        result = tx.call(tx.type_of(holder), [self.factory, left])
        inner(result).update(tx, right)
        return result


def default_of(factory: Any, *parts: Any) -> Any:
    """A defaultdict of keys and values in turn."""
    return defaultdict(factory, zip(parts[::2], parts[1::2]))


def missing(tx: Any, self: VariableTracker, key: VariableTracker) -> VariableTracker:
    """defdict_missing."""
    factory = real(tx, inner(self).factory)
    if factory.py_type() is type(None):
        tx.raise_(KeyError, key)
    value = tx.call(factory, [])
    self.mp_ass_subscript(tx, key, value)
    return value


class DefaultDictMethods(Methods, of=defaultdict):
    """defaultdict's methods."""

    def __missing__(tx, self, key, /):
        return missing(tx, self, key)

    def copy(tx, self, /):
        """new_defdict: of the same class, called with the factory and the dict."""
        if inner(self) is self:
            return DefaultDictVariable(dict(self.entries), self.factory)
        return tx.call(tx.type_of(self), [inner(self).factory, self])

    __copy__ = copy


def get_factory(tx: Any, obj: VariableTracker) -> VariableTracker:
    return real(tx, inner(obj).factory)


def set_factory(tx: Any, obj: VariableTracker, value: VariableTracker | None) -> None:
    tx.journal.set(inner(obj), "factory", NONE if value is None else value)
    tx.modified(inner(obj))


C_MEMBERS.add(vars(defaultdict)["default_factory"], (get_factory, set_factory))


def init_default(tx: Any, part: DefaultDictVariable, factory: VariableTracker, args: tuple, kwargs: dict) -> None:
    """defdict_init."""
    if factory.py_type() is not type(None) and not hasattr(factory.py_type(), "__call__"):
        tx.raise_(TypeError, "first argument must be callable or None")
    set_factory(tx, part, factory)
    if args:
        part.update(tx, args[0])
    for name, value in kwargs.items():
        part.set_item(tx, tx.wrap(name), value)


@builds(defaultdict)
def build_default(tx: Any, obj: Any, source: Any) -> VariableTracker:
    factory = tx.lazy(obj.default_factory, Attr(source, "default_factory"))
    return DefaultDictVariable(dict_entries(tx, obj, source, defaultdict), factory, source)


@meaning(defaultdict)
def call_default(tx, factory=NONE, other=None, /, *rest, **kwargs):
    if rest:
        calls.wrong_arguments(tx, defaultdict, [factory, other, *rest], kwargs, TypeError("too many"))
    result = DefaultDictVariable({}, NONE)
    init_default(tx, result, factory, () if other is None else (other,), kwargs)
    return result


def default_part(tx: Any, obj: Any, source: Any) -> VariableTracker:
    factory = tx.lazy(defaultdict.default_factory.__get__(obj), Attr(source, "default_factory"))
    tx.guard(TypeIs(source, type(obj)))
    return DefaultDictVariable(dict_entries(tx, obj, source, type(obj)), factory, source)


PARTS[OrderedDict] = lambda tx, obj, source: OrderedDictVariable(dict_entries(tx, obj, source, type(obj)), source)
PARTS[defaultdict] = default_part
