"""Numbers out of the user's objects for C functions: PyFloat_AsDouble, PyNumber_Index, PyComplex_AsCComplex and their callers.

Literals are folded before anything here is asked (``calls.call_c``).
"""
from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.model.tables import FOLD, Methods, fold, meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import iters, numbers
from minidynamo.variables.c_values import CValue
from minidynamo.variables.constants import ConstantVariable, slice_value
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.ranges import SliceVariable
from minidynamo.variables.sequences import inner

Convert = Callable[[Any, VariableTracker], VariableTracker]
ASKED = (ObjectVariable, CValue)        # whose methods say what number they are


def as_float(tx: Any, value: VariableTracker) -> VariableTracker:
    """PyFloat_AsDouble: a float is what it holds, others are asked ``__float__``, then ``__index__``."""
    if not isinstance(value, ASKED):
        return value
    if issubclass(value.py_type(), float):
        return inner(value)             # type: ignore[no-any-return]
    number = value.nb_unary(tx, "float")
    if number is NotImplemented:
        tx.raise_(TypeError, f"must be real number, not {tp_name(value.py_type())}")
    return number                       # type: ignore[no-any-return]


def as_index(tx: Any, value: VariableTracker) -> VariableTracker:
    return numbers.unary(tx, "index", value) if isinstance(value, ASKED) else value


def as_complex(tx: Any, value: VariableTracker) -> VariableTracker:
    """PyComplex_AsCComplex: ``__complex__`` before what a float is made of."""
    if not isinstance(value, ASKED):
        return value
    if issubclass(value.py_type(), complex):
        return inner(value)             # type: ignore[no-any-return]
    method = tx.special_method(value, "__complex__")
    return as_float(tx, value) if method is None else tx.checked_unary("complex", tx.call(method, []))


def as_floats(tx: Any, value: VariableTracker) -> VariableTracker:
    return tx.wrap_tuple([as_float(tx, real(tx, item)) for item in iters.collect(tx, value)])   # type: ignore[no-any-return]


def converted(function: Any, convert: Convert) -> Any:
    """The meaning of a function for arguments that are not literals yet."""
    return lambda tx, *args, **kwargs: tx.fold(function, [convert(tx, a) for a in args],
                                               {name: convert(tx, a) for name, a in kwargs.items()})


INDICES = ("gcd", "lcm", "factorial", "isqrt", "comb", "perm")
FLOATS = tuple(name for name, f in vars(math).items() if callable(f) and name[0] != "_"
               and name not in (*INDICES, "fsum", "prod", "sumprod", "dist", "floor", "ceil", "trunc", "ldexp"))
for names_, convert_ in ((INDICES, as_index), (FLOATS, as_float), (("fsum", "dist"), as_floats)):
    fold(*[getattr(math, name) for name in names_],
         otherwise=lambda function, convert=convert_: converted(function, convert))
fold(*[f for name, f in vars(cmath).items() if callable(f) and name not in ("rect", "isclose") and name[0] != "_"],
     otherwise=lambda function: converted(function, as_complex))
fold(cmath.rect, otherwise=lambda function: converted(function, as_float))


def as_bytes(tx: Any, value: VariableTracker) -> VariableTracker:
    """PyObject_Bytes, of what is not bytes already."""
    return value if inner(value).__class__ is ConstantVariable else tx.call(tx.class_of(bytes), [value])


@meaning(vars(int)["from_bytes"])
def from_bytes(tx, cls, bytes, byteorder=None, *, signed=None):
    """int_from_bytes_impl; an int's subclass is called with the number."""
    names = {name: value for name, value in (("byteorder", byteorder), ("signed", signed)) if value is not None}
    made = tx.fold(int.from_bytes, [as_bytes(tx, bytes)], names)
    return made if cls.as_object() is int else tx.call(cls, [made])


def is_close(tx, a, b, *, rel_tol=ConstantVariable(1e-09), abs_tol=ConstantVariable(0.0)):
    return tx.fold(cmath.isclose, [as_complex(tx, a), as_complex(tx, b)],
                   {"rel_tol": as_float(tx, rel_tol), "abs_tol": as_float(tx, abs_tol)})


fold(cmath.isclose, otherwise=lambda function: is_close)


def rounding(function: Any) -> Any:
    """math.floor, math.ceil: the type's own method, else of the float; math.trunc: the method alone."""
    name = f"__{function.__name__}__"

    def call(tx, x, /):
        method = tx.special_method(x, name) if isinstance(x, ASKED) else None
        if method is not None:
            return tx.call(method, [])
        if function is math.trunc and isinstance(x, ASKED):
            tx.raise_(TypeError, f"type {tp_name(x.py_type())} doesn't define __trunc__ method")
        return tx.fold(function, [as_float(tx, x)])
    return call


for function_ in (math.floor, math.ceil, math.trunc):
    fold(function_, otherwise=rounding)


def whole_method(raw: Any) -> Any:
    return lambda tx, self, *args: tx.fold(raw, [inner(self), *args])


for kind_ in (int, float):
    for name_ in ("__floor__", "__ceil__", "__trunc__", "__round__"):
        if name_ in vars(kind_) and vars(kind_)[name_] not in FOLD:
            meaning(vars(kind_)[name_])(whole_method(vars(kind_)[name_]))


class SliceMethods(Methods, of=slice):
    """slice.indices."""

    def indices(tx, self, length, /):
        """slice_indices: the length, then the bounds, each by ``__index__``."""
        size = as_index(tx, length)
        return tx.fold(slice.indices, [tx.wrap(slice_value(tx, self)) if isinstance(self, SliceVariable) else self, size])
