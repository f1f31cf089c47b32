"""functools.partial: a function with arguments kept for it (Modules/_functoolsmodule.c)."""
from __future__ import annotations

import functools
from typing import Any

from minidynamo.guards.kinds import TypeIs
from minidynamo.model.tables import builds, meaning
from minidynamo.model.variable import IdKey, VariableTracker, real
from minidynamo.sources import Attr
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import TupleVariable


class PartialVariable(VariableTracker):
    """``functools.partial``."""

    __slots__ = ("function", "args", "kwargs")
    kind = "partial"

    def __init__(self, function: VariableTracker, args: list, kwargs: dict, source: Any = None) -> None:
        self.function, self.args, self.kwargs, self.source = function, args, kwargs, source

    def py_type(self) -> type:
        return functools.partial

    def shown_name(self) -> str:
        return "functools.partial()"

    def children(self) -> list[VariableTracker]:
        return [self.function, *self.args, *self.kwargs.values()]

    def rebuild(self, out: Any) -> None:
        out.begin_call()
        out.load_object_unchecked(functools.partial)
        out.callable_done()
        for value in self.children():
            out.load(value)
        out.call(1 + len(self.args) + len(self.kwargs), tuple(self.kwargs))

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        merged = {**{k: real(tx, v) for k, v in self.kwargs.items()}, **kwargs}
        return real(tx, self.function).tp_call(tx, [*[real(tx, a) for a in self.args], *args], merged)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "func":
            return real(tx, self.function)
        if name == "args":
            return TupleVariable(list(self.args))
        if name == "keywords":
            return DictVariable.from_names(tx, self.kwargs)
        if name == "__class__":
            return tx.wrap(functools.partial)
        return super().tp_getattro(tx, name)

    def key(self, tx: Any) -> Any:
        return IdKey(self)


@meaning(functools.partial)
def call_partial(tx, function, /, *args, **kwargs):
    if isinstance(function, PartialVariable):
        return PartialVariable(function.function, [*function.args, *args], {**function.kwargs, **kwargs})
    return PartialVariable(function, list(args), kwargs)


@builds(functools.partial)
def build_partial(tx: Any, obj: functools.partial, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, functools.partial))
    function = tx.build(obj.func, Attr(source, "func"))
    args = tx.build(obj.args, Attr(source, "args")).items
    kwargs = tx.build(obj.keywords, Attr(source, "keywords")).string_items(tx)
    return PartialVariable(function, list(args), kwargs, source)
