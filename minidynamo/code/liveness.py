"""Liveness: what is live, how deep the stack is, what is surely bound, where the loops are.

Every answer is kept in ``Program.memo``.  An op with a handler may go to it; state on that
edge is the state before the op.
"""
from __future__ import annotations

from minidynamo.code.ops import JUMP_EFFECT, NO_FALL_THROUGH, pops, pushes
from minidynamo.code.program import Op, Program


class StackError(Exception):
    """The program's stack does not balance: a bug in whoever wrote it."""


def stack_depths(program: Program) -> list[int | None]:
    """Stack depth before each op; None where control cannot come."""
    found = program.memo.get("stack_depths")
    if found is None:
        found = program.memo["stack_depths"] = _stack_depths(program)
    return found


def _stack_depths(program: Program) -> list[int | None]:
    ops = program.ops
    depths: list[int | None] = [None] * len(ops)
    todo = [(0, 0)]
    while todo:
        index, depth = todo.pop()
        while True:
            if index >= len(ops):
                raise StackError(f"{program.qualname}: control falls off the end")
            seen = depths[index]
            if seen is not None:
                if seen != depth:
                    raise StackError(f"{program.qualname}: op {index} {ops[index]!r} is reached "
                                     f"at depths {seen} and {depth}")
                break
            depths[index] = depth
            op = ops[index]
            if op.handler is not None:
                todo.append((op.handler.target, op.handler.depth + op.handler.push_lasti + 1))
            taken = pops(op.name, op.arg)
            if depth < taken:
                raise StackError(f"{program.qualname}: op {index} {op!r} takes {taken} "
                                 f"of {depth} stack entries")
            if op.target >= 0:
                todo.append((op.target, depth + JUMP_EFFECT[op.name]))
            if op.name in NO_FALL_THROUGH:
                break
            depth += pushes(op.name, op.arg) - taken
            index += 1
    return depths


# ---- live locals
_READS = frozenset({
    "LOAD_LOCAL", "LOAD_LOCAL_CLEAR", "DELETE_LOCAL", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF",
    # a write to a cell is seen by whoever shares it, so the cell itself must be there
    "LOAD_CELL", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "MAKE_CELL"})
_WRITES = frozenset({"STORE_LOCAL", "LOAD_LOCAL_CLEAR", "DELETE_LOCAL"})


def live_locals(program: Program) -> list[frozenset[str]]:
    """Names read before they are written, before each op.

    Cell and free variables count as read wherever their cell is used.  A body that names ``super``
    reads its first argument and ``__class__`` everywhere: a bare ``super()`` finds them in the frame.
    """
    found = program.memo.get("live_locals")
    if found is None:
        found = program.memo["live_locals"] = _live_locals(program)
    return found


def _live_locals(program: Program) -> list[frozenset[str]]:
    ops = program.ops
    bits: dict[str, int] = {}
    always = 0
    if any(op.name == "LOAD_GLOBAL" and op.arg == "super" for op in ops):
        for name in (str(program.first_argument()), "__class__"):
            always |= bits.setdefault(name, 1 << len(bits))
    reads, keeps = [always] * len(ops), [-1] * len(ops)
    for index, op in enumerate(ops):
        if op.name in _READS:
            reads[index] |= bits.setdefault(op.arg, 1 << len(bits))
        if op.name in _WRITES:
            keeps[index] = ~bits.setdefault(op.arg, 1 << len(bits))
    before = _backward(ops, reads, keeps)
    if "__class__" not in program.freevars and "__class__" not in program.cellvars:
        bits.pop("__class__", None)
    sets: dict[int, frozenset[str]] = {}
    for mask in set(before):
        sets[mask] = frozenset(name for name, bit in bits.items() if mask & bit)
    return [sets[mask] for mask in before]


def _backward(ops: list[Op], reads: list[int], keeps: list[int]) -> list[int]:
    """Least fixed point of ``in = reads | (out & keeps) | in[handler]``."""
    before = [0] * len(ops)
    changed = True
    while changed:
        changed = False
        after = 0
        for index in range(len(ops) - 1, -1, -1):
            op = ops[index]
            out = 0 if op.name in NO_FALL_THROUGH else after
            if op.target >= 0:
                out |= before[op.target]
            mask = reads[index] | (out & keeps[index])
            if op.handler is not None:
                mask |= before[op.handler.target]
            if mask != before[index]:
                before[index] = mask
                changed = True
            after = mask
    return before


# ---- surely bound locals
_MAYBE_NULL = frozenset({"PUSH_NULL", "LOAD_LOCAL_CLEAR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})


def entered(program: Program) -> set[int]:
    """Indices that some reachable op jumps to, or names as its handler."""
    depths = stack_depths(program)
    found: set[int] = set()
    for index, op in enumerate(program.ops):
        if depths[index] is not None:
            if op.target >= 0:
                found.add(op.target)
            if op.handler is not None:
                found.add(op.handler.target)
    return found


def bound_loads(program: Program) -> set[int]:
    """Indices of the LOAD_LOCAL, LOAD_LOCAL_CLEAR and DELETE_LOCAL whose local is surely bound."""
    ops, depths = program.ops, stack_depths(program)
    joins = entered(program)
    bits: dict[str, int] = {}
    for name in program.varnames[:program.nargs()]:
        bits.setdefault(name, 1 << len(bits))
    start = (1 << len(bits)) - 1
    gains, keeps = [0] * len(ops), [-1] * len(ops)
    for index, op in enumerate(ops):
        if op.name in _WRITES:
            bit = bits.setdefault(op.arg, 1 << len(bits))
            if op.name == "STORE_LOCAL" and _stores_value(ops, index, joins):
                gains[index] = bit
            else:
                keeps[index] = ~bit
    state = _forward(ops, depths, start, gains, keeps)
    return {index for index, op in enumerate(ops)
            if op.name in ("LOAD_LOCAL", "LOAD_LOCAL_CLEAR", "DELETE_LOCAL")
            and state[index] & bits.get(op.arg, 0)}


def _stores_value(ops: list[Op], index: int, joins: set[int]) -> bool:
    """Whether the stored entry is surely not NULL: found by walking back to what pushed it."""
    place = 1
    while index not in joins and index > 0:
        index -= 1
        op = ops[index]
        if op.name in NO_FALL_THROUGH:
            return False
        if op.name == "SWAP":
            place = op.arg if place == 1 else 1 if place == op.arg else place
            continue
        if op.name == "COPY":
            place = op.arg if place == 1 else place - 1
            continue
        pushed = pushes(op.name, op.arg)
        if place <= pushed:
            return op.name not in _MAYBE_NULL
        place += pops(op.name, op.arg) - pushed
    return False


def _forward(ops: list[Op], depths: list[int | None], start: int,
             gains: list[int], keeps: list[int]) -> list[int]:
    """Greatest fixed point of ``out = (in & keeps) | gains``, meeting over all ways in."""
    state = [-1] * len(ops)
    state[0] &= start
    changed = True
    while changed:
        changed = False
        for index, op in enumerate(ops):
            if depths[index] is None:
                continue
            here = state[index]
            out = (here & keeps[index]) | gains[index]
            edges = [] if op.name in NO_FALL_THROUGH else [(index + 1, out)]
            if op.target >= 0:
                edges.append((op.target, out))
            if op.handler is not None:
                edges.append((op.handler.target, here & keeps[index]))
            for to, mask in edges:
                if state[to] & mask != state[to]:
                    state[to] &= mask
                    changed = True
    return state


# ---- loops
def loops(program: Program) -> list[tuple[int, set[int]]]:
    """Natural loops, by head: ``(head, indices of its ops)``; back edges to one head are merged."""
    found = program.memo.get("loops")
    if found is None:
        found = program.memo["loops"] = _loops(program)
    return found


def _loops(program: Program) -> list[tuple[int, set[int]]]:
    ops, depths = program.ops, stack_depths(program)
    comes_from: list[list[int]] = [[] for _ in ops]
    back: dict[int, list[int]] = {}
    for index, op in enumerate(ops):
        if depths[index] is None:
            continue
        if op.name not in NO_FALL_THROUGH:
            comes_from[index + 1].append(index)
        if op.target >= 0:
            comes_from[op.target].append(index)
            if op.target <= index:
                back.setdefault(op.target, []).append(index)
        if op.handler is not None:
            comes_from[op.handler.target].append(index)
    found = []
    for head, tails in sorted(back.items()):
        body, todo = {head}, list(tails)
        while todo:
            index = todo.pop()
            if index not in body:
                body.add(index)
                todo.extend(comes_from[index])
        if head == 0 or 0 not in body:      # else the head does not dominate: not a natural loop
            found.append((head, body))
    return found
