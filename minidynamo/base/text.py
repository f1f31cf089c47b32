"""Text helpers: names and values for messages, without ever running user code."""
from __future__ import annotations

import ctypes
import os
import types
from typing import Any

# Types whose repr is C code over plain data: safe to call, and what a reader wants to see.
TP_NAME = 3 * ctypes.sizeof(ctypes.c_void_p)         # behind ob_refcnt, ob_type and ob_size
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), type(...), range, slice})


def type_name(obj: object) -> str:
    """The qualified name of an object's type, builtins without their module."""
    return name_of(type(obj))


def a_type(obj: object) -> str:
    """The type's name with its article: ``a str``, ``an int``."""
    name = type_name(obj)
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def tp_name(cls: type) -> str:
    """The C struct's ``tp_name``, which error messages show: with the module for types written in C."""
    return ctypes.c_char_p.from_address(id(cls) + TP_NAME).value.decode()  # type: ignore[union-attr]


def name_of(obj: Any) -> str:
    """How a reader would name a function, class or module; never a repr of user data."""
    if isinstance(obj, types.ModuleType):
        return _text_attr(obj, "__name__") or "<module>"
    if isinstance(obj, types.MethodType):
        return name_of(obj.__func__)
    name = _text_attr(obj, "__qualname__") or _text_attr(obj, "__name__")
    if name is None:
        return f"<{type_name(obj)} object>" if not issubclass(type(obj), type) else "<class>"
    module = _text_attr(obj, "__module__")
    return name if module in (None, "builtins", "__main__") else f"{module}.{name}"


def _text_attr(obj: Any, name: str) -> str | None:
    """A string attribute of the object itself; user ``__getattr__`` is not asked."""
    try:
        value = object.__getattribute__(obj, name) if not issubclass(type(obj), type) else type.__getattribute__(obj, name)
    except AttributeError:
        return None
    return value if type(value) is str else None


def show(obj: object, limit: int = 60) -> str:
    """A short text for a value: plain data as Python writes it, anything else by its type."""
    if type(obj) in _PLAIN:
        return clip(repr(obj), limit)
    if isinstance(obj, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
        return clip(name_of(obj), limit)
    if type(obj) in (list, tuple, set, frozenset, dict):
        return f"<{type(obj).__name__} of {len(obj)}>"      # type: ignore[arg-type]
    return f"<{type_name(obj)}>"


def near(path: str) -> str:
    """A file's path as a reader in the working directory would write it."""
    if not os.path.isabs(path):
        return path
    try:
        found = os.path.relpath(path)
    except (OSError, ValueError):           # no working directory any more; another drive
        return path
    return path if found.startswith("..") else found


def clip(text: str, limit: int) -> str:
    """At most `limit` characters on one line."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit - 1] + "…"


def count_of(number: int, noun: str) -> str:
    """``1 graph``, ``2 graphs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def indent(text: str, by: str = "  ") -> str:
    return "\n".join(by + line if line else line for line in text.splitlines())
