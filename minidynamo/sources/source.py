"""Source: an expression over the frame's entry locals and globals that yields a user's object.

Every kind answers four questions, each in one method:

=========  =============================================================================
``load``   neutral ops that put the object on the stack (`out` is a ``code.Writer``)
``words``  Python over ``L`` (entry locals) and ``G`` (globals), for guards and messages
``fetch``  the object itself, from ``L`` and ``G`` (may raise whatever the access raises)
``child``  the torch guard manager below `parent`'s in ``guards.lower_tree``'s `tree`
=========  =============================================================================

Loads never run user code: attribute sources are made only where the access is known to be
plain, and container sources read through the builtin base class.
"""
from __future__ import annotations

import builtins
import collections
import gc
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar


class Source:
    """Base of all kinds; immutable, compared by kind, base and key."""

    __slots__ = ("base", "key", "_hash", "_text")
    kind: ClassVar[str] = "source"
    base: Source | None
    key: Any

    def __init__(self, base: Source | None, key: Any = None) -> None:
        self.base, self.key = base, key
        self._text: str | None = None
        self._hash = hash((type(self), base, self.identity()))

    def identity(self) -> Any:
        """What the key contributes to equality; overridden where keys may be unhashable."""
        return (type(self.key), self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._hash == other._hash
                                 and self.identity() == other.identity() and self.base == other.base)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.text()}>"

    def load(self, out: Any) -> None:
        raise NotImplementedError

    def text(self) -> str:
        """`words`, put together once: they contain those of every source above."""
        if self._text is None:
            self._text = self.words()
        return self._text

    def words(self) -> str:
        raise NotImplementedError

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        raise NotImplementedError

    def child(self, parent: Any, tree: Any) -> Any:
        raise NotImplementedError

    def chain(self) -> list[Source]:
        """From the root source down to this one."""
        links: list[Source] = []
        node: Source | None = self
        while node is not None:
            links.append(node)
            node = node.base
        return links[::-1]

    def root(self) -> Source:
        node = self
        while node.base is not None:
            node = node.base
        return node


class Local(Source):
    """An argument as it was on entry; for cell and free variables, the cell's content."""

    __slots__ = ("is_cell",)
    kind = "local"

    def __init__(self, name: str, is_cell: bool = False) -> None:
        self.is_cell = is_cell
        super().__init__(None, name)

    def load(self, out: Any) -> None:
        out.op("LOAD_DEREF" if self.is_cell else "LOAD_LOCAL", self.key)

    def words(self) -> str:
        return f"L[{self.key!r}]"

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return L[self.key]

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.root.framelocals_manager(tree.local_slot(self.key), self.text(), None, tree.enum)


class Cell(Source):
    """The cell object behind a cell or free variable of the frame."""

    __slots__ = ()
    kind = "cell"

    def __init__(self, name: str) -> None:
        super().__init__(None, name)

    def load(self, out: Any) -> None:
        out.op("LOAD_CELL", self.key)

    def words(self) -> str:
        return f"cell[{self.key!r}]"

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        raise LookupError("a frame's own cells are not guarded, only their contents")

    def child(self, parent: Any, tree: Any) -> Any:
        raise LookupError("a frame's own cells are not guarded, only their contents")


class Global(Source):
    """A name in the frame's globals."""

    __slots__ = ()
    kind = "global"

    def __init__(self, name: str) -> None:
        super().__init__(None, name)

    def load(self, out: Any) -> None:
        out.op("LOAD_GLOBAL", self.key)

    def words(self) -> str:
        return f"G[{self.key!r}]"

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return G[self.key]

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.scope_manager(None).dict_getitem_manager(self.key, self.text(), None, tree.enum)


class DictRoot(Source):
    """A dict object itself: the globals of an inlined function, or the namespace of a class that never dies.

    It is a root: the dict is known because the function or class it belongs to is guarded
    elsewhere by identity.  `name` says to the reader whose it is.
    """

    __slots__ = ("mapping",)
    kind = "dict root"

    def __init__(self, mapping: dict[str, Any], name: str) -> None:
        self.mapping = mapping
        super().__init__(None, name)

    def identity(self) -> Any:
        return id(self.mapping)

    def load(self, out: Any) -> None:
        out.load_object_unchecked(self.mapping)

    def words(self) -> str:
        return f"namespace({self.key!r})"

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return self.mapping

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.scope_manager(self.mapping)


CLASS_DICT = type.__dict__["__dict__"]


def namespace(cls: type | None) -> dict[str, Any]:
    """The dict behind ``cls.__dict__`` (read only; its proxy is all that Python shows)."""
    return gc.get_referents(CLASS_DICT.__get__(cls))[0]


def namespace_of(held: Callable[[], type | None]) -> dict[str, Any]:
    """The namespace of a class that a weak reference leads to; raises if the class has died."""
    return namespace(held())


class ClassDict(Source):
    """A class's own namespace, by a weak reference to the class: what is in the dict leads back to it."""

    __slots__ = ("held",)
    kind = "class dict"

    def __init__(self, cls: type, name: str) -> None:
        self.held = weakref.ref(cls)            # one object however often it is asked for
        super().__init__(None, name)

    def identity(self) -> Any:
        return id(self.held)

    def load(self, out: Any) -> None:
        out.begin_call_of(namespace_of)
        out.load_object_unchecked(self.held)
        out.call(1)

    words = DictRoot.words

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return namespace_of(self.held)

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.class_dict_manager(self.held, self.text())


class Builtin(Source):
    """A name in the builtins module (the frame's globals do not shadow it; guarded apart)."""

    __slots__ = ()
    kind = "builtin"

    def __init__(self, name: str) -> None:
        super().__init__(None, name)

    def load(self, out: Any) -> None:
        out.load_object_unchecked(builtins.__dict__)
        out.load_const(self.key)
        out.op("BINARY", "[]")

    def words(self) -> str:
        return f"builtins.{self.key}"

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return builtins.__dict__[self.key]

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.constant_manager(builtins.__dict__).dict_getitem_manager(
            self.key, self.text(), None, tree.enum)


class Imported(Source):
    """A module by its name in ``sys.modules``."""

    __slots__ = ()
    kind = "imported"

    def __init__(self, name: str) -> None:
        super().__init__(None, name)

    def load(self, out: Any) -> None:
        out.load_object_unchecked(sys.modules)
        out.load_const(self.key)
        out.op("BINARY", "[]")

    def words(self) -> str:
        return f"sys.modules[{self.key!r}]"

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return sys.modules[self.key]

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.constant_manager(sys.modules).dict_getitem_manager(
            self.key, self.text(), None, tree.enum)


class Step(Source):
    """One access to the value of `base`: `read` is that access, a function of the value."""

    __slots__ = ()
    base: Source

    def read(self, value: Any) -> Any:
        raise NotImplementedError

    def fetch(self, L: Any, G: dict[str, Any]) -> Any:
        return self.read(self.base.fetch(L, G))

    def child(self, parent: Any, tree: Any) -> Any:
        """A kind with an accessor in C++ overrides this; any other is read in Python."""
        return parent.lambda_manager(self.read, self.text(), None, tree.enum)

    def load_call(self, out: Any, function: Callable[..., Any], *constants: Any) -> None:
        """``function(base, *constants)``."""
        out.begin_call_of(function)
        out.load_source(self.base)
        for constant in constants:
            out.load_const(constant)
        out.call(1 + len(constants))

    def load_item(self, out: Any) -> None:
        """``base[key]``, where that is known to run no user code."""
        out.load_source(self.base)
        out.load_const(self.key)
        out.op("BINARY", "[]")


class Attr(Step):
    """``base.name`` where reading it runs no user code (type attributes, slots, C getsets)."""

    __slots__ = ()
    kind = "attr"

    def load(self, out: Any) -> None:
        out.load_source(self.base)
        out.op("LOAD_ATTR", self.key)

    def words(self) -> str:
        return f"{self.base.text()}.{self.key}"

    def read(self, value: Any) -> Any:
        return getattr(value, self.key)

    def child(self, parent: Any, tree: Any) -> Any:
        return parent.getattr_manager(self.key, self.text(), None, tree.enum)


class CellContents(Attr):
    """``cell.cell_contents``; `base` yields a cell object."""

    __slots__ = ()
    kind = "cell contents"

    def __init__(self, base: Source) -> None:
        super().__init__(base, "cell_contents")


def instance_dict(obj: Any) -> dict[str, Any]:
    """``obj.__dict__`` past any user ``__getattribute__`` or ``__dict__`` property."""
    return object.__getattribute__(obj, "__dict__")


def instance_dict_item(obj: Any, name: str) -> Any:
    """``obj.__dict__[name]``, as `instance_dict` reads it."""
    return instance_dict(obj)[name]


class InstanceAttr(Step):
    """``base.__dict__[name]`` by ``object.__getattribute__``; modules and instances."""

    __slots__ = ()
    kind = "instance attr"

    def load(self, out: Any) -> None:
        self.load_call(out, instance_dict_item, self.key)

    def words(self) -> str:
        return f"{self.base.text()}.__dict__[{self.key!r}]"

    def read(self, value: Any) -> Any:
        return instance_dict_item(value, self.key)

    def child(self, parent: Any, tree: Any) -> Any:
        return tree.instance_dict_manager(self.base).dict_getitem_manager(self.key, self.text(), None, tree.enum)


class PlainInstanceAttr(InstanceAttr):
    """InstanceAttr of an object whose type leaves ``base.name`` as the plain way to it."""

    __slots__ = ()

    def load(self, out: Any) -> None:
        out.load_source(self.base)
        out.op("LOAD_ATTR", self.key)


class Item(Step):
    """``base[index]`` of a list or tuple (or subclass), read by the builtin's own method."""

    __slots__ = ("owner",)
    kind = "item"

    def __init__(self, base: Source, index: int, owner: type[list] | type[tuple]) -> None:
        self.owner = owner
        super().__init__(base, index)

    def load(self, out: Any) -> None:
        self.load_call(out, self.owner.__getitem__, self.key)

    def words(self) -> str:
        return f"{self.base.text()}[{self.key}]"

    def read(self, value: Any) -> Any:
        return self.owner.__getitem__(value, self.key)

    def child(self, parent: Any, tree: Any) -> Any:
        if self.key < 0:
            return super().child(parent, tree)
        manager = parent.list_getitem_manager if self.owner is list else parent.tuple_getitem_manager
        return manager(self.key, self.text(), None, tree.enum)


class PlainItem(Item):
    """Item of an exact list or tuple."""

    __slots__ = ()
    load = Step.load_item


class DictItem(Step):
    """``dict.__getitem__(base, key)`` with a literal key."""

    __slots__ = ()
    kind = "dict item"

    def load(self, out: Any) -> None:
        self.load_call(out, dict.__getitem__, self.key)

    def words(self) -> str:
        return f"{self.base.text()}[{self.key!r}]"

    def read(self, value: Any) -> Any:
        return dict.__getitem__(value, self.key)

    def child(self, parent: Any, tree: Any) -> Any:
        return parent.dict_getitem_manager(self.key, self.text(), None, tree.enum)


class PlainDictItem(DictItem):
    """DictItem of an exact dict."""

    __slots__ = ()
    load = Step.load_item


def dict_keys(mapping: Any) -> Iterable[Any]:
    """Keys in the order that iterating shows; an OrderedDict keeps an order of its own."""
    if issubclass(type(mapping), collections.OrderedDict):
        return collections.OrderedDict.__iter__(mapping)
    return dict.keys(mapping)


def nth_key(mapping: dict, index: int) -> Any:
    """The key at `index` in a dict's order, by the base class's iterator."""
    return list(dict_keys(mapping))[index]


def nth_value(mapping: dict, index: int) -> Any:
    """The value at `index` in a dict's order, by the base class's view."""
    return dict.__getitem__(mapping, nth_key(mapping, index))


class DictKey(Step):
    """The key at a position in a dict's order, for keys that are not literals."""

    __slots__ = ()
    kind = "dict key"

    def load(self, out: Any) -> None:
        self.load_call(out, nth_key, self.key)

    def words(self) -> str:
        return f"list({self.base.text()})[{self.key}]"

    def read(self, value: Any) -> Any:
        return nth_key(value, self.key)


class DictValue(Step):
    """The value behind the key at a position in a dict's order."""

    __slots__ = ()
    kind = "dict value"

    def load(self, out: Any) -> None:
        self.load_call(out, nth_value, self.key)

    def words(self) -> str:
        return f"list({self.base.text()}.values())[{self.key}]"

    def read(self, value: Any) -> Any:
        return nth_value(value, self.key)


class TypeOf(Step):
    """``type(base)``."""

    __slots__ = ()
    kind = "type"

    def load(self, out: Any) -> None:
        self.load_call(out, type)

    def words(self) -> str:
        return f"type({self.base.text()})"

    def read(self, value: Any) -> Any:
        return type(value)

    def child(self, parent: Any, tree: Any) -> Any:
        return parent.type_manager(self.text(), None, tree.enum)


class Fetch(Step):
    """``function(base)``: any pure access of our own, named for the reader (weakref target …).

    `function` is one of ours or C, runs no user code, and is compared by identity.
    """

    __slots__ = ("function",)
    kind = "fetch"

    def __init__(self, base: Source, function: Callable[[Any], Any], name: str) -> None:
        self.function = function
        super().__init__(base, name)

    def identity(self) -> Any:
        return (self.key, id(self.function))

    def load(self, out: Any) -> None:
        self.load_call(out, self.function)

    def words(self) -> str:
        return f"{self.key}({self.base.text()})"

    def read(self, value: Any) -> Any:
        return self.function(value)

    def child(self, parent: Any, tree: Any) -> Any:
        return parent.lambda_manager(self.function, self.text(), None, tree.enum)
