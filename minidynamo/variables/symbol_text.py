"""Text made of symbolic numbers: carried as parts, so that a message does not fix the number it shows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo.model.variable import VariableTracker
from minidynamo.variables.constants import ConstantVariable

Part = str | tuple[Callable[..., str], VariableTracker, tuple[str, ...]]      # literal, or function(value, *args)


class SymTextVariable(VariableTracker):
    """A str whose parts are literals and shown numbers.  Whoever looks at the characters fixes the numbers."""

    __slots__ = ("parts",)
    kind = "text of a symbolic number"

    def __init__(self, parts: list[Part]) -> None:
        self.parts, self.source = parts, None

    def py_type(self) -> type:
        return str

    def as_constant(self) -> str:
        return "".join([p if isinstance(p, str) else p[0](p[1].as_constant(), *p[2]) for p in self.parts])

    def children(self) -> list[VariableTracker]:
        return [p[1] for p in self.parts if not isinstance(p, str)]

    def rebuild(self, out: Any) -> None:
        out.begin_call()
        out.load_object_unchecked(str.join)
        out.callable_done()
        out.load_const("")
        for part in self.parts:
            if isinstance(part, str):
                out.load_const(part)
            else:
                out.call_function(part[0], part[1], *part[2])
        out.op("BUILD_TUPLE", len(self.parts))
        out.call(2)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        if symbol == "+" and other.py_type() is str:
            return joined([other, self] if reflected else [self, other])
        return ConstantVariable(self.as_constant()).nb_binary(tx, symbol, other, reflected)

    def key(self, tx: Any) -> Any:
        return self.as_constant()

    def tp_str(self, tx: Any) -> VariableTracker:
        return self

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        return self if not spec else ConstantVariable(self.as_constant()).tp_format(tx, spec)


def by_characters(name: str) -> Any:
    def slot(self: SymTextVariable, tx: Any, *args: Any) -> Any:
        return getattr(ConstantVariable(self.as_constant()), name)(tx, *args)
    return slot


for name_ in ("tp_getattro", "tp_setattro", "tp_iter", "sq_length", "mp_subscript", "sq_contains", "nb_bool", "nb_unary",
              "nb_inplace", "tp_richcompare", "tp_hash", "tp_repr", "fast_items"):
    setattr(SymTextVariable, name_, by_characters(name_))


def shown(function: Callable[..., str], value: VariableTracker, *args: str) -> VariableTracker:
    return SymTextVariable([(function, value, args)])


def joined(pieces: list[VariableTracker]) -> VariableTracker:
    """``"".join(pieces)`` of strings, symbolic ones kept open."""
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, SymTextVariable):
            parts.extend(piece.parts)
        else:
            parts.append(piece.as_constant())
    return SymTextVariable(parts) if any(not isinstance(p, str) for p in parts) else ConstantVariable("".join(parts))  # type: ignore[arg-type]
