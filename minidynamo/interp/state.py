"""Frame: the state of one symbolic frame, and the scopes its names live in."""
from __future__ import annotations

from typing import Any

from minidynamo.code import Op, Program
from minidynamo.model.variable import VariableTracker
from minidynamo.reasons import Where
from minidynamo.side_effects.effect import Changed, Effect
from minidynamo.sources import DictItem, DictRoot, Global, Source


class NullVariable(VariableTracker):
    """The NULL that CPython keeps beside a callable, or in an unbound local."""

    __slots__ = ()
    kind = "NULL"


NULL = NullVariable()


class PreviousException(VariableTracker):
    """What PUSH_EXC_INFO leaves on the stack: the exception that was being handled before.

    Cleanup code copies the entry, pops the copy with POP_EXCEPT and leaves the entry itself behind, `spent`.
    """

    __slots__ = ("previous", "spent")
    kind = "previous exception"

    def __init__(self, previous: VariableTracker | None) -> None:
        self.previous = previous
        self.spent = False
        self.source = None


class Scope(Changed):
    """One globals dict: its names, and what the trace has written to them."""

    __slots__ = ("mapping", "is_root", "seen", "written", "name")
    kind = "global"
    value: VariableTracker | None = None              # the dict, where it is a value of the trace

    def __init__(self, mapping: dict[str, Any], is_root: bool) -> None:
        self.mapping, self.is_root = mapping, is_root
        self.seen: dict[str, VariableTracker] = {}
        self.written: dict[str, VariableTracker | None] = {}      # None: deleted
        self.name = str(mapping.get("__name__", "?"))

    def source(self, name: str) -> Source:
        return Global(name) if self.is_root else DictItem(DictRoot(self.mapping, self.name), name)

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return [value for value in self.written.values() if value is not None]

    def effects(self, where: Where | None) -> list[Effect]:
        return [Effect("global", name, where) for name in self.written]

    def replay(self, out: Any) -> None:
        """By name in the frame's own globals, by item elsewhere."""
        for name, value in self.written.items():
            if value is None and name not in self.mapping:
                continue
            if value is not None:
                out.load(value)
            if self.is_root:
                out.op("STORE_GLOBAL" if value is not None else "DELETE_GLOBAL", name)
                continue
            out.load_object_unchecked(self.mapping)
            out.load_const(name)
            out.op("STORE_SUBSCR" if value is not None else "DELETE_SUBSCR")

    def root_source(self) -> DictRoot:
        return DictRoot(self.mapping, self.name)

    def module_name(self, tx: Any) -> VariableTracker | None:
        """``__name__``, which functions and classes made here take as their module; None where there is none."""
        return tx.wrap(self.mapping["__name__"]) if "__name__" in self.mapping else None


class DictScope(Scope):
    """The globals of code run by exec or eval in a dict of the program's: its names are the dict's items."""

    __slots__ = ("value", "made_at")

    def __init__(self, value: Any, made_at: int) -> None:
        super().__init__({}, False)
        self.value, self.made_at = value, made_at

    def module_name(self, tx: Any) -> VariableTracker | None:
        return self.value.find(tx, tx.wrap("__name__"))          # type: ignore[union-attr]


class Frame:
    """Program counter, value stack, locals and cells of one traced call."""

    __slots__ = ("program", "ops", "pc", "stack", "local", "cells", "scope", "caller", "function", "op",
                 "result", "is_root", "handled", "class_dict", "depth", "namespace", "value")

    def __init__(self, program: Program, scope: Scope, caller: Frame | None, function: Any = None) -> None:
        self.program, self.ops, self.scope, self.caller, self.function = program, program.ops, scope, caller, function
        self.pc = 0
        self.stack: list[VariableTracker] = []
        self.local: dict[str, VariableTracker] = {}
        self.cells: dict[str, Any] = {}
        self.op: Op | None = None                     # the op being executed
        self.result: VariableTracker | None = None
        self.is_root = False
        self.handled: VariableTracker | None = None   # a suspended generator's own exc_info
        self.class_dict: VariableTracker | None = None
        self.namespace: VariableTracker | None = None      # what locals() gave
        self.value: VariableTracker | None = None          # the frame object, once somebody asked for it
        self.depth = 0 if caller is None else caller.depth + 1
