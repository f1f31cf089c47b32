"""For tests: counting backends, `same`, and `check`, which compares eager and compiled in everything."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from minidynamo.api import optimize, reset
from minidynamo.base.config import config
from minidynamo.compiler.backends import resolve
from minidynamo.compiler.preserve import STATE, preserved
from minidynamo.observe import counters
from minidynamo.observe.describe import Described, Snapshot, describe, difference

__all__ = ["Checked", "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "Mismatch", "check", "same"]


# ------------------------------------------------------------------ backends that count
class CompileCounterWithBackend:
    """Counts graphs (`frame_count`) and their calls (`op_count`), keeps the graphs, and runs another backend."""

    def __init__(self, backend: Any = "eager") -> None:
        self.backend = resolve(backend)[0]
        self.frame_count: int = 0
        self.op_count: int = 0
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call_") for node in gm.graph.nodes)
        self.graphs.append(gm)
        made: Callable[..., Any] = self.backend(gm, example_inputs)
        return made

    def clear(self) -> None:
        self.frame_count = self.op_count = 0
        self.graphs.clear()


class CompileCounter(CompileCounterWithBackend):
    """The same over "eager"."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """Keeps each graph and its inputs."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []
        self.example_inputs: list[list[Any]] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        self.example_inputs.append(example_inputs)
        return gm.forward


def same(a: Any, b: Any, tol: float = 1e-4, equal_nan: bool = True, exact_dtype: bool = True) -> bool:
    """Whether two results are alike: types, structure, shared objects, and tensors within `tol`."""
    return difference(describe(a), describe(b), tol, exact_dtype, equal_nan) is None


# ------------------------------------------------------------------ check
class Mismatch(AssertionError):
    """Compiled and eager differ; the message names where."""


@dataclasses.dataclass
class Checked:
    """What `check` saw of the compiled runs."""

    result: Any
    graphs: list[torch.fx.GraphModule]
    breaks: Counter[str]
    skips: Counter[str]


@dataclasses.dataclass
class Outcome:
    """Everything one run did that a program could notice."""

    value: Any                      # the result, or None
    seen: Described                 # result, exception, arguments, globals, closure, RNG, torch state
    raised: BaseException | None
    stdout: str


def check(fn: Callable[..., Any], *args: Any, graphs: int | None = None, min_graphs: int | None = None,
          rewrite: bool = True, backend: Any = "eager", calls: int = 2, fullgraph: bool = False,
          dynamic: bool | None = None, cached: bool = True, backward: bool = False, tol: float = 0.0,
          make: Callable[[], tuple[Any, ...]] | None = None, skips: tuple[str, ...] | None = None,
          **kwargs: Any) -> Checked:
    """Run `fn` eager and compiled on copies of the arguments, `calls` times, and compare everything.

    Compared: result with types and shared objects, exception (type, arguments, cause, context, notes), stdout,
    arguments afterwards, the globals and closure cells `fn` names, random generators, torch's global state.

    graphs, min_graphs   how many graphs the backend must have been given after the last call
    rewrite    rewrite frames without a graph as well
    cached     later calls must compile nothing (not asked of calls that raise)
    backward   call ``backward()`` on the sum of the results and compare the gradients of the arguments
    make       returns fresh arguments for each run, where they cannot be copied
    skips      reason ids that may be given for skipped frames; None allows all but our own bugs
    """
    counting = CompileCounterWithBackend(backend)
    compiled = optimize(fn, backend=counting, fullgraph=fullgraph, dynamic=dynamic)
    fresh = make or (lambda: _copied(args))
    reset()
    with config.patch(rewrite_frames_without_graph=rewrite, error_on_internal=True):
        for turn in range(calls):
            kept = Snapshot.of(fn)
            eager = _run(fn, fn, fresh(), _copied(kwargs), backward)
            kept.restore()
            before = counters["frames"]["total"]
            ours = _run(compiled, fn, fresh(), _copied(kwargs), backward)
            kept.restore()
            _compare(eager, ours, turn, tol)
            made = counters["frames"]["total"] - before
            if turn and cached and made and ours.raised is None:
                raise Mismatch(f"call {turn + 1} compiled {made} frames again")
    found = Checked(ours.value, list(counting.graphs), Counter(counters["graph_break"]), Counter(counters["skips"]))
    _expect(found, graphs, min_graphs, skips)
    return found


def _run(call: Callable[..., Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
         backward: bool) -> Outcome:
    out = io.StringIO()
    value: Any = None
    raised: BaseException | None = None
    with preserved(), contextlib.redirect_stdout(out):
        _seed()
        try:
            value = call(*args, **kwargs)
            if backward:
                _backward(value)
        except Exception as error:      # compared below like any result
            raised = error
        after = {name: read() for name, (read, _) in STATE.items()}
    parts = {"result": value, "exception": raised, "arguments": (args, kwargs), "stdout": out.getvalue(),
             "named": Snapshot.named(fn), "state": after, "numpy": _numpy_state()}
    return Outcome(value, describe(parts), raised, out.getvalue())


def _compare(eager: Outcome, ours: Outcome, turn: int, tol: float) -> None:
    where = difference(eager.seen, ours.seen, tol)
    if where is None:
        return
    message = f"call {turn + 1}: eager and compiled differ at {where}"
    if ours.raised is not None and eager.raised is None:
        raise Mismatch(f"call {turn + 1}: compiled raised {type(ours.raised).__name__}: {ours.raised}") from ours.raised
    raise Mismatch(message) from ours.raised


def _expect(found: Checked, graphs: int | None, min_graphs: int | None, skips: tuple[str, ...] | None) -> None:
    count = len(found.graphs)
    if graphs is not None and count != graphs:
        raise Mismatch(f"{count} graphs, not {graphs}; breaks: {dict(found.breaks)}, skips: {dict(found.skips)}")
    if min_graphs is not None and count < min_graphs:
        raise Mismatch(f"{count} graphs, not {min_graphs} at least; breaks: {dict(found.breaks)}, "
                       f"skips: {dict(found.skips)}")
    if skips is not None and set(found.skips) - set(skips):
        raise Mismatch(f"frames were skipped: {dict(found.skips)}")


def _copied(values: Any) -> Any:
    """A deep copy; tensors that are results of other ops are detached first, as deepcopy cannot take them."""
    memo: dict[int, Any] = {}
    for tensor in _tensors(values):
        if not tensor.is_leaf:
            memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    return copy.deepcopy(values, memo)


def _tensors(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [t for item in tree for t in _tensors(item)] if isinstance(tree, (list, tuple)) else []


def _backward(value: Any) -> None:
    total = sum(t.double().abs().sum() for t in _tensors(value) if t.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()


def _seed() -> None:
    torch.manual_seed(1234)
    random.seed(1234)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(1234)


def _numpy_state() -> Any:
    return sys.modules["numpy"].random.get_state()[1].tolist() if "numpy" in sys.modules else None
