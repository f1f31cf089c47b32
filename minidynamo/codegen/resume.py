"""Resume functions: the rest of a frame from one op on, cut from the neutral program.

A resume function takes the live stack entries and locals as arguments; its closure holds the
frame's cells themselves.  It is an ordinary function to the hook.  It never calls the next resume
function: it returns a ``Tail``, which the frame that called it runs (``output.drive``), so a break in a loop
neither grows the Python stack nor loses the frame.
"""
from __future__ import annotations

import dataclasses
import weakref
from types import CodeType
from typing import Any

from minidynamo.code import Program, Writer, assemble, loops, remember
from minidynamo.interp.state import NULL, PreviousException


class Tail(tuple):
    """``(function, arguments)``: what to call next."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a resume function starts from.  `stack` has one letter an entry: v value, n NULL, e exception info."""

    index: int
    stack: str
    local: tuple[str, ...]
    handler: bool                    # entered with an exception on top of the stack


@dataclasses.dataclass(slots=True)
class ResumeInfo:
    """Where a resume function's code came from."""

    root: Program
    start: int                       # index in the root program
    body: int                        # index in its own program where the root's ops begin


# Keyed by id with the code object beside it, since code objects compare by value, constants included.
RESUMES: dict[int, tuple[weakref.ref[CodeType], dict[Shape, CodeType]]] = {}


def info_of(program: Program) -> ResumeInfo | None:
    """How `program` was cut, if it is a resume function's."""
    return program.memo.get("resume")


def resumes_of(code: CodeType) -> dict[Shape, CodeType]:
    """The resume functions cut from `code` so far."""
    key = id(code)
    entry = RESUMES.get(key)
    if entry is None or entry[0]() is not code:
        entry = RESUMES[key] = (weakref.ref(code, lambda _: RESUMES.pop(key, None)), {})
    return entry[1]


def letters(stack: list[Any]) -> str:
    return "".join("n" if v is NULL else "e" if isinstance(v, PreviousException) else "v" for v in stack)


def resume_code(program: Program, index: int, stack: str, local: tuple[str, ...]) -> CodeType:
    """The code that goes on before op `index` of `program`; one code object per shape."""
    info = info_of(program)
    if info is not None:
        program, index = info.root, index - info.body
    assert program.code is not None
    known = resumes_of(program.code)
    shape = Shape(index, stack, local, False)
    code = known.get(shape)
    if code is None:
        code = known[shape] = make_resume(program, shape)
    return code


def make_resume(program: Program, shape: Shape) -> CodeType:
    out = Writer()
    out.pos = program.ops[shape.index].pos
    names = []
    for at, letter in enumerate(shape.stack):
        if letter == "n":
            out.op("PUSH_NULL")
            continue
        names.append(f"___stack{at}")
        out.op("LOAD_LOCAL", names[-1])
        if letter == "e":                    # becomes the exception being handled, as the block expects
            out.op("PUSH_EXC_INFO")
            out.op("POP")
    start = out.label()
    out.op("JUMP", target=start)
    body = len(out._ops)
    targets = out.include(program.ops)
    start.index = targets[shape.index].index
    made = out.finish(program, argnames=(*names, *shape.local), cellvars=(),
                      freevars=(*program.cellvars, *program.freevars))
    code = assemble(made)
    made.memo["resume"] = ResumeInfo(program, shape.index, body)
    remember(code, made)
    return code


def loop_heads(program: Program) -> frozenset[int]:
    """Heads, in `program`, of the loops that a resume function starts inside of."""
    info = info_of(program)
    if info is None:
        return frozenset()
    return frozenset(head + info.body for head, body in loops(info.root) if info.start in body and head != info.start)
