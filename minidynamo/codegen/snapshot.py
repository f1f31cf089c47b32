"""What is kept before a graph runs, so that after an error in it the frame can start again.

Kept only where an op of the graph may refuse the values it meets (an index out of range, a singular matrix): the
state of the random generators, and small inputs that the graph writes to.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from minidynamo.graph.fake import tensor_state
from minidynamo.graph.tape import is_torch_or_builtin

# Parts of names of ops that may refuse values which their fakes accept ...
MAY_FAIL = ("index", "gather", "scatter", "take", "embedding", "nll_loss", "cross_entropy", "one_hot", "cholesky", "inv",
            "solve", "linalg", "eig", "lstsq", "bincount", "multinomial", "bernoulli", "normal", "poisson", "masked",
            "repeat_interleave", "assert", "put", "histc", "svd", "qr", "det", "pinv", "logdet", "ctc")
# ... of integers, for zero ...
DIVISIONS = ("div", "remainder", "mod")
# ... that draw random numbers ...
RANDOM = ("dropout", "rand", "bernoulli", "multinomial", "normal", "rrelu", "poisson", "exponential", "cauchy",
          "geometric", "uniform", "gumbel", "scaled_dot_product", "multi_head", "lstm", "gru", "rnn",
          "fractional_max_pool")
# ... that write to arguments without a trace in the fakes, and that nothing can take back.
WRITES_STATISTICS = ("batch_norm", "instance_norm")
FOR_GOOD = ("manual_seed", "_assert_async", "set_rng_state")
MOST = 1 << 18                                  # elements copied at most


@dataclasses.dataclass(frozen=True)
class Kept:
    """Sources of the tensors to copy, and whether the generators' state is needed."""

    sources: tuple[Any, ...] = ()
    random: bool = False


def what_to_keep(tx: Any) -> Kept | None:
    """What must be kept for a second run to be as good as the first; None where nothing makes it so."""
    calls = [node for node in tx.tape.nodes if node.kind in ("call_function", "call_method")]
    if not all(can_repeat(node) for node in calls):
        return None
    changed = [node for node in tx.tape.nodes if node.kind == "placeholder" and written(tx, node)]
    for node in calls:
        if has_part(node, WRITES_STATISTICS):
            changed += [arg for arg in (*node.args, *node.kwargs.values())
                        if getattr(arg, "kind", "") == "placeholder" and not arg.value.requires_grad]
    random = any(has_part(node, RANDOM) for node in calls)
    if not changed and not random:
        return Kept()
    if not (tx.assumptions or any(may_fail(node) for node in calls)) or not all(can_copy(node) for node in changed):
        return None
    changed = list(dict.fromkeys(changed))
    if sum(node.real.numel() for node in changed) > MOST:
        return None
    return Kept(tuple(node.source for node in changed), random)


def written(tx: Any, node: Any) -> bool:
    return any(record.fake is node.value and record.state and tensor_state(record.fake) != record.state
               for record in tx.env.faked)


def can_copy(node: Any) -> bool:
    """Only values were written: the tensor has no history, before or after, and its layout is as it was."""
    real = node.real
    return isinstance(real, torch.Tensor) and node.source is not None and not real.requires_grad \
        and not node.value.requires_grad and real.layout is torch.strided and real.shape == node.value.shape \
        and not real.is_inference()


def can_repeat(node: Any) -> bool:
    target = node.target
    if isinstance(target, torch._ops.OpOverload) and target.namespace not in ("aten", "prims"):
        return False
    if isinstance(target, (torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator)):
        return False
    module = "" if isinstance(target, str) else getattr(target, "__module__", None) or ""
    return is_torch_or_builtin(target) and not module.startswith("torch.distributed") \
        and not has_part(node, FOR_GOOD) and node.kwargs.get("generator") is None


def may_fail(node: Any) -> bool:
    name = name_of(node)
    if "item" in name:                          # getitem and setitem: by tensors
        return len(node.args) > 1 and has_tensor(node.args[1])
    if any(part in name for part in DIVISIONS):
        value = node.value
        return isinstance(value, torch.Tensor) and not value.dtype.is_floating_point and not value.dtype.is_complex
    return any(part in name for part in MAY_FAIL)


def has_tensor(tree: Any) -> bool:
    if isinstance(tree, (tuple, list)):
        return any(has_tensor(part) for part in tree)
    return isinstance(getattr(tree, "value", None), torch.Tensor)


def has_part(node: Any, parts: tuple[str, ...]) -> bool:
    name = name_of(node)
    return any(part in name for part in parts)


def name_of(node: Any) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


# ---------------------------------------------------------------- at run time
class Snapshot:
    """Copies of tensors and of the generators' state."""

    __slots__ = ("copies", "cpu", "cuda")

    def __init__(self, random: bool, tensors: tuple[torch.Tensor, ...]) -> None:
        self.copies = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self.cpu = torch.get_rng_state() if random else None
        self.cuda = torch.cuda.get_rng_state_all() if random and torch.cuda.is_initialized() else None

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, copy in self.copies:
                tensor.copy_(copy)
        if self.cpu is not None:
            torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)


def keep(random: bool, *tensors: torch.Tensor) -> Snapshot:
    return Snapshot(random, tensors)


LOCAL = "___kept"


def emit_keep(out: Any, kept: Kept) -> None:
    """Before the graph is called."""
    if not kept.sources and not kept.random:
        return
    out.begin_call_of(keep)
    out.load_const(kept.random)
    for source in kept.sources:
        source.load(out)
    out.call(1 + len(kept.sources))
    out.op("STORE_LOCAL", LOCAL)


def emit_forget(out: Any, kept: Kept) -> None:
    """After the graph has run well."""
    if kept.sources or kept.random:
        out.op("DELETE_LOCAL", LOCAL)


def emit_restore(out: Any, kept: Kept) -> None:
    """After it has failed."""
    if not kept.sources and not kept.random:
        return
    out.begin_call_of(Snapshot.restore)
    out.op("LOAD_LOCAL", LOCAL)
    out.call(1)
    out.op("POP")
    out.op("DELETE_LOCAL", LOCAL)
