"""``functools.lru_cache`` applied while tracing: a cache whose state is known (lru_cache_object in _functoolsmodule.c)."""
from __future__ import annotations

import functools
from typing import Any

from minidynamo.model.tables import CALLS, declares
from minidynamo.model.variable import CannotRebuild, IdKey, VariableTracker, defines, real
from minidynamo.protocol import numbers
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.caches import LRU
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.functions import BoundMethodVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import inner

KEYWORDS_FOLLOW = IdKey(functools)                    # kwd_mark: equal to no argument


class CachePart(HashedByIdentity):
    """The C struct: ``entries`` hold arguments and result by stand-in of the key, the one not used for longest first."""

    __slots__ = ("base", "function", "maxsize", "typed", "info", "hits", "misses", "entries", "made_at")
    kind = "cached function"

    def __init__(self, base: type, function: VariableTracker, maxsize: int | None, typed: VariableTracker,
                 info: VariableTracker, made_at: int) -> None:
        self.base, self.function, self.maxsize, self.typed, self.info, self.source = base, function, maxsize, typed, info, None
        self.hits = self.misses = 0
        self.entries: dict[Any, tuple[list[VariableTracker], VariableTracker]] = {}
        self.made_at = made_at

    def py_type(self) -> type:
        return self.base

    def children(self) -> list[VariableTracker]:
        if self.entries or self.hits or self.misses:
            raise CannotRebuild(self, "a cache that has been used")
        return [self.function, self.info]

    def create_holder(self, out: Any, cls: VariableTracker) -> None:
        out.call_function(self.base, self.function, self.maxsize, self.typed, self.info)

    def write_into(self, out: Any, holder: VariableTracker) -> None:
        """All there is was given to the constructor."""

    def put(self, tx: Any, **state: Any) -> None:
        for name, value in state.items():
            tx.journal.set(self, name, value)

    def key_of(self, tx: Any, args: list, kwargs: dict) -> Any:
        """lru_cache_make_key, as a stand-in."""
        typed = self.typed.as_constant()
        if not kwargs and not typed and len(args) == 1 and args[0].py_type() in (str, int):
            return args[0].key(tx)
        parts = [value.key(tx) for value in args]
        if kwargs:
            parts.append(KEYWORDS_FOLLOW)
        for name, value in kwargs.items():
            parts += [name, value.key(tx)]
        return tuple(parts + [IdKey(value.py_type()) for value in (*args, *kwargs.values()) if typed])

    def is_known(self, tx: Any, key: Any, given: list[VariableTracker]) -> bool:
        """Whether there is an entry. Objects that are told apart by identity must be so on later calls."""
        if key in self.entries:
            return True
        for value in given:
            if value.source is not None and value.key(tx).__class__ is IdKey:
                for other in [v for held, _ in self.entries.values() for v in held]:
                    if other.source is not None and other.source != value.source:
                        tx.guard_distinct(value, other)
        return False

    def call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        """uncached_, infinite_ and bounded_lru_cache_wrapper."""
        function = real(tx, self.function)
        if self.maxsize == 0:
            self.put(tx, misses=self.misses + 1)
            return tx.call(function, args, kwargs)
        key, given = self.key_of(tx, args, kwargs), [*args, *kwargs.values()]
        if self.is_known(tx, key, given):
            result = self.entries[key][1]
            self.put(tx, hits=self.hits + 1)
            if self.maxsize is not None:
                kept = dict(self.entries)
                kept[key] = kept.pop(key)
                self.put(tx, entries=kept)
            return result
        self.put(tx, misses=self.misses + 1)
        result = tx.call(function, args, kwargs)
        if self.maxsize is not None:
            if key in self.entries:              # the function called itself with these arguments
                return result
            if len(self.entries) >= self.maxsize:
                self.put(tx, entries=dict(list(self.entries.items())[1:]))
        tx.journal.put(self.entries, key, (given, result))
        return result

    def descr_get(self, tx: Any, holder: VariableTracker, obj: VariableTracker | None) -> VariableTracker:
        return holder if obj is None else BoundMethodVariable(holder, obj)

    def repr_parts(self, tx: Any) -> tuple[str, list[VariableTracker], str]:
        return "", [tx.default_repr(self)], ""


def cache_info(tx, self, /):
    part = inner(self)
    if not isinstance(part, CachePart):
        return None
    return tx.call(part.info, [ConstantVariable(n) for n in (part.hits, part.misses, part.maxsize, len(part.entries))])


def cache_clear(tx, self, /):
    if not isinstance(inner(self), CachePart):
        return None
    inner(self).put(tx, hits=0, misses=0, entries={})
    return NONE


@declares(LRU)
def declare_cache(base: type) -> None:
    def make(tx, user_function, maxsize, typed, cache_info_type):
        """lru_cache_new."""
        if not defines(user_function.py_type(), "__call__"):
            tx.raise_(TypeError, "the first argument must be callable")
        limit = None
        if maxsize.py_type() is not type(None):
            if maxsize.nb_unary(tx, "index") is NotImplemented:
                tx.raise_(TypeError, "maxsize should be integer or None")
            limit = max(numbers.index(tx, maxsize), 0)
        part = CachePart(base, user_function, limit, typed, cache_info_type, tx.root_step)
        return ObjectVariable(base, inner=part)

    CALLS.add(base, make)
    methods = {"cache_info": cache_info, "cache_clear": cache_clear, "__copy__": lambda tx, self, /: self,
               "__deepcopy__": lambda tx, self, memo, /: self,
               "__reduce__": lambda tx, self, /: self.tp_getattro(tx, "__qualname__")}
    for name, method in methods.items():
        CALLS.add(vars(base)[name], method)
