"""Text made of symbolic numbers: carried as parts, so that a message does not fix the number it shows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo.model.services import service
from minidynamo.model.tables import meaning
from minidynamo.model.variable import VariableTracker
from minidynamo.variables.constants import ConstantVariable

Part = str | tuple[Callable[..., str], VariableTracker, tuple[str, ...]]      # literal, or function(value, *args)


class SymTextVariable(VariableTracker):
    """A str whose parts are literals and shown numbers.  Whoever looks at the characters fixes the numbers."""

    __slots__ = ("parts",)
    kind = "text of a symbolic number"

    def __init__(self, parts: list[Part]) -> None:
        self.parts: list[Part] = []
        self.source = None
        for part in parts:                               # literal parts that meet are one
            if isinstance(part, str) and self.parts and isinstance(self.parts[-1], str):
                self.parts[-1] += part
            else:
                self.parts.append(part)

    def py_type(self) -> type:
        return str

    def as_constant(self) -> str:
        return "".join([p if isinstance(p, str) else p[0](p[1].as_constant(), *p[2]) for p in self.parts])

    def children(self) -> list[VariableTracker]:
        return [p[1] for p in self.parts if not isinstance(p, str)]

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(str.join)
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

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        """A literal part that has it decides."""
        if item.py_type() is str and any(isinstance(p, str) and item.as_constant() in p for p in self.parts):
            return ConstantVariable(True)
        return ConstantVariable(self.as_constant()).sq_contains(tx, item)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if symbol in ("==", "!=") and isinstance(other, SymTextVariable) and other.parts == self.parts:
            return ConstantVariable(symbol == "==")
        return ConstantVariable(self.as_constant()).tp_richcompare(tx, symbol, other)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        raw = vars(str).get(name)
        if raw in BY_PART:
            return tx.bound_c_method(self, raw)
        return ConstantVariable(self.as_constant()).tp_getattro(tx, name)

    def is_apart(self, text: str) -> bool:
        """Whether no occurrence of `text` can reach into a part that is an address: ``0x`` and hexadecimal digits."""
        return bool(text) and "0" not in text and text[0] not in "123456789abcdefx" \
            and all(isinstance(p, str) or p[0] is hex_address for p in self.parts)

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        return self if not spec else ConstantVariable(self.as_constant()).tp_format(tx, spec)


def by_characters(name: str) -> Any:
    def slot(self: SymTextVariable, tx: Any, *args: Any) -> Any:
        return getattr(ConstantVariable(self.as_constant()), name)(tx, *args)
    return slot


for name_ in ("tp_setattro", "tp_iter", "sq_length", "mp_subscript", "nb_bool", "nb_unary", "tp_hash",
              "tp_repr", "fast_items"):
    setattr(SymTextVariable, name_, by_characters(name_))


def hex_address(obj: Any) -> str:
    """``%p`` as CPython's reprs show it."""
    return hex(id(obj))


def by_part(name: str) -> Any:
    """A method of str that literal parts answer, where they can."""
    def call(tx: Any, self: Any, *args: Any) -> VariableTracker:
        literals = all(a.py_type() is str and not isinstance(a, SymTextVariable) for a in args) and len(args) in (1, 2)
        if isinstance(self, SymTextVariable) and literals:
            texts = [tx.builtin_part(a).as_constant() for a in args]
            first, last = self.parts[0], self.parts[-1]
            if name == "replace" and len(texts) == 2 and self.is_apart(texts[0]):
                return SymTextVariable([p.replace(*texts) if isinstance(p, str) else p for p in self.parts])
            if name == "startswith" and len(texts) == 1 and isinstance(first, str) and len(first) >= len(texts[0]):
                return ConstantVariable(first.startswith(texts[0]))
            if name == "endswith" and len(texts) == 1 and isinstance(last, str) and len(last) >= len(texts[0]):
                return ConstantVariable(last.endswith(texts[0]))
        return tx.fold(vars(str)[name], [tx.builtin_part(self), *args])    # type: ignore[no-any-return]
    return call


BY_PART = {vars(str)[name]: by_part(name) for name in ("replace", "startswith", "endswith")}
for raw_, call_ in BY_PART.items():
    meaning(raw_)(call_)


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


@service
def join_text(tx: Any, parts: list[VariableTracker]) -> VariableTracker:
    return joined([p.inner or p for p in parts])


@service
def text_with_address(tx: Any, before: str, value: VariableTracker, after: str = ">") -> VariableTracker:
    """A repr that shows where `value` is: its characters are not known while tracing."""
    return SymTextVariable([before, (hex_address, value, ()), after])
