"""When the graph raises: the frame starts again as plain Python, wherever nothing has happened yet that shows.

An op may accept its inputs when traced and refuse their values when the graph runs (an index out of range, a
matrix that is not positive definite).  No effect has been replayed by then, so the original code, which follows the
compiled code in the same code object, can run from the start: it raises where Python raises, after what Python does
before, inside the user's own ``try`` blocks.  A graph that wrote to its inputs, drew random numbers, or called
anything but torch's own ops is not run twice; its error leaves the frame, with torch's state as on entry.
"""
from __future__ import annotations

from typing import Any

import torch

from minidynamo.code import Label
from minidynamo.graph.ambient import AMBIENT
from minidynamo.graph.tape import is_torch_or_builtin

# Parts of the names of ops that draw random numbers, or write to an argument without bumping its version.
UNREPEATABLE = ("dropout", "rand", "bernoulli", "multinomial", "normal", "rrelu", "poisson", "exponential", "cauchy",
                "geometric", "uniform", "gumbel", "scaled_dot_product", "multi_head", "lstm", "gru", "rnn",
                "batch_norm", "instance_norm", "fractional_max_pool", "manual_seed", "_assert_async", "put_")


def repeatable(tx: Any) -> bool:
    """Whether running the graph a second time, after an error in it, is as good as running it once."""
    if tx.env.inputs_changed():
        return False
    return all(node.kind not in ("call_function", "call_method") or repeatable_op(node.target) for node in tx.tape.nodes)


def repeatable_op(target: Any) -> bool:
    if isinstance(target, torch._ops.OpOverload) and target.namespace not in ("aten", "prims"):
        return False
    if isinstance(target, (torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator)):
        return False
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    module = "" if isinstance(target, str) else getattr(target, "__module__", None) or ""
    return is_torch_or_builtin(target) and not module.startswith("torch.distributed") \
        and not any(part in name for part in UNREPEATABLE)


def switched(tx: Any) -> list[Any]:
    """Entry settings of the state that the graph switches."""
    setters = {node.target for node in tx.tape.nodes if node.target in AMBIENT}
    return [(setter, args) for setter, args in tx.on_entry if setter in setters]


def must_be_error(error: BaseException) -> None:
    """Only errors start the frame again, not the user's Ctrl-C."""
    if not isinstance(error, Exception):
        raise error


def graph_failed(out: Any, tx: Any, original: Label | None, set_state: Any) -> None:
    """The handler of the graph call; the stack holds the exception."""
    set_state(out, switched(tx))
    if original is None:
        out.op("RERAISE", 0)
        return
    out.op("STORE_LOCAL", "___error")
    out.begin_call()
    out.load_object_unchecked(must_be_error)
    out.callable_done()
    out.op("LOAD_LOCAL", "___error")
    out.op("DELETE_LOCAL", "___error")      # or the error would hold the frame that holds it
    out.call(1)
    out.op("POP")
    out.op("JUMP", target=original)
