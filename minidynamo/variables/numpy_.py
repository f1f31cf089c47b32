"""numpy values: those from outside are carried and break when used; those made of known numbers are computed while tracing."""
from __future__ import annotations

import warnings
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import SameObject, TypeIs
from minidynamo.model.tables import CALLS, builds, builds_subclasses
from minidynamo.model.variable import CannotRebuild, NotConstant, VariableTracker, real
from minidynamo.protocol import compare, numbers
from minidynamo.variables.bases import HashedByIdentity, HeldObject
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable, SequenceVariable, TupleVariable

try:
    import numpy
except ImportError:                     # numpy is optional, also for torch
    numpy = None                        # type: ignore[assignment]


class NumpyVariable(HeldObject, HashedByIdentity):
    """An array or scalar: only its type is known, so that a new one on each call compiles nothing anew."""

    __slots__ = ()
    kind = "numpy value"

    def tp_getattro(self, tx: Any, name: str) -> Any:
        if name == "__class__":
            return tx.class_of(type(self.obj))
        return tx.stop(reasons.NUMPY_CALL, name=f".{name}")

    def tp_richcompare(self, tx: Any, symbol: str, other: Any) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)

    def key(self, tx: Any) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name="hash()")

    def nb_binary(self, tx: Any, symbol: str, other: Any, reflected: bool) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)

    def nb_inplace(self, tx: Any, symbol: str, other: Any) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol)


def build_numpy(tx: Any, obj: Any, source: Any) -> NumpyVariable:
    tx.guard(TypeIs(source, type(obj)))
    return NumpyVariable(obj, source)


# ---------------------------------------------------------------- made while tracing
class KnownArrayVariable(VariableTracker):
    """An array or scalar that follows from literals.  Nothing writes into it while tracing: that is Python's."""

    __slots__ = ("value", "made_at", "shared")
    kind = "numpy value made while tracing"

    def __init__(self, tx: Any, value: Any) -> None:
        self.value, self.source, self.made_at = value, None, tx.root_step
        self.shared = False             # another array has the same memory

    def py_type(self) -> type:
        return type(self.value)

    def identity(self) -> object:
        return self

    def children(self) -> list[VariableTracker]:
        value = self.value
        if isinstance(value, numpy.ndarray) and (self.shared or not value.flags.c_contiguous or value.dtype.hasobject):
            raise CannotRebuild(self, "a view of an array")
        return []

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(copied)
        out.load_object_unchecked(self.value)
        out.call(1)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__class__":
            return tx.class_of(type(self.value))
        found = getattr(self.value, name, None)
        if name.startswith("_") or name in WRITERS or found is None:
            return tx.stop(reasons.NUMPY_CALL, name=f".{name}")
        return KnownMethodVariable(self, name) if callable(found) else result(tx, found, self)

    def operate(self, tx: Any, function: Any, *values: VariableTracker) -> Any:
        try:
            return compute(tx, function, list(values), {})
        except NotConstant:
            return tx.stop(reasons.NUMPY_CALL, name=function.__name__)

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        return self.operate(tx, numbers.BINARY[symbol], *((other, self) if reflected else (self, other)))

    def nb_inplace(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return tx.stop(reasons.NUMPY_CALL, name=symbol) if isinstance(self.value, numpy.ndarray) else NotImplemented

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        return self.operate(tx, numbers.UNARY[symbol], self)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        return self.operate(tx, compare.COMPARE[symbol], self, other)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return self.operate(tx, bool, self)

    def sq_length(self, tx: Any) -> VariableTracker:
        return self.operate(tx, len, self)

    def sq_contains(self, tx: Any, item: VariableTracker) -> VariableTracker | None:
        return self.operate(tx, contains, self, item)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return self.operate(tx, subscript, self, key)

    def mp_ass_subscript(self, tx: Any, key: VariableTracker, value: VariableTracker | None) -> None:
        tx.stop(reasons.NUMPY_CALL, name="[...] = ...")

    def tp_iter(self, tx: Any) -> VariableTracker:
        return tx.sequence_iterator(tx.list_of([self.operate(tx, subscript, self, tx.wrap(i))
                                                for i in range(self.operate(tx, len, self).as_constant())]))

    def tp_repr(self, tx: Any) -> VariableTracker:
        return self.shown(tx, repr(self.value))

    def tp_str(self, tx: Any) -> VariableTracker:
        return self.shown(tx, str(self.value))

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        return self.shown(tx, format(self.value, spec))

    def shown(self, tx: Any, text: str) -> VariableTracker:
        """The text of a scalar; an array's follows printing options."""
        return ConstantVariable(text) if isinstance(self.value, numpy.generic) else tx.stop(reasons.NUMPY_CALL, name="str()")

    def key(self, tx: Any) -> Any:
        if isinstance(self.value, numpy.ndarray):
            tx.raise_(TypeError, f"unhashable type: '{type(self.value).__module__}.{type(self.value).__name__}'")
        return tx.stop(reasons.NUMPY_CALL, name="hash()")


def copied(value: Any) -> Any:
    """The user's own, of an array that only the new code sees."""
    return value.copy()


class KnownMethodVariable(VariableTracker):
    """A method of such an array, about to be called."""

    __slots__ = ("holder", "name", "made_at")
    kind = "numpy method"

    def __init__(self, holder: KnownArrayVariable, name: str) -> None:
        self.holder, self.name, self.source, self.made_at = holder, name, None, holder.made_at

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        try:
            return compute(tx, getattr(type(self.holder.value), self.name), [self.holder, *args], kwargs)
        except NotConstant:
            return tx.stop(reasons.NUMPY_CALL, name=f".{self.name}()")


class NumpyFunctionVariable(HeldObject, HashedByIdentity):
    """A ufunc or one of numpy's functions: computed now where its arguments are known."""

    __slots__ = ()
    kind = "numpy function"

    def as_object(self) -> Any:
        return self.obj

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        name = self.obj.__name__
        if name in IMPURE or "out" in kwargs or isinstance(self.obj, numpy.ufunc) and len(args) > self.obj.nin:
            tx.stop(reasons.NUMPY_CALL, name=name)
        try:
            return compute(tx, self.obj, args, kwargs)
        except NotConstant:
            return tx.stop(reasons.NUMPY_CALL, name=name)


WRITERS = frozenset({"sort", "fill", "resize", "put", "itemset", "partition", "setfield", "setflags", "byteswap", "dump",
                     "tofile", "data", "flat", "ctypes", "base", "dtype", "flags", "strides", "view", "newbyteorder", "getfield"})
IMPURE = frozenset({"save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "copyto", "put", "place", "putmask",
                    "fill_diagonal", "put_along_axis", "array_str", "array_repr", "array2string", "empty_like", "shares_memory",
                    "may_share_memory", "apply_along_axis", "apply_over_axes", "piecewise", "vectorize"})
MAKERS = ("array", "asarray", "zeros", "arange", "ascontiguousarray", "asanyarray")


def plain(tx: Any, value: VariableTracker) -> Any:
    """A known argument as the real thing; raises NotConstant."""
    value = real(tx, value)
    if isinstance(value, KnownArrayVariable):
        return value.value
    if isinstance(value, SequenceVariable) and value.py_type() in (list, tuple):
        return value.py_type()([plain(tx, item) for item in value.items])
    if type(value) is DictVariable:
        raise NotConstant(value)
    try:
        return value.as_constant()
    except NotConstant:
        found = value.as_object()
        if not (isinstance(found, type) and (issubclass(found, numpy.generic) or found in (bool, int, float, complex))):
            raise
        return found


def contains(array: Any, item: Any) -> bool:
    return item in array


def subscript(array: Any, key: Any) -> Any:
    return array[key]


def compute(tx: Any, function: Any, args: list, kwargs: dict) -> VariableTracker:
    """Run it now.  What numpy would warn of is left to Python, each time."""
    values = [plain(tx, v) for v in args]
    named = {name: plain(tx, v) for name, v in kwargs.items()}
    try:
        with numpy.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = function(*values, **named)
    except (Warning, FloatingPointError):
        tx.stop(reasons.NUMPY_CALL, name=function.__name__)
    except Exception as error:
        tx.raise_real(error)
    return result(tx, found, *[a for a in map(tx.real, args) if isinstance(a, KnownArrayVariable)])


def result(tx: Any, found: Any, *operands: KnownArrayVariable) -> VariableTracker:
    if isinstance(found, (numpy.ndarray, numpy.generic)) and type(found).__module__ == "numpy":
        known = next((o for o in operands if o.value is found), None)
        if known is not None:
            return known
        made = KnownArrayVariable(tx, found)
        for operand in operands:
            if isinstance(found, numpy.ndarray) and numpy.may_share_memory(found, operand.value):
                made.shared = operand.shared = True
        return made
    if type(found) in (list, tuple):
        items = [result(tx, item, *operands) for item in found]
        return ListVariable(items) if type(found) is list else TupleVariable(items)
    if type(found) in LITERAL_TYPES:
        return ConstantVariable(found)
    return tx.stop(reasons.NUMPY_CALL, name=type(found).__name__)


def build_function(tx: Any, obj: Any, source: Any) -> NumpyFunctionVariable:
    tx.guard(SameObject(source, obj))
    return NumpyFunctionVariable(obj, source)


def declare_maker(fn: Any) -> None:
    def make(tx: Any, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
        try:
            return compute(tx, fn, list(args), kwargs)
        except NotConstant:
            return None
    CALLS.add(fn, make)


if numpy is not None:
    builds(numpy.ufunc, type(numpy.mean))(build_function)
    for name_ in MAKERS:
        declare_maker(getattr(numpy, name_))
    for name_ in ("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "bool_"):
        declare_maker(getattr(numpy, name_))
    builds(numpy.ndarray)(build_numpy)
    builds_subclasses(numpy.ndarray, numpy.generic)(build_numpy)
