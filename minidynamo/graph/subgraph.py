"""Child tapes: the body of a higher-order op, its captures lifted to extra inputs.

The caller traces a function onto a `ChildTape`, closes it with `finish`, puts the resulting
module on the parent with ``parent.constant(body.gm, hint)`` and passes ``body.captures``
(nodes of the parent) after the explicit operands.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch.fx

from minidynamo.graph.tape import Node, Tape
from minidynamo.graph.to_fx import to_fx


@dataclasses.dataclass(slots=True)
class Body:
    """A finished child."""

    gm: torch.fx.GraphModule
    captures: list[Node]  # nodes of the parent, one per extra input
    outputs: list[Node]  # nodes of the child


class ChildTape(Tape):
    """A tape whose inputs are nodes of its parent; same fakes, same journal."""

    def __init__(self, parent: Tape) -> None:
        super().__init__(parent.env, parent.journal)
        self.parent = parent
        self.operands: list[Node] = []
        self.captures: list[Node] = []  # of the parent
        self._lifted: dict[Node, Node] = {}  # outer -> ours

    def operand(self, outer: Node, *, value: Any = None, hint: str = "arg") -> Node:
        """The next explicit input: `outer`'s value, or `value` where the body sees another (a slice)."""
        node = self._placeholder(outer.value if value is None else value, hint)
        self.journal.append(self.operands, node)
        return node

    def capture(self, node: Node) -> Node:
        """An outer node used inside, lifted to an extra input; lifted through every level between."""
        outer = node if node.tape is self.parent else self.parent.capture(node)
        known = self._lifted.get(outer)
        if known is None:
            if outer.kind == "get_attr":
                known = self.constant(outer.value, outer.name_hint or "constant")
            else:
                known = self._placeholder(outer.value, "captured")
                self.journal.append(self.captures, outer)
            self.journal.put(self._lifted, outer, known)
        return known

    def input(self, value: Any, source: Any, *, fake: Any = None) -> Node:
        """Users' values enter at the root and are captured like any other outer value."""
        return self.parent.input(value, source, fake=fake)

    def input_float(self, value: float, source: Any) -> Node:
        return self.parent.input_float(value, source)

    def outer_symbol(self, symbol: Any, where: Any) -> Node:
        symbols = self.parent.symbols
        return self.capture(symbols.of_expression(symbol, where))

    def _placeholder(self, value: Any, hint: str) -> Node:
        node = Node(self, "placeholder", None, (), {}, value)
        node.name_hint = hint
        return self._append(node)

    def finish(self, outputs: Sequence[Node], *, name: str = "body") -> Body:
        """The body as a module taking the operands, then the captures.

        Every input is kept, used or not: the higher-order op passes them by position.
        """
        own = [self._own(node) for node in outputs]
        inputs = self.operands + [self._lifted[outer] for outer in self.captures]
        lowered = to_fx(self, own, name=name, inputs=inputs)
        return Body(lowered.gm, list(self.captures), own)
