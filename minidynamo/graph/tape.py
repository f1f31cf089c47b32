"""Tape: the list of ops a trace recorded, with fake results; undone by truncation.

Nodes are plain records.  Names, fx nodes and formatted stack traces are made once, at the end,
by ``to_fx``, so nothing an abandoned instruction recorded leaves a mark.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from minidynamo.graph.ambient import current, is_switch, OPS
from minidynamo.graph.fake import FakeEnv, tensor_state
from minidynamo.graph.symbols import SYMBOLIC, SymbolNodes, UnknownSymbol

if TYPE_CHECKING:
    from minidynamo.base.journal import Journal
    from minidynamo.sources import Source


class Node:
    """One place on a tape.

    `value` is the fake result (any pytree), `where` an opaque user position (formatted only if
    it has ``stack_trace()``), `alias_of` the earlier node whose very object this one returned.
    """

    __slots__ = ("tape", "index", "kind", "target", "args", "kwargs", "value", "where", "source",
                 "name_hint", "alias_of", "real", "meta")

    def __init__(self, tape: Tape, kind: str, target: Any, args: tuple, kwargs: dict[str, Any],
                 value: Any, where: Any = None) -> None:
        self.tape, self.kind, self.target = tape, kind, target
        self.args, self.kwargs, self.value, self.where = args, kwargs, value, where
        self.index = -1
        self.source: Source | None = None
        self.name_hint: str | None = None
        self.alias_of: Node | None = None
        self.real: Any = None  # the user's value, of a placeholder
        self.meta: dict[str, Any] | None = None

    def __repr__(self) -> str:
        target = self.target if isinstance(self.target, str) else getattr(self.target, "__name__", self.target)
        return f"<%{self.index} {self.kind} {target}>"


class Tape:
    """Ops in program order over one FakeEnv."""

    def __init__(self, env: FakeEnv, journal: Journal) -> None:
        self.env, self.journal = env, journal
        self.nodes: list[Node] = []
        self.symbols = SymbolNodes(self)
        self._by_value: dict[int, Node] = {}  # id of a fake tensor -> first node with it
        self._items: dict[tuple[int, Any], Node] = {}  # (node index, item) -> node
        self._constants: dict[int, Node] = {}  # id of the object -> node

    # ---- recording
    def has_ops(self) -> bool:
        """Whether there is anything to compute."""
        return any(node.kind in OPS for node in self.nodes)

    def input(self, value: Any, source: Source, *, fake: Any = None) -> Node:
        """A placeholder for a user's value; `fake` is made (static) when not given."""
        if fake is None:
            fake = self.env.fakify(value, source) if isinstance(value, torch.Tensor) else value
        node = Node(self, "placeholder", None, (), {}, fake)
        node.source, node.real = source, value
        return self._append(node)

    def input_float(self, value: float, source: Source) -> Node:
        """The node of a symbolic float.  Its placeholder (``args[0]``) is a float64 scalar tensor:
        the caller of the graph must pass ``torch.tensor(x, dtype=torch.float64)``.
        """
        tensor, fake, number = self.env.symfloat(value, source)
        placeholder = self.input(tensor, source, fake=fake)
        placeholder.meta = {"float_as_tensor": True}
        return self._append(Node(self, "call_method", "item", (placeholder,), {}, number))

    def call(self, target: Callable[..., Any] | str, args: Sequence[Any], kwargs: Mapping[str, Any],
             where: Any = None, *, method: bool = False) -> Node:
        """Run `target` on the fake values and record it.  Raises a FakeError, recording nothing."""
        if method is not isinstance(target, str):
            raise TypeError(f"method={method} but target is {target!r}")
        own, own_kwargs = self._own(tuple(args)), self._own(dict(kwargs))
        values, kwvalues = values_of(own), values_of(own_kwargs)
        before = _states(values, kwvalues) if _may_change_layout(target, own_kwargs) else ()
        if callable(target) and is_switch(target):
            self.journal.did(target, *current(target, own))
        try:
            value = self.env.run(target, values, kwvalues)
        finally:
            # Also when it failed: the change may have happened before the failure.
            for fake, state in before:
                if tensor_state(fake)[1:] != state[1:]:
                    self.journal.barrier(f"{target} changed the metadata of a tensor in place")
                    break
        return self._append(Node(self, "call_method" if method else "call_function", target,
                                 own, own_kwargs, value, where))

    def record(self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], value: Any,
               where: Any = None) -> Node:
        """Record a call whose result on fakes is known already."""
        return self._append(Node(self, "call_function", target, self._own(tuple(args)), self._own(dict(kwargs)), value, where))

    def item(self, node: Node, index: Any, value: Any) -> Node:
        """``node[index]`` of a result that is a container; `value` is its fake."""
        key = (node.index, index)
        known = self._items.get(key)
        if known is None:
            known = self._append(Node(self, "getitem", operator.getitem, (node, index), {}, value, node.where))
            self._items[key] = known
            self.journal.did(self._items.pop, key)
        return known

    def constant(self, obj: Any, hint: str) -> Node:
        """An object stored on the GraphModule: a module, a spec, a subgraph, a callable."""
        known = self._constants.get(id(obj))
        if known is None:
            known = Node(self, "get_attr", None, (), {}, obj)
            known.name_hint = hint
            self._append(known)
            self._constants[id(obj)] = known
            self.journal.did(self._constants.pop, id(obj))
        return known

    def sym_node(self, value: torch.SymInt | torch.SymFloat | torch.SymBool, where: Any = None) -> Node:
        """The node that computes a symbolic number; recorded now if there is none."""
        return self.symbols.node(value, where)

    # ---- the one way in, and its inverse
    def _append(self, node: Node) -> Node:
        node.index = len(self.nodes)
        value = node.value
        if isinstance(value, torch.Tensor):
            node.alias_of = self._by_value.setdefault(id(value), node)
            if node.alias_of is node:
                node.alias_of = None
        elif isinstance(value, SYMBOLIC):
            self.symbols.learn(node)
        self.nodes.append(node)
        self.journal.did(self._drop_last)
        return node

    def _drop_last(self) -> None:
        node = self.nodes.pop()
        if self._by_value.get(id(node.value)) is node:
            del self._by_value[id(node.value)]
        self.symbols.forget(node)

    def _own(self, tree: Any) -> Any:
        """`tree` with symbolic numbers and other tapes' nodes replaced by nodes of this tape."""
        kind = type(tree)
        if kind is Node:
            return tree if tree.tape is self else self.capture(tree)
        if kind in _ATOMS:
            return tree
        if kind is dict:
            return {k: self._own(v) for k, v in tree.items()}
        if kind is slice:
            return slice(self._own(tree.start), self._own(tree.stop), self._own(tree.step))
        if isinstance(tree, tuple):
            items = [self._own(v) for v in tree]
            return kind(*items) if hasattr(tree, "_fields") else tuple(items)
        if isinstance(tree, list):
            return [self._own(v) for v in tree]
        if kind in SYMBOLIC:
            return self.symbols.operand(tree)
        return tree

    def capture(self, node: Node) -> Node:
        """A node of another tape used here; only child tapes can (see ``subgraph``)."""
        raise ValueError(f"{node!r} belongs to another tape")

    def outer_symbol(self, symbol: Any, where: Any) -> Node:
        """A symbol nothing on this tape shows; child tapes ask their parent."""
        raise UnknownSymbol(str(symbol))


_ATOMS = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device, complex, bytes, type(Ellipsis)})


def values_of(tree: Any) -> Any:
    """`tree` with each Node replaced by its fake value."""
    kind = type(tree)
    if kind is Node:
        return tree.value
    if kind in _ATOMS:
        return tree
    if kind is dict:
        return {k: values_of(v) for k, v in tree.items()}
    if kind is slice:
        return slice(values_of(tree.start), values_of(tree.stop), values_of(tree.step))
    if isinstance(tree, tuple):
        items = [values_of(v) for v in tree]
        return kind(*items) if hasattr(tree, "_fields") else tuple(items)
    if isinstance(tree, list):
        return [values_of(v) for v in tree]
    return tree


def is_torch_or_builtin(target: Any) -> bool:
    """Not a user's function: a method name, or from torch, ``operator`` or C."""
    if isinstance(target, str):
        return True
    module = getattr(target, "__module__", None)
    return not module or module.partition(".")[0] in ("torch", "_operator", "builtins", "math")


def _may_change_layout(target: Any, kwargs: Mapping[str, Any]) -> bool:
    """In-place by name, or not torch's own; torch's other functions leave metadata alone."""
    if not is_torch_or_builtin(target):
        return True
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = name.partition(".")[0]  # operator overloads: add_.Tensor
    if name.startswith("__"):
        return name.startswith("__i") or name in ("__setitem__", "__set__")
    return name.endswith("_") or "out" in kwargs or name in _WRITERS or name in _INPLACE_OPERATORS


_WRITERS = frozenset({"setattr", "set_data", "setitem"})
_INPLACE_OPERATORS = frozenset(["iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul",
                                "ior", "ipow", "irshift", "isub", "itruediv", "ixor"])


def _states(*trees: Any) -> list[tuple[torch.Tensor, tuple]]:
    """Every tensor in the trees with its state."""
    found: list[tuple[torch.Tensor, tuple]] = []
    stack: list[Any] = list(trees)
    while stack:
        tree = stack.pop()
        if isinstance(tree, torch.Tensor):
            found.append((tree, tensor_state(tree)))
        elif isinstance(tree, (tuple, list)):
            stack.extend(tree)
        elif isinstance(tree, dict):
            stack.extend(tree.values())
    return found
