"""Higher-order ops: functions traced onto a child tape (checkpoint, cond); their bodies may only compute."""
from __future__ import annotations

from typing import Any

import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.wrap import tag_activation_checkpoint
from torch.utils.checkpoint import checkpoint

from minidynamo import reasons
from minidynamo.graph.subgraph import ChildTape
from minidynamo.graph.tape import Node
from minidynamo.model.tables import torch_rule
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import LazyVariable, NotConstant, VariableTracker, real
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable
from minidynamo.variables.symbols import SymVariable
from minidynamo.variables.tensors import TensorVariable, from_value

# Parts of the names of ops that draw random numbers, or may.
RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal_", "uniform", "exponential_", "cauchy_", "geometric_",
          "poisson", "rrelu", "attention", "gumbel", "binomial", "lstm", "gru", "rnn", "normal")
NOT_RANDOM = ("normalize", "layer_norm", "norm")


class Body:
    """One function traced: the child tape, and its result as a tree whose leaves are numbers of outputs."""

    def __init__(self, tx: Any, op: str, fn: VariableTracker, args: list, kwargs: dict) -> None:
        self.tx, self.op = tx, op
        self.outputs: list[Node] = []
        self.child = ChildTape(tx.tape)
        self.result = self.trace(fn, args, kwargs)

    def trace(self, fn: VariableTracker, args: list, kwargs: dict) -> Any:
        """Outer tensors, arguments or not, become captures; anything the body changes outside is refused."""
        tx, parent = self.tx, self.tx.tape
        outside = reachable(tx, [fn, *args, *kwargs.values()])
        before, grad = list(tx.changed), torch.is_grad_enabled()
        tx.journal.set(tx, "tape", self.child)
        tx.journal.set(tx, "pure", (self.op, outside))
        try:
            result = self.flat(tx.call(fn, args, kwargs))
        except Raised as raised:
            self.refuse(f"it raises {raised.exc.py_type().__name__}")
        tx.journal.set(tx, "tape", parent)
        tx.journal.set(tx, "pure", None)
        if list(tx.changed) != before or torch.is_grad_enabled() != grad:
            self.refuse("it changes something outside")
        for node in self.child.nodes:
            if node.kind in ("call_function", "call_method") and draws(node):
                self.refuse("it draws random numbers")
        return result

    def refuse(self, why: str) -> Any:
        return self.tx.stop(reasons.HIGHER_ORDER_BODY, op=self.op, why=why)

    def flat(self, value: VariableTracker) -> Any:
        """Tensors to outputs, containers kept; anything else must be a literal."""
        value = real(self.tx, value)
        if isinstance(value, TensorVariable):
            self.outputs.append(value.node)
            return len(self.outputs) - 1
        if isinstance(value, SymVariable):
            return self.refuse("it returns a symbolic number")
        if value.source is None and type(value) in (ListVariable, TupleVariable):
            return type(value), [self.flat(v) for v in value.items]
        if value.source is None and type(value) is DictVariable:
            return DictVariable, [(k, self.flat(v)) for k, v in value.entries.values()]
        try:
            return ConstantVariable(value.as_constant())
        except (NotConstant, TypeError):
            return self.refuse(f"it returns a {value.py_type().__name__}")

    def unflat(self, tree: Any, node: Node) -> VariableTracker:
        """The result over the outputs of the op's own node."""
        tx = self.tx
        if isinstance(tree, int):
            value = node.value[tree]
            return from_value(tx, value, tx.tape.item(node, tree, value))
        if isinstance(tree, ConstantVariable):
            return tree
        kind, parts = tree
        if kind is DictVariable:
            return DictVariable.of_pairs(tx, [(k, self.unflat(v, node)) for k, v in parts])
        return kind([self.unflat(v, node) for v in parts])

    def check_inputs(self) -> None:
        """An input written in place would be written again by a recomputation, or in the branch not taken."""
        for node in self.child.nodes:
            name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
            if node.kind in ("call_function", "call_method") and (
                    name.endswith("_") and not name.endswith("__") or name in ("setitem", "setattr") or "out" in node.kwargs
                    or name.startswith("i") and name[1:] in IN_PLACE):
                self.refuse("it writes in place")


IN_PLACE = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"})


def draws(node: Node) -> bool:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    return any(part in name for part in RANDOM) and not any(part in name for part in NOT_RANDOM)


def reachable(tx: Any, roots: list[VariableTracker]) -> set[int]:
    """Ids of values that the body can reach without a path from the arguments: what this trace has made."""
    found: set[int] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value.__class__ is LazyVariable:          # not looked at yet, so nothing made here is behind it
            value = value.built                      # type: ignore[attr-defined]
        if value is None or id(value) in found:
            continue
        found.add(id(value))
        stack.extend(value.children())
    return found


# ---------------------------------------------------------------- checkpoint
@torch_rule(getattr(checkpoint, "__wrapped__", checkpoint))
def call_checkpoint(tx, function, *args, use_reentrant=None, context_fn=None, determinism_check=None, debug=None,
                    early_stop=None, preserve_rng_state=None, **kwargs):
    """One node that the backend may recompute.  Without gradients, checkpoint is the call itself."""
    if not (isinstance(use_reentrant, ConstantVariable) and use_reentrant.value is False) or context_fn is not None:
        tx.stop(reasons.HIGHER_ORDER_BODY, op="checkpoint", why="only use_reentrant=False without context_fn is modelled")
    if not torch.is_grad_enabled():
        return tx.call(function, list(args), kwargs)
    body = Body(tx, "checkpoint", function, list(args), kwargs)
    body.check_inputs()
    child = body.child.finish(body.outputs, name="checkpoint_body")
    # The body has just run on fakes: its outputs are the node's, and nothing is run again.
    node = tx.tape.record(tag_activation_checkpoint, (tx.tape.constant(child.gm, "checkpoint_body"), *child.captures), {},
                          tuple([n.value for n in child.outputs]), tx.place())
    return body.unflat(body.result, node)


# ---------------------------------------------------------------- cond
@torch_rule(torch.cond)
def call_cond(tx, pred, true_fn, false_fn, operands=None):
    """Both branches traced; a predicate that is known takes one."""
    args = [] if operands is None else tx.collect(operands)
    args = [real(tx, a) for a in args]
    if not isinstance(pred, TensorVariable):
        known = pred.nb_bool(tx) if isinstance(pred, SymVariable) else pred
        if not isinstance(known, ConstantVariable):
            tx.stop(reasons.HIGHER_ORDER_BODY, op="cond", why=f"the predicate is a {pred.py_type().__name__}")
        return tx.call(true_fn if known.value else false_fn, args)
    if pred.fake.numel() != 1:
        tx.stop(reasons.HIGHER_ORDER_BODY, op="cond", why="the predicate is not one number")
    yes, no = (Body(tx, "cond", fn, args, {}) for fn in (true_fn, false_fn))
    for body in (yes, no):
        body.check_inputs()
    if shape_of(yes.result) != shape_of(no.result) or any(
            metadata(a.value) != metadata(b.value) for a, b in zip(yes.outputs, no.outputs)):
        tx.stop(reasons.HIGHER_ORDER_BODY, op="cond", why="its branches return different things")
    for body in (yes, no):
        for node in body.outputs:
            if node.tape is not body.child or node.kind == "placeholder":
                body.refuse("a branch returns one of its inputs")
    captures = list(dict.fromkeys([*yes.child.captures, *no.child.captures]))
    made = [finish_with(body, captures) for body in (yes, no)]
    names = [tx.tape.constant(child.gm, hint) for child, hint in zip(made, ("true_branch", "false_branch"))]
    node = tx.emit_node(cond_op, (pred.node, *names, tuple(captures)), {})
    return yes.unflat(yes.result, node)


def finish_with(body: Body, captures: list[Node]) -> Any:
    """Both branches take the same inputs in the same order."""
    for node in captures:
        body.child.capture(node)
    body.child.captures[:] = captures
    return body.child.finish(body.outputs, name="branch")


def shape_of(tree: Any) -> Any:
    """The tree with literals compared by value."""
    if isinstance(tree, ConstantVariable):
        return ("constant", type(tree.value), repr(tree.value))
    if isinstance(tree, tuple):
        kind, parts = tree
        return kind, [(repr(p[0].as_constant()), shape_of(p[1])) if kind is DictVariable else shape_of(p) for p in parts]
    return tree


def metadata(fake: torch.Tensor) -> tuple:
    return fake.dtype, fake.device, fake.layout, tuple(fake.shape), fake.stride() if fake.layout is torch.strided else None
