"""Guards to torch's C++ guard tree: one manager per source node, one leaf per guard."""
from __future__ import annotations

import types
from typing import Any

from torch._C._dynamo import eval_frame
from torch._C._dynamo import guards as c_guards

from minidynamo.guards.enum_fetch import plain_manager
from minidynamo.guards.guard import Guard
from minidynamo.guards.hold import Deaths, Held
from minidynamo.guards.shortcut import Shortcut, divide
from minidynamo.sources import ClassDict, DictRoot, Source


class TreeBuilder:
    """Builds one tree. Sources and guards ask it for managers; equal sources share one.

    Within a node the leaves come first and in order, then the accessors below it; C++ reorders
    the accessors of a node after failures, which is why reading a source never depends on a
    guard beside it, only on guards above it.
    """

    def __init__(self, guards: list[Guard], G: dict[str, Any], code: types.CodeType | None,
                 deaths: Deaths) -> None:
        self.enum = plain_manager()
        self.root: Any = c_guards.RootGuardManager()
        self.G, self.deaths = G, deaths
        names = eval_frame.code_framelocals_names(code) if code is not None else ()
        self.slots = {name: number for number, name in enumerate(names)}
        self.managers: dict[Source, Any] = {}
        self.dict_managers: dict[Source, Any] = {}
        self.scopes: dict[int, Any] = {}
        # The tree's own globals: constants that managers start from, and what must stay alive.
        self.holder: dict[str, Any] = {"minidynamo deaths": deaths}
        self.kept: list[Any] = []
        self.types = {guard.source: pinned for guard in guards
                      if guard.source is not None and (pinned := guard.pins_type()) is not None}

    def another(self) -> TreeBuilder:
        """A builder of a tree of its own that dies with the same objects."""
        return TreeBuilder([], {}, None, self.deaths)

    # ---- managers by source

    def manager(self, source: Source) -> Any:
        """The manager that checks the values of `source`."""
        made = self.managers.get(source)
        if made is None:
            parent = self.root if source.base is None else self.manager(source.base)
            made = self.managers[source] = source.child(parent, self)
        return made

    def instance_dict_manager(self, source: Source) -> Any:
        """The manager of ``source.__dict__``."""
        made = self.dict_managers.get(source)
        if made is None:
            made = self.dict_managers[source] = self.manager(source).get_generic_dict_manager(
                f"{source.text()}.__dict__", None, self.enum)
        return made

    def code_manager(self, source: Source) -> Any:
        """The manager of a plain function's ``__code__``."""
        return self.manager(source).code_manager(f"{source.text()}.__code__", None, self.enum)

    # ---- roots

    def local_slot(self, name: str) -> tuple[str, int]:
        """A local's name and its place in the frame."""
        return name, self.slots.setdefault(name, len(self.slots))

    def scope_manager(self, scope: dict[str, Any] | None) -> Any:
        """The manager of a globals dict; the frame's own for None."""
        if scope is not None and scope is not self.G:
            return self.constant_manager(scope)
        if id(self.G) not in self.scopes:
            self.scopes[id(self.G)] = self._globals_manager(self.G, "G")
        return self.scopes[id(self.G)]

    def constant_manager(self, value: Any) -> Any:
        """The manager of an object that is the same for ever."""
        made = self.scopes.get(id(value))
        if made is None:
            if id(self.holder) not in self.scopes:
                self.scopes[id(self.holder)] = self._globals_manager(self.holder, "constants")
            name = f"minidynamo constant {len(self.holder)}"
            self.holder[name] = value
            made = self.scopes[id(value)] = self.scopes[id(self.holder)].dict_getitem_manager(
                name, name, None, self.enum)
        return made

    def class_dict_manager(self, held: Held, text: str) -> Any:
        """The manager of the namespace of a class, which may die."""
        manager = self.constant_manager(held).weakref_call_manager(text, None, self.enum)
        manager.add_id_match_guard(self.watch(held), [f"{text} is there"], None)
        return manager.type_dict_manager(text, None, self.enum)

    def _globals_manager(self, scope: dict[str, Any], text: str) -> Any:
        return self.root.globals_dict_manager(scope, text, None, self.enum)

    # ---- what guards need besides

    def watch(self, held: Held) -> int:
        """The address of a held object; the tree fails once it has died."""
        return self.deaths.watch(held)

    def keep(self, obj: Any) -> int:
        """The address of an object that the tree keeps alive."""
        self.kept.append(obj)
        return id(obj)

    def exact_type(self, source: Source) -> type | None:
        """The exact type that some guard of the set fixes for `source`."""
        return dict if type(source) in (ClassDict, DictRoot) else self.types.get(source)

    def check_last(self, guard: Guard) -> None:
        """Check a guard in Python, after everything else held."""
        G = self.G
        self.root.add_epilogue_lambda_guard(lambda L: guard.check(L, G), guard.parts(), None)

    def finish(self) -> Any:
        """The root, made to fail when a watched object dies."""
        if self.deaths.refs or self.deaths.dead:
            self._globals_manager(self.deaths.dead, "deaths").add_dict_length_check_guard(
                0, ["no guarded object has died"], None)
        # C++ keeps only the dicts it was given: the weak references and constants live in one.
        self.holder["minidynamo kept"] = self.kept
        if id(self.holder) not in self.scopes:
            self._globals_manager(self.holder, "constants")
        return self.root


def lower_tree(guards: list[Guard], L: Any, G: dict[str, Any], code: types.CodeType | None,
               deaths: Deaths | None = None) -> Any:
    """The root manager that checks `guards` (as `GuardSet.final` orders them).

    `code` gives the places of locals in the frame; without it only ``root.check(dict)`` works.
    `deaths` is told when an object that the guards hold weakly has gone.
    """
    tree = TreeBuilder(guards, G, code, deaths if deaths is not None else Deaths())
    below = divide(guards)
    taken = {guard for group in below.values() for guard in group}
    for guard in guards:
        if guard not in taken:
            guard.attach(tree)
    for top, group in below.items():
        tree.manager(top).add_lambda_guard(Shortcut(top, group, tree), [f"{len(group)} facts below {top}"], None)
    return tree.finish()
