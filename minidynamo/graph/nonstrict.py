"""The callable inside a ``flat_apply`` node: a function that only the backend traces, and what it reads.

It is first run on the trace's fakes (`Body.observe`): then it finds the real tensors that the
function reads by itself, so that they become inputs of the graph, and it sees whether the
function does more than compute.  Later, in the graph, it runs the function with those tensors
given to it, so that AOT backends trace them as inputs and gradients reach them.
"""
from __future__ import annotations

import contextlib
import io
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._higher_order_ops.flat_apply import flat_apply, func_to_graphable, is_graphable
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

__all__ = ["Body", "Impure", "NotGraphable", "flat_apply", "func_to_graphable", "is_graphable"]


COMPUTED = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)


class NotGraphable(TypeError):
    """A leaf of the result that no graph can return."""


class Impure(Exception):
    """The function does more than compute; the message says what."""


class Replace(TorchFunctionMode):
    """Real tensors that a function reads by itself are replaced before each torch function."""

    def __init__(self, replacement: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.replacement = replacement

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map_only(torch.Tensor, self.replacement, (args, kwargs or {}))
        return func(*args, **kwargs)


class Body:
    """``body(*args, **kwargs)`` calls the user's function and answers the leaves of its result.

    With `captured` tensors, the first argument is the tuple of their stand-ins.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = _held(fn)
        self.captured: list[weakref.ref[torch.Tensor]] = []
        self.spec: Any = None                       # of the result, where nodes of the arguments are leaves
        self.same: dict[int, int] = {}              # leaf of the result -> node of the arguments it is
        self.literals: dict[int, Any] = {}          # leaf of the result -> its value; the others the graph returns
        self._lift: Callable[[torch.Tensor], torch.Tensor] | None = None

    @contextlib.contextmanager
    def observe(self, lift: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[None]:
        """The next run is on the trace's fakes; `lift` answers the fake of a real tensor that is read."""
        self._lift = lift
        try:
            yield
        finally:
            self._lift = None

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        if self._lift is not None:
            return self._observed(self._lift, args, kwargs)
        if not self.captured:
            return self._leaves(self._fn()(*args, **kwargs), (args, kwargs))
        given, args = args[0], args[1:]
        stand_ins = {id(real()): stand_in for real, stand_in in zip(self.captured, given)}
        if all(real() is stand_in for real, stand_in in zip(self.captured, given)):
            return self._leaves(self._fn()(*args, **kwargs), (args, kwargs))
        with Replace(lambda t: stand_ins.get(id(t), t)):
            return self._leaves(self._fn()(*args, **kwargs), (args, kwargs))

    def _fn(self) -> Callable[..., Any]:
        fn = self.fn()
        assert fn is not None, "a guard watches the function, and its death ends this entry"
        return fn

    def _observed(self, lift: Callable[[torch.Tensor], torch.Tensor], args: Any, kwargs: Any) -> list[Any]:
        """The run on fakes: remembers the shape of the result, and what else was done."""
        stand_ins: dict[int, torch.Tensor] = {}

        def replacement(tensor: torch.Tensor) -> torch.Tensor:
            if isinstance(tensor, FakeTensor):
                return tensor
            if id(tensor) not in stand_ins:
                stand_ins[id(tensor)] = lift(tensor)
                self.captured.append(weakref.ref(tensor))
            return stand_ins[id(tensor)]

        before, out = outline((args, kwargs)), io.StringIO()
        with Replace(replacement), contextlib.redirect_stdout(out):
            result = self._fn()(*args, **kwargs)
        if not same_outline(before, outline((args, kwargs))):
            raise Impure("it changes its arguments")
        if out.getvalue():
            raise Impure("it prints")
        nodes = {id(node): at for at, node in enumerate(before[0])}
        leaves, self.spec = pytree.tree_flatten(result, is_leaf=lambda node: id(node) in nodes)
        computed = []
        for at, leaf in enumerate(leaves):
            if id(leaf) in nodes:
                self.same[at] = nodes[id(leaf)]
            elif isinstance(leaf, COMPUTED):
                computed.append(replacement(leaf) if isinstance(leaf, torch.Tensor) else leaf)
            elif leaf is None or is_graphable(leaf):
                self.literals[at] = leaf
            else:
                raise NotGraphable(type(leaf).__name__)
        return computed

    def _leaves(self, result: Any, arguments: Any) -> list[Any]:
        """As flat as it was when observed, and only what is computed."""
        own = {id(node) for node in outline(arguments)[0]} if self.same else set()
        leaves = pytree.tree_leaves(result, is_leaf=lambda node: id(node) in own)
        return [leaf for at, leaf in enumerate(leaves) if at not in self.same and at not in self.literals]


def _held(fn: Callable[..., Any]) -> Callable[[], Callable[..., Any] | None]:
    """Weakly, so that a graph does not keep alive what a function closes over."""
    if isinstance(fn, types.MethodType):
        return weakref.WeakMethod(fn)
    try:
        return weakref.ref(fn)
    except TypeError:
        return lambda: fn


def outline(tree: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """(nodes, leaves, kinds and contexts) of a pytree, in the order of flattening."""
    nodes: list[Any] = []
    leaves: list[Any] = []
    kinds: list[Any] = []

    def visit(node: Any) -> None:
        if pytree.tree_is_leaf(node):
            leaves.append(node)
            return
        kind = pytree._get_node_type(node)
        children, context = pytree.SUPPORTED_NODES[kind].flatten_fn(node)
        nodes.append(node)
        kinds.append((kind, len(children), context))
        for child in children:
            visit(child)

    visit(tree)
    return nodes, leaves, kinds


def same_outline(a: tuple[list[Any], list[Any], list[Any]], b: tuple[list[Any], list[Any], list[Any]]) -> bool:
    return (len(a[1]) == len(b[1]) and all(x is y or (type(x) is type(y) and not isinstance(x, torch.Tensor) and x == y)
                                           for x, y in zip(a[1], b[1])) and a[2] == b[2])
