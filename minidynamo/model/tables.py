"""The registries: how values are built, and what calls mean. Each declaration enters one table.

``python -m minidynamo tables`` prints them all.
"""
from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

from minidynamo.base.table import DuplicateEntry, Table

Builder = Callable[..., Any]            # (tx, obj, source) -> VariableTracker
Meaning = Callable[..., Any]            # (tx, *args, **kwargs) -> VariableTracker
F = TypeVar("F", bound=Callable[..., Any])

BUILD_EXACT: Table[Builder] = Table("build exact", "value kinds by exact type")
BUILD_SUBCLASS: Table[Builder] = Table("build subclass", "value kinds by the first base class found in the MRO")
WRAP: Table[Builder] = Table("wrap", "kinds of values made while tracing, by exact type: (tx, obj)")
CALLS: Table[Meaning] = Table("calls", "traced meaning of C functions, methods and classes")
FOLD: Table[bool] = Table("fold", "pure C functions, run at trace time on constants")
FOLD_OTHERWISE: Table[Meaning] = Table("fold otherwise", "what folded functions mean for arguments that are not literals")
POLYFILLS: Table[Callable[..., Any]] = Table("polyfills", "Python functions inlined in place of C ones")
C_MEMBERS: Table[tuple[Callable[..., Any], Callable[..., Any]]] = Table(
    "C members", "attributes of C types, by descriptor: how they are read and set")
PROXIES: dict[type, Callable[[Any, Any], Any]] = {}     # value kind -> (tx, value) as a graph argument
TORCH_RULES: Table[Meaning] = Table("torch rules", "torch functions with a meaning at trace time")


class Predicate(NamedTuple):
    """A kind that the type alone cannot tell; looked up before the type tables."""

    name: str
    test: Callable[[Any], bool]
    build: Builder
    before: tuple[str, ...]


PREDICATES: list[Predicate] = []


def builds(*types: type, subclasses: bool = False) -> Callable[[Builder], Builder]:
    """Declare the builder ``(tx, obj, source) -> VariableTracker`` for exact types, or for a family."""
    def enter(builder: Builder) -> Builder:
        for cls in types:
            BUILD_EXACT.add(cls, builder)
            if subclasses:
                BUILD_SUBCLASS.add(cls, builder)
        return builder
    return enter


def builds_subclasses(*types: type) -> Callable[[Builder], Builder]:
    """Declare the builder for proper subclasses only."""
    return BUILD_SUBCLASS.of(*types)


def builds_when(name: str, test: Callable[[Any], bool], before: tuple[str, ...] = ()) -> Callable[[Builder], Builder]:
    """Declare a builder chosen by a predicate; `before` names predicates that it must precede."""
    def enter(builder: Builder) -> Builder:
        if any(p.name == name for p in PREDICATES):
            raise DuplicateEntry(f"predicate {name!r}")
        at = min([i for i, p in enumerate(PREDICATES) if p.name in before], default=len(PREDICATES))
        PREDICATES.insert(at, Predicate(name, test, builder, before))
        return builder
    return enter


def wraps(*types: type) -> Callable[[Builder], Builder]:
    """Declare how an object made while tracing becomes a value: ``(tx, obj)``, no guard."""
    return WRAP.of(*types)


def meaning(*functions: Any) -> Callable[[Meaning], Meaning]:
    """Declare what a call of a C function or class means: ``(tx, *args, **kwargs)``."""
    return CALLS.of(*functions)


def torch_rule(*functions: Any) -> Callable[[Meaning], Meaning]:
    """Declare a torch function that is answered while tracing."""
    return TORCH_RULES.of(*functions)


def polyfill(*functions: Any) -> Callable[[F], F]:
    """Declare Python text to inline in place of a C function."""
    return cast(Callable[[F], F], POLYFILLS.of(*functions))


# ---------------------------------------------------------------- classes of C modules
C_CLASSES: dict[tuple[str, str], tuple[type, Callable[[type], None]]] = {}
ADOPTED: dict[int, type] = {}


def declares(cls: type) -> Callable[[Callable[[type], None]], Callable[[type], None]]:
    """Declare a heap type of a C module by a function that makes all its entries.

    A C module that is imported afresh has new types for the same code: `adopt` makes the entries for them, too.
    """
    def enter(entries: Callable[[type], None]) -> Callable[[type], None]:
        C_CLASSES[cls.__module__, cls.__name__] = cls, entries
        ADOPTED[id(cls)] = cls
        entries(cls)
        return entries
    return enter


def adopt(cls: type) -> bool:
    """Whether `cls` is a declared C class, or the same class of another copy of its module."""
    if type(cls) is not type or id(cls) in ADOPTED:
        return id(cls) in ADOPTED
    own = vars(cls)
    known = C_CLASSES.get((own.get("__module__"), cls.__name__))       # type: ignore[arg-type]
    if known is None or own.keys() != vars(known[0]).keys() or not all(map(same_kind, own.items(), vars(known[0]).items())):
        return False
    if any(getattr(raw, "__objclass__", cls) is not cls for raw in own.values()):
        return False
    ADOPTED[id(cls)] = cls
    known[1](cls)
    return True


def same_kind(mine: tuple[str, Any], other: tuple[str, Any]) -> bool:
    return mine[0] == other[0] and type(mine[1]) is type(other[1])


def fold(*functions: Any, otherwise: Callable[[Any], Meaning] | None = None) -> None:
    """Declare pure C functions: same constants in, same constant out, no effects.

    ``otherwise(function)`` makes their meaning for arguments that are not all literals.
    """
    for function in functions:
        if otherwise is not None:
            FOLD_OTHERWISE.add(function, otherwise(function))
        if function not in FOLD:
            FOLD.add(function, True)


class Methods:
    """Meanings of a builtin type's methods: ``class ListMethods(Methods, of=list)``.

    Each function ``name(tx, self, ...)`` is entered under the method descriptor ``of.__dict__[name]``.
    """

    def __init_subclass__(cls, of: type, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, function in vars(cls).items():
            if isinstance(function, (FunctionType, staticmethod)) and name in vars(of):
                CALLS.add(vars(of)[name], function.__func__ if isinstance(function, staticmethod) else function)
            elif isinstance(function, (FunctionType, staticmethod)) and not name.startswith("_"):
                raise AttributeError(f"{of.__name__} has no method {name!r}")
