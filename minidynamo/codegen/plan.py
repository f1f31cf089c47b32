"""plan(): what the output code needs, found by one walk over the values that leave the trace.

The walk starts at the exit's values and at what effects write.  It finds the graph outputs, the
objects that must be made (and which of them are shared or cyclic), and raises CannotRebuild
before anything is compiled.
"""
from __future__ import annotations

import dataclasses
import types
from typing import Any

import torch

from minidynamo.code import is_static, live_locals
from minidynamo.codegen.snapshot import what_to_keep
from minidynamo.graph.ambient import is_switch
from minidynamo.interp.state import NULL, PreviousException
from minidynamo.model.variable import CannotRebuild, LazyVariable, VariableTracker
from minidynamo.sources import Local
from minidynamo.variables.cells import CellVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.symbols import SymVariable
from minidynamo.variables.tensors import TensorVariable


@dataclasses.dataclass(slots=True)
class Plan:
    """What was found.  `stack`, `local` and `cells` describe a break; a return has one `stack` entry."""

    outputs: list[Any]                          # tape nodes the graph returns
    numbers: dict[Any, Any]                     # expression -> its Formula, for numbers of the inputs
    effects: list[Any]                          # changed user objects and scopes, in order
    shared: set[int]                            # ids of new objects that are used more than once
    cyclic: dict[int, VariableTracker | None]   # new objects that hold themselves, by id: see `cycles`
    stack: list[VariableTracker]
    local: dict[str, VariableTracker]
    kept: frozenset[str]                        # locals handed on though nobody reads them again
    has_ops: bool


class _Walk:
    """Depth first over ``children``; counts uses, finds cycles and graph outputs."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.seen: dict[int, VariableTracker] = {}
        self.path: set[int] = set()
        self.shared: set[int] = set()
        self.reached: set[int] = set()        # user's objects that something new or changed holds
        self.cyclic = False
        self.outputs: dict[Any, None] = {}
        self.numbers: dict[Any, Any] = {}

    def visit(self, value: Any) -> None:
        if value.__class__ is LazyVariable:
            value = value.built or value
        if value is NULL or isinstance(value, PreviousException):
            return
        if value.source is not None:
            check_traceback(value)
            self.reached.add(id(value))
            return
        if id(value) in self.path:
            self.cyclic = True
            self.shared.add(id(value))
            return
        if id(value) in self.seen:
            self.shared.add(id(value))
            return
        self.seen[id(value)] = value
        if isinstance(value, TensorVariable):
            self.outputs[value.node] = None
        elif isinstance(value, SymVariable):
            self.number(value)
        check_rebuildable(value)
        self.path.add(id(value))
        for child in value.children():
            self.visit(child)
        kind = self.tx.made_classes.get(id(getattr(value, "cls", None)))
        if kind is not None:                 # an instance of a class that is made anew needs the class
            self.visit(kind)
        self.path.discard(id(value))

    def cycles(self) -> dict[int, VariableTracker | None]:
        """New objects that hold themselves.  With one that cannot be made empty first (a tuple) stands one that can:

        making that one makes the tuple on the way.
        """
        found: dict[int, VariableTracker | None] = {}
        if not self.cyclic:
            return found
        for group in components(self.seen):
            makers = [value for value in group if value.fill is not None]
            for value in group:
                self.shared.add(id(value))
                found[id(value)] = None if value.fill is not None or not makers else makers[0]
        return found

    def number(self, value: SymVariable) -> None:
        """Computed from the inputs' own numbers before the graph runs, unless it comes out of the graph."""
        if value.recipe is not None or value.known() is not None:
            return
        expr = value.value.node.expr
        if expr in self.numbers:
            return
        formula = self.tx.shapes.formula(expr)
        if formula is None:
            self.outputs[self.tx.tape.sym_node(value.value)] = None
        else:
            self.numbers[expr] = formula


def components(values: dict[int, VariableTracker]) -> list[list[VariableTracker]]:
    """Groups of values that hold each other (Tarjan's strongly connected components, those with a cycle)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    waiting: list[int] = []
    found: list[list[VariableTracker]] = []

    def connect(at: int) -> None:
        order[at] = low[at] = len(order)
        waiting.append(at)
        own = False
        for child in values[at].children():
            child = child.built or child if child.__class__ is LazyVariable else child
            to = id(child)
            own |= to == at
            if to not in values:
                continue
            if to not in order:
                connect(to)
                low[at] = min(low[at], low[to])
            elif to in waiting:
                low[at] = min(low[at], order[to])
        if low[at] == order[at]:
            where = waiting.index(at)
            group = waiting[where:]
            del waiting[where:]
            if own or len(group) > 1:
                found.append([values[each] for each in group])

    for start in values:
        if start not in order:
            connect(start)
    return found


def check_traceback(value: VariableTracker) -> None:
    """An exception raised while tracing has a traceback that only raising it for real can make."""
    if value.raised_at is not None:
        raise CannotRebuild(value, "an exception raised while tracing")


def check_rebuildable(value: VariableTracker) -> None:
    """Kinds that can say at once that they cannot be made again."""
    check_traceback(value)
    if type(value).rebuild is VariableTracker.rebuild:
        raise CannotRebuild(value, f"a {value.kind} made while tracing")


def plan(trace: Any) -> Plan:
    """Walk everything that leaves `trace`."""
    tx, leave = trace.tracer, trace.exit
    walk = _Walk(tx)
    if hasattr(leave, "value"):
        stack, local, kept = [leave.value], {}, frozenset[str]()
    else:
        names = live_locals(trace.program)[leave.index]
        stack = leave.stack
        given = watchable(stack)
        kept = frozenset(n for n, v in leave.local.items() if outlives(n, v) or given and given & watchable([v]))
        local = {name: v for name, v in leave.local.items() if name in names or name in kept}
        for value in tx.root.cells.values():         # every cell lives on: the resume function shares it
            if cell_changed(tx, value):
                tx.modified(value)
        if tx.handled is not None:
            walk.visit(tx.handled)
    mine = own_cells(trace)
    effects = [value for value in tx.changed.values() if id(value) not in mine]
    for value in (*stack, *local.values()):
        walk.visit(value)
        if isinstance(value, PreviousException) and value.previous is not None:
            walk.visit(value.previous)
    waiting: list[Any] = effects + [mine.pop(cell) for cell in list(mine) if cell in walk.reached]
    effects = list(waiting)
    while waiting:
        for value in waiting:
            if value.verify is not None:
                value.verify()
            for child in value.effect_children(tx):
                walk.visit(child)
        waiting = [mine.pop(cell) for cell in list(mine) if cell in walk.reached]
        effects += waiting
    for assumption in tx.assumptions:
        walk.visit(assumption.value)
    if tx.assumptions and what_to_keep(tx) is None:
        raise CannotRebuild(tx.assumptions[0], "a frame that cannot start again where it assumed wrongly")
    # Switches alone are no graph: the exit sets the state anyway.  Nor is a number that the graph would only be given.
    has_ops = any(n.kind == "call_method" and not is_given(n) or n.kind == "call_function" and not is_switch(n.target)
                  and n.target is not torch.clear_autocast_cache for n in tx.tape.nodes)
    return Plan(list(walk.outputs), walk.numbers, effects, walk.shared, walk.cycles(), stack, local, kept, has_ops)


def is_given(node: Any) -> bool:
    """Whether the node is a symbolic float, read from the tensor it is passed in."""
    return node.target == "item" and bool(node.args[0].meta) and "float_as_tensor" in node.args[0].meta


def outlives(name: str, value: Any) -> bool:
    """Whether a variable that is not read again is handed on all the same: what it holds may run code when it dies.

    In CPython it would live as long as the frame: a temporary directory, an open file, a generator in a with block.
    """
    if value.source.__class__ is not Local or name.startswith("___"):      # our own names: the stack, handed over
        return False
    kind = value.py_type()
    if issubclass(kind, (torch.Tensor, torch.nn.Module)):
        return False
    return not is_static(kind) or kind is types.GeneratorType or hasattr(kind, "__del__")


def watchable(values: list[Any]) -> set[int]:
    """By id, the new objects within `values` that can be referred to weakly.

    Those given to the op that breaks live as long as the variables that hold them: it may have told somebody of them.
    """
    seen: dict[int, Any] = {}
    waiting = [value for value in values if isinstance(value, VariableTracker)]
    while waiting:
        value = waiting.pop()
        value = value.built or value if value.__class__ is LazyVariable else value
        if value.source is None and id(value) not in seen and not isinstance(value, (ConstantVariable, TensorVariable)):
            seen[id(value)] = value
            waiting += value.children()
    return {at for at, value in seen.items() if isinstance(value, ObjectVariable) and value.cls.__weakrefoffset__}


def own_cells(trace: Any) -> dict[int, Any]:
    """Changed cells that a returning frame made itself: they are written only if what leaves holds them."""
    if not hasattr(trace.exit, "value"):
        return {}
    tx = trace.tracer
    cells = [tx.root.cells[name] for name in trace.program.cellvars if name in tx.root.cells]
    return {id(cell): cell for cell in cells if id(cell) in tx.changed}


def cell_changed(tx: Any, cell: CellVariable) -> bool:
    return id(cell) in tx.changed
