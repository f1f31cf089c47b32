"""Builtins that make or use up iterators: iter, next, zip, map, reversed, any, all, sum, min, max (Python/bltinmodule.c)."""
from __future__ import annotations

from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.code import facts
from minidynamo.model.tables import meaning
from minidynamo.model.variable import defines, real
from minidynamo.protocol import compare as cmp
from minidynamo.protocol import iters, numbers
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.iterators import (
    CallIterator, EnumerateIterator, FilterIterator, MapIterator, RangeIterator, ReversedIterator, ZipIterator)
from minidynamo.variables.sequences import inner


@meaning(iter)
def call_iter(tx, obj, sentinel=None, /):
    if sentinel is not None:
        if not defines(obj.py_type(), "__call__"):
            tx.raise_(TypeError, "iter(v, w): v must be callable")
        return CallIterator(obj, sentinel)
    return obj.tp_iter(tx)


@meaning(next)
def call_next(tx, iterator, default=None, /):
    value = iterator.tp_iternext(tx)
    if value is not None:
        return real(tx, value)
    if default is None:
        tx.raise_stop_iteration(iterator)
    return default


@meaning(zip)
def call_zip(tx, *iterables, strict=None):
    return ZipIterator([i.tp_iter(tx) for i in iterables], strict is not None and cmp.truth(tx, strict))


@meaning(map)
def call_map(tx, function, /, *iterables):
    if not iterables:
        tx.raise_(TypeError, "map() must have at least two arguments.")
    return MapIterator(function, [i.tp_iter(tx) for i in iterables])


@meaning(filter)
def call_filter(tx, function, iterable, /):
    return FilterIterator(function, iterable.tp_iter(tx))


@meaning(enumerate)
def call_enumerate(tx, iterable, start=None):
    return EnumerateIterator(iterable.tp_iter(tx), numbers.unary(tx, "index", start) if start else ConstantVariable(0))


@meaning(range.__reversed__)
def range_reversed(tx, self, /):
    return RangeIterator(self.value[::-1])


@meaning(*[cls.__reversed__ for cls in (type({}.keys()), type({}.values()), type({}.items()))])
def view_reversed(tx, self, /):
    return self.reversed_iterator(tx)


@meaning(reversed)
def call_reversed(tx, sequence, /):
    if getattr(sequence.py_type(), "__reversed__", tx) is None:
        tx.raise_(TypeError, f"'{tp_name(sequence.py_type())}' object is not reversible")
    method = tx.special_method(sequence, "__reversed__")
    if method is not None:
        return tx.call(method, [])
    part = inner(sequence)
    if hasattr(part, "value") and isinstance(part.value, range):
        return RangeIterator(part.value[::-1])
    if part.reversed_iterator is not None:
        return part.reversed_iterator(tx)
    if not (defines(sequence.py_type(), "__len__") and defines(sequence.py_type(), "__getitem__")) \
            or isinstance(part.py_type(), type) and issubclass(part.py_type(), (set, frozenset)):
        tx.raise_(TypeError, f"'{tp_name(sequence.py_type())}' object is not reversible")
    return ReversedIterator(sequence, cmp.length(tx, sequence).as_constant() - 1)


@meaning(any)
def call_any(tx, iterable, /):
    return ConstantVariable(any(cmp.truth(tx, i) for i in iters.iterate(tx, iterable)))


@meaning(all)
def call_all(tx, iterable, /):
    return ConstantVariable(all(cmp.truth(tx, i) for i in iters.iterate(tx, iterable)))


@meaning(sum)
def call_sum(tx, iterable, /, start=None):
    total = start or ConstantVariable(0)
    if total.py_type() in (str, bytes, bytearray):
        tx.raise_(TypeError, {str: "sum() can't sum strings [use ''.join(seq) instead]",
                              bytes: "sum() can't sum bytes [use b''.join(seq) instead]",
                              bytearray: "sum() can't sum bytearray [use b''.join(seq) instead]"}[total.py_type()])
    for item in iters.iterate(tx, iterable):
        total = numbers.binary(tx, "+", total, item)
    return total


def extreme(name: str, symbol: str) -> Any:
    """``min`` and ``max`` (min_max in bltinmodule.c)."""
    def call(tx, *args, key=None, default=None):
        if not args:
            tx.raise_(TypeError, f"{name} expected at least 1 argument, got 0")
        if len(args) > 1 and default is not None:
            tx.raise_(TypeError, f"Cannot specify a default for {name}() with multiple positional arguments")
        keyed = key is not None and not (isinstance(key, ConstantVariable) and key.value is None)
        best = best_key = None
        for item in (iters.iterate(tx, args[0]) if len(args) == 1 else args):
            item_key = tx.call(key, [item]) if keyed else item
            if best is None or cmp.truth(tx, cmp.compare(tx, symbol, item_key, best_key)):
                best, best_key = item, item_key
        if best is None and default is None:
            word = "iterable argument is empty" if facts.EXTREMES_SAY_ITERABLE else "arg is an empty sequence"
            tx.raise_(ValueError, f"{name}() {word}")
        return default if best is None else best
    return call


meaning(max)(extreme("max", ">"))
meaning(min)(extreme("min", "<"))
