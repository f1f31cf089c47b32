"""Shortcut: facts below one object that only its dicts can change are skipped while the dicts are as they were.

A model of many layers is a tree of objects that hardly ever change, and each call would look up
every one of its facts.  Most of these rest on dicts: which names a module has, which objects are
behind them.  Dicts have versions (watchers since Python 3.12), which torch's guard tree compares
at about a nanosecond each, so once a full check has held, a call needs to see only

* that the object is the very one that was checked, and no dict on the way to a fact has changed;
* what dicts do not show: every object's type and the identity of its ``__dict__``, every tensor's
  size, dtype and so on.  These objects are reached by weak references, not by the way from the top.

Anything else is checked in full, and after some full checks the shortcut is made anew.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torch._C._dynamo import guards as c_guards

from minidynamo.guards.guard import Guard, Tree
from minidynamo.guards.tensors import TensorMatch
from minidynamo.guards.values import CodeIs, TypeIs
from minidynamo.sources import DictItem, InstanceAttr, Item, PlainDictItem, PlainInstanceAttr, PlainItem, Source
from minidynamo.sources.source import Step, instance_dict

MANY = 64           # facts below one object that are worth a shortcut
WAIT = 4            # full checks before the first shortcut; four times as many before each further one

#: Steps from an object to another one that can change only if what the base rests on does.
STEPS: dict[type[Source], str] = {InstanceAttr: "attributes", PlainInstanceAttr: "attributes", DictItem: "items",
                                  PlainDictItem: "items", Item: "identity", PlainItem: "identity"}
#: Kinds that are checked each time, on the object itself.
WATCHED = (TypeIs, TensorMatch, CodeIs)


def step(source: Source) -> str | None:
    """What of the base the step to `source` rests on; None for any that no dict settles."""
    kind = STEPS.get(type(source))
    return None if kind == "identity" and source.owner is not tuple else kind    # type: ignore[attr-defined]


class Settled:
    """Which guards rest on the dicts below which object."""

    def __init__(self, guards: Iterable[Guard]) -> None:
        self.types = {guard.source: kind for guard in guards if type(guard) is TypeIs and guard.source is not None
                      and (kind := guard.held()) is not None}
        self.tops: dict[Source, Source | None] = {}

    def is_holder(self, source: Source) -> bool:
        """Whether the object is known to have a ``__dict__`` of its own and to take weak references."""
        kind = self.types.get(source)
        return kind is not None and is_weak(kind) and type.__dict__["__dictoffset__"].__get__(kind) != 0

    def top(self, source: Source) -> Source | None:
        """The object highest above `source` from which fixed steps lead to it."""
        if source not in self.tops:
            above, kind = None, step(source)
            if kind is not None and (kind != "attributes" or self.is_holder(source.base)):
                above = self.top(source.base)
            self.tops[source] = above if above is not None or not self.is_holder(source) else source
        return self.tops[source]

    def top_of(self, guard: Guard) -> Source | None:
        """The object whose shortcut can take the guard over."""
        above = None if guard.source is None else self.top(guard.source)
        if above is None or not all(self.top(source) == above for source in guard.sources):
            return None
        return above if self.lasts(guard, above) else None

    def lasts(self, guard: Guard, above: Source) -> bool:
        pinned = self.types.get(guard.source)
        rests_on = guard.rests_on(pinned)
        if rests_on == "attributes":
            return self.is_holder(guard.source)
        if above in guard.sources:
            return False                        # known before the shortcut is asked
        if rests_on is not None:
            return True
        return isinstance(guard, WATCHED) and (kind := guard.pins_type()) is not None and is_weak(kind)


class Probe:
    """An object to try `stores_are_seen` on."""


@functools.cache
def stores_are_seen() -> bool:
    """Whether the version of an object's ``__dict__`` tells of attributes set on the object (not in CPython 3.13.0)."""
    probe = Probe()
    probe.name = 1                          # type: ignore[attr-defined]
    before = c_guards.dict_version(probe.__dict__)
    probe.name = 2                          # type: ignore[attr-defined]
    return bool(c_guards.dict_version(probe.__dict__) != before)


def is_weak(kind: type) -> bool:
    return type.__dict__["__weakrefoffset__"].__get__(kind) != 0


def divide(guards: list[Guard]) -> dict[Source, list[Guard]]:
    """The guards that shortcuts take over, by the object they are below."""
    if len(guards) < MANY or not stores_are_seen():
        return {}
    settled = Settled(guards)
    groups: dict[Source, list[Guard]] = {}
    for guard in guards:
        above = settled.top_of(guard)
        if above is not None:
            groups.setdefault(above, []).append(guard)
    return {above: group for above, group in groups.items() if len(group) >= MANY}


class Shortcut:
    """A guard on the object `top`: all of `guards`, in full or by the shortcut."""

    __slots__ = ("top", "guards", "new_tree", "full", "fast", "left", "wait", "way", "dicts", "holders", "watched")

    def __init__(self, top: Source, guards: list[Guard], tree: Tree) -> None:
        self.top, self.guards, self.new_tree = top, guards, tree.another
        self.fast: Callable[[Any], bool] | None = None
        self.left = self.wait = WAIT
        self.way: dict[Step, None] = {}                 # objects on the way to the facts, from the top down
        self.dicts: dict[Source, None] = {}             # those that are dicts, which must not change
        self.holders: dict[Source, None] = {}           # those whose ``__dict__`` must not change
        self.watched: list[Guard] = []
        below = tree.another()
        below.managers[top], below.types, below.kept = below.root, tree.types, tree.kept
        for guard in guards:
            guard.attach(below)
        self.full = below.root.check

    def survey(self) -> None:
        """Find out what the guards rest on."""
        self.holders[self.top] = None
        for guard in self.guards:
            for source in guard.sources:
                self.walk(source)
                self.rest(guard.rests_on(dict), source)
        self.watched = [guard for guard in self.guards if isinstance(guard, WATCHED) and guard.rests_on(None) is None]

    def walk(self, source: Source) -> None:
        """Enter the way from the top to `source`."""
        if source in self.way or source == self.top:
            return
        assert isinstance(source, Step)
        self.walk(source.base)
        self.way[source] = None
        self.rest(step(source), source.base)

    def rest(self, on: str | None, source: Source) -> None:
        if on == "attributes":
            self.holders[source] = None
        elif on == "items":
            self.dicts[source] = None

    def __call__(self, value: Any) -> bool:
        if self.fast is not None and self.fast(value):
            return True
        if not self.full(value):
            return False
        self.left -= 1
        if self.left <= 0:
            self.wait *= 4
            self.left = self.wait
            self.fast = self.prepare(value)
        return True

    def prepare(self, value: Any) -> Callable[[Any], bool] | None:
        """What checks `value` quickly, now that a full check has held; None when it cannot be done."""
        if not self.holders:
            self.survey()
        values = {self.top: value}
        for source in self.way:
            values[source] = source.read(values[source.base])
        if not all(issubclass(type(values[source]), dict) for source in self.dicts):
            return None
        seen, objects = self.watch(values)
        ref, unchanged = weakref.ref(value), self.record(values)
        # The full check comes after the recording: what it finds holds for what was recorded.
        if not (unchanged is not None and self.full(value) and seen(objects) and unchanged(ref)):
            return None
        return lambda obj: ref() is obj and seen(objects) and unchanged(ref)

    def watch(self, values: dict[Source, Any]) -> tuple[Callable[[Any], bool], tuple[Any, ...]]:
        """A check of what the dicts do not show, and the weak references that it is called with."""
        tree = self.new_tree()
        objects: dict[Source, Any] = {}

        for source in [*self.holders, *(guard.source for guard in self.watched)]:
            if source not in objects:
                tree.managers[source] = tree.root.tuple_getitem_manager(
                    len(objects), str(len(objects)), None, tree.enum).weakref_call_manager("object", None, tree.enum)
                objects[source] = weakref.ref(values[source])
        for guard in self.watched:
            guard.attach(tree)
        for source in self.holders:
            tree.instance_dict_manager(source).add_id_match_guard(
                id(instance_dict(values[source])), ["the __dict__ is the same"], None)
        return tree.root.check, tuple(objects.values())

    def record(self, values: dict[Source, Any]) -> Callable[[Any], bool] | None:
        """A check, called with a weak reference to the top, that no dict has changed since now.

        torch's guard tree notes the dicts that it passes when a node marked as the root of such a
        part is checked first, and skips the part while they are as they were.  What lies below it
        here are no guards but the way to the dicts, and a leaf that fails when it is not skipped.
        """
        tree, recording = self.new_tree(), [True]
        node = tree.managers[self.top] = tree.root.weakref_call_manager("top", None, tree.enum)
        node.add_lambda_guard(lambda _: bool(recording), ["a dict has changed"], None)
        spaces: dict[Source, Any] = {}

        def space(source: Source) -> Any:
            if source not in spaces:
                spaces[source] = tree.managers[source].get_generic_dict_manager(
                    "__dict__", instance_dict(values[source]), tree.enum)
                spaces[source].mark_tag_safe()
            return spaces[source]

        for source in self.way:
            base = space(source.base) if step(source) == "attributes" else tree.managers[source.base]
            enter = base.tuple_getitem_manager if step(source) == "identity" else base.dict_getitem_manager
            made = tree.managers[source] = enter(
                source.key, str(source.key), values[source] if source in self.dicts else None, tree.enum)
            if source in self.dicts:
                made.mark_tag_safe()
        for source in self.holders:
            space(source)
        node.mark_tag_safe()
        node.mark_tag_safe_root()
        check = tree.root.check
        held = check(weakref.ref(values[self.top]))
        recording.clear()
        return check if held else None                  # type: ignore[no-any-return]
