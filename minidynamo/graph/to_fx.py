"""From tape to ``fx.GraphModule``: names, metadata, dead code, and the inputs really used."""
from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.immutable_collections import immutable_dict, immutable_list

from minidynamo.graph.ambient import one_grad_mode
from minidynamo.graph.symbols import SYMBOLIC
from minidynamo.graph.tape import Node, Tape, is_torch_or_builtin


@dataclasses.dataclass(slots=True)
class Lowered:
    """A graph and what to call it with."""

    gm: torch.fx.GraphModule
    inputs: list[Node]  # placeholders of the tape, in the graph's argument order
    example_inputs: list[Any]  # the users' values; symbolic numbers where an input is one
    grad_mode: bool | None = None  # the mode to call it in, if the ops all run in another than the caller's


def to_fx(tape: Tape, outputs: Sequence[Node], *, name: str = "graph",
          inputs: Sequence[Node] | None = None, lazy: bool = False, whole: bool = False) -> Lowered:
    """Lower the ops that matter; the graph returns the tuple of `outputs`.

    Its arguments are the used placeholders in tape order, or exactly `inputs` when given.
    `lazy` leaves Python for ``forward`` unwritten until it is called, 20 of 31 us a node: for
    backends that read the graph and never run the module.  A `whole` graph is called in its grad mode.
    """
    live = _live(tape.nodes, outputs)
    grad_mode = one_grad_mode(tape.nodes, live) if whole else None
    if inputs is None:
        inputs = [node for node in tape.nodes if node.kind == "placeholder" and live[node.index]]
    graph = torch.fx.Graph()
    root = torch.nn.Module()
    made: dict[Node, torch.fx.Node] = {}
    traces: dict[Any, str | None] = {}
    for node in inputs:
        made[node] = fx_node = _lower(graph, root, node, made)
        fx_node.meta["example_value"] = node.value
        if node.source is not None:
            fx_node.meta["source"] = node.source.text()
    for node in tape.nodes:
        if not live[node.index] or node.kind == "placeholder":
            continue
        made[node] = fx_node = _lower(graph, root, node, made)
        meta = fx_node.meta
        meta["example_value"] = node.value
        if node.where is not None:
            trace = _stack_trace(node.where, traces)
            if trace is not None:
                meta["stack_trace"] = trace
        if node.meta is not None:
            meta.update(node.meta)
    graph.output(tuple([made[node] for node in outputs]))
    module_class = _LazyGraphModule if lazy else torch.fx.GraphModule
    gm = module_class(root, graph, class_name=name)
    examples = [n.value if isinstance(n.value, SYMBOLIC) or n.real is None else n.real for n in inputs]
    return Lowered(gm, list(inputs), examples, grad_mode)


def _live(nodes: Sequence[Node], outputs: Sequence[Node]) -> bytearray:
    """A flag per node: it has effects, or something live reads it."""
    live = bytearray(len(nodes))
    for node in outputs:
        live[node.index] = 1
    for node in reversed(nodes):
        if live[node.index] or not is_pure(node):
            live[node.index] = 1
            for read in _reads(node):
                live[read.index] = 1
    return live


_PURE_KINDS = frozenset({"placeholder", "getitem", "get_attr"})
_PURE_METHODS = frozenset({"size", "dim", "numel", "stride", "storage_offset", "is_contiguous"})


def is_pure(node: Node) -> bool:
    """Surely without effect and unable to fail.  An unused tensor op may still raise: it stays."""
    if node.kind in _PURE_KINDS:
        return True
    if isinstance(node.value, SYMBOLIC):
        return is_torch_or_builtin(node.target)
    return node.kind == "call_method" and node.target in _PURE_METHODS


def _reads(node: Node) -> list[Node]:
    found: list[Node] = []
    stack: list[Any] = [node.args, node.kwargs]
    while stack:
        tree = stack.pop()
        if type(tree) is Node:
            found.append(tree)
        elif isinstance(tree, (tuple, list)):
            stack.extend(tree)
        elif type(tree) is dict:
            stack.extend(tree.values())
        elif type(tree) is slice:
            stack += (tree.start, tree.stop, tree.step)
    return found


def _lower(graph: torch.fx.Graph, root: torch.nn.Module, node: Node, made: dict[Node, torch.fx.Node]) -> torch.fx.Node:
    kind = node.kind
    if kind == "placeholder":
        return graph.create_node("placeholder", graph._graph_namespace.create_name(input_name(node), None))
    if kind == "get_attr":
        hint = re.sub(r"\W+", "_", node.name_hint or "constant")
        attr = graph._graph_namespace.create_name(hint if not hint[:1].isdigit() else "_" + hint, None)
        setattr(root, attr, node.value)
        return graph.create_node("get_attr", attr, name=attr)
    args, kwargs = _fx_args(node.args, made), _fx_args(node.kwargs, made)
    if kind == "getitem":
        return graph.create_node("call_function", operator.getitem, args, kwargs, node.name_hint)
    return graph.create_node(kind, node.target, args, kwargs, node.name_hint)


def input_name(node: Node) -> str:
    """``L['x'].__dict__['w'][0]`` -> ``L_x_w_0_``: readable, and the same from run to run."""
    if node.source is None:
        return node.name_hint or "arg"
    text = node.source.text().replace(".__dict__", "")
    name = re.sub(r"\W+", "_", text)
    return name if name.isidentifier() else "_" + name


def _fx_args(tree: Any, made: dict[Node, torch.fx.Node]) -> Any:
    kind = type(tree)
    if kind is Node:
        return made[tree]
    if kind is tuple:
        return tuple([_fx_args(v, made) for v in tree])
    if kind is list:
        return immutable_list([_fx_args(v, made) for v in tree])
    if kind is dict:
        return immutable_dict({k: _fx_args(v, made) for k, v in tree.items()})
    if kind is slice:
        return slice(_fx_args(tree.start, made), _fx_args(tree.stop, made), _fx_args(tree.step, made))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind(*[_fx_args(v, made) for v in tree])
    return tuple([_fx_args(v, made) for v in tree]) if isinstance(tree, tuple) else tree


def _stack_trace(where: Any, traces: dict[Any, str | None]) -> str | None:
    """Formatted once per position."""
    key = id(where)  # the tape keeps every `where` alive meanwhile
    if key not in traces:
        traces[key] = where.stack_trace() if hasattr(where, "stack_trace") else None
    return traces[key]
