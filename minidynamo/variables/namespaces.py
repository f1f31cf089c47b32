"""Namespaces as dicts: ``obj.__dict__``, ``cls.__dict__``, ``vars(module)`` and ``globals()``, each live.

A namespace keeps no entries of its own.  Reading asks the object, class or scope behind it, and
guards the one name that was asked for; only what looks at all names guards them all.
"""
from __future__ import annotations

import builtins
import contextlib
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minidynamo.guards.kinds import DictKeys, HasKey, InInstanceDict, Length
from minidynamo.model.services import service
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol import attrs
from minidynamo.protocol.attrs import CLASS_DICT, attribute_error
from minidynamo.sources import Attr, DictItem, Fetch, PlainDictItem
from minidynamo.sources.source import instance_dict
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.functions import FUNCTION_SLOTS
from minidynamo.variables.mappings import DictVariable, Entry
from minidynamo.variables.objects import ObjectVariable


class Namespace(DictVariable):
    """A dict whose items live elsewhere; `entries` is made anew for whoever wants all of them."""

    __slots__ = ("tx", "guarded")
    kind = "namespace"

    def __init__(self, tx: Any, source: Any = None) -> None:
        self.tx, self.source, self.version, self.guarded = tx, source, 0, False
        tx.namespaces.append(self)

    def release(self) -> None:
        """The trace is over: let go of the owner, which holds this."""
        for cls in type(self).__mro__[:-2]:
            for slot in getattr(cls, "__slots__", ()):
                with contextlib.suppress(AttributeError):
                    delattr(self, slot)

    def guard_names(self, source: Any, names: Iterable[str]) -> None:
        if not self.guarded:
            self.tx.guard(DictKeys(source, tuple(names)))
            self.tx.journal.set(self, "guarded", True)

    def names(self) -> list[str]:
        """All names, in order, guarded."""
        raise NotImplementedError

    def has(self, tx: Any, name: str) -> bool:
        raise NotImplementedError

    def read(self, tx: Any, name: str) -> VariableTracker | None:
        raise NotImplementedError

    def write(self, tx: Any, name: str, value: VariableTracker | None) -> None:  # type: ignore[override]
        raise NotImplementedError

    @property
    def entries(self) -> Any:                                       # type: ignore[override]
        return LiveEntries(self)

    def item(self, name: str) -> VariableTracker:
        """The value of a name that is there; lazy, since most names are never looked at."""
        raise NotImplementedError

    def name_of(self, tx: Any, key: VariableTracker) -> str | None:
        """The key as a name; None for what no namespace holds."""
        stand_in = key.key(tx)
        return stand_in if type(stand_in) is str else None

    def find(self, tx: Any, key: VariableTracker) -> VariableTracker | None:
        name = self.name_of(tx, key)
        return self.read(tx, name) if name is not None and self.has(tx, name) else None

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        name = self.name_of(tx, item)
        return ConstantVariable(name is not None and self.has(tx, name))

    def sq_length(self, tx: Any) -> VariableTracker:
        return ConstantVariable(len(self.names()))

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(bool(self.names()))

    def set_item(self, tx: Any, key: VariableTracker, value: VariableTracker) -> None:
        name = self.name_of(tx, key)
        if name is None:
            tx.unsupported(self, "[...] = ... with a key that is not a str")
        if not self.has(tx, name):
            tx.journal.set(self, "version", self.version + 1)
        self.write(tx, name, value)

    def delete_item(self, tx: Any, key: VariableTracker) -> VariableTracker | None:
        name = self.name_of(tx, key)
        if name is None or not self.has(tx, name):
            return None
        value = self.read(tx, name)
        tx.journal.set(self, "version", self.version + 1)
        self.write(tx, name, None)
        return value

    def replace(self, tx: Any, entries: dict[Any, Entry]) -> None:
        """What clear() and popitem() leave."""
        tx.journal.set(self, "version", self.version + 1)
        for name in self.names():
            if name not in entries:
                self.write(tx, name, None)

    def replay(self, out: Any) -> None:
        """The owner writes itself back."""


class LiveEntries(Mapping):
    """The entries of a namespace as `DictVariable` keeps them: stand-in of the key -> (key, value)."""

    def __init__(self, space: Namespace) -> None:
        self.space = space

    def __iter__(self) -> Iterator[str]:
        return iter(self.space.names())

    def __len__(self) -> int:
        return len(self.space.names())

    def __contains__(self, name: object) -> bool:
        return type(name) is str and self.space.has(self.space.tx, name)

    def __getitem__(self, name: Any) -> Entry:
        if name not in self:
            raise KeyError(name)
        return ConstantVariable(name), self.space.item(name)


class InstanceNamespace(Namespace):
    """``obj.__dict__`` of a user object."""

    __slots__ = ("owner_value",)

    def __init__(self, tx: Any, obj: Any) -> None:
        super().__init__(tx, None if obj.source is None else Fetch(obj.source, instance_dict, "vars"))
        self.owner_value = obj

    def identity(self) -> object:
        obj = self.owner_value
        return self if obj.obj is None else instance_dict(obj.obj)

    def names(self) -> list[str]:
        obj, found = self.owner_value, []
        if obj.obj is not None:
            own = instance_dict(obj.obj)
            if not all(type(name) is str for name in own):
                self.tx.unsupported(self, "with keys that are not str")
            self.guard_names(self.source, own)
            found = [name for name in own if obj.fields.get(name, obj) is not None]
        known = set(found)
        return found + [name for name, value in obj.fields.items()
                        if value is not None and name not in known and not is_slot(obj.cls, name)]

    def has(self, tx: Any, name: str) -> bool:
        obj = self.owner_value
        if name in obj.fields:
            return obj.fields[name] is not None and not is_slot(obj.cls, name)
        if obj.obj is None:
            return False
        present = name in instance_dict(obj.obj)
        tx.guard(InInstanceDict(obj.source, name, present))
        return present

    def read(self, tx: Any, name: str) -> VariableTracker | None:
        return self.owner_value.instance_get(tx, name)

    def item(self, name: str) -> VariableTracker:
        obj = self.owner_value
        value = obj.fields.get(name)
        return value if value is not None else self.tx.lazy(instance_dict(obj.obj)[name], obj.attr_source(name))

    def write(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        self.owner_value.instance_set(tx, name, value)

    def children(self) -> list[VariableTracker]:
        return [self.owner_value]

    def rebuild(self, out: Any) -> None:
        out.call_function(instance_dict, self.owner_value)

    create, fill = rebuild, lambda self, out: None


def is_slot(cls: type, name: str) -> bool:
    return any(isinstance(vars(klass).get(name), types.MemberDescriptorType) for klass in cls.__mro__)


class FunctionNamespace(Namespace):
    """``function.__dict__``."""

    __slots__ = ("function",)

    def __init__(self, tx: Any, function: Any) -> None:
        super().__init__(tx, None if function.source is None else Attr(function.source, "__dict__"))
        self.function = function

    def identity(self) -> object:
        return self if self.function.fn is None else self.function.fn.__dict__

    def own(self) -> dict[str, Any]:
        return {} if self.function.fn is None else self.function.fn.__dict__

    def names(self) -> list[str]:
        fields, own = self.function.fields, self.own()
        if self.source is not None:
            self.guard_names(self.source, own)
        return [n for n in own if fields.get(n, own) is not None] \
            + [n for n, v in fields.items() if v is not None and n not in own and n not in FUNCTION_SLOTS]

    def has(self, tx: Any, name: str) -> bool:
        fields = self.function.fields
        if name in FUNCTION_SLOTS:
            tx.unsupported(self, f"[{name!r}]")
        if name in fields:
            return fields[name] is not None
        if self.source is not None:
            tx.guard(HasKey(self.source, name, name in self.own()))
        return name in self.own()

    def read(self, tx: Any, name: str) -> VariableTracker | None:
        return real(tx, self.item(name))

    def item(self, name: str) -> VariableTracker:
        value = self.function.fields.get(name)
        return value if value is not None else self.tx.lazy(self.own()[name], DictItem(self.source, name))

    def write(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        self.function.instance_set(tx, name, value)

    def children(self) -> list[VariableTracker]:
        return [self.function]

    def rebuild(self, out: Any) -> None:
        out.load(self.function)
        out.op("LOAD_ATTR", "__dict__")

    create, fill = rebuild, lambda self, out: None


class ScopeNamespace(Namespace):
    """A module's dict: ``vars(module)``, ``module.__dict__``, ``globals()``."""

    __slots__ = ("scope",)

    def __init__(self, tx: Any, scope: Any) -> None:
        super().__init__(tx, scope.root_source())
        self.scope = scope

    def identity(self) -> object:
        return self.scope.mapping

    def names(self) -> list[str]:
        scope, written = self.scope, self.scope.written
        own = list(scope.mapping)
        if not all(type(name) is str for name in own):
            self.tx.unsupported(self, "with keys that are not str")
        self.guard_names(self.source, own)
        return [n for n in own if written.get(n, scope) is not None] \
            + [n for n, value in written.items() if value is not None and n not in scope.mapping]

    def has(self, tx: Any, name: str) -> bool:
        scope = self.scope
        if name in scope.written:
            return scope.written[name] is not None
        present = name in scope.mapping
        tx.guard(HasKey(self.source, name, present))
        return present

    def read(self, tx: Any, name: str) -> VariableTracker | None:
        scope = self.scope
        if name in scope.written:
            return scope.written[name]
        value = scope.seen.get(name)
        if value is None:
            value = tx.build(scope.mapping[name], scope.source(name))
            tx.journal.put(scope.seen, name, value)
        return value

    def item(self, name: str) -> VariableTracker:
        """Lazy: a module's names are many, and most are never looked at."""
        scope = self.scope
        known = scope.written.get(name) or scope.seen.get(name)
        return known if known is not None else self.tx.lazy(scope.mapping[name], scope.source(name))

    def write(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        tx.write_global(self.scope, name, value)


class ClassNamespace(Namespace):
    """``cls.__dict__``: a mappingproxy over the class's own names."""

    __slots__ = ("cls",)
    kind = "class namespace"
    owner = types.MappingProxyType

    def __init__(self, tx: Any, cls: type) -> None:
        super().__init__(tx, None)
        self.cls = cls

    def py_type(self) -> type:
        return types.MappingProxyType

    def pending(self) -> dict[str, Any]:
        return self.tx.class_writes.get(self.cls, {})

    def names(self) -> list[str]:
        own, pending = list(CLASS_DICT.__get__(self.cls)), self.pending()
        if id(self.cls) not in self.tx.made_classes:
            self.guard_names(attrs.class_source(self.cls), own)
        return [n for n in own if pending.get(n, own) is not None] \
            + [n for n, value in pending.items() if value is not None and n not in own]

    def has(self, tx: Any, name: str) -> bool:
        pending = self.pending()
        if name in pending:
            return pending[name] is not None
        present = name in CLASS_DICT.__get__(self.cls)
        if not self.cls.__flags__ & attrs.IMMUTABLE_TYPE and id(self.cls) not in tx.made_classes:
            tx.guard(HasKey(attrs.class_source(self.cls), name, present))
        return present

    def read(self, tx: Any, name: str) -> VariableTracker | None:
        pending = self.pending()
        if name in pending:
            return pending[name]
        own, source = CLASS_DICT.__get__(self.cls), attrs.item_source(tx, self.cls, name)
        if source is None:
            return tx.made_class_part(own[name])
        if self.cls.__flags__ & attrs.IMMUTABLE_TYPE:
            return tx.build_unguarded(own[name], source)
        return tx.build(own[name], source)

    def item(self, name: str) -> VariableTracker:
        value = self.pending().get(name)
        source = attrs.item_source(self.tx, self.cls, name)
        if value is None and source is None:
            value = self.read(self.tx, name)
        if value is None:
            value = self.tx.lazy(CLASS_DICT.__get__(self.cls)[name], source)
        return value

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        verb = "does not support item assignment" if value is not None else "doesn't support item deletion"
        tx.raise_(TypeError, f"'mappingproxy' object {verb}")

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in READ_ONLY_METHODS:
            return tx.bound_c_method(self, getattr(dict, name))
        if not hasattr(types.MappingProxyType, name):
            attribute_error(tx, self, name)
        return tx.unsupported(self, f".{name}")

    def children(self) -> list[VariableTracker]:
        return []

    def rebuild(self, out: Any) -> None:
        raise CannotRebuild(self, "a class's own namespace")


READ_ONLY_METHODS = ("get", "keys", "values", "items", "copy", "__getitem__", "__contains__", "__len__", "__iter__")


class PartialDict(DictVariable):
    """A user's exact dict of which only the names asked for are guarded, until something looks at them all.

    For dicts that are mostly read by literal key, one of many: the tables of an ``nn.Module``.
    """

    __slots__ = ("tx", "obj", "full")
    kind = "dict"

    def __init__(self, tx: Any, obj: dict, source: Any) -> None:
        self.tx, self.obj, self.source, self.version = tx, obj, source, 0
        self.full: tuple[dict[Any, Entry], dict[Any, Entry]] | None = None      # (entries, original)

    @property
    def entries(self) -> dict[Any, Entry]:                          # type: ignore[override]
        if self.full is None:
            self.tx.guard(DictKeys(self.source, tuple(self.obj)))
            found = {key: (ConstantVariable(key), self.tx.lazy(value, PlainDictItem(self.source, key)))
                     for key, value in self.obj.items()}
            self.tx.journal.set(self, "full", (found, dict(found)))
        return self.full[0]                                         # type: ignore[index]

    @entries.setter
    def entries(self, entries: dict[Any, Entry]) -> None:
        self.full = (entries, self.full[1])                         # type: ignore[index]

    @property
    def original(self) -> dict[Any, Entry]:                         # type: ignore[override]
        return self.full[1]                                         # type: ignore[index]

    def has_name(self, tx: Any, name: str) -> bool:
        if self.full is not None:
            return name in self.full[0]
        present = name in self.obj
        if not self.obj:
            tx.guard(Length(self.source, 0, dict))
        else:
            tx.guard(HasKey(self.source, name, present))
        return present

    def find_name(self, tx: Any, name: str) -> VariableTracker | None:
        if self.full is not None:
            entry = self.full[0].get(name)
            return None if entry is None else real(tx, entry[1])
        if name in self.obj:                 # the item's own guards fail when it is not there
            return tx.build(self.obj[name], PlainDictItem(self.source, name))
        self.has_name(tx, name)
        return None

    def find(self, tx: Any, key: VariableTracker) -> VariableTracker | None:
        name = key.key(tx)
        return self.find_name(tx, name) if type(name) is str else super().find(tx, key)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        name = item.key(tx)
        return ConstantVariable(self.has_name(tx, name)) if type(name) is str else super().sq_contains(tx, item)

    def sq_length(self, tx: Any) -> VariableTracker:
        if self.full is None:
            tx.guard(Length(self.source, len(self.obj), dict))
            return ConstantVariable(len(self.obj))
        return super().sq_length(tx)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return ConstantVariable(self.sq_length(tx).as_constant() > 0)

    def children(self) -> list[VariableTracker]:
        """What writing it back needs; nothing, as long as it is the user's own."""
        return [] if self.full is None else super().children()


class Keeper:
    """Holds the dict that another object had before its ``__dict__`` was assigned to."""


@service
def set_namespace(tx: Any, obj: Any, space: VariableTracker | None) -> None:
    """subtype_setdict: `space` is the object's dict from now on, whoever else holds it; None: a new one."""
    space = tx.empty_dict() if space is None else space
    if not issubclass(space.py_type(), dict):
        tx.raise_(TypeError, f"__dict__ must be set to a dictionary, not a '{space.py_type().__name__}'")
    if obj.obj is not None and obj.assigned is None and id(instance_dict(obj.obj)) in tx.by_id \
            or type(obj).instance_get is not ObjectVariable.instance_get \
            or not isinstance(tx.builtin_part(space), DictVariable):
        tx.unsupported(obj, ".__dict__ = ...")
    plain = {n: v for n, v in obj.fields.items() if not is_slot(obj.cls, n)}
    if obj.namespace is not None and obj.obj is None:             # somebody may hold the old one
        keeper = ObjectVariable(Keeper)
        keeper.fields, keeper.namespace = plain, obj.namespace
        tx.journal.set(obj.namespace, "owner_value", keeper)
    tx.journal.set(obj, "fields", {n: v for n, v in obj.fields.items() if n not in plain})
    tx.journal.set(obj, "assigned", space)
    tx.journal.set(obj, "namespace", None)
    tx.modified(obj)


@service
def instance_namespace(tx: Any, obj: Any) -> VariableTracker:
    """``obj.__dict__``, one value per object."""
    if obj.assigned is not None:
        return obj.assigned
    if obj.obj is None:
        if obj.namespace is None:
            tx.journal.set(obj, "namespace", InstanceNamespace(tx, obj))
        return obj.namespace
    own = instance_dict(obj.obj)
    known = tx.by_id.get(id(own))
    if known is None:
        return tx.enter(own, InstanceNamespace(tx, obj))
    if not isinstance(known, InstanceNamespace):
        tx.unsupported(obj, ".__dict__, which is also reached as a plain dict,")
    return known


@service
def function_namespace(tx: Any, function: Any) -> VariableTracker:
    """``function.__dict__``, one value per function."""
    if function.fn is not None and function.source is None:
        tx.unsupported(function, ".__dict__")
    if function.namespace is None:
        space = FunctionNamespace(tx, function)
        tx.journal.set(function, "namespace", space if function.fn is None else tx.enter(function.fn.__dict__, space))
    return function.namespace


def scope_namespace(tx: Any, scope: Any) -> VariableTracker:
    known = tx.by_id.get(id(scope.mapping))
    if known is None:
        return tx.enter(scope.mapping, ScopeNamespace(tx, scope))
    if not isinstance(known, ScopeNamespace):
        tx.unsupported(known, "that is a module's namespace, reached as a plain dict,")
    return known


@service
def scope_value(tx: Any, scope: Any) -> VariableTracker:
    return scope_namespace(tx, scope) if scope.value is None else scope.value


@service
def class_namespace(tx: Any, cls: Any) -> VariableTracker:
    return ClassNamespace(tx, cls.cls)


@service
def module_namespace(tx: Any, module: Any) -> VariableTracker:
    return scope_namespace(tx, tx.scope_of(module.module.__dict__))


@service
def builtins_namespace(tx: Any) -> VariableTracker:
    return scope_namespace(tx, tx.scope_of(builtins.__dict__))
