"""Assumptions: a branch on a tensor whose one side can only raise is taken to be the other, and the graph checks it.

The condition is an output of the graph, looked at before anything else is done.  Where the assumption does not hold
the original code runs from the start (codegen/rerun.py) and raises what Python raises, where it does.  A frame that
cannot start again breaks at its first assumption instead: planning says so.
"""
from __future__ import annotations

from typing import Any

from minidynamo import reasons
from minidynamo.interp.state import Frame
from minidynamo.reasons import Stop
from minidynamo.variables.tensors import TensorVariable

LONGEST = 200       # ops looked at on the way to a raise


class Assumption:
    """One branch that was taken without knowing: `value` is taken to be as true as `truth`."""

    kind = "assumption"

    def __init__(self, tx: Any, value: TensorVariable, truth: bool) -> None:
        self.value, self.truth, self.lost_at = value, truth, tx.root_step
        self.stop = Stop(reasons.DATA_DEPENDENT_BRANCH, {"text": tx.where().text()}, tx.where())


def assumed(tx: Any, frame: Frame, op: Any, value: TensorVariable, after: int) -> bool | None:
    """The truth of `value` under which the jump `op` does not lead to a raise; None if nothing can be assumed.

    `after` is where the frame goes on without the jump.
    """
    if tx.pure is not None or value.fake.numel() != 1 or value.node.kind == "placeholder":
        return None
    jump = op.arg == "true"
    raising = [truth for truth, at in ((jump, op.target), (not jump, after)) if only_raises(frame.ops, at)]
    if len(raising) != 1:
        return None
    tx.journal.append(tx.assumptions, Assumption(tx, value, not raising[0]))
    return not raising[0]


def only_raises(ops: Any, at: int) -> bool:
    """Whether all ways from here, forwards, end in a raise that nothing in the frame handles."""
    waiting, seen = [at], set()
    while waiting:
        at = waiting.pop()
        op = ops[at]
        if at in seen or op.name == "RAISE" and op.handler is None:
            continue
        seen.add(at)
        if op.name in ("RAISE", "RETURN", "RERAISE", "YIELD") or 0 <= op.target <= at or len(seen) > LONGEST:
            return False
        if op.target >= 0:
            waiting.append(op.target)
        if op.name != "JUMP":
            waiting.append(at + 1)
    return True
