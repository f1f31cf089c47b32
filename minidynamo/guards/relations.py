"""Guards between several sources: aliasing, and expressions over sizes."""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import torch
from torch._C._dynamo import guards as c_guards

from minidynamo.guards.guard import Guard, Names, Tree, guard_kind
from minidynamo.guards.literals import short
from minidynamo.sources import Source


class _Relation(Guard):
    """A guard of several sources."""

    __slots__ = ("_sources",)

    def __init__(self, sources: tuple[Source, ...], key: Any = None) -> None:
        self._sources = tuple(sources)
        super().__init__(self._sources[0] if self._sources else None, (self._sources, key))

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._sources

    def values(self, L: Any, G: dict[str, Any]) -> list[Any]:
        return [source.fetch(L, G) for source in self._sources]

    def related(self, values: list[Any]) -> bool:
        """Whether the fact is true of the sources' values."""
        raise NotImplementedError

    def check(self, L: Any, G: dict[str, Any]) -> bool:
        try:
            return self.related(self.values(L, G))
        except Exception:
            return False

    def describe(self, L: Any, G: dict[str, Any]) -> tuple[str, str]:
        try:
            return self.text(), self.difference(self.values(L, G))
        except Exception as error:
            return self.text(), f"cannot be read: {type(error).__name__}"

    def difference(self, values: list[Any]) -> str:
        return "does not hold"


@guard_kind(cost=2)
class Aliased(_Relation):
    """Two sources that are one object."""

    __slots__ = ()

    def __init__(self, a: Source, b: Source) -> None:
        super().__init__((a, b))

    def expression(self, names: Names) -> str:
        return " is ".join(map(names.source, self._sources))

    def related(self, values: list[Any]) -> bool:
        return values[0] is values[1]

    def attach(self, tree: Tree) -> None:
        a, b = map(tree.manager, self._sources)
        if a is not b:
            c_guards.install_object_aliasing_guard(a, b, self.parts(), None)

    def rests_on(self, pinned: type | None) -> str | None:
        return "identity"

    def difference(self, values: list[Any]) -> str:
        return "two objects"


@guard_kind(cost=3)
class NotAliased(_Relation):
    """Sources that are pairwise distinct objects."""

    __slots__ = ()

    def __init__(self, sources: tuple[Source, ...]) -> None:
        super().__init__(sources)

    def expression(self, names: Names) -> str:
        reads = [names.source(source) for source in self._sources]
        return f"len({{{', '.join(f'id({read})' for read in reads)}}}) == {len(reads)}"

    def related(self, values: list[Any]) -> bool:
        return len(set(map(id, values))) == len(values)

    def attach(self, tree: Tree) -> None:
        managers = [tree.manager(source) for source in self._sources]
        if len(managers) < 2:
            return
        if len(set(map(id, managers))) < len(managers):        # one source twice: never distinct
            tree.root.add_lambda_guard(lambda _: False, self.parts(), None)
            return
        c_guards.install_no_tensor_aliasing_guard(
            managers, [source.text() for source in self._sources], self.parts(), None)

    def rests_on(self, pinned: type | None) -> str | None:
        return "identity"

    def difference(self, values: list[Any]) -> str:
        first: dict[int, Source] = {}
        for source, value in zip(self._sources, values):
            if id(value) in first:
                return f"{first[id(value)]} is {source}"
            first[id(value)] = source
        return "distinct"


@guard_kind(cost=3)
class TensorsNotAliased(NotAliased):
    """Tensors that are pairwise distinct objects."""

    __slots__ = ()


class SizeOf:
    """``value.size(dim)``, for the arguments of `ShapeExpr`."""

    __slots__ = ("dim",)
    method = torch.Tensor.size
    words = "size"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def __call__(self, tensor: torch.Tensor) -> int:
        return type(self).method(tensor, self.dim)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dim == self.dim

    def __hash__(self) -> int:
        return hash((type(self), self.dim))

    def text(self, read: str) -> str:
        return f"{read}.{self.words}({self.dim})"


class StrideOf(SizeOf):
    """``value.stride(dim)``."""

    __slots__ = ()
    method = torch.Tensor.stride
    words = "stride"


class StorageOffset(SizeOf):
    """``value.storage_offset()``."""

    __slots__ = ()
    words = "storage_offset"

    def __init__(self) -> None:
        super().__init__(0)

    def __call__(self, tensor: torch.Tensor) -> int:
        return torch.Tensor.storage_offset(tensor)

    def text(self, read: str) -> str:
        return f"{read}.storage_offset()"


Argument = tuple[str, Source, Callable[[Any], Any] | None]


@guard_kind(cost=8)
class ShapeExpr(_Relation):
    """A Python expression over names, each a source's value or a function of it."""

    __slots__ = ("words", "args", "scope", "function")

    def __init__(self, text: str, args: tuple[Argument, ...], scope: dict[str, Any] | None = None) -> None:
        """`scope` holds what `text` names besides `args` and ``math``."""
        self.words, self.args = text, tuple(args)
        self.scope = {"math": math, **(scope or {})}
        self.function = eval(f"lambda {', '.join(name for name, *_ in self.args)}: ({text})", self.scope)
        super().__init__(tuple(source for _, source, _ in self.args),
                         (text, tuple((name, fn) for name, _, fn in self.args)))

    def expression(self, names: Names) -> str:
        if not names.readable:
            reads = ", ".join(names.source(source) for source in self._sources)
            return f"{names.const(self.related, 'shape_expr')}([{reads}])"
        reads_by_name = {name: _applied(fn, names.source(source)) for name, source, fn in self.args}
        if not reads_by_name:
            return self.words
        pattern = r"\b(" + "|".join(map(re.escape, reads_by_name)) + r")\b"
        return re.sub(pattern, lambda match: reads_by_name[match.group()], self.words)

    def related(self, values: list[Any]) -> bool:
        with torch._C.DisableTorchFunction():          # neither a subclass's nor a mode's code
            return bool(self.function(*[value if fn is None else fn(value)
                                        for value, (_, _, fn) in zip(values, self.args)]))

    def attach(self, tree: Tree) -> None:
        if self._sources and all(source == self._sources[0] for source in self._sources):
            count = len(self._sources)
            tree.manager(self._sources[0]).add_lambda_guard(
                lambda value: self.related([value] * count), self.parts(), None)
        else:
            tree.check_last(self)

    def difference(self, values: list[Any]) -> str:
        with torch._C.DisableTorchFunction():
            got = [value if fn is None else fn(value) for value, (_, _, fn) in zip(values, self.args)]
        return ", ".join(f"{_applied(fn, source.text())} = {short(value)}"
                         for value, (_, source, fn) in zip(got, self.args))


def _applied(fn: Callable[[Any], Any] | None, read: str) -> str:
    if fn is None:
        return read
    return fn.text(read) if isinstance(fn, SizeOf) else f"{getattr(fn, '__name__', 'of')}({read})"
