"""GuardManagerWrapper: the guards of one cache entry, in the shape that torch's C hook reads."""
from __future__ import annotations

import types
from typing import Any

from torch._C._dynamo import guards as c_guards

from minidynamo.guards.guard import Guard
from minidynamo.guards.hold import Deaths
from minidynamo.guards.lower_python import lower_python
from minidynamo.guards.lower_tree import lower_tree
from minidynamo.guards.set import GuardSet


class GuardManagerWrapper:
    """What guarded code carries: the C hook reads `root`, and fills in its entry and state."""

    __slots__ = ("root", "diff_guard_root", "cache_entry", "extra_state", "guards", "deaths", "_globals",
                 "__weakref__")

    def __init__(self, root: Any, guards: list[Guard], G: dict[str, Any], deaths: Deaths) -> None:
        self.root, self.guards, self.deaths, self._globals = root, guards, deaths, G
        self.diff_guard_root: Any = None
        self.cache_entry: Any = None
        self.extra_state: Any = None

    @property
    def alive(self) -> bool:
        """False once an object that the guards name has died: the entry can never be hit again."""
        return not self.deaths.dead

    def check(self, L: dict[str, Any], G: dict[str, Any] | None = None) -> bool:
        """Whether all guards hold, by the tree where `G` is the globals it was built for."""
        if G is None or G is self._globals:
            return self.root.check(L)
        return self.alive and all(guard.check(L, G) for guard in self.guards)

    def source_text(self) -> str:
        """The guards as a Python function."""
        return lower_python(self.guards)[1]


def build_guards(guard_set: GuardSet | list[Guard], frame_locals: Any, frame_globals: dict[str, Any],
                 code: types.CodeType | None, form: str = "tree") -> GuardManagerWrapper:
    """The wrapper for a finished trace. `form` is ``config.guards``: ``tree`` or ``python``."""
    guards = guard_set.final() if isinstance(guard_set, GuardSet) else list(guard_set)
    deaths = Deaths()
    if form == "python":
        root = c_guards.RootGuardManager()
        function, _ = lower_python(guards)
        root.add_lambda_guard(lambda L: function(L, frame_globals), [guard.text() for guard in guards], None)
    else:
        root = lower_tree(guards, frame_locals, frame_globals, code, deaths)
    return GuardManagerWrapper(root, guards, frame_globals, deaths)
