"""The match statement's helpers as Python to inline (match_keys and match_class in ceval.c)."""
from __future__ import annotations

from typing import Any


def _said() -> str:
    kind: Any = None
    try:
        match None:
            case kind():
                pass
    except TypeError as error:
        return str(error)
    raise AssertionError


NOT_A_CLASS = _said()           # words of this Python


def match_keys(subject: Any, keys: tuple[Any, ...]) -> Any:
    """MATCH_KEYS: the values of all keys, or None."""
    if not keys:
        return ()
    get, missing = subject.get, object()
    seen, values = set(), []
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
        value = get(key, missing)
        if value is missing:
            return None
        values.append(value)
    return tuple(values)


def match_class(subject: Any, cls: Any, count: int, names: tuple[str, ...], matches_self: bool) -> Any:
    """MATCH_CLASS: the attributes that the sub-patterns look at, or None."""
    if not isinstance(cls, type):
        raise TypeError(NOT_A_CLASS)
    if not isinstance(subject, cls):
        return None
    seen, values = set(), []
    if count:
        fields: Any = ()
        if hasattr(cls, "__match_args__"):
            fields = cls.__match_args__
            matches_self = False
            if type(fields) is not tuple:
                raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {type(fields).__name__})")
        allowed = 1 if matches_self else len(fields)
        if allowed < count:
            raise TypeError(f"{cls.__name__}() accepts {allowed} positional sub-pattern{'' if allowed == 1 else 's'} "
                            f"({count} given)")
        if matches_self:
            values.append(subject)
        else:
            for at in range(count):
                if type(fields[at]) is not str:
                    raise TypeError(f"__match_args__ elements must be strings (got {type(fields[at]).__name__})")
                if fields[at] in seen:
                    raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {fields[at]!r}")
                seen.add(fields[at])
                try:
                    values.append(getattr(subject, fields[at]))
                except AttributeError:
                    return None
    for name in names:
        if name in seen:
            raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}")
        seen.add(name)
        try:
            values.append(getattr(subject, name))
        except AttributeError:
            return None
    return tuple(values)
