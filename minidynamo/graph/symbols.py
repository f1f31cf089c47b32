"""Symbolic numbers on a tape: which node computes one, and nodes for those none computes yet.

A size becomes a node only when the graph uses it, so sizes that were merely compared or
passed through leave no ops behind.
"""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import sympy                               # type: ignore[import-untyped]
import torch
from torch.utils._sympy import functions as sf

from minidynamo.graph.fake import FakeError

if TYPE_CHECKING:
    from minidynamo.graph.tape import Node, Tape

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class UnknownSymbol(FakeError):
    """No node of the tape determines this symbol, or no op computes this expression."""



# How each sympy head is computed on Python numbers and on SymInts alike.
_OPS: dict[Any, Any] = {
    sympy.Add: operator.add, sympy.Mul: operator.mul, sympy.Pow: operator.pow,
    sf.FloorDiv: operator.floordiv, sf.CleanDiv: operator.floordiv, sf.IntTrueDiv: operator.truediv,
    sf.FloatTrueDiv: operator.truediv, sf.Mod: operator.mod, sf.PythonMod: operator.mod,
    sf.PowByNatural: operator.pow, sf.FloatPow: operator.pow,
    sf.Max: torch.sym_max, sf.Min: torch.sym_min, sympy.Max: torch.sym_max, sympy.Min: torch.sym_min,
    sf.ToFloat: torch.sym_float, sf.TruncToInt: torch.sym_int, sympy.Not: torch.sym_not,
    sympy.Eq: operator.eq, sympy.Ne: operator.ne, sympy.Lt: operator.lt, sympy.Le: operator.le,
    sympy.Abs: operator.abs, sympy.Gt: operator.gt, sympy.Ge: operator.ge, sympy.And: operator.and_, sympy.Or: operator.or_,
    sf.OpaqueUnaryFn_sqrt: torch._sym_sqrt,    # type: ignore[attr-defined]
}


class SymbolNodes:
    """Expression -> node, for one tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self._known: dict[sympy.Basic, Node] = {}

    def learn(self, node: Node) -> None:
        """`node` computes a number."""
        inner = node.value.node
        if inner.is_symbolic():
            self._known.setdefault(inner.expr, node)

    def forget(self, node: Node) -> None:
        if isinstance(node.value, SYMBOLIC) and node.value.node.is_symbolic():
            expr = node.value.node.expr
            if self._known.get(expr) is node:
                del self._known[expr]

    def operand(self, value: Any) -> Any:
        """What to put in an op's arguments for a symbolic number: a node, or a plain constant."""
        expr = value.node.expr if value.node.is_symbolic() else None
        if expr is None:
            return value.node.maybe_as_int() if isinstance(value, torch.SymInt) else value
        if expr.is_Integer:
            return int(expr)
        if expr.is_number and isinstance(value, torch.SymFloat):
            return float(expr)
        return self.node(value, None)

    def node(self, value: Any, where: Any) -> Node:
        return self.of_expression(value.node.expr, where)

    def of_expression(self, expr: sympy.Basic, where: Any) -> Node:
        """The node of any expression over symbols, with its subexpressions shared."""
        known = self._known.get(expr)
        if known is not None:
            return known
        if isinstance(expr, sympy.Symbol):
            return self.of_symbol(expr, where)
        op = _OPS.get(expr.func)
        if op is None or not expr.args:
            raise UnknownSymbol(str(expr))
        operands = [self._operand(a, where) for a in expr.args]
        if len(operands) == 1:
            return self.tape.call(op, operands, {}, where)
        total = operands[0]
        for right in operands[1:]:  # sympy's sums and products take any number of terms
            total = self.tape.call(op, (total, right), {}, where)
        return total

    def _operand(self, expr: sympy.Basic, where: Any) -> Any:
        if expr.is_Integer:
            return int(expr)
        if expr.is_Float or expr.is_Rational:
            return float(expr)
        return self.of_expression(expr, where)

    def of_symbol(self, symbol: sympy.Symbol, where: Any) -> Node:
        """Read the symbol off the first tensor that shows it bare as a size, stride or offset."""
        aten = torch.ops.aten
        for node in self.tape.nodes:
            fake = node.value
            if not isinstance(fake, torch.Tensor) or fake.layout is not torch.strided:
                continue
            for read, numbers in ((aten.sym_size.int, fake.shape), (aten.sym_stride.int, fake.stride())):
                for dim, number in enumerate(numbers):
                    if isinstance(number, torch.SymInt) and number.node.expr == symbol:
                        return self.tape.call(read, (node, dim), {}, where)
            offset = fake.storage_offset()
            if isinstance(offset, torch.SymInt) and offset.node.expr == symbol:
                return self.tape.call(aten.sym_storage_offset.default, (node,), {}, where)
        return self.tape.outer_symbol(symbol, where)
