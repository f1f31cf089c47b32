"""Iteration: collecting, unpacking (PySequence_List, unpack_iterable)."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.model.variable import VariableTracker, defines, real


def iterate(tx: Any, value: VariableTracker, sized: bool = False) -> Iterator[VariableTracker]:
    """Each item in turn, built; `sized`: C asks for the number of items first."""
    iterator = value.tp_iter(tx)
    if sized:
        ask_length(tx, value)
    step = iterator.tp_iternext
    limit = tx.config.max_loop_unroll
    count = 0
    while (item := step(tx)) is not None:
        count += 1
        if count > limit:
            tx.stop(reasons.TRACE_TOO_LONG, count=limit, what="turns of one loop")
        yield real(tx, item)


def collect(tx: Any, value: VariableTracker) -> list[VariableTracker]:
    """``list(value)`` as a Python list of trackers; a list or tuple's own items are copied."""
    items = value.fast_items and value.fast_items(tx)
    return list(items) if items is not None else list(iterate(tx, value))


def listed(tx: Any, value: VariableTracker) -> list[VariableTracker]:
    """list_extend and PySequence_Tuple: as `collect`, and the user's ``__len__`` or ``__length_hint__`` is asked."""
    items = value.fast_items and value.fast_items(tx)
    if items is None:
        return list(iterate(tx, value, sized=True))
    ask_length(tx, value)
    return list(items)


def ask_length(tx: Any, value: VariableTracker) -> None:
    """The hint itself is of no use here, but the user's code that gives it has to run."""
    if tx.overrides(value, "__len__", "__length_hint__"):
        length_hint(tx, value)


def length_hint(tx: Any, value: VariableTracker) -> VariableTracker | None:
    """PyObject_LengthHint; None where there is no hint."""
    cls = value.py_type()
    length = tx.catching(TypeError, lambda: value.sq_length(tx)) if defines(cls, "__len__") else None
    if length is not None or not defines(cls, "__length_hint__"):
        return length
    hint = tx.catching(TypeError, lambda: tx.call(tx.special_method(value, "__length_hint__"), []))
    if hint is None or tx.not_implemented(hint) is NotImplemented:
        return None
    if not issubclass(hint.py_type(), int):
        tx.raise_(TypeError, f"__length_hint__ must be an integer, not {tp_name(hint.py_type())}")
    count = int(tx.builtin_part(hint).as_constant())
    if count < 0:
        tx.raise_(ValueError, "__length_hint__() should return >= 0")
    return tx.wrap(count)


def unpack(tx: Any, value: VariableTracker, count: int) -> list[VariableTracker]:
    """UNPACK_SEQUENCE: exactly `count` items, or the user's ValueError."""
    if not has_iter(value):
        tx.raise_(TypeError, f"cannot unpack non-iterable {tp_name(value.py_type())} object")
    items = value.fast_items and value.fast_items(tx)
    if items is None:
        items = []
        iterator = value.tp_iter(tx)
        for have in range(count):
            item = iterator.tp_iternext(tx)
            if item is None:
                too_few(tx, count, have)
            items.append(item)
        if iterator.tp_iternext(tx) is not None:
            tx.raise_(ValueError, f"too many values to unpack (expected {count})")
    if len(items) < count:
        too_few(tx, count, len(items))
    if len(items) > count:
        tx.raise_(ValueError, f"too many values to unpack (expected {count})")
    return items


def unpack_ex(tx: Any, value: VariableTracker, before: int, after: int) -> tuple[list, list, list]:
    """UNPACK_EX: ``a, *b, c = value``."""
    if not has_iter(value):
        tx.raise_(TypeError, f"cannot unpack non-iterable {tp_name(value.py_type())} object")
    items = collect(tx, value)
    if len(items) < before + after:
        tx.raise_(ValueError, f"not enough values to unpack (expected at least {before + after}, got {len(items)})")
    end = len(items) - after
    return items[:before], items[before:end], items[end:]


def too_few(tx: Any, count: int, have: int) -> NoReturn:
    raise tx.raise_(ValueError, f"not enough values to unpack (expected {count}, got {have})")


def has_iter(value: VariableTracker) -> bool:
    cls = value.py_type()
    return defines(cls, "__iter__") or defines(cls, "__getitem__")
