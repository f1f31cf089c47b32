"""Guards to one Python function with shared subexpressions; runnable, and printed by explain."""
from __future__ import annotations

import keyword
import re
import types
from collections.abc import Callable
from typing import Any

from minidynamo.guards.guard import Guard
from minidynamo.guards.hold import Held, Keep
from minidynamo.sources import (
    Attr, CellContents, ClassDict, DictItem, DictRoot, Fetch, Global, InstanceAttr, Item, Local, PlainInstanceAttr, PlainItem,
    Source, TypeOf, namespace_of,
)
from minidynamo.sources.source import instance_dict

Check = Callable[[Any, dict[str, Any]], bool]


class FunctionNames:
    """Names inside the function: one variable per source, constants in the function's globals."""

    readable = False

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}
        self.variables: dict[Source, str] = {}
        self.constants: dict[int, str] = {}
        self.opaque = False                         # whether the line needs a comment to be read
        self.kept: list[Any] = []                   # so that ids in `constants` stay their own
        self.taken = {"L", "G", "guard", "type", "len", "id", "hasattr", "Exception", "True", "False", "None"}

    def unique(self, hint: str) -> str:
        stem = re.sub(r"\W+", "_", hint).strip("_") or "value"
        stem = f"_{stem}" if stem[0].isdigit() or keyword.iskeyword(stem) else stem
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name

    def source(self, source: Source) -> str:
        """The variable that holds a source's value, read at its first use."""
        name = self.variables.get(source)
        if name is None:
            base = None if source.base is None else self.source(source.base)
            read = READS.get(type(source), _read_step)(source, base, self)
            name = self.variables[source] = self.unique(_variable_hint(source, base))
            self.lines.append(f"{name} = {read}")
        return name

    def const(self, value: Any, hint: str) -> str:
        if value is None or type(value) is bool or type(value) is int and value.bit_length() < 64 \
                or type(value) is str and len(value) <= 60:
            return repr(value)
        return self.bound(value, hint)

    def bound(self, value: Any, hint: str) -> str:
        """The global of the function that holds this very object."""
        key = id(value)
        if isinstance(value, types.MethodType):     # a guard's own: made anew by each access
            self.opaque = True
            key = hash((id(value.__self__), id(value.__func__)))
        if key not in self.constants:
            self.constants[key] = self.unique(hint.rsplit(".", 1)[-1] if hint.isidentifier() else hint)
            self.scope[self.constants[key]] = value
            self.kept.append(value)
        return self.constants[key]

    def is_object(self, expression: str, held: Held, hint: str) -> str:
        if type(held) is Keep:
            return f"{expression} is {self.bound(held.obj, hint)}"
        ref = self.bound(held, f"ref_{hint.strip('<>')}")
        return f"{expression} is {ref}() is not None"           # a dead object is no object


def _variable_hint(source: Source, base: str | None) -> str:
    key = source.key if isinstance(source.key, (str, int)) else source.kind
    if isinstance(source, TypeOf):
        key = "type"
    return str(key) if base is None else f"{base}_{key}"[-40:]


Read = Callable[[Any, str, FunctionNames], str]


def _read_step(source: Source, base: str | None, names: FunctionNames) -> str:
    if base is None:
        return f"{names.const(source.fetch, f'fetch_{source.key}')}(L, G)"
    return f"{names.const(source.read, f'get_{source.kind}')}({base})"


def _read_attr(source: Source, base: str, names: FunctionNames) -> str:
    return f"{base}.{source.key}" if source.key.isidentifier() and not keyword.iskeyword(source.key) \
        else _read_step(source, base, names)


def _read_item(source: Item, base: str, names: FunctionNames) -> str:
    return f"{names.const(source.owner.__getitem__, f'{source.owner.__name__}_getitem')}({base}, {source.key!r})"


READS: dict[type, Read] = {
    Local: lambda source, base, names: f"L[{source.key!r}]",
    Global: lambda source, base, names: f"G[{source.key!r}]",
    DictRoot: lambda source, base, names: names.const(source.mapping, f"namespace_{source.key}"),
    ClassDict: lambda source, base, names:
        f"{names.const(namespace_of, 'namespace_of')}({names.const(source.held, f'ref_{source.key}')})",
    Attr: _read_attr,
    CellContents: lambda source, base, names: f"{base}.cell_contents",
    TypeOf: lambda source, base, names: f"type({base})",
    InstanceAttr: lambda source, base, names:
        f"{names.const(instance_dict, 'instance_dict')}({base})[{source.key!r}]",
    DictItem: lambda source, base, names:
        f"{names.const(dict.__getitem__, 'dict_getitem')}({base}, {names.const(source.key, 'key')})",
    Fetch: lambda source, base, names: f"{names.const(source.function, str(source.key))}({base})",
    Item: _read_item,
}
READS[PlainInstanceAttr] = READS[InstanceAttr]
READS[PlainItem] = READS[Item]


def lower_python(guards: list[Guard]) -> tuple[Check, str]:
    """The function ``guard(L, G) -> bool`` and its text.

    Whatever is raised while a source is read means that the guards do not hold.
    """
    names = FunctionNames()
    lines = names.lines
    for guard in guards:
        names.opaque = False
        line = f"if not ({guard.expression(names)}): return False"
        lines.append(f"{line}  # {' '.join(guard.text().split())}" if names.opaque else line)
    body = "\n".join(f"        {line}" for line in lines) or "        pass"
    text = f"def guard(L, G):\n    try:\n{body}\n    except Exception:\n        return False\n    return True\n"
    exec(compile(text, "<minidynamo guards>", "exec"), names.scope)
    return names.scope["guard"], text
