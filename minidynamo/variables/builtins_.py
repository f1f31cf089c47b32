"""Builtin functions and the constructors of numbers and text."""
from __future__ import annotations

import _operator
import cmath
import collections
import operator
import sys
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.code import facts
from minidynamo.model.services import service
from minidynamo.model.tables import Methods, fold, meaning
from minidynamo.model.variable import NotConstant, VariableTracker, defines, real
from minidynamo.protocol import attrs, compare, iters, numbers, text
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.sequences import inner
from minidynamo.variables.symbols import SymVariable


@meaning(len)
def call_len(tx, obj, /):
    return compare.length(tx, obj)


@meaning(abs)
def call_abs(tx, x, /):
    return numbers.unary(tx, "abs", x)


@meaning(repr)
def call_repr(tx, obj, /):
    return text.to_repr(tx, obj)


@meaning(ascii)
def call_ascii(tx, obj, /):
    return text.convert(tx, obj, "a")


@meaning(format)
def call_format(tx, value, spec=None, /):
    return text.to_format(tx, value, spec.as_constant() if spec is not None else "")


@meaning(hash)
def call_hash(tx, obj, /):
    return obj.tp_hash(tx)


@meaning(id)
def call_id(tx, obj, /):
    try:
        known = obj.as_object()
    except NotConstant:
        known = None
    if obj.source is None:
        return tx.address_of(obj)
    if known is None and not (isinstance(obj, ConstantVariable) and obj.value is None):
        known = obj.source.fetch(tx.entry_locals, tx.entry_globals)     # changed by the trace, or not: the same object
    tx.guard_same(obj.source, known)
    return ConstantVariable(id(known))


@meaning(callable)
def call_callable(tx, obj, /):
    return ConstantVariable(defines(obj.py_type(), "__call__"))


def attribute_name(tx: Any, name: VariableTracker) -> str:
    """The name as getattr() and its like take it: a str."""
    if not issubclass(name.py_type(), str):
        tx.raise_(TypeError, f"attribute name must be string, not '{tp_name(name.py_type())}'")
    return inner(name).as_constant()


@meaning(getattr)
def call_getattr(tx, obj, name, default=None, /):
    text = attribute_name(tx, name)
    if default is None:
        return obj.tp_getattro(tx, text)
    value = attrs.getattr_or_none(tx, obj, text)
    return default if value is None else value


@meaning(hasattr)
def call_hasattr(tx, obj, name, /):
    return ConstantVariable(attrs.getattr_or_none(tx, obj, attribute_name(tx, name)) is not None)


@meaning(setattr)
def call_setattr(tx, obj, name, value, /):
    obj.tp_setattro(tx, attribute_name(tx, name), value)
    return ConstantVariable(None)


@meaning(delattr)
def call_delattr(tx, obj, name, /):
    obj.tp_setattro(tx, attribute_name(tx, name), None)
    return ConstantVariable(None)


@meaning(round)
def call_round(tx, number, ndigits=None):
    digits = [] if ndigits is None else [ndigits]
    if isinstance(number, ConstantVariable):
        return tx.fold(round, [number, *digits])
    if isinstance(number, SymVariable):
        return number if number.py_type() is int and not digits else tx.fold(round, [number, *digits])
    method = tx.special_method(number, "__round__")
    if method is None:
        tx.raise_(TypeError, f"type {tp_name(number.py_type())} doesn't define __round__ method")
    return tx.call(method, digits)


@meaning(pow)
def call_pow(tx, base, exp, mod=None):
    if mod is None or (isinstance(mod, ConstantVariable) and mod.value is None):
        return numbers.binary(tx, "**", base, exp)
    return tx.fold(pow, [base, exp, mod])


@meaning(globals)
def call_globals(tx):
    return tx.globals_namespace()


@meaning(locals)
def call_locals(tx):
    return tx.local_namespace()


@meaning(vars)
def call_vars(tx, obj=None, /):
    if obj is None:
        return tx.local_namespace()
    space = attrs.getattr_or_none(tx, obj, "__dict__")
    if space is None:
        tx.raise_(TypeError, "vars() argument must have __dict__ attribute")
    return space


@meaning(bool)
def call_bool(tx, x=None, /):
    if x is None:
        return ConstantVariable(False)
    result = x.nb_bool(tx)
    return ConstantVariable(True) if result is None else result


def is_text(value: VariableTracker, slot: str) -> bool:
    """Whether a number is read from text: a str or bytes, or an instance of a subclass without a slot of its own."""
    cls = value.py_type()
    return issubclass(cls, (str, bytes)) and not hasattr(cls, slot) and not hasattr(cls, "__index__")


@meaning(int)
def call_int(tx, x=None, /, base=None):
    if x is None:
        return ConstantVariable(0)
    if base is not None:
        return tx.fold(int, [inner(x), base])
    if is_text(x, "__int__"):
        return tx.fold(int, [inner(x)])
    return numbers.unary(tx, "int", x)


@meaning(float)
def call_float(tx, x=None, /):
    if x is None:
        return ConstantVariable(0.0)
    if is_text(x, "__float__"):
        return tx.fold(float, [inner(x)])
    if inner(x).bf_getbuffer is not None:
        return tx.fold(float, [tx.wrap(inner(x).bf_getbuffer())])
    return numbers.unary(tx, "float", x)


@meaning(complex)
def call_complex(tx, *args, **kwargs):
    if len(args) == 1 and tx.overrides(args[0], "__complex__"):
        return tx.checked_unary("complex", tx.call(tx.special_method(args[0], "__complex__"), []))
    def number(value: VariableTracker, which: str, kinds: str) -> VariableTracker:
        """complex_new_impl: what is neither text nor a number already is asked ``__float__``."""
        part = inner(value)
        made = part if isinstance(part, ConstantVariable) else value.nb_unary(tx, "float")
        if made is NotImplemented:
            tx.raise_(TypeError, f"complex() {which} argument must be a {kinds}, not '{tp_name(value.py_type())}'")
        return made                     # type: ignore[no-any-return]
    first, second = ("first", "string or a number"), ("second", "number")
    how = {"real": first, "imag": second}
    return tx.fold(complex, [number(a, *w) for a, w in zip(args, (first, second))],
                   {name: number(a, *how[name]) for name, a in kwargs.items()})


@meaning(str)
def call_str(tx, obj=None, *rest, **kwargs):
    if rest or kwargs:
        return tx.fold(str, [*([obj] if obj is not None else []), *rest], kwargs)
    return ConstantVariable("") if obj is None else text.to_str(tx, obj)


@meaning(bytes)
def call_bytes(tx, *args, **kwargs):
    value = args[0] if len(args) == 1 and not kwargs else None
    if value is not None and tx.overrides(value, "__bytes__"):
        made = tx.call(tx.special_method(value, "__bytes__"), [])
        if not issubclass(made.py_type(), bytes):
            tx.raise_(TypeError, f"__bytes__ returned non-bytes (type {tp_name(made.py_type())})")
        return made
    if value.__class__ is ConstantVariable and type(value.value) is bytes:
        return value                                        # PyBytes_FromObject, of an exact bytes
    if value is not None and iters.has_iter(value) and inner(value).fast_items is not None and value.py_type() is not str:
        items = [real(tx, i).as_constant() for i in iters.collect(tx, value)]
        try:
            return ConstantVariable(bytes(items))
        except (ValueError, TypeError) as error:
            tx.raise_real(error)
    if value is not None and inner(value).bf_getbuffer is not None:
        return ConstantVariable(inner(value).bf_getbuffer())
    return tx.fold(bytes, list(args), kwargs)


class StrMethods(Methods, of=str):
    """The methods of str that look at more than literals."""

    def join(tx, self, iterable, /):
        if not iters.has_iter(iterable):
            tx.raise_(TypeError, "can only join an iterable")
        parts = [real(tx, i) for i in iters.collect(tx, iterable)]
        for at, part in enumerate(parts):
            if not issubclass(part.py_type(), str):
                tx.raise_(TypeError, f"sequence item {at}: expected str instance, {tp_name(part.py_type())} found")
        between = ConstantVariable(inner(self).as_constant())
        return tx.join_text([piece for part in parts for piece in (between, inner(part))][1:])

    def format(tx, self, /, *args, **kwargs):
        return tx.format_text(inner(self).as_constant(), args, kwargs)

    def format_map(tx, self, mapping, /):
        return tx.format_text(inner(self).as_constant(), (), mapping)


def class_method(raw: Any) -> Any:
    """A constructor like ``int.from_bytes``: folded for the builtin, then called with the value for a subclass."""
    base = raw.__objclass__

    def call(tx, cls, *args, **kwargs):
        made = tx.fold(getattr(base, raw.__name__), list(args), kwargs)
        return made if getattr(cls, "cls", None) is base or raw.__name__.startswith("__") else tx.call(cls, [made])
    return call


for owner_, name_ in ((float, "fromhex"), (float, "__getformat__"), (bytes, "fromhex")):
    meaning(vars(owner_)[name_])(class_method(vars(owner_)[name_]))
fold(str.maketrans, bytes.maketrans, *[f for f in vars(cmath).values() if callable(f)])


class BytesMethods(Methods, of=bytes):
    """The methods of bytes that look at more than literals."""

    def join(tx, self, iterable, /):
        parts = [real(tx, i).as_constant() for i in iters.collect(tx, iterable)]
        try:
            return ConstantVariable(inner(self).as_constant().join(parts))
        except TypeError as error:
            tx.raise_real(error)


def operator_meaning(symbol: str) -> Any:
    return lambda tx, a, b, /: numbers.binary(tx, symbol, a, b)


def compare_meaning(symbol: str) -> Any:
    return lambda tx, a, b, /: compare.compare(tx, symbol, a, b)


for symbol_, function_ in {**numbers.BINARY, **numbers.INPLACE}.items():
    meaning(function_)(operator_meaning(symbol_))
for symbol_, function_ in compare.COMPARE.items():
    meaning(function_)(compare_meaning(symbol_))


for symbol_, function_ in (("index", operator.index), ("-", operator.neg), ("+", operator.pos), ("~", operator.invert),
                           ("~", operator.inv), ("abs", operator.abs)):
    meaning(function_)(lambda tx, a, /, symbol=symbol_: numbers.unary(tx, symbol, a))


CONCATENATED = (str, bytes, bytearray, list, tuple, collections.deque)         # these have sq_concat


def concat_meaning(symbol: str) -> Any:
    def concat(tx, a, b, /):
        """PySequence_Concat and PySequence_InPlaceConcat."""
        for value in (a, b):
            sequence = defines(value.py_type(), "__getitem__") and not issubclass(value.py_type(), dict)
            if not sequence and (value is a or not issubclass(a.py_type(), CONCATENATED)):
                tx.raise_(TypeError, f"'{tp_name(a.py_type())}' object can't be concatenated")
        if tx.overrides(b, "__radd__"):
            tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call="operator.concat()", why="the second may add itself to the first")
        return numbers.binary(tx, symbol, a, b)
    return concat


meaning(operator.concat)(concat_meaning("+"))
meaning(operator.iconcat)(concat_meaning("+="))
fold(_operator._compare_digest)         # type: ignore[attr-defined]


if hasattr(operator, "call"):
    @meaning(operator.call)
    def call_call(tx, obj, /, *args, **kwargs):
        return tx.call(obj, list(args), kwargs)


@meaning(operator.getitem)
def call_getitem(tx, obj, key, /):
    return obj.mp_subscript(tx, key)


@meaning(operator.setitem)
def call_setitem(tx, obj, key, value, /):
    obj.mp_ass_subscript(tx, key, value)
    return ConstantVariable(None)


@meaning(operator.delitem)
def call_delitem(tx, obj, key, /):
    obj.mp_ass_subscript(tx, key, None)
    return ConstantVariable(None)


@meaning(operator.contains)
def call_contains(tx, obj, item, /):
    return compare.contains(tx, obj, item)


@meaning(operator.truth)
def call_truth(tx, obj, /):
    return ConstantVariable(compare.truth(tx, obj))


@meaning(operator.not_)
def call_not(tx, obj, /):
    return ConstantVariable(not compare.truth(tx, obj))


@meaning(operator.is_)
def call_is(tx, a, b, /):
    return ConstantVariable(compare.is_same(tx, a, b))


@meaning(operator.is_not)
def call_is_not(tx, a, b, /):
    return ConstantVariable(not compare.is_same(tx, a, b))


@meaning(sys.intern)
def call_intern(tx, text, /):
    if text.py_type() is not str:
        tx.raise_(TypeError, f"can't intern {tp_name(text.py_type())}" if issubclass(text.py_type(), str)
                  else f"intern() argument must be str, not {tp_name(text.py_type())}")
    return ConstantVariable(sys.intern(text.as_constant()))


def in_base(function: Any) -> Any:
    """bin(), oct(), hex(): ``__index__``, then the digits."""
    return lambda tx, number, /: tx.fold(function, [numbers.unary(tx, "index", number)])


for function_ in (bin, oct, hex):
    meaning(function_)(in_base(function_))


def new_arguments(tx, self, /):
    """``__getnewargs__`` of the immutable builtins: their plain part."""
    return tx.wrap_tuple([tx.call(tx.class_of(inner(self).py_type()), [inner(self)])])


for kind_ in (tuple, str, bytes, int, float, complex):
    meaning(vars(kind_)["__getnewargs__"])(new_arguments)


@meaning(object)
def call_object(tx):
    return tx.plain_object()


@service
def repr_of_container(tx: Any, value: VariableTracker) -> VariableTracker:
    """list_repr, tuple_repr, dict_repr, set_repr; ``...`` where a container holds itself."""
    part = inner(value)
    if value in tx.repr_running or part in tx.repr_running:
        if not hasattr(part, "owner"):
            return ConstantVariable("...")
        return ConstantVariable({list: "[...]", tuple: "(...)", dict: "{...}"}.get(
            part.owner, "..." if issubclass(part.owner, dict) else f"{value.py_type().__name__}(...)"
            if part.owner is not collections.deque else "[...]"))
    tx.repr_running.append(part)
    try:
        before, items, after = container_text(tx, value, part)
    finally:
        tx.repr_running.pop()
    pieces = [piece for item in items for piece in (ConstantVariable(", "), item)]
    return tx.join_text([ConstantVariable(before), *pieces[1:], ConstantVariable(after)])


Text = tuple[str, list[VariableTracker], str]


def container_text(tx: Any, value: VariableTracker, part: Any) -> Text:
    def show(items: list[VariableTracker]) -> list[VariableTracker]:
        return [inner(text.to_repr(tx, real(tx, item))) for item in items]
    if part.repr_parts is not None:
        return part.repr_parts(tx)      # type: ignore[no-any-return]
    owner = part.owner
    if issubclass(owner, dict):
        return dict_text(tx, value, part, show)
    name = value.py_type().__name__
    if owner is collections.deque:
        return f"{name}([", show(part.items), f"], maxlen={part.maxlen})" if part.maxlen is not None else "])"
    if owner is list:
        return "[", show(part.items), "]"
    if owner is tuple:
        return tuple_text(tx, value.py_type(), show(part.items))
    if owner is bytearray:
        return f"{name}(", [ConstantVariable(repr(part.bf_getbuffer()))], ")"
    body = show(part.ordered(tx))
    if owner is set and value.py_type() is set:
        return ("{", body, "}") if body else ("set()", [], "")
    return (f"{name}({{", body, "})") if body else (f"{name}()", [], "")


def dict_text(tx: Any, value: VariableTracker, part: Any, show: Any) -> Text:
    """dict_repr, odict_repr, defdict_repr."""
    name = value.py_type().__name__
    if part.owner is collections.OrderedDict and not (part.entries and facts.ORDERED_DICT_SHOWS_DICT):
        pairs = tx.list_of([tx.wrap_tuple([k, v]) for k, v in part.entries.values()])
        return f"{name}(", show([pairs]) if part.entries else [], ")"
    body = [tx.join_text([*show([k]), ConstantVariable(": "), *show([v])]) for k, v in part.entries.values()]
    if part.owner is dict:
        return "{", body, "}"
    if part.owner is collections.OrderedDict:
        return f"{name}({{", body, "})"
    return f"{name}({show([part.factory])[0].as_constant()}, {{", body, "})"


def tuple_text(tx: Any, cls: type, items: list[VariableTracker]) -> Text:
    """tuplerepr, and those of torch.Size and of named tuples."""
    if cls.__module__ == "torch" and cls.__name__ == "Size":
        return "torch.Size([", items, "])"
    names = getattr(cls, "_fields", None)
    if names is not None:
        return f"{cls.__name__}(", [tx.join_text([ConstantVariable(f"{n}="), i]) for n, i in zip(names, items)], ")"
    return "(", items, ",)" if len(items) == 1 else ")"
