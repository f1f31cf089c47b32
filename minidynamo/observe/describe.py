"""Describe: an object graph as comparable plain data, with who-is-who; snapshots of what a function names.

`describe` numbers objects that have an identity in the order they are met, so two graphs are
alike exactly when types, contents, sharing and cycles agree.  No user code is run.
"""
from __future__ import annotations

import collections
import datetime
import decimal
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from minidynamo.base.iterstate import state_of

try:
    import numpy as np
except ImportError:                             # numpy is optional, also for torch
    np = types.SimpleNamespace(ndarray=())      # type: ignore[assignment]

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), range,
          torch.device)
_SHARED = (type, types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
           types.CodeType, torch.dtype, torch.layout, torch.memory_format)
_ITERATORS = tuple({type(iter(made)) for made in ([], (), {}, {}.values(), {}.items(), set(),       # type: ignore
                                                  range(0), range(1 << 70), "", b"", reversed([]))}
                   | {itertools.count, itertools.cycle})


class Described(NamedTuple):
    """The tree, and the tensors it names by number."""

    tree: Any
    tensors: list[torch.Tensor]


def describe(obj: Any, made_in: str = "") -> Described:
    """Plain nested tuples for `obj` and all it reaches; classes of the module `made_in` by what they are, not which."""
    walk = _Walk(made_in)
    return Described(walk.visit(obj), walk.tensors)


class _Walk:
    def __init__(self, made_in: str) -> None:
        self.made_in = made_in
        self.seen: dict[int, int] = {}
        self.keep: list[Any] = []
        self.tensors: list[torch.Tensor] = []

    def visit(self, obj: Any) -> Any:
        if type(obj) in _PLAIN:
            return (type(obj).__name__, repr(obj))
        made = self.made_in and isinstance(obj, type) and type.__dict__["__module__"].__get__(obj) == self.made_in
        bound = type(obj) is types.BuiltinFunctionType and not isinstance(obj.__self__, (type, types.ModuleType, type(None)))
        if isinstance(obj, _SHARED) and not made and not bound:
            return ("the", id(obj), repr(obj))
        if type(obj) is types.FunctionType and (obj.__globals__.get("__name__") or "").partition(".")[0] == "torch":
            return ("torch", obj.__qualname__)      # torch's own state is not the program's
        number = self.seen.get(id(obj))
        if number is not None:
            return ("again", number)
        self.seen[id(obj)] = number = len(self.seen)
        self.keep.append(obj)
        cls = type(obj)
        name = f"{cls.__module__}.{cls.__qualname__}"
        if made:
            return (name, number, obj.__qualname__, self.visit(obj.__bases__), self.members_of(obj))
        for family, parts in FAMILIES:
            if isinstance(obj, family):
                return (name, number, parts(self, obj), self.attributes(obj))
        return (name, number, self.attributes(obj))

    def attributes(self, obj: Any) -> Any:
        found: list[tuple[str, Any]] = []
        try:
            own = object.__getattribute__(obj, "__dict__")
        except AttributeError:
            own = {}
        if type(own) is dict:
            found = [(key, self.visit(value)) for key, value in own.items()
                     if key not in _NOISE and not str(key).startswith("_dynamo_")]
        for cls in type(obj).__mro__:
            for key, slot in vars(cls).items():
                if isinstance(slot, types.MemberDescriptorType) and cls.__module__ != "builtins" \
                        and not key.endswith("offset__"):          # C's own pointers
                    try:
                        found.append((key, self.visit(slot.__get__(obj))))
                    except AttributeError:
                        found.append((key, "unset"))
        return tuple(found)

    def items(self, values: Iterator[Any]) -> Any:
        return tuple(self.visit(value) for value in values)

    def tensor(self, obj: torch.Tensor) -> Any:
        self.tensors.append(obj)
        grad = obj.grad if obj.is_leaf else None
        return ("tensor", len(self.tensors) - 1, str(obj.dtype), tuple(obj.shape), str(obj.device), obj.requires_grad,
                obj.is_leaf, obj.stride() if obj.layout is torch.strided else None, self.visit(grad))

    def mapping(self, obj: dict[Any, Any]) -> Any:
        factory = obj.default_factory if isinstance(obj, collections.defaultdict) else None
        return (self.visit(factory), tuple((self.visit(key), self.visit(value)) for key, value in ordered_items(obj)))

    def members(self, obj: Any) -> Any:
        base = set if isinstance(obj, set) else frozenset
        shallow = sorted(base.__iter__(obj), key=lambda item: (type(item).__name__, repr(item)
                                                               if type(item) in _PLAIN else ""))
        return self.items(iter(shallow))

    def function(self, obj: types.FunctionType) -> Any:
        cells = [self.cell(cell) for cell in obj.__closure__ or ()]
        return (obj.__qualname__, obj.__code__.co_firstlineno, self.visit(obj.__defaults__),
                self.visit(obj.__kwdefaults__), tuple(cells))

    def members_of(self, cls: type) -> Any:
        return tuple((key, self.visit(value)) for key, value in vars(cls).items()
                     if not isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)) and key != "__doc__")

    def cell(self, obj: types.CellType) -> Any:
        try:
            return ("cell", self.visit(obj.cell_contents))
        except ValueError:
            return ("cell", "empty")

    def error(self, obj: BaseException) -> Any:
        return (self.visit(obj.args), self.visit(obj.__cause__), self.visit(obj.__context__),
                obj.__suppress_context__, str(obj) if type(obj).__str__ in _PLAIN_STR else "")

    def iterator(self, obj: Any) -> Any:
        return self.visit(state_of(obj)[1:])


_NOISE = frozenset({"__weakref__", "_minidynamo_dynamic_dims", "_dynamo_dynamic_indices"})
_PLAIN_STR = (BaseException.__str__, KeyError.__str__, OSError.__str__)

# The first family that fits decides how the builtin part is described.
FAMILIES: tuple[tuple[Any, Callable[[_Walk, Any], Any]], ...] = (
    (torch.Tensor, _Walk.tensor),
    (dict, _Walk.mapping),
    (list, lambda walk, obj: walk.items(list.__iter__(obj))),
    (tuple, lambda walk, obj: walk.items(tuple.__iter__(obj))),
    (collections.deque, lambda walk, obj: (obj.maxlen, walk.items(collections.deque.__iter__(obj)))),
    ((set, frozenset), _Walk.members),
    (types.FunctionType, _Walk.function),
    (types.MethodType, lambda walk, obj: (walk.visit(obj.__func__), walk.visit(obj.__self__))),
    (types.BuiltinFunctionType, lambda walk, obj: (obj.__name__, walk.visit(obj.__self__))),
    (types.CellType, _Walk.cell),
    (BaseException, _Walk.error),
    (_ITERATORS, _Walk.iterator),
    (slice, lambda walk, obj: walk.items(iter((obj.start, obj.stop, obj.step)))),
    (bytearray, lambda walk, obj: bytes(obj)),
    ((datetime.date, datetime.time, datetime.timedelta, datetime.timezone, decimal.Decimal), lambda walk, obj: repr(obj)),
    ((int, float, complex, str, bytes), lambda walk, obj: repr(_plain_part(obj))),
    (np.ndarray, lambda walk, obj: (str(obj.dtype), obj.shape, walk.visit(obj.tolist()))),
    (types.GeneratorType, lambda walk, obj: (obj.__qualname__, obj.gi_frame is None)),
)


def ordered_items(obj: dict[Any, Any]) -> Any:
    """The items of a dict in the order that iterating shows, read by the base class."""
    if isinstance(obj, collections.OrderedDict):
        return [(key, dict.__getitem__(obj, key)) for key in collections.OrderedDict.__iter__(obj)]
    return dict.items(obj)


def _plain_part(obj: Any) -> Any:
    """The value of an int, float, str … subclass, without its own methods."""
    base = next(kind for kind in (int, float, complex, str, bytes) if isinstance(obj, kind))
    return base.__repr__(obj)


def difference(a: Described, b: Described, tol: float = 0.0, exact_dtype: bool = True,
               equal_nan: bool = True) -> str | None:
    """Where two descriptions part, as a path and both sides; None if they are alike."""
    found = _tree_difference(a.tree, b.tree, "", exact_dtype)
    if found is not None:
        return found
    for number, (x, y) in enumerate(zip(a.tensors, b.tensors, strict=True)):
        if not _tensors_alike(x.detach(), y.detach(), tol, equal_nan):
            return f"tensor {number}: {x.detach()} and {y.detach()}"
    return None


def _tensors_alike(x: torch.Tensor, y: torch.Tensor, tol: float, equal_nan: bool) -> bool:
    try:
        torch.testing.assert_close(y, x, rtol=tol, atol=tol, equal_nan=equal_nan, check_dtype=False)
    except AssertionError:
        return False
    return True


def _tree_difference(a: Any, b: Any, path: str, exact_dtype: bool) -> str | None:
    if a == b:
        return None
    if type(a) is tuple and type(b) is tuple:
        if not exact_dtype and len(a) == len(b) and a[:1] == ("tensor",) == b[:1]:
            return _tree_difference(a[3:], b[3:], path, exact_dtype)
        if len(a) == len(b):
            for index, (x, y) in enumerate(zip(a, b)):
                label = _label(a, index)
                found = _tree_difference(x, y, f"{path}{label}", exact_dtype)
                if found is not None:
                    return found
            return None
    return f"{path or 'the top'}: eager {a!r}, compiled {b!r}"


def _label(pair: tuple[Any, ...], index: int) -> str:
    """A dict item or attribute is called by its key, anything else by its number."""
    if len(pair) == 2 and index == 1:
        key = pair[0]
        if type(key) is str:
            return f".{key}"
        if type(key) is tuple and len(key) == 2 and key[0] in ("str", "int"):
            return f"[{key[1]}]"
    return f"/{index}"


# ------------------------------------------------------------------ what a function names
class Snapshot:
    """The mutable things a function reaches through its globals, closure and self, to be put back."""

    LIMIT = 20_000

    def __init__(self) -> None:
        self.undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.seen: dict[int, Any] = {}

    @classmethod
    def of(cls, fn: Any) -> Snapshot:
        made = cls()
        function = _function_of(fn)
        if function is not None:
            space = function.__globals__
            names = list(_names(function.__code__))
            present = {name: space[name] for name in names if name in space}
            made.undo.append((_restore_names, (space, names, present)))
            for cell in function.__closure__ or ():
                made.cell(cell)
            for value in present.values():
                made.keep(value)
        made.keep(fn)
        return made

    @staticmethod
    def named(fn: Any) -> dict[str, Any]:
        """The globals and cells a function names, for comparison; code and classes by identity."""
        function = _function_of(fn)
        if function is None:
            return {}
        found = {name: function.__globals__[name] for name in _names(function.__code__)
                 if name in function.__globals__}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            found[f"closure {name}"] = cell
        found["self"] = getattr(fn, "__self__", None)
        return found

    def restore(self) -> None:
        for fn, args in self.undo:
            fn(*args)

    def cell(self, cell: types.CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            self.undo.append((_empty_cell, (cell,)))
            return
        self.undo.append((_fill_cell, (cell, value)))
        self.keep(value)

    def keep(self, obj: Any) -> None:
        """Remember the shallow content of `obj` and of what it reaches."""
        stack = [obj]
        while stack and len(self.seen) < self.LIMIT:
            obj = stack.pop()
            if id(obj) in self.seen or type(obj) in _PLAIN or isinstance(obj, _SHARED):
                continue
            self.seen[id(obj)] = obj
            stack.extend(self._one(obj))

    def _one(self, obj: Any) -> list[Any]:
        inside: list[Any] = []
        if isinstance(obj, torch.Tensor):
            self.undo.append((_restore_tensor, (obj, obj.detach().clone(), obj.grad)))
            return inside
        for family, fill in _FILL.items():
            if isinstance(obj, family):
                content = family(obj) if family is not dict else dict(dict.items(obj))
                self.undo.append((fill, (obj, content)))
                inside.extend(content.values() if isinstance(content, dict) else content)
                break
        if isinstance(obj, tuple):
            inside.extend(tuple.__iter__(obj))
        if isinstance(obj, types.MethodType):
            return [obj.__func__, obj.__self__]
        if isinstance(obj, types.FunctionType):
            for cell in obj.__closure__ or ():
                self.cell(cell)
        own = getattr(obj, "__dict__", None)
        if type(own) is dict:
            content = dict(own)
            self.undo.append((_fill_dict, (own, content)))
            inside.extend(content.values())
        return inside


def _function_of(fn: Any) -> types.FunctionType | None:
    fn = getattr(fn, "__func__", fn)
    return fn if isinstance(fn, types.FunctionType) else None


def _names(code: types.CodeType) -> list[str]:
    found = dict.fromkeys(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.update(dict.fromkeys(_names(const)))
    return list(found)


def _restore_names(space: dict[str, Any], names: list[str], present: dict[str, Any]) -> None:
    for name in names:
        if name in present:
            space[name] = present[name]
        else:
            space.pop(name, None)


def _empty_cell(cell: types.CellType) -> None:
    with_content = True
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        with_content = False
    if with_content:
        del cell.cell_contents


def _fill_cell(cell: types.CellType, value: Any) -> None:
    cell.cell_contents = value


def _fill_list(obj: list[Any], content: list[Any]) -> None:
    list.__setitem__(obj, slice(None), content)


def _fill_dict(obj: dict[Any, Any], content: dict[Any, Any]) -> None:
    dict.clear(obj)
    dict.update(obj, content)


def _fill_set(obj: set[Any], content: set[Any]) -> None:
    set.clear(obj)
    set.update(obj, content)


def _fill_deque(obj: collections.deque[Any], content: collections.deque[Any]) -> None:
    obj.clear()
    obj.extend(content)


_FILL: dict[Any, Callable[[Any, Any], None]] = {
    list: _fill_list, dict: _fill_dict, set: _fill_set, collections.deque: _fill_deque}


def _restore_tensor(tensor: torch.Tensor, content: torch.Tensor, grad: torch.Tensor | None) -> None:
    with torch.no_grad():
        if tensor.shape == content.shape and not torch.equal(tensor, content):
            tensor.copy_(content)
    tensor.grad = grad


__all__ = ["Described", "Snapshot", "describe", "difference"]
