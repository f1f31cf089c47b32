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

from minidynamo.code import Program, Writer, assemble, loops, remember
from minidynamo.codegen.stack import push_arguments
from minidynamo.interp.breaks import uses_super


FIRST_COPY = "___first"          # parameter that copies a first argument kept in a cell


class Tail(tuple):
    """``(function, arguments)``: what to call next."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a resume function starts from.  `stack` has one letter an entry, see ``codegen.stack``."""

    index: int
    stack: str
    local: tuple[str, ...]
    plain: bool                      # to be run by Python as it is


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
        # `pop` is held: the module may be gone by then, at the end of the process
        entry = RESUMES[key] = (weakref.ref(code, lambda _, pop=RESUMES.pop: pop(key, None)), {})      # type: ignore[misc]
    return entry[1]


def resume_code(program: Program, index: int, stack: str, local: tuple[str, ...], plain: bool) -> CodeType:
    """The code that goes on before op `index` of `program`; one code object per shape."""
    info = info_of(program)
    if info is not None:
        program, index = info.root, index - info.body
    assert program.code is not None
    known = resumes_of(program.code)
    shape = Shape(index, stack, local, plain)
    code = known.get(shape)
    if code is None:
        code = known[shape] = make_resume(program, shape)
    return code


def make_resume(program: Program, shape: Shape) -> CodeType:
    out = Writer()
    out.pos = program.ops[shape.index].pos
    stack_names = push_arguments(out, shape.stack)
    first, rest = first_and_rest(program, shape.local)
    start = out.label()
    out.op("JUMP", target=start)
    body = len(out._ops)
    targets = out.include(program.ops)
    start.index = targets[shape.index].index
    made = out.finish(program, argnames=(*first, *stack_names, *rest), cellvars=(),
                      freevars=(*program.cellvars, *program.freevars))
    made.memo["plain"] = shape.plain
    made.memo["own_cells"] = program.cellvars
    made.memo["resume"] = ResumeInfo(program, shape.index, body)
    made.memo["first_argument"] = first[0] if first else None
    code = assemble(made)
    made.memo["assembled"] = weakref.ref(code)
    remember(code, made)
    return code


def first_and_rest(program: Program, local: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which parameter must stand first: a bare ``super()`` reads it there, from a cell it gets a copy."""
    if not uses_super(program):
        return (), local
    first = program.varnames[0]
    if first in program.cellvars:
        return (FIRST_COPY,), local
    return (first,), tuple(name for name in local if name != first)


def first_op(program: Program) -> int:
    """Index of the first op that is the user's own."""
    info = info_of(program)
    return 0 if info is None else info.body


def loop_heads(program: Program) -> frozenset[int]:
    """Heads, in `program`, of the loops that a resume function starts inside of."""
    info = info_of(program)
    if info is None:
        return frozenset()
    return frozenset(head + info.body for head, body in loops(info.root) if info.start in body and head != info.start)
