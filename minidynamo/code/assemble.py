"""Assemble: a neutral ``Program`` as a real code object of the running Python.

Lowering rules (``lowering.py``, ``v31x.py``) turn each reachable op into real instructions; this file lays
them out: the entry sequence, jump arguments, handlers, positions, names and constants.
``bytecode.ConcreteBytecode`` writes the tables.  Its constant merging is not used: it compares
by ``marshal``, which takes any buffer for ``bytes``; ours never looks into user objects, and
every constant keeps its identity, except that CPython interns name-like strings in constants
and may rebuild a frozenset for it.
"""
from __future__ import annotations

import math
import opcode as _opcode
from collections.abc import Callable, Hashable
from types import CodeType, EllipsisType

from bytecode import CompilerFlags, ConcreteBytecode, ConcreteInstr
from bytecode.concrete import ExceptionTableEntry
from bytecode.instr import InstrLocation

from minidynamo.code.decode import LOCAL_OPS, slot_maps
from minidynamo.code.liveness import bound_loads, entered, stack_depths
from minidynamo.code.lowering import COMMON, Rule
from minidynamo.code.ops import NO_FALL_THROUGH, pops, pushes
from minidynamo.code.program import NO_POSITION, Handler, Op, Position, Program
from minidynamo.code.version import CACHES, version

RULES: dict[str, Rule] = {**COMMON, **version.WRITE}

Label = Hashable        # op indices, and tuples for places inside a lowering


def assemble(program: Program) -> CodeType:
    """The code object; unreachable ops are left out."""
    return _Emitter(program).code()


class _Instr:
    """One real instruction before layout."""

    __slots__ = ("name", "arg", "label", "handler", "pos", "offset")

    def __init__(self, name: str, arg: int, label: Label | None,
                 handler: Handler | None, pos: Position) -> None:
        self.name = name
        self.arg = arg
        self.label = label
        self.handler = handler
        self.pos = pos
        self.offset = 0         # code unit of its first (possibly EXTENDED_ARG) unit

    def size(self) -> int:
        """Units without caches."""
        return 1 + (self.arg > 0xFF) + (self.arg > 0xFFFF) + (self.arg > 0xFFFFFF)


class _Emitter:
    """What lowering rules write to."""

    null_first = version.null_first
    FOR_TAIL = version.FOR_TAIL
    SEND_POPS = version.SEND_POPS

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops = program.ops
        self.depths = stack_depths(program)
        self.entered = entered(program)
        self._bound: set[int] | None = None
        self.out: list[_Instr] = []
        self.places: dict[Label, int] = {}      # label -> index into out
        self.tails: list[Callable[[], None]] = []
        self.index = 0                          # op being lowered
        self.previous = -1                      # reachable op before it in order
        self.handler: Handler | None = None
        self.pos = NO_POSITION
        self._swallowed = -1                    # a POP its predecessor has done already
        self.extra = 0                          # stack a lowering needs beyond its op
        self._consts = _Consts(program)
        self._names: dict[str, int] = {}
        self._varnames = list(program.varnames)
        self._plan_locals()
        self._for_ends = {
            op.target: op for index, op in enumerate(self.ops)
            if op.name == "FOR_ITER" and self.depths[index] is not None and self.FOR_TAIL
            and op.target > index and not self.falls_in(op.target)}

    # ---- for the rules
    def emit(self, name: str, arg: int = 0, label: Label | None = None) -> None:
        self.out.append(_Instr(name, arg, label, self.handler, self.pos))

    def mark(self, label: Label) -> None:
        self.places[label] = len(self.out)

    def const(self, value: object) -> int:
        return self._consts.index(value)

    def name(self, name: object) -> int:
        return self._names.setdefault(name, len(self._names))       # type: ignore[arg-type]

    def local(self, name: object) -> int:
        return self._slots.locals[name]                             # type: ignore[index]

    def cell(self, name: object) -> int:
        return self._slots.cells[name]                              # type: ignore[index]

    def deref(self, name: object) -> int:
        return self._slots.derefs[name]                             # type: ignore[index]

    def rule(self, name: str, arg: object) -> None:
        """Lower another op in place of this one."""
        RULES[name](self, Op(name, arg))

    def handler_at(self, label: Label) -> Handler:
        """A handler of our own, keeping the stack below the op being lowered."""
        depth = self.depths[self.index]
        assert depth is not None
        return Handler(label, depth, False)                         # type: ignore[arg-type]

    def swallow_pop(self) -> bool:
        """Leave out the POP that follows, if control only comes from here."""
        after = self.index + 1
        if (after < len(self.ops) and self.ops[after].name == "POP" and after not in self.entered):
            self._swallowed = after
            return True
        return False

    def shallow(self, op: Op) -> bool:
        """Whether only the implicit StopIteration handler stands around a YIELD.

        Then CPython 3.12+ closes the generator without throwing into it.
        """
        if op.handler is None:
            return True
        target = self.ops[op.handler.target]
        return target.name == "INTRINSIC_1" and target.arg == "STOPITERATION_ERROR"

    def need(self, extra: int) -> None:
        self.extra = max(self.extra, extra)

    def surely_bound(self) -> bool:
        """Whether the local of the op being lowered cannot be unbound."""
        if self._bound is None:
            self._bound = bound_loads(self.program)
        return self.index in self._bound

    def falls_in(self, index: int) -> bool:
        """Whether the reachable op before ``index`` goes on into it."""
        before = index - 1
        while before >= 0 and self.depths[before] is None:
            before -= 1
        return before < 0 or self.ops[before].name not in NO_FALL_THROUGH

    def straight_from(self, back: int) -> list[Op]:
        """Up to ``back`` ops before this one, nearest first, all of which surely ran before it."""
        found: list[Op] = []
        at = self.index
        while len(found) < back and at > 0 and at not in self.entered and self.falls_in(at):
            at -= 1
            found.append(self.ops[at])
        return found

    def reached_by_others(self, index: int, name: str) -> bool:
        """Whether ops other than ``name`` jump to ``index``, or it is a handler."""
        return any(self.depths[at] is not None
                   and ((op.target == index and op.name != name)
                        or (op.handler is not None and op.handler.target == index))
                   for at, op in enumerate(self.ops))

    def jump_to(self, index: int) -> None:
        """An unconditional jump to an op."""
        if index > self.index:
            self.emit("JUMP_FORWARD", label=index)
        elif self.ops[index].name in ("SEND", "END_SEND"):
            self.emit("JUMP_BACKWARD_NO_INTERRUPT", label=index)    # no signals inside yield from
        else:
            self.emit("JUMP_BACKWARD", label=index)

    def later(self, write: Callable[[], None]) -> None:
        """Write after all ops; jumps from there go backward."""
        handler, pos = self.handler, self.pos

        def run() -> None:
            self.handler, self.pos, self.index = handler, pos, len(self.ops)
            write()
        self.tails.append(run)

    # ---- the whole
    def code(self) -> CodeType:
        if not self.ops:
            raise ValueError(f"{self.program.qualname}: no ops")
        self._entry()
        stack = 1
        for index, op in enumerate(self.ops):
            depth = self.depths[index]
            if depth is None:
                continue
            self.index, self.handler, self.pos = index, op.handler, op.pos
            self._before_op(index, op)
            self.mark(index)
            if index != self._swallowed:
                RULES[op.name](self, op)
            stack = max(stack, depth, depth - pops(op.name, op.arg) + pushes(op.name, op.arg))
            self.previous = index
        while self.tails:
            self.tails.pop(0)()
        return self._build(stack + self.extra)

    def _plan_locals(self) -> None:
        """Slots are fixed before lowering: every local named is placed first."""
        program = self.program
        known = {*self._varnames, *program.cellvars, *program.freevars}
        for index, op in enumerate(self.ops):
            if self.depths[index] is not None and op.name in LOCAL_OPS and op.arg not in known:
                known.add(op.arg)
                self._varnames.append(op.arg)
        self._slots = slot_maps(tuple(self._varnames), program.cellvars, program.freevars,
                                program.flags)

    def _entry(self) -> None:
        """What CPython puts before the body; a generator's own start is in the program."""
        if self.program.freevars:
            self.emit("COPY_FREE_VARS", len(self.program.freevars))
        for index in sorted(self._slots.own.values()):
            self.emit("MAKE_CELL", index)
        self._starts = 2 if self.ops[0].name == "RETURN_GENERATOR" else 0
        if not self._starts:
            self._resume(0)

    def _resume(self, where: int) -> None:
        line = self.program.firstlineno
        pos, self.pos = self.pos, Position(line, line, 0, 0)
        self.emit("RESUME", where)
        self.pos = pos

    def _before_op(self, index: int, op: Op) -> None:
        """Instructions that stand between two ops; they belong to the second one's handler."""
        if self.previous >= 0 and self.ops[self.previous].name == "YIELD":
            before = self.ops[self.previous]
            where = before.arg or 1
            self.pos = before.pos
            self.emit("RESUME", where | version.resume_bits(self.shallow(before)))
            self.pos = op.pos
        if self._starts and index == self._starts:
            self._resume(0)
        end = self._for_ends.get(index)
        if end is not None:         # FOR_ITER alone comes here, with the iterator popped
            self.pos, self.handler = end.pos, None
            self.mark(("end", index))
            for name in self.FOR_TAIL:
                self.emit(name)
            self.pos, self.handler = op.pos, op.handler

    def _build(self, stack: int) -> CodeType:
        program = self.program
        starts = self._layout()
        code = ConcreteBytecode()
        code.name, code.qualname = program.name, program.qualname
        code.filename, code.first_lineno = program.filename, program.firstlineno
        code.argcount, code.posonlyargcount = program.argcount, program.posonlyargcount
        code.kwonlyargcount, code.flags = program.kwonlyargcount, CompilerFlags(program.flags)
        code.varnames, code.names = self._varnames, list(self._names)
        code.cellvars, code.freevars = list(program.cellvars), list(program.freevars)
        code.consts = self._consts.values
        code.exception_table = self._table(starts)
        code.extend(self._concrete())
        return code.to_code(stacksize=stack, compute_exception_stack_depths=False)

    def _layout(self) -> list[int]:
        """Fix jump arguments; answers the unit each instruction starts at, and the end."""
        starts = [0] * (len(self.out) + 1)
        jumps = [at for at, instr in enumerate(self.out) if instr.label is not None]
        while True:
            unit = 0
            for at, instr in enumerate(self.out):
                starts[at] = unit
                unit += instr.size() + CACHES.get(instr.name, 0)
            starts[-1] = unit
            grew = False
            for at in jumps:
                instr = self.out[at]
                distance = starts[self.places[instr.label]] - starts[at + 1]
                if "BACKWARD" in instr.name:
                    distance = -distance
                if distance < 0:
                    raise AssertionError(f"{instr.name} points the wrong way")
                size = instr.size()
                instr.arg = distance
                grew |= instr.size() != size
            if not grew:
                return starts

    def _table(self, starts: list[int]) -> list[ExceptionTableEntry]:
        entries: list[ExceptionTableEntry] = []
        last: Handler | None = None
        for at, instr in enumerate(self.out):
            if instr.handler is not None:
                if instr.handler == last:
                    entries[-1].stop_offset = starts[at + 1] - 1
                else:
                    target = starts[self.places[instr.handler.target]]
                    entries.append(ExceptionTableEntry(
                        starts[at], starts[at + 1] - 1, target,
                        instr.handler.depth, instr.handler.push_lasti))
            last = instr.handler
        return entries

    def _concrete(self) -> list[ConcreteInstr]:
        found: list[ConcreteInstr] = []
        cache = [ConcreteInstr("CACHE", 0)]
        where, location = None, None
        for instr in self.out:
            if instr.pos is not where:
                where, location = instr.pos, _location(instr.pos)
            found.append(ConcreteInstr._from_trusted(
                instr.name, _opcode.opmap[instr.name], instr.arg, location))
            count = CACHES.get(instr.name, 0)
            if count:
                if cache[0].location is not location:
                    cache = [ConcreteInstr("CACHE", 0, location=location)]
                found.extend(cache * count)
        return found


def _location(pos: Position) -> InstrLocation:
    lineno, end_lineno, col, end_col = pos
    if lineno is None or col is None or end_col is None or end_lineno is None:
        return InstrLocation(lineno, lineno, None, None)
    return InstrLocation(lineno, end_lineno, col, end_col)


class _Consts:
    """co_consts: one entry per object, except that equal literals share."""

    def __init__(self, program: Program) -> None:
        self._found: dict[object, int] = {}
        self.values: list[object] = []
        # the first constant is the docstring of functions made from this code
        old = program.code.co_consts if program.code is not None else ()
        self.index(old[0] if old and type(old[0]) is str else None)

    def index(self, value: object) -> int:
        key = literal_key(value)
        if key is None:
            key = id(value)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = len(self.values)
            self.values.append(value)
        return found


_BY_VALUE = frozenset({int, bool, str, bytes, type(None), EllipsisType})


def literal_key(value: object) -> object:
    """A key equal for literals of one type and value, None for all else.

    Keys are tuples, so they never meet the bare ids that stand for other objects.
    """
    kind = type(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind is float:
        return kind, value, math.copysign(1.0, value), id(value) if value != value else 0   # type: ignore
    if kind is complex:
        return kind, literal_key(value.real), literal_key(value.imag)       # type: ignore
    if kind is tuple:
        parts = tuple(literal_key(part) for part in value)                  # type: ignore
        return None if None in parts else (kind, parts)
    return None
