"""Comparison, truth, hash, length, containment (do_richcompare, PyObject_IsTrue, PySequence_Contains)."""
from __future__ import annotations

import operator
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import Aliased, NotAliased
from minidynamo.model.variable import IdKey, NotConstant, VariableTracker, is_subtype

COMPARE = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge}
SWAPPED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}


def compare(tx: Any, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """do_richcompare: subclass priority, reflection, identity for == and !=."""
    left_type, right_type = left.py_type(), right.py_type()
    swapped = left_type is not right_type and is_subtype(right_type, left_type)
    if swapped:
        result = right.tp_richcompare(tx, SWAPPED[symbol], left)
        if result is not NotImplemented:
            return result
    result = left.tp_richcompare(tx, symbol, right)
    if result is not NotImplemented:
        return result
    if not swapped:
        result = right.tp_richcompare(tx, SWAPPED[symbol], left)
        if result is not NotImplemented:
            return result
    if symbol in ("==", "!="):
        return tx.wrap(is_same(tx, left, right) is (symbol == "=="))
    raise tx.raise_(TypeError, f"'{symbol}' not supported between instances of "
                               f"'{tp_name(left_type)}' and '{tp_name(right_type)}'")


def is_same(tx: Any, left: VariableTracker, right: VariableTracker) -> bool:
    """``left is right``."""
    if left is right:
        return True
    kind = left.py_type()
    if kind in NUMBERS_AND_TEXT:
        return kind is right.py_type() and is_same_literal(tx, left, right, kind)
    a, b = left.identity(), right.identity()
    if left.source is not None and right.source is not None and left.source != right.source:
        (tx.guard_identity if a is b else tx.guard_distinct)(left, right)
    return a is b


NUMBERS_AND_TEXT = (int, float, complex, str, bytes)


def is_same_literal(tx: Any, left: VariableTracker, right: VariableTracker, kind: type) -> bool:
    """``is`` of two numbers or texts: small ints are one object each; other objects are told apart by what they are."""
    a, b = left.as_constant(), right.as_constant()
    if kind is int and -5 <= a <= 256:
        return a == b
    if left.source is not None and right.source is not None and left.source != right.source and a == b:
        tx.guard(Aliased(left.source, right.source) if a is b else NotAliased((left.source, right.source)))
    return a is b


def find_key(tx: Any, entries: dict, item: VariableTracker) -> Any:
    """The stand-in of `item` as a key, and whether `entries` (of a dict or set) have it.

    An object that hashes by identity and is not found must be found missing on later calls too.
    """
    stand_in = item.key(tx)
    if stand_in in entries:
        return stand_in, True
    if stand_in.__class__ is IdKey and item.source is not None:
        for held in entries.values():
            other = held[0] if held.__class__ is tuple else held
            if other.source is not None and other.source != item.source:
                tx.guard_distinct(item, other)
    return stand_in, False


def same_or_equal(tx: Any, left: VariableTracker, right: VariableTracker) -> bool:
    """PyObject_RichCompareBool(left, right, Py_EQ)."""
    kind = left.py_type()
    if kind in NUMBERS_AND_TEXT and kind is not float and kind is not complex:      # identity adds nothing to equality
        return left is right or truth(tx, compare(tx, "==", left, right))
    return is_same(tx, left, right) or truth(tx, compare(tx, "==", left, right))


def truth(tx: Any, value: VariableTracker) -> bool:
    """PyObject_IsTrue as a Python bool; data-dependent values stop here."""
    result = value.nb_bool(tx)
    return True if result is None else result.as_constant()


def length(tx: Any, value: VariableTracker) -> VariableTracker:
    """PyObject_Size."""
    return value.sq_length(tx)


def contains(tx: Any, container: VariableTracker, item: VariableTracker) -> VariableTracker:
    """PySequence_Contains: the slot, or a search by iteration."""
    result = container.sq_contains(tx, item)
    if result is not None:
        return result
    iterator = tx.catching(TypeError, lambda: container.tp_iter(tx))        # _PySequence_IterSearch
    if iterator is None:
        tx.raise_(TypeError, f"argument of type '{tp_name(container.py_type())}' is not iterable")
    while (found := iterator.tp_iternext(tx)) is not None:
        if same_or_equal(tx, found, item):
            return tx.wrap(True)
    return tx.wrap(False)


def constants(*values: VariableTracker) -> list[Any] | None:
    """The values themselves when all are literals, else None."""
    try:
        return [v.as_constant() for v in values]
    except NotConstant:
        return None
