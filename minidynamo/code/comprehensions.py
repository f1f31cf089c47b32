"""Comprehensions: those inlined into a function (PEP 709) get variables of their own.

CPython lets such a comprehension borrow the slot of a name that is a cell or a free variable of the function: the
cell is put on the stack meanwhile, and in its slot stands the comprehension's value, or a cell of its own.  In a neutral
program one name means one thing, so the borrowed name becomes a local ``name#1`` (``name#2`` in a comprehension inside
another), which holds the value, or the comprehension's own cell.
"""
from __future__ import annotations

from collections.abc import Iterator

from minidynamo.code.ops import JUMP_EFFECT, NO_FALL_THROUGH, pops, pushes
from minidynamo.code.program import Handler, Op

Saved = tuple[int, ...]         # the stack: index of the LOAD_LOCAL_CLEAR an entry came from, -1 for others
LOCAL_OPS = frozenset({"LOAD_LOCAL", "STORE_LOCAL", "DELETE_LOCAL"})
BORROWING = LOCAL_OPS | {"LOAD_LOCAL_CLEAR", "MAKE_CELL", "LOAD_CELL", "STORE_DEREF", "LOAD_DEREF"}


def plain_name(name: str) -> str:
    """The user's name of a local."""
    return name.partition("#")[0]


def untangle(ops: list[Op], shared: frozenset[str], odd: frozenset[str]) -> list[Op]:
    """`ops` with borrowed names replaced.

    `shared` are the cell and free variables.  `odd` are free ones that stand a second time among the locals: cell ops
    mean the free one, also where CPython 3.12 takes its cell for the comprehension's, and never gives it back.
    """
    if not any(op.name == "LOAD_LOCAL_CLEAR" and op.arg in shared for op in ops):
        return ops
    stacks = _stacks(ops, shared)
    filled: set[tuple[int, object]] = set()
    made: list[list[Op]] = []
    for index, op in enumerate(ops):
        stack, parts = stacks[index], None
        if stack is not None and op.name in BORROWING and op.arg in shared:
            parts = _own(ops, index, stack, odd, filled)
        made.append([op] if parts is None else [Op(name, arg, -1, op.handler, op.pos) for name, arg in parts])
    return _joined(made)


def _own(ops: list[Op], index: int, stack: Saved, odd: frozenset[str],
         filled: set[tuple[int, object]]) -> list[tuple[str, object]] | None:
    """What stands for one op on a name that is borrowed there; None where it is not."""
    op = ops[index]
    name = str(op.arg)
    open_ = [at for at in stack if at >= 0 and ops[at].arg == name]
    if op.name == "LOAD_LOCAL_CLEAR":
        return [(op.name, f"{name}#{len(open_) + 1}")]
    if not open_:
        return None
    start = open_[-1]
    own = f"{name}#{len(open_)}"
    if op.name in LOCAL_OPS:
        return [(op.name, own)]
    if name in odd:
        return None
    if op.name == "MAKE_CELL":
        return [("NEW_CELL", None), ("STORE_LOCAL", own)]
    if op.name == "LOAD_CELL":                  # 3.13 loads values that way too
        return [("LOAD_LOCAL", own)]
    if op.name == "STORE_DEREF":
        filled.add((start, name))
        return [("LOAD_LOCAL", own), ("STORE_ATTR", "cell_contents")]
    known = (start, name) in filled
    return [("LOAD_LOCAL", own), ("LOAD_ATTR", "cell_contents") if known else ("CELL_CONTENTS", name)]


def _stacks(ops: list[Op], shared: frozenset[str]) -> list[Saved | None]:
    """Which entries of the stack are saved names, before each op; None where control cannot come."""
    found: list[Saved | None] = [None] * len(ops)
    todo: list[tuple[int, Saved]] = [(0, ())]
    while todo:
        index, stack = todo.pop()
        if index >= len(ops) or found[index] is not None:
            continue
        found[index] = stack
        todo.extend(_next(ops, index, stack, shared))
    return found


def _next(ops: list[Op], index: int, stack: Saved, shared: frozenset[str]) -> Iterator[tuple[int, Saved]]:
    op = ops[index]
    if op.handler is not None:
        yield op.handler.target, stack[:op.handler.depth] + (-1,) * (1 + op.handler.push_lasti)
    if op.target >= 0:
        yield op.target, stack[:len(stack) + min(0, JUMP_EFFECT[op.name])]
    if op.name in NO_FALL_THROUGH:
        return
    if op.name == "SWAP":
        made = list(stack)
        made[-1], made[-op.arg] = made[-op.arg], made[-1]
        yield index + 1, tuple(made)
    elif op.name == "LOAD_LOCAL_CLEAR" and op.arg in shared:
        yield index + 1, (*stack, index)
    else:
        yield index + 1, stack[:len(stack) - pops(op.name, op.arg)] + (-1,) * pushes(op.name, op.arg)


def _joined(made: list[list[Op]]) -> list[Op]:
    """One list again, with jumps and handlers led to where their ops now stand."""
    starts, count = [], 0
    for parts in made:
        starts.append(count)
        count += len(parts)
    out = [op for parts in made for op in parts]
    for op in out:
        if op.target >= 0:
            op.target = starts[op.target]
        if op.handler is not None:
            op.handler = Handler(starts[op.handler.target], op.handler.depth, op.handler.push_lasti)
    return out
