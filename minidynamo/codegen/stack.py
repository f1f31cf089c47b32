"""The value stack at a break: one letter an entry, how to push it, take it, and what an op makes of it.

v  a value                     n  NULL
e  exception info              c  a copy of the exception info nearest below
l  the offset of the op that raised: in other code it means nothing, so a resume function starts with 0
"""
from __future__ import annotations

import sys
from typing import Any

from minidynamo.code import null_first
from minidynamo.code.ops import JUMP_EFFECT, pops, pushes
from minidynamo.codegen.restore import Restore
from minidynamo.interp.state import NULL, PreviousException
from minidynamo.model.variable import VariableTracker
from minidynamo.variables.constants import NONE


def letters(stack: list[VariableTracker]) -> str:
    """The letters of a traced stack; exception info that is spent is a value nobody reads."""
    found = ""
    for at, entry in enumerate(stack):
        if entry is NULL:
            found += "n"
        elif not isinstance(entry, PreviousException) or entry.spent:
            found += "v"
        else:
            found += "c" if any(entry is lower for lower in stack[:at]) else "e"
    return found


def push_stack(out: Restore, stack: list[VariableTracker], handled: VariableTracker | None) -> None:
    """The stack as it stood, exceptions being handled included."""
    infos = active_infos(stack)
    handled_above = [entry.previous for entry in infos[1:]] + [handled]
    for at, entry in enumerate(stack):
        if not isinstance(entry, PreviousException):
            out.load(entry)
        elif entry.spent:
            out.load(NONE)
        elif any(entry is lower for lower in stack[:at]):
            out.op("COPY", at - next(i for i, lower in enumerate(stack) if lower is entry))
        else:
            exc = handled_above[infos.index(entry)]
            out.load(exc if exc is not None else NONE)
            out.op("PUSH_EXC_INFO")
            out.op("POP")


def active_infos(stack: list[VariableTracker]) -> list[PreviousException]:
    """Exception info entries in force, outermost first, copies left out."""
    found: list[PreviousException] = []
    for entry in stack:
        if isinstance(entry, PreviousException) and not entry.spent and entry not in found:
            found.append(entry)
    return found


def push_arguments(out: Any, stack: str) -> list[str]:
    """In a resume function: rebuild the stack from its parameters, whose names are answered."""
    names = []
    for at, letter in enumerate(stack):
        if letter == "n":
            out.op("PUSH_NULL")
            continue
        if letter == "l":
            out.load_const(0)
            continue
        if letter == "c":
            out.op("COPY", at - stack.rindex("e", 0, at))
            continue
        names.append(f"___stack{at}")
        out.op("LOAD_LOCAL", names[-1])
        out.op("PUSH_NULL")                  # only the stack holds it, and lets go of it when it is popped
        out.op("STORE_LOCAL", names[-1])
        if letter == "e":                    # becomes the exception being handled, as the block expects
            out.op("PUSH_EXC_INFO")
            out.op("POP")
    return names


def take_stack(out: Restore, stack: str) -> list[str]:
    """Move the stack into temporaries, top first; exception info goes back to the thread."""
    names: list[str] = []
    for at in range(len(stack) - 1, -1, -1):
        letter = stack[at]
        name = f"___s{at}"
        if letter == "e":
            out.begin_call_of(current_exception)
            out.call(0)
            out.op("STORE_LOCAL", name)
            out.op("POP_EXCEPT")
        else:
            out.op("STORE_LOCAL", name)
        if letter in "ve":
            names.append(name)
    return names[::-1]


def current_exception() -> BaseException | None:
    return sys.exc_info()[1]


# ---------------------------------------------------------------- what an op makes of the letters
def after(stack: str, op: Any, unbound: bool) -> str:
    """Once the op has fallen through; `unbound` says that the local it names is."""
    special = AFTER.get(op.name)
    if special is not None:
        return special(stack, op, unbound)
    return stack[:len(stack) - pops(op.name, op.arg)] + "v" * pushes(op.name, op.arg)


def jumped(stack: str, op: Any) -> str:
    """Once the op has jumped."""
    effect = JUMP_EFFECT[op.name]
    return stack[:len(stack) + effect] if effect < 0 else stack


def _copy(stack: str, op: Any, unbound: bool) -> str:
    letter = stack[-op.arg]
    return stack + ("c" if letter == "e" else letter)


def _swap(stack: str, op: Any, unbound: bool) -> str:
    made = list(stack)
    made[-1], made[-op.arg] = made[-op.arg], made[-1]
    return "".join(made)


def _pop_except(stack: str, op: Any, unbound: bool) -> str:
    """When a copy is popped, the entry it was copied from is spent."""
    rest = stack[:-1]
    if stack[-1] == "c":
        at = rest.rindex("e")
        rest = rest[:at] + "v" + rest[at + 1:]
    return rest


PAIR = "nv" if null_first else "vn"

AFTER = {
    "COPY": _copy,
    "SWAP": _swap,
    "PUSH_NULL": lambda stack, op, unbound: stack + "n",
    "PUSH_EXC_INFO": lambda stack, op, unbound: stack[:-1] + "ev",
    "POP_EXCEPT": _pop_except,
    "LOAD_LOCAL_CLEAR": lambda stack, op, unbound: stack + ("n" if unbound else "v"),
    "LOAD_METHOD": lambda stack, op, unbound: stack[:-1] + PAIR,
    "LOAD_SUPER_ATTR": lambda stack, op, unbound: stack[:-3] + (PAIR if op.arg[1] else "v"),
}


# ---------------------------------------------------------------- running the op
def run_op(out: Restore, op: Any, jump: Any, protect: Any) -> None:
    """The op itself.  One that leaves a method and its self leaves the bound method and NULL instead:

    which of the two a LOAD_METHOD leaves only shows when it runs.  `protect` guards what may raise.
    """
    name, arg, pair = op.name, op.arg, False
    if name == "LOAD_METHOD":
        name, pair = "LOAD_ATTR", True
    elif name == "LOAD_SUPER_ATTR":
        arg, pair = (arg[0], False, arg[2]), arg[1]
    with protect:
        if name == "LOAD_CONST":
            out.load_object_unchecked(arg)
        else:
            out.op(name, arg, jump if name in JUMP_EFFECT else None)
    if pair:
        out.op("PUSH_NULL")
        if null_first:
            out.op("SWAP", 2)
