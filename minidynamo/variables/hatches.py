"""Calls whose time or meaning the user declared: opaque(when=...), assume_constant_result, allow_in_graph."""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.model.services import service
from minidynamo.model.variable import Args, CannotRebuild, Kwargs, NotConstant, VariableTracker, real
from minidynamo.side_effects.effect import Changed
from minidynamo.sources import DictItem, DictRoot
from minidynamo.variables import tensors
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable
from minidynamo.variables.sets import SetVariable

FRESH = (ListVariable, TupleVariable, DictVariable, SetVariable)


# ---------------------------------------------------------------- now
@service
def call_now(tx: Any, fn: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Run `fn` while tracing; what it returns is the value from now on."""
    name = getattr(fn, "__qualname__", repr(fn))
    try:
        values = [as_plain(tx, v) for v in args]
        named = {k: as_plain(tx, v) for k, v in kwargs.items()}
    except NotConstant:
        tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=name, why="it runs while tracing, when these values do not exist yet")
    try:
        result = fn(*values, **named)
    except Exception as error:
        tx.raise_real(error)
    return kept(tx, result, name)


def as_plain(tx: Any, value: VariableTracker) -> Any:
    """The user's object, or a new plain container of such; raises NotConstant."""
    value = real(tx, value)
    if value.source is not None and id(value) in tx.changed:
        raise NotConstant(value)
    try:
        return value.as_object()
    except NotConstant:
        if isinstance(value, tensors.TensorVariable) and value.obj is not None:
            return value.obj
        known = value.obj
        if value.source is None and type(value) in (ListVariable, TupleVariable):
            return value.py_type()([as_plain(tx, v) for v in value.items])
        if value.source is None and type(value) is DictVariable:
            return {as_plain(tx, k): as_plain(tx, v) for k, v in value.entries.values()}
        if known is None:
            raise
        return known


def kept(tx: Any, result: Any, name: str) -> VariableTracker:
    """A value for an object that the new code holds on to: literals as such, others reached through a dict of our own."""
    if type(result) in LITERAL_TYPES:
        return ConstantVariable(result)
    known = tx.by_id.get(id(result))
    if known is not None:
        return known
    return tx.build(result, DictItem(DictRoot({"result": result}, f"what {name} returned"), "result"))


# ---------------------------------------------------------------- later
class DeferredCall(Changed):
    """An effect: the call is made after the graph, between the effects before and after it."""

    kind = "deferred call"
    lost_at: int | None = None

    def __init__(self, tx: Any, fn: Any, args: Args, kwargs: Kwargs) -> None:
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.made_at = tx.root_step
        self.fakes = [(t.fake, t.fake._version) for t in tensors_in(tx, self.children())]

    def children(self) -> list[VariableTracker]:
        return [*self.args, *self.kwargs.values()]

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return self.children()

    def verify(self) -> None:
        """Tensors must be, after the graph, what they were at the call."""
        if any(fake._version != version for fake, version in self.fakes):
            raise CannotRebuild(self, "a tensor given to a deferred call is changed in place later")  # type: ignore[arg-type]

    def replay(self, out: Any) -> None:
        out.begin_call_of(self.fn)
        for value in self.children():
            out.load(value)
        out.call(len(self.args) + len(self.kwargs), tuple(self.kwargs))
        out.op("POP")


class DeferredResult(VariableTracker):
    """What a deferred call returns: nothing may look at it, or the call is not deferred after all."""

    __slots__ = ("made_at",)
    kind = "result of a deferred call"

    def __init__(self, made_at: int) -> None:
        self.made_at, self.source = made_at, None

    def py_type(self) -> type:
        return object


def call_later(tx: Any, fn: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    call = DeferredCall(tx, fn, args, kwargs)
    tx.journal.put(tx.changed, id(call), call)
    watched = dict(tx.watched)
    for value in call.children():
        watch(tx, value, watched)
    tx.journal.set(tx, "watched", watched)
    return DeferredResult(tx.root_step)


def watch(tx: Any, value: VariableTracker, watched: dict[int, VariableTracker]) -> None:
    """Mutable arguments: changing one later ends the graph first, so that the call sees it as it was."""
    value = real(tx, value)
    if id(value) in watched or isinstance(value, (ConstantVariable, tensors.TensorVariable)):
        return
    watched[id(value)] = value
    if isinstance(value, FRESH):
        for child in value.children():
            watch(tx, child, watched)


def tensors_in(tx: Any, values: list[VariableTracker]) -> list[Any]:
    found = []
    stack = list(values)
    while stack:
        value = real(tx, stack.pop())
        if isinstance(value, tensors.TensorVariable):
            found.append(value)
        elif isinstance(value, FRESH):
            stack.extend(value.children())
    return found


# ---------------------------------------------------------------- the declarations
@service
def call_opaque(tx: Any, fn: Any, when: str, untraced: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    if when == "now":
        return call_now(tx, fn, args, kwargs)
    if when == "later":
        return call_later(tx, untraced, args, kwargs)
    return tx.stop(reasons.OPAQUE_NOW, name=getattr(fn, "__qualname__", repr(fn)))


@service
def call_allowed(tx: Any, fn: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    """allow_in_graph: one node that calls `fn` itself."""
    return tx.emit(fn, [tx.proxy(a) for a in args], {k: tx.proxy(v) for k, v in kwargs.items()})
