"""Restore: a Writer that knows how to put any value of a trace on the stack."""
from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from minidynamo.code import Writer
from minidynamo.codegen.plan import Plan
from minidynamo.interp.state import NULL
from minidynamo.model.variable import LazyVariable, VariableTracker
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.functions import ANNOTATIONS, CLOSURE, DEFAULTS, KWDEFAULTS, FunctionVariable


class Restore(Writer):
    """Values made once are kept in temporaries named ``___n``, so that identity survives."""

    def __init__(self, tx: Any, plan: Plan) -> None:
        super().__init__()
        self.tx, self.plan = tx, plan
        self.temps: dict[int, str] = {}               # id of a value -> local that holds it
        self.numbers: dict[Any, str] = {}             # expression -> local that holds its number
        self.outputs: dict[Any, str] = {}             # tape node -> local that holds it
        self.late: dict[int, bool] = {}               # id of a value -> whether it is made behind the effects
        self.written: set[str] = set()                # those of `steps` that hold it already
        self.steps: dict[Any, str] = {}               # source on the way to several inputs -> local that holds it

    # ---- the one way to a value
    def load(self, value: VariableTracker) -> None:
        """Leave `value` on the stack."""
        if value.__class__ is LazyVariable:
            value = value.built or value
        if value is NULL:
            self.op("PUSH_NULL")
            return
        known = self.temps.get(id(value))
        if known is not None:
            self.op("LOAD_LOCAL", known)
        elif value.source is not None:
            self.load_source(value.source)
        elif id(value) in self.plan.cyclic:
            self.load_cyclic(value)
        elif id(value) in self.tx.constant_tuples:
            self.load_const(self.tx.constant_tuples[id(value)])
        else:
            value.rebuild(self)
            if id(value) in self.plan.shared and id(value) not in self.temps:
                self.keep(value)

    def load_source(self, source: Any) -> None:
        """By the source's own path, or from the local where `share_steps` has had it kept."""
        name = self.steps.get(source)
        if name is None:
            source.load(self)
        elif name in self.written:
            self.op("LOAD_LOCAL", name)
        else:
            source.load(self)
            self.op("COPY", 1)
            self.op("STORE_LOCAL", name)
            self.written.add(name)

    def share_steps(self, sources: Iterable[Any]) -> None:
        """Walk each step that `sources` have in common once: a model's parameters lie below its modules.

        For straight-line code before any effect; a step is what it was on entry until then.
        """
        uses: Counter[Any] = Counter()
        for source in sources:
            step = source.base
            while step is not None and step.base is not None:
                uses[step] += 1
                if uses[step] > 1:
                    break
                step = step.base
        self.steps = {step: f"___p{at}" for at, step in enumerate(s for s, n in uses.items() if n > 1)}

    def load_cyclic(self, value: VariableTracker) -> None:
        """A new object that holds itself: it is made empty, known, and filled; a tuple when what it holds is known."""
        maker = self.plan.cyclic[id(value)]
        if maker is None and value.create is not None and value.fill is not None:
            value.create(self)
            self.keep(value)
            value.fill(self)
            return
        if maker is not None and id(maker) not in self.temps:
            self.load(maker)
            self.op("POP")
            self.load(value)
            return
        value.rebuild(self)
        if id(value) in self.temps:                   # what it holds has made it on the way
            self.op("POP")
            self.op("LOAD_LOCAL", self.temps[id(value)])
        else:
            self.keep(value)

    def load_inner(self, value: VariableTracker) -> None:
        """The builtin part of a subclass instance, as a plain builtin."""
        value.rebuild(self)

    def keep(self, value: VariableTracker) -> None:
        """The top of the stack is `value`; later loads find it."""
        name = f"___v{len(self.temps)}"
        self.temps[id(value)] = name
        self.op("COPY", 1)
        self.op("STORE_LOCAL", name)

    def settle(self, value: VariableTracker) -> None:
        """Have `value` in a temporary (literals need none)."""
        if value.__class__ is LazyVariable:
            value = value.built or value
        if value is NULL or id(value) in self.temps or (value.source is None and isinstance(value, ConstantVariable)):
            return
        if self.is_late(value):
            for child in value.children():
                self.settle(child)
            return
        self.load(value)
        if id(value) not in self.temps:
            self.keep(value)
        self.op("POP")

    def is_late(self, value: VariableTracker) -> bool:
        """Whether making `value` reads the state of an object that effects have yet to change (an iterator over a
        dict remembers its size): it is made behind them, from parts that are settled before."""
        if value.source is not None:
            return False
        known = self.late.get(id(value))
        if known is None:
            self.late[id(value)] = False              # for cycles
            reads = value.reads_when_made
            known = self.late[id(value)] = (
                reads is not None and id(reads()) in self.tx.changed
                or any(self.is_late(getattr(child, "built", None) or child) for child in value.children()))
        return known

    def stored_locals(self) -> list[str]:
        """Names of the locals written so far."""
        return [str(op.arg) for op in self._ops if op.name == "STORE_LOCAL"]

    # ---- the graph's results
    def graph_output(self, node: Any) -> None:
        if node not in self.outputs and node.source is not None:      # an input, where nothing was computed
            node.source.load(self)
        else:
            self.op("LOAD_LOCAL", self.outputs[node])

    def graph_number(self, value: Any) -> None:
        """A number computed before the graph ran, or one that came out of it."""
        known = self.numbers.get(value.node.expr)
        if known is not None:
            self.op("LOAD_LOCAL", known)
        else:
            self.graph_output(self.tx.tape.sym_node(value))

    # ---- helpers that kinds use
    def call_function(self, function: Callable[..., Any], *values: Any) -> None:
        """``function(*values)``; values are trackers, or literals."""
        self.begin_call_of(function)
        for value in values:
            if isinstance(value, VariableTracker):
                self.load(value)
            else:
                self.load_const(value)
        self.call(len(values))

    def set_attribute(self, obj: VariableTracker, name: str, value: VariableTracker | None,
                      base: type = object) -> None:
        """Set (or with None delete) an attribute through the base class's own slot: no user code runs."""
        if value is None:
            self.call_function(base.__delattr__, obj, name)
        else:
            self.call_function(base.__setattr__, obj, name, value)
        self.op("POP")

    def delete_cell(self, name: str) -> None:
        self.op("LOAD_CELL", name)
        self.begin_call_of(empty_cell)
        self.op("LOAD_CELL", name)
        self.call(1)
        self.op("POP")
        self.op("POP")

    def delete_contents(self, cell: VariableTracker) -> None:
        self.call_function(empty_cell, cell)
        self.op("POP")

    def make_function(self, function: FunctionVariable) -> None:
        """MAKE_FUNCTION with the parts a traced one was made with."""
        root = self.tx.root.scope
        if function.made_scope is not root:
            self.make_foreign_function(function)
            return
        flags = 0
        for bit in (DEFAULTS, KWDEFAULTS, ANNOTATIONS, CLOSURE):
            if bit in function.parts:
                self.load(function.parts[bit])
                flags |= bit
        self.load_object_unchecked(function.code)
        self.op("MAKE_FUNCTION", flags)

    def make_foreign_function(self, function: FunctionVariable) -> None:
        """A function made in an inlined frame of another module."""
        self.begin_call_of(function_in)
        self.load_object_unchecked(function.code)
        self.load_object_unchecked(function.made_scope.mapping)
        for bit in (DEFAULTS, KWDEFAULTS, ANNOTATIONS, CLOSURE):
            self.load(function.parts.get(bit, NONE))
        self.call(6)


def empty_cell(cell: types.CellType) -> None:
    """``del`` of a closure variable."""
    del cell.cell_contents


def function_in(code: types.CodeType, namespace: dict[str, Any], defaults: Any, kwdefaults: Any,
                annotations: Any, closure: Any) -> types.FunctionType:
    """What MAKE_FUNCTION makes in a frame with these globals."""
    function = types.FunctionType(code, namespace, None, defaults, closure)
    function.__kwdefaults__ = kwdefaults
    if annotations is not None:
        function.__annotations__ = annotations if isinstance(annotations, dict) else dict(
            zip(annotations[::2], annotations[1::2]))
    return function
