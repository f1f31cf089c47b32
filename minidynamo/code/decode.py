"""Decode: a code object as a neutral ``Program``, in one walk over its bytes.

The result is memoised and shared: treat it as read-only (``Op.cache`` and ``Program.memo``
excepted).  Instructions that only serve CPython's machinery are dropped; a jump to a dropped
one goes to the next op that stayed.
"""
from __future__ import annotations

import dis
import weakref
import inspect
import opcode as _opcode
from types import CodeType
from typing import NamedTuple

from minidynamo.code.comprehensions import untangle
from minidynamo.code.program import Handler, Op, Position, Program
from minidynamo.code.readers import (
    ATTRIBUTE, CALL, CALL_KW, END_FOR, FIXED, JUMP, KW_NAMES, MAKE_CELL, READ, RESUME, Row, View)
from minidynamo.code.version import CACHES, version


class DecodeError(Exception):
    """The code object holds something this version's table does not know."""


_EXTENDED_ARG = _opcode.opmap["EXTENDED_ARG"]
_SEND = _opcode.opmap["SEND"]
_ROWS: list[Row | None] = [version.READ.get(name) for name in _opcode.opname[:256]]
_CACHES: list[int] = [CACHES.get(name, 0) for name in _opcode.opname[:256]]

# Keyed by identity, because equal code objects may differ in positions.  The Program holds
# its code object, so an id cannot be reused while its entry stands; the oldest entries leave.
_MEMO: dict[int, Program] = {}
_MEMO_LIMIT = 8192


def decode(code: CodeType) -> Program:
    """The neutral program of ``code``; the same object while it stays in the memo."""
    found = _MEMO.get(id(code))
    if found is not None and found.code is code:
        return found
    own = remembered(code)
    if own is not None:
        return own
    program = Program(
        ops=_Walk(code).ops(), name=code.co_name, qualname=code.co_qualname,
        filename=code.co_filename, firstlineno=code.co_firstlineno,
        argcount=code.co_argcount, posonlyargcount=code.co_posonlyargcount,
        kwonlyargcount=code.co_kwonlyargcount, flags=code.co_flags,
        varnames=code.co_varnames, cellvars=code.co_cellvars, freevars=code.co_freevars,
        code=code)
    while len(_MEMO) >= _MEMO_LIMIT:
        _MEMO.pop(next(iter(_MEMO)), None)
    _MEMO[id(code)] = program
    return program


_OWN: dict[int, tuple[weakref.ref[CodeType], Program]] = {}


def remember(code: CodeType, program: Program) -> None:
    """`code` was assembled from `program`: decoding it gives that very program, indices and memo included."""
    key = id(code)
    # `pop` is held: the module may be gone by then, at the end of the process
    _OWN[key] = (weakref.ref(code, lambda _, pop=_OWN.pop: pop(key, None)), program)       # type: ignore[misc]


def remembered(code: CodeType) -> Program | None:
    """The program `code` was assembled from, if it is one of ours."""
    own = _OWN.get(id(code))
    return own[1] if own is not None and own[0]() is code else None


def slots_of(varnames: tuple[str, ...], cellvars: tuple[str, ...],
             freevars: tuple[str, ...]) -> tuple[str, ...]:
    """CPython's "localsplus": a cell that is also a local shares its slot."""
    taken = set(varnames)
    return varnames + tuple(name for name in cellvars if name not in taken) + freevars


class SlotMaps(NamedTuple):
    """Which slot a name means, by the kind of op that names it."""

    locals: dict[str, int]      # *_LOCAL: a local; else the slot of the cell itself (PEP 709)
    own: dict[str, int]         # the cells made at entry
    cells: dict[str, int]       # LOAD_CELL, MAKE_CELL: in a class body, its own cell first
    derefs: dict[str, int]      # *_DEREF: a free variable before a cell one

    def find(self, op: str, name: str) -> int:
        if op in LOCAL_OPS:
            return self.locals[name]
        return (self.cells if op in CELL_OPS else self.derefs)[name]


LOCAL_OPS = frozenset({"LOAD_LOCAL", "LOAD_LOCAL_CLEAR", "STORE_LOCAL", "DELETE_LOCAL"})
CELL_OPS = frozenset({"LOAD_CELL", "MAKE_CELL"})


def slot_maps(varnames: tuple[str, ...], cellvars: tuple[str, ...],
              freevars: tuple[str, ...], flags: int) -> SlotMaps:
    """Names are unique, but for two cases.

    A class body may have a cell and a free ``__class__``: closures take the cell, loads the
    free one.  In functions a comprehension inlined over a free name (PEP 709) doubles it as a
    local, and cell ops mean the free one.
    """
    slots = slots_of(varnames, cellvars, freevars)
    first_free = len(slots) - len(freevars)
    free = {name: first_free + at for at, name in enumerate(freevars)}
    own = {name: slots.index(name) for name in cellvars}
    local = {name: at for at, name in enumerate(varnames)}
    derefs = {**own, **free}
    cells = derefs if flags & inspect.CO_OPTIMIZED else {**free, **own}
    return SlotMaps({**free, **own, **local}, own, cells, derefs)


class _Slot(str):
    """A slot name that remembers its slot, used while names are not unique."""

    index: int                        # type: ignore[assignment]     # hides str.index


def _remembering(names: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for at, name in enumerate(names):
        slot = _Slot(name)
        slot.index = at
        found.append(slot)
    return tuple(found)


class _Walk:
    """One pass over the code units, then jumps and handlers are resolved to op indices."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.raw = code.co_code
        varnames, cellvars = code.co_varnames, code.co_cellvars
        slots = slots_of(varnames, cellvars, code.co_freevars)
        cells = {index for index, name in enumerate(varnames) if name in cellvars} if cellvars else set()
        cells.update(range(len(varnames), len(slots)))
        self.view = View(code.co_consts, code.co_names, slots, frozenset(cells))
        self.doubled = len(set(slots)) < len(slots)
        if self.doubled:
            self.view = self.view._replace(slots=_remembering(slots))
        self.out: list[Op] = []
        self.units: list[int] = []              # for each op, the code unit it came from
        self.first: list[int] = []              # for each code unit, the first op at or after it
        self.jumps: list[tuple[Op, int]] = []   # op, target unit
        self.after_send: dict[int, int] = {}    # unit -> the END_SEND implied there (3.11)
        self.names: tuple[str, ...] = ()        # KW_NAMES waiting for their CALL
        self.started = False                    # past the entry sequence

    def ops(self) -> list[Op]:
        if version.SEND_POPS and _SEND in self.raw[::2]:
            self.after_send = dict.fromkeys(self._send_targets(), -1)
        self._walk()
        self.first.append(len(self.out))
        first, after_send = self.first, self.after_send
        for op, unit in self.jumps:
            if op.name == "SEND" and unit in after_send:
                op.target = after_send[unit]
            else:
                op.target = first[unit]
        if self.code.co_exceptiontable:
            self._handlers()
        if "LOAD_FAST_AND_CLEAR" in version.READ:
            code = self.code
            own, free = frozenset(code.co_cellvars), frozenset(code.co_freevars)
            self.out = untangle(self.out, own | free, free.intersection(own.union(code.co_varnames)))
        if self.doubled:
            self._check_slots()
        return self.out

    def _send_targets(self) -> list[int]:
        """Targets of SEND, read ahead because an op must be put in front of them."""
        found, extended, skip = [], 0, 0
        for unit in range(len(self.raw) // 2):
            if skip:
                skip -= 1
                continue
            number, arg = self.raw[2 * unit], self.raw[2 * unit + 1] | extended
            extended = arg << 8 if number == _EXTENDED_ARG else 0
            skip = _CACHES[number]
            if number == _SEND:
                found.append(unit + 1 + skip + arg)
        return found

    def _walk(self) -> None:
        raw, view, out, units, first = self.raw, self.view, self.out, self.units, self.first
        after_send = self.after_send
        extended = skip = 0
        for unit, where in enumerate(self.code.co_positions()):
            first.append(len(out))
            if skip:
                skip -= 1
                continue
            number = raw[2 * unit]
            arg = raw[2 * unit + 1] | extended
            if unit in after_send:
                self._imply_end_send(unit, where)
            if number == _EXTENDED_ARG:
                extended = arg << 8
                continue
            extended = 0
            skip = _CACHES[number]
            row = _ROWS[number]
            if row is None:
                raise DecodeError(f"unknown opcode {_opcode.opname[number]} in {self.code!r}")
            kind = row.kind
            if kind == FIXED:
                pairs = row.ops
            elif kind == READ:
                pairs = row.read(view, arg)     # type: ignore[misc]
            else:
                pairs, skip = self._special(row, unit, arg, skip, where)
            if pairs:
                pos = Position(*where)
                for name, value in pairs:
                    out.append(Op(name, value, -1, None, pos))
                    units.append(unit)

    def _special(self, row: Row, unit: int, arg: int, skip: int, where: tuple) -> tuple:
        """The rare kinds; answers the pairs to append, and how many units to skip."""
        kind = row.kind
        if kind == JUMP:
            pos = Position(*where)
            for name, value in (*row.ops, row.jump):
                self.out.append(Op(name, value, -1, None, pos))
                self.units.append(unit)
            self.jumps.append((self.out[-1], unit + 1 + skip + row.sign * arg))
            return row.after, skip
        if kind == CALL:
            names, self.names = self.names, ()
            return (("CALL", (arg, names)),), skip
        if kind == RESUME:
            self.started = True
            if self.out and self.out[-1].name == "YIELD":
                self.out[-1].arg = arg & 3
        elif kind == MAKE_CELL and self.started:
            return (("MAKE_CELL", self.view.slots[arg]),), skip
        elif kind == KW_NAMES:
            self.names = self.view.consts[arg]  # type: ignore[assignment]
        elif kind == CALL_KW:
            load = self.out.pop()
            self.units.pop()
            self.first[unit] = len(self.out)
            if load.name != "LOAD_CONST":
                raise DecodeError(f"CALL_KW without constant names in {self.code!r}")
            return (("CALL", (arg, load.arg)),), skip
        elif kind == ATTRIBUTE:                 # written right behind MAKE_FUNCTION: a function is made whole or not at all
            made = self.out[-1]
            if made.name != "MAKE_FUNCTION" or 0 < made.arg <= arg:
                raise DecodeError(f"SET_FUNCTION_ATTRIBUTE without its function in {self.code!r}")
            made.arg = (made.arg or 0) | arg
        elif kind == END_FOR:
            return (), len(version.FOR_TAIL) - 1
        return (), skip

    def _imply_end_send(self, unit: int, where: tuple) -> None:
        self.after_send[unit] = len(self.out)
        self.out.append(Op("END_SEND", None, -1, None, Position(*where)))
        self.units.append(unit)
        self.first[unit] = len(self.out)

    def _check_slots(self) -> None:
        """Names must find their slots again."""
        code = self.code
        maps = slot_maps(code.co_varnames, code.co_cellvars, code.co_freevars, code.co_flags)
        for op in self.out:
            if type(op.arg) is _Slot:
                name = str(op.arg)
                if maps.find(op.name, name) != op.arg.index:
                    raise DecodeError(f"{op.name} {name}: the name is ambiguous in {self.code!r}")
                op.arg = name

    def _handlers(self) -> None:
        by_unit: list[Handler | None] = [None] * len(self.first)
        for entry in dis._parse_exception_table(self.code):     # type: ignore[attr-defined]
            handler = Handler(self.first[entry.target // 2], entry.depth, bool(entry.lasti))
            for unit in range(entry.start // 2, entry.end // 2):
                by_unit[unit] = handler
        for op, unit in zip(self.out, self.units):
            op.handler = by_unit[unit]
