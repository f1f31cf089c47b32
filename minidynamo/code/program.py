"""Program: a code object as neutral ops, labels resolved to indices, plain data.

``decode(code) -> Program`` and ``assemble(program) -> CodeType`` are inverse in meaning.
"""
from __future__ import annotations

import dataclasses
from types import CodeType
from typing import Any, NamedTuple


class Handler(NamedTuple):
    """An exception table row (PEP 657 era layout): where to go, at what stack depth."""

    target: int          # index into Program.ops
    depth: int           # stack is cut to this depth
    push_lasti: bool     # then the raising op's offset is pushed, then the exception


class Position(NamedTuple):
    """Source position of one op, as ``dis.Positions`` (PEP 657); columns in utf-8 bytes."""

    lineno: int | None
    end_lineno: int | None
    col: int | None
    end_col: int | None


NO_POSITION = Position(None, None, None, None)


class Op:
    """One neutral instruction."""

    __slots__ = ("name", "arg", "target", "handler", "pos", "cache")

    def __init__(self, name: str, arg: Any = None, target: int = -1,
                 handler: Handler | None = None, pos: Position = NO_POSITION) -> None:
        self.name = name
        self.arg = arg
        self.target = target        # index into Program.ops, -1 when the op does not jump
        self.handler = handler
        self.pos = pos
        self.cache = None           # the interpreter's private memo (for example a built constant)

    def __repr__(self) -> str:
        to = f" -> {self.target}" if self.target >= 0 else ""
        arg = "" if self.arg is None else f" {self.arg!r}"
        return f"{self.name}{arg}{to}"


@dataclasses.dataclass(slots=True)
class Program:
    """A function body.  ``varnames`` starts with the arguments, in signature order."""

    ops: list[Op]
    name: str
    qualname: str
    filename: str
    firstlineno: int
    argcount: int
    posonlyargcount: int
    kwonlyargcount: int
    flags: int
    varnames: tuple[str, ...]       # arguments first; other locals after, order free
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    code: CodeType | None = None    # what it was decoded from
    # answers of liveness.py, by question; not copied by dataclasses.replace
    memo: dict[str, Any] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False)

    def nargs(self) -> int:
        """Number of parameters, ``*args`` and ``**kwargs`` included."""
        return (self.argcount + self.kwonlyargcount
                + bool(self.flags & 0x04) + bool(self.flags & 0x08))

    def first_argument(self) -> str | None:
        """The parameter a bare ``super()`` reads; None without one.  A resume function is told which."""
        if "first_argument" not in self.memo:
            return self.varnames[0] if self.nargs() else None
        return self.memo["first_argument"]
