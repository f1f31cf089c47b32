"""Typing objects as values: aliases, unions, special forms, type variables.

The object is real and immutable; what was made while tracing remembers the expression that made it, and is
made again by it, so that ``list[int]`` comes back as the same alias and never as ``list``.
"""
from __future__ import annotations

import operator
import types
import typing
from collections.abc import Callable
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import Equal, SameObject
from minidynamo.model.services import service
from minidynamo.model.tables import builds, meaning, wraps
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import attrs
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Attr
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable

Recipe = tuple[str, VariableTracker, VariableTracker]
BINARY: dict[str, Callable[[Any, Any], Any]] = {"[]": operator.getitem, "|": operator.or_}

# Attributes that ``types.GenericAlias`` answers itself; all others are its origin's (attr_exceptions in genericaliasobject.c).
OWN = frozenset({"__class__", "__bases__", "__origin__", "__args__", "__unpacked__", "__parameters__", "__copy__",
                 "__deepcopy__", "__mro_entries__", "__reduce_ex__", "__reduce__",
                 "__typing_unpacked_tuple_args__"})
PLAIN = frozenset({"__origin__", "__args__", "__parameters__", "__unpacked__", "__metadata__", "__module__", "_name",
                   "_inst", "_nparams", "_defaults", "__name__", "__qualname__", "__bound__", "__constraints__",
                   "__covariant__", "__contravariant__", "__forward_arg__", "__forward_is_argument__",
                   "__forward_is_class__", "__forward_module__", "__forward_code__", "__doc__", "__slots__",
                   "_paramspec_tvars", "__supertype__", "_is_protocol"})


class TypingVariable(VariableTracker):
    """An alias, union, special form or type variable."""

    __slots__ = ("value", "recipe")
    kind = "typing object"

    def __init__(self, value: Any, source: Any = None, recipe: Recipe | None = None) -> None:
        self.value, self.source, self.recipe = value, source, recipe

    def py_type(self) -> type:
        return type(self.value)

    def fresh(self) -> bool:
        """Made by this trace, and anew on each run."""
        return self.recipe is not None and (isinstance(self.value, FRESH) or made_here(self))

    def as_object(self) -> Any:
        if self.fresh():
            raise NotConstant(self)
        return self.value

    def as_constant(self) -> Any:
        raise NotConstant(self)

    def identity(self) -> object:
        return self if self.fresh() else self.value

    # ---- making it again
    def children(self) -> list[VariableTracker]:
        return [] if self.recipe is None else list(self.recipe[1:])

    def rebuild(self, out: Any) -> None:
        if self.recipe is None:
            out.load_object_unchecked(self.value)        # immutable, and one object however often it is asked for
            return
        symbol, left, right = self.recipe
        if symbol in MAKERS:
            out.call_function(MAKERS[symbol], *((left,) if symbol == "*" else (left, right)))
            return
        out.load(left)
        out.load(right)
        out.op("BINARY", symbol)

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__class__":
            return tx.class_of(type(self.value))
        generic = isinstance(self.value, types.GenericAlias)
        if generic and name not in OWN:
            return self.origin(tx).tp_getattro(tx, name)
        if name in PLAIN and (generic or hasattr(self.value, name)):
            value = getattr(self.value, name)
            if self.source is not None and type(value) is tuple:
                return tx.build(value, Attr(self.source, name))
            return part(tx, self, value)
        if generic and name == "__mro_entries__":
            return tx.bound_c_method(self, vars(types.GenericAlias)[name])
        found = attrs.type_lookup(tx, type(self.value), name)
        if found is not None and isinstance(found.raw, types.FunctionType):
            return attrs.describe(tx, found, self, type(self.value))
        if not hasattr(self.value, name):
            attribute_error(tx, self, name)
        return super().tp_getattro(tx, name)

    def origin(self, tx: Any) -> VariableTracker:
        return part(tx, self, self.value.__origin__)

    # ---- slots
    def tp_iter(self, tx: Any) -> VariableTracker:
        """ga_iter: one item, the unpacked alias."""
        if not isinstance(self.value, types.GenericAlias):
            return super().tp_iter(tx)
        return tx.wrap_tuple([TypingVariable(starred(self.value), None, ("*", self, ConstantVariable(None)))]).tp_iter(tx)

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        """ga_call and ``_BaseGenericAlias.__call__``: an instance of the origin that knows its alias, where it can."""
        if not isinstance(self.value, (types.GenericAlias, typing._GenericAlias)) or type(self.value) is UNION:
            tx.stop(reasons.UNSUPPORTED_CALL, call=repr(self.value), kind="a typing object")
        made = tx.call(self.origin(tx), args, kwargs)

        def name_alias() -> VariableTracker:
            made.tp_setattro(tx, "__orig_class__", self)
            return made
        tx.catching((AttributeError, TypeError) if isinstance(self.value, types.GenericAlias) else AttributeError, name_alias)
        return made

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return made_by(tx, "[]", self, key)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol != "|":
            return NotImplemented
        return made_by(tx, "|", *((other, self) if reflected else (self, other)))

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol not in ("==", "!="):
            return NotImplemented
        result = type(self.value).__eq__(self.value, real_part(tx, other)) if known(tx, other) else False
        if result is NotImplemented:
            return NotImplemented
        return ConstantVariable(bool(result) is (symbol == "=="))

    def tp_hash(self, tx: Any) -> VariableTracker:
        if made_here(self):
            tx.stop(reasons.ID_OF_VALUE, call="hash()")
        return ConstantVariable(hash(self.value))

    def key(self, tx: Any) -> Any:
        return self.value

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(repr(self.value))


def starred(alias: Any) -> Any:
    """What ``*alias`` unpacks to."""
    return next(iter(alias))


MAKERS: dict[str, Any] = {"call": types.GenericAlias, "*": starred}
UNION = type(typing.Optional[int])
FRESH = (types.GenericAlias, types.UnionType)
ALIASES = (type(typing.List[int]), type(typing.List), UNION, type(typing.Callable), type(typing.Callable[[int], int]),
           type(typing.Literal[1]), type(typing.Tuple), type(typing.Annotated[int, 1]))
FORMS = (type(typing.Optional), type(typing.Literal), typing.TypeVar, typing.ParamSpec, typing.ForwardRef,
         *((typing.TypeVarTuple,) if hasattr(typing, "TypeVarTuple") else ()), type(typing.ParamSpec("P").args))


def made_here(value: TypingVariable) -> bool:
    """Whether a class that this trace made takes part in it."""
    if value.recipe is None:
        return False
    return any(mentions_made(part) for part in value.recipe[1:])


def mentions_made(value: VariableTracker) -> bool:
    if isinstance(value, TypingVariable):
        return made_here(value)
    if isinstance(value, (TupleVariable, ListVariable)):
        return any(mentions_made(item) for item in value.items)
    return isinstance(value, ClassVariable) and hasattr(value, "meta")


def known(tx: Any, value: VariableTracker) -> bool:
    try:
        real_part(tx, value)
    except NotConstant:
        return False
    return True


def real_part(tx: Any, value: VariableTracker) -> Any:
    """The real object of an operand of a typing expression; raises NotConstant for what has none."""
    if isinstance(value, TypingVariable):
        return value.value
    if isinstance(value, ClassVariable):
        return value.cls
    if value.py_type() in (tuple, list) and isinstance(value, (TupleVariable, ListVariable)):
        return value.py_type()(real_part(tx, real(tx, item)) for item in value.items)
    return value.as_object()


def made_by(tx: Any, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """An expression of typing objects: done for real, and remembered."""
    operands = real_part(tx, left), real_part(tx, right)
    try:
        value = BINARY[symbol](*operands)
    except TypeError as error:
        tx.raise_real(error)
    if not isinstance(value, (*FRESH, *ALIASES, *FORMS)):
        return tx.wrap(value)
    return TypingVariable(value, None, (symbol, left, right))


def part(tx: Any, owner: TypingVariable, value: Any) -> VariableTracker:
    """A part of a typing object as a value."""
    if isinstance(value, tuple) and type(value) is tuple:
        return TupleVariable([part(tx, owner, item) for item in value])
    if isinstance(value, list):
        return ListVariable([part(tx, owner, item) for item in value])
    if isinstance(value, type):
        return tx.class_of(value)
    return tx.wrap(value)


# ---------------------------------------------------------------- builders
@builds(*FRESH)
def build_alias(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(Equal(source, obj))
    return TypingVariable(obj, source)


@builds(*dict.fromkeys((*ALIASES, *FORMS)))
def build_typing(tx: Any, obj: Any, source: Any) -> VariableTracker:
    if isinstance(obj, HALF_MADE) and not all(names & vars(obj).keys() for names in MADE):      # inside its own __init__
        tx.stop(reasons.OPAQUE_VALUE, text="its name", kind="a typing object that is still being made")
    tx.guard(SameObject(source, obj))
    return TypingVariable(obj, source)


HALF_MADE = tuple(kind for kind in ALIASES if kind.__module__ == "typing")
MADE = ({"_name"}, {"__origin__"}, {"__args__", "_nparams"})


@wraps(*dict.fromkeys((*FRESH, *ALIASES, *FORMS)))
def wrap_typing(tx: Any, obj: Any) -> VariableTracker:
    return TypingVariable(obj)


@meaning(types.GenericAlias)
def call_generic_alias(tx, origin, args, /):
    """ga_new."""
    return generic_alias(tx, origin, args)


@service
def generic_alias(tx: Any, origin: VariableTracker, args: VariableTracker) -> VariableTracker:
    key = args if isinstance(args, TupleVariable) else TupleVariable([args])
    value = types.GenericAlias(real_part(tx, origin), real_part(tx, key))
    return TypingVariable(value, None, ("call", origin, key))


@meaning(vars(types.GenericAlias)["__mro_entries__"])
def call_mro_entries(tx, self, bases, /):
    """ga_mro_entries."""
    return TupleVariable([self.origin(tx)])


@service
def refuse_checks(tx: Any, value: VariableTracker, what: str) -> None:
    """isinstance() and issubclass() take no parameterized generic, in a union neither."""
    if not isinstance(value, TypingVariable):
        return
    parts = value.value.__args__ if isinstance(value.value, types.UnionType) else (value.value,)
    if any(isinstance(part, types.GenericAlias) for part in parts):
        tx.raise_(TypeError, f"{what}() argument 2 cannot be a parameterized generic")


@service
def subscript_class(tx: Any, cls: ClassVariable, found: Any, key: VariableTracker) -> VariableTracker:
    """``C[...]``: C's own ``__class_getitem__`` is called; builtins' and typing's are done for real."""
    raw = found.raw
    if found.value is None and (isinstance(raw, types.ClassMethodDescriptorType)
                                or isinstance(raw, classmethod) and raw.__func__ is types.GenericAlias):
        return made_by(tx, "[]", cls, key)
    if found.owner is typing.Generic and not hasattr(cls, "meta"):
        return made_by(tx, "[]", cls, key)
    if found.owner is typing.Generic:
        tx.stop(reasons.CLASS_BODY, name=f"a subscript of the generic class {cls.cls.__name__}")
    return tx.call(attrs.describe(tx, found, None, cls.cls), [key])


@service
def union_type(tx: Any, cls: VariableTracker, other: VariableTracker, reflected: bool) -> Any:
    """``C | D`` (type_or); what is no type says NotImplemented."""
    if not isinstance(other, (ClassVariable, TypingVariable)) and other.py_type() is not type(None):
        return NotImplemented
    return made_by(tx, "|", *((other, cls) if reflected else (cls, other)))


@service
def union_members(tx: Any, value: VariableTracker) -> list[VariableTracker] | None:
    """The classes that isinstance() tries for a union."""
    if isinstance(value, TypingVariable) and type(value.value) in (types.UnionType, UNION):
        return [tx.class_of(type(None)) if item is None else part(tx, value, item) for item in value.value.__args__]
    return None
