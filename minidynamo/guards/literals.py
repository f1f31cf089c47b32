"""Exact comparison of literals: types count, and so do the sign of zero and the bits of a NaN."""
from __future__ import annotations

import datetime
import decimal
import enum
import struct
import types
import typing
from collections.abc import Callable
from typing import Any

import torch

from minidynamo.base.text import name_of

Key = Any

#: Compared by ``==`` once the exact types agree: C types whose equality runs no user code.
PLAIN = (int, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented),
         torch.dtype, torch.device, torch.layout, torch.memory_format)
ALIASES = (types.GenericAlias, types.UnionType, type(typing.List[int]), type(typing.Optional[int]),
           type(typing.Literal[1]), type(typing.Callable[[int], str]))
_NAMED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType,
          types.WrapperDescriptorType, types.ClassMethodDescriptorType)


def _float(value: float) -> Key:
    return struct.pack("<d", value)


def _complex(value: complex) -> Key:
    return struct.pack("<dd", value.real, value.imag)


def _items(value: Any) -> Key:
    return tuple(map(literal_key, value))


def _set(value: Any) -> Key:
    return frozenset(map(literal_key, value))


def _bounds(value: Any) -> Key:
    return tuple(map(literal_key, (value.start, value.stop, value.step)))


def _alias(value: Any) -> Key:
    return literal_key(typing.get_origin(value)), _items(typing.get_args(value))


def _state(value: Any) -> Key:
    """What it is pickled as; a time zone counts by its identity."""
    return _items(value.__reduce_ex__(4)[1])


KEYS: dict[type, Callable[[Any], Key]] = {
    datetime.date: _state, datetime.datetime: _state, datetime.time: _state, datetime.timedelta: _state,
    decimal.Decimal: decimal.Decimal.as_tuple,
    float: _float, complex: _complex, tuple: _items, torch.Size: _items, list: _items,
    frozenset: _set, set: _set, slice: _bounds, range: _bounds,
    **dict.fromkeys(PLAIN, lambda value: value),
    **dict.fromkeys(ALIASES, _alias),
}

# By address: a user's metaclass may define __hash__ and __eq__, which must not run.
_BY_ADDRESS = {id(kind): keyed for kind, keyed in KEYS.items()}


def is_literal(value: Any) -> bool:
    """Whether the exact type is one that `literal_key` keys by value."""
    return id(type(value)) in _BY_ADDRESS


def literal_key(value: Any) -> Key:
    """A hashable key, equal for two values only when no program can tell them apart.

    What is no literal (classes, enum members, functions) is keyed by its identity; whoever keeps
    the key must keep the value too.
    """
    keyed = _BY_ADDRESS.get(id(type(value)))
    if keyed is None:
        return (object, id(value))
    return (type(value), keyed(value))


def is_simple(value: Any) -> bool:
    """Whether exact type and ``==`` alone decide: no zeros or NaNs, nothing nested."""
    if type(value) is float:
        return value == value and value != 0.0
    return type(value) in (int, str, bytes, torch.device)


def is_singleton(value: Any) -> bool:
    """Whether identity decides equality."""
    return (value is None or type(value) in (bool, type(Ellipsis), type(NotImplemented), torch.dtype,
                                             torch.layout, torch.memory_format)
            or is_enum_member(value))


def is_immutable(value: Any) -> bool:
    """Whether a literal stays what it is, down to its last item."""
    kind = type(value)
    if kind in (tuple, torch.Size, frozenset):
        return all(map(is_immutable, value))
    if kind is slice:
        return is_immutable((value.start, value.stop, value.step))
    return kind is not list and kind is not set


def is_enum_member(value: Any) -> bool:
    return issubclass(type(type(value)), enum.EnumMeta)


def short(value: Any, limit: int = 80) -> str:
    """A description for messages; runs no user ``__repr__``."""
    if is_enum_member(value):
        return f"{type(value).__name__}.{value._name_}"
    if is_literal(value) and type(value) not in (tuple, list, set, frozenset, slice):
        text = f"<int of {value.bit_length()} bits>" if type(value) is int and value.bit_length() > 999 \
            else repr(value)
    elif type(value) is tuple:
        inner = ", ".join(short(item) for item in value[:8])
        text = f"({inner}{',' if len(value) == 1 else ''}{', ...' if len(value) > 8 else ''})"
    elif issubclass(type(value), type):
        return name_of(value)
    else:
        own = name_of(value) if any(type(value) is kind for kind in _NAMED) else f"at {id(value):#x}"
        text = f"<{name_of(type(value))} {own}>"
    return text if len(text) <= limit else text[:limit - 3] + "..."
