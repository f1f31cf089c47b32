"""Writer: builds a neutral ``Program`` op by op, for code generation."""
from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any

from minidynamo.code.ops import JUMP_EFFECT, ROWS
from minidynamo.code.program import NO_POSITION, Handler, Op, Position, Program
from minidynamo.code.version import version


class UnsafeConstant(TypeError):
    """A value that must not be baked into code: it is mutable, or could be a user's object."""


class Label:
    """A place in a program being written; ``index`` is known once marked."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = -1


_LITERALS = frozenset({type(None), bool, int, float, complex, str, bytes, EllipsisType})


def is_safe_constant(value: object) -> bool:
    """Whether ``value`` is an immutable literal, through and through, of exact types."""
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is tuple or kind is frozenset:
            todo.extend(item)
        elif kind not in _LITERALS:
            return False
    return True


class Writer:
    """Appends neutral ops; labels are marked, handlers are regions, ``pos`` is sticky."""

    def __init__(self, pos: Position = NO_POSITION) -> None:
        self.pos = pos
        self._ops: list[Op] = []
        self._jumps: dict[int, Label] = {}
        self._regions: dict[int, tuple[Label, int, bool]] = {}
        self._protection: list[tuple[Label, int, bool]] = []

    # ---- ops
    def op(self, name: str, arg: object = None, target: Label | None = None) -> None:
        """Append one op; ops that jump, and only they, take a target."""
        if name not in ROWS:
            raise ValueError(f"no neutral op is called {name!r}")
        if name == "LOAD_CONST":
            raise ValueError("use load_const or load_object_unchecked")
        self._append(name, arg, target)

    def load_const(self, value: object) -> None:
        """Push an immutable literal; anything else raises ``UnsafeConstant``."""
        if not is_safe_constant(value):
            raise UnsafeConstant(
                f"a {type(value).__module__}.{type(value).__qualname__} may not become a constant "
                f"of generated code: {object.__repr__(value)}")
        self._append("LOAD_CONST", value, None)

    def load_object_unchecked(self, value: object) -> None:
        """Push an object we own (a graph, a resume function's code), held by the code object."""
        self._append("LOAD_CONST", value, None)

    def load_source(self, source: Any) -> None:
        """Push the user's object at `source`; a writer may know a shorter way than the source itself."""
        source.load(self)

    def _append(self, name: str, arg: object, target: Label | None) -> None:
        if (target is not None) != (name in JUMP_EFFECT):
            raise ValueError(f"{name} {'needs a' if target is None else 'takes no'} target")
        if target is not None:
            self._jumps[len(self._ops)] = target
        if self._protection:
            self._regions[len(self._ops)] = self._protection[-1]
        self._ops.append(Op(name, arg, -1, None, self.pos))

    # ---- calls, wherever this version keeps NULL
    def begin_call(self) -> None:
        """Before the callable is loaded."""
        if version.null_first:
            self.op("PUSH_NULL")

    def callable_done(self) -> None:
        """After the callable is loaded, before its arguments."""
        if not version.null_first:
            self.op("PUSH_NULL")

    def begin_call_of(self, function: object) -> None:
        """Before the arguments of a call of an object that we own."""
        self.begin_call()
        self.load_object_unchecked(function)
        self.callable_done()

    def call(self, n: int, names: Sequence[str] = ()) -> None:
        """Call with ``n`` arguments, the last of which have ``names``."""
        if len(names) > n:
            raise ValueError(f"{len(names)} keyword names for {n} arguments")
        self.op("CALL", (n, tuple(names)))

    # ---- labels and handlers
    def label(self) -> Label:
        return Label()

    def mark(self, label: Label) -> None:
        """The next op is where ``label`` points."""
        if label.index >= 0:
            raise ValueError("label marked twice")
        label.index = len(self._ops)

    def here(self) -> Label:
        """A label for the next op."""
        label = Label()
        self.mark(label)
        return label

    @contextlib.contextmanager
    def protected(self, label: Label, depth: int, push_lasti: bool = False) -> Iterator[None]:
        """Exceptions of the ops written inside go to ``label``, the stack cut to ``depth``."""
        self._protection.append((label, depth, push_lasti))
        try:
            yield
        finally:
            self._protection.pop()

    def include(self, ops: Sequence[Op]) -> list[Label]:
        """Append a copy of a whole program's ops, jumps and handlers kept inside the copy.

        Answers a label for each original index; ops outside any handler of their own get the
        region being written.
        """
        base = len(self._ops)
        labels = [Label() for _ in ops]
        for index, label in enumerate(labels):
            label.index = base + index
        outer = self._protection[-1] if self._protection else None
        for index, old in enumerate(ops):
            at = base + index
            if old.target >= 0:
                self._jumps[at] = labels[old.target]
            if old.handler is not None:
                region = labels[old.handler.target], old.handler.depth, old.handler.push_lasti
                self._regions[at] = region
            elif outer is not None:
                self._regions[at] = outer
            self._ops.append(Op(old.name, old.arg, -1, None, old.pos))
        return labels

    # ---- the end
    def finish(self, like: Program, *, name: str | None = None, qualname: str | None = None,
               argnames: Sequence[str] | None = None, flags: int | None = None,
               cellvars: Sequence[str] | None = None,
               freevars: Sequence[str] | None = None) -> Program:
        """The program.  With ``argnames`` its signature is those positional parameters; else
        signature, cells and flags are ``like``'s, so it can stand in for it.

        With ``argnames``, a ``like`` argument that is no longer one becomes a plain local.
        """
        cells = tuple(like.cellvars if cellvars is None else cellvars)
        free = tuple(like.freevars if freevars is None else freevars)
        program = dataclasses.replace(
            like, ops=self._resolved(), name=name or like.name,
            qualname=qualname or name or like.qualname, cellvars=cells, freevars=free,
            flags=like.flags if flags is None else flags)
        if argnames is None:
            return program
        spread = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
        rest = (v for v in like.varnames if v not in argnames and v not in cells and v not in free)
        return dataclasses.replace(
            program, argcount=len(argnames), posonlyargcount=0, kwonlyargcount=0, code=None,
            flags=program.flags & ~spread, varnames=(*argnames, *rest))

    def _resolved(self) -> list[Op]:
        """Copies, so a writer may go on and finish again."""
        def at(label: Label) -> int:
            if not 0 <= label.index < len(self._ops):
                raise ValueError("a label is used but not marked on an op")
            return label.index

        made = []
        for index, op in enumerate(self._ops):
            target = self._jumps.get(index)
            region = self._regions.get(index)
            handler = None if region is None else Handler(at(region[0]), region[1], region[2])
            made.append(Op(op.name, op.arg, -1 if target is None else at(target), handler, op.pos))
        return made
