"""Caching wrappers: ``functools.lru_cache`` and ``cache``, ``functools.cached_property``."""
from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import Predicate, SameObject, TypeIs
from minidynamo.model.tables import builds
from minidynamo.model.variable import NotConstant, VariableTracker
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Attr, Fetch
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.functions import BoundMethodVariable, FunctionVariable
from minidynamo.variables.objects import ObjectVariable

LRU = type(functools.lru_cache(lambda: None))


class CachedFunctionVariable(HashedByIdentity):
    """A function behind ``lru_cache``.

    A call must give what the cache gives: the very object of an earlier call, whose side effects do not
    happen again.  What is in the cache is therefore taken from it, under a guard that it still is.  For what
    is not, the function behind is traced to see that it changes nothing outside; then the real wrapper may
    be called while tracing.
    """

    __slots__ = ("fn", "results")
    kind = "cached function"

    def __init__(self, fn: Any, source: Any) -> None:
        self.fn, self.source = fn, source
        self.results: dict[Any, VariableTracker] = {}

    def py_type(self) -> type:
        return LRU

    def as_object(self) -> Any:
        return self.fn

    def identity(self) -> object:
        return self.fn

    def shown_name(self) -> str:
        name = getattr(self.fn, "__qualname__", "a cached function")       # what it wraps may have none
        return f"{getattr(self.fn, '__module__', None)}.{name}()"

    def wrapped(self, tx: Any) -> VariableTracker:
        return tx.build(self.fn.__wrapped__, Attr(self.source, "__wrapped__"))

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        call = self.known_call(tx, args, kwargs)
        if call is not None and self.is_kept(tx, call):
            return self.value_of(tx, call)
        if call is not None and self.is_full() and call.key not in self.results:
            tx.stop(reasons.UNSUPPORTED_CALL, call=self.shown_name(), kind="a full cache, which drops what is old")
        changed, mark = len(tx.changed), tx.journal.mark()
        result = tx.call(self.wrapped(tx), args, kwargs)
        if len(tx.changed) != changed:
            tx.stop(reasons.UNSUPPORTED_CALL, call=self.shown_name(), kind="a cache, and what it keeps has side effects")
        if call is None:                        # by value it is what the cache has; only its identity may differ
            return result
        tx.journal.rewind(mark)
        return self.value_of(tx, call)

    def is_kept(self, tx: Any, call: Call) -> bool:
        """Whether the cache has the answer, guarded: an effect that is left out stays out, one that comes is seen."""
        key = call.cache_key(self.fn)
        if key is None:
            return False
        kept = Kept(key, key in cache_of(self.fn))
        tx.guard(Predicate(self.source, kept, f"{'' if kept.there else 'not '}kept{call.key[0]!r}"))
        return kept.there

    def is_full(self) -> bool:
        info = self.fn.cache_info()
        return info.maxsize is not None and info.currsize >= info.maxsize

    def value_of(self, tx: Any, call: Call) -> VariableTracker:
        known = self.results.get(call.key)
        if known is None:
            kept = self.kept(tx, call)
            known = ConstantVariable(kept) if type(kept) in LITERAL_TYPES \
                else tx.build(kept, Fetch(self.source, call, call.text()))
            tx.journal.put(self.results, call.key, known)
        return known

    def kept(self, tx: Any, call: Call) -> Any:
        try:
            return call(self.fn)
        except Exception as error:              # an argument's own __hash__ or __eq__: Python shall raise it
            return tx.stop(reasons.UNSUPPORTED_CALL, call=self.shown_name(), kind=f"a cache that refuses: {error}")

    def known_call(self, tx: Any, args: list, kwargs: dict) -> Call | None:
        """The call as one that guards can repeat: every argument a literal, or a user's object, which is then fixed."""
        try:
            fixed = [fix(tx, value) for value in (*args, *kwargs.values())]
        except NotConstant:
            return None
        return Call(fixed[:len(args)], dict(zip(kwargs, fixed[len(args):])))

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        return self if obj is None else BoundMethodVariable(self, obj)      # type: ignore[arg-type]

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__wrapped__":
            return self.wrapped(tx)
        if name in ("__name__", "__qualname__", "__doc__", "__module__") and hasattr(self.fn, name):
            return tx.build(getattr(self.fn, name), Attr(self.source, name))
        if not hasattr(self.fn, name):
            attribute_error(tx, self, name)
        return super().tp_getattro(tx, name)


def fix(tx: Any, value: VariableTracker) -> Callable[[], Any]:
    """A function that gives the argument again."""
    if isinstance(value, ConstantVariable):
        literal = value.value
        return lambda: literal
    if isinstance(value, (ObjectVariable, FunctionVariable, ClassVariable)) and value.source is not None:
        obj = value.as_object()
        try:
            held = weakref.ref(obj)
        except TypeError:
            raise NotConstant(value) from None
        tx.guard(SameObject(value.source, obj))
        return held
    raise NotConstant(value)


class Call:
    """``fn(*args, **kwargs)`` with fixed arguments, as the function of a `Fetch`."""

    __slots__ = ("args", "kwargs", "key")

    def __init__(self, args: list[Callable[[], Any]], kwargs: dict[str, Callable[[], Any]]) -> None:
        self.args, self.kwargs = args, kwargs
        self.key = tuple([(type(v), id(v) if isinstance(held, weakref.ref) else v)
                          for held in (*args, *kwargs.values()) for v in [held()]]), tuple(kwargs)

    def __call__(self, fn: Any) -> Any:
        return fn(*[held() for held in self.args], **{name: held() for name, held in self.kwargs.items()})

    def cache_key(self, fn: Any) -> Any:
        """The key that lru_cache_make_key gives these arguments; None where it needs more than the arguments."""
        if self.kwargs or fn.cache_parameters()["typed"]:
            return None
        args = tuple([held() for held in self.args])
        return args[0] if len(args) == 1 and type(args[0]) in (str, int) else args

    def text(self) -> str:
        return f"call{self.key[0]!r} of "


def cache_of(fn: Any) -> dict[Any, Any]:
    """The dict in which a C ``lru_cache`` keeps its entries."""
    return next(part for part in gc.get_referents(fn) if type(part) is dict and part is not fn.__dict__)


class Kept:
    """Predicate: whether a cache has an entry. The key of a method's call holds its object: weakly here, as in the guards."""

    def __init__(self, key: Any, there: bool) -> None:
        self.there = there
        self.plain = type(key) is not tuple
        self.parts = [held_weakly(part) for part in ((key,) if self.plain else key)]

    def __call__(self, fn: Any) -> bool:
        parts = tuple([part() for part in self.parts])
        return ((parts[0] if self.plain else parts) in cache_of(fn)) is self.there


def held_weakly(part: Any) -> Callable[[], Any]:
    return (lambda: part) if type(part) in LITERAL_TYPES else weakref.ref(part)


@builds(LRU)
def build_cached_function(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return CachedFunctionVariable(obj, source)


class CachedPropertyVariable(HashedByIdentity):
    """``functools.cached_property``: the first read writes the instance's own dict."""

    __slots__ = ("raw",)
    kind = "cached property"

    def __init__(self, raw: Any, source: Any) -> None:
        self.raw, self.source = raw, source

    def py_type(self) -> type:
        return functools.cached_property

    def as_object(self) -> Any:
        return self.raw

    def identity(self) -> object:
        return self.raw

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        """cached_property.__get__; that the instance has no such item is known from generic_getattr."""
        if obj is None:
            return self
        if not isinstance(obj, ObjectVariable) or not obj.has_instance_dict() or self.raw.attrname is None:
            tx.unsupported(obj, ".__dict__ for a cached_property")
        value = tx.call(tx.build(self.raw.func, Attr(self.source, "func")), [obj])
        name = tx.build(self.raw.attrname, Attr(self.source, "attrname")).as_constant()
        obj.instance_set(tx, name, value)
        return value


@builds(functools.cached_property)
def build_cached_property(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, functools.cached_property))
    return CachedPropertyVariable(obj, source)
