"""Python functions, bound methods and code objects."""
from __future__ import annotations

import types
from typing import Any

from minidynamo import reasons
from minidynamo.code import facts
from minidynamo.guards.kinds import CodeIs, SameObject, TypeIs
from minidynamo.model import marks
from minidynamo.model.tables import builds, meaning, wraps
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import CannotRebuild, IdKey, VariableTracker, defines, real
from minidynamo.protocol import calls
from minidynamo.protocol.attrs import attribute_error, generic_getattr, getattr_or_none
from minidynamo.sources import Attr, DictItem, InstanceAttr, PlainItem
from minidynamo.variables import torch_ops, tracebacks
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable, type_attribute
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import TupleVariable

DEFAULTS, KWDEFAULTS, ANNOTATIONS, CLOSURE = 1, 2, 4, 8


class FunctionVariable(HashedByIdentity):
    """A Python function: a user's (``fn``), or one made while tracing (``parts``)."""

    __slots__ = ("fn", "code", "parts", "made_scope", "fields", "namespace")
    kind = "function"

    def __init__(self, fn: types.FunctionType | None, code: types.CodeType, source: Any = None) -> None:
        self.fn, self.code, self.source = fn, code, source
        self.parts: dict[int, Any] = {}
        self.made_scope: Any = None
        self.fields: dict[str, VariableTracker | None] = {}     # attributes written while tracing
        self.namespace: Any = None                              # ``__dict__`` as a value, once somebody asked for it

    @classmethod
    def made(cls, tx: Any, code: types.CodeType, scope: Any) -> FunctionVariable:
        """What MAKE_FUNCTION makes."""
        function = cls(None, code)
        function.made_scope = scope
        return function

    def set_part(self, tx: Any, bit: int, value: VariableTracker) -> None:
        if bit == ANNOTATIONS and isinstance(value, TupleVariable):     # names and values in turn
            pairs = [real(tx, v) for v in value.items]
            value = DictVariable.of_pairs(tx, list(zip(pairs[::2], pairs[1::2])))
        self.parts[bit] = value

    def py_type(self) -> type:
        return types.FunctionType

    def as_object(self) -> Any:
        return self.fn if self.fn is not None and not self.fields else super().as_object()

    def identity(self) -> object:
        return self if self.fn is None else self.fn

    @property
    def name(self) -> str:
        return self.code.co_name if self.fn is None else self.fn.__name__

    @property
    def qualname(self) -> str:
        given = self.fields.get("__qualname__")
        if given is not None:
            return given.as_constant()
        return self.code.co_qualname if self.fn is None else self.fn.__qualname__

    def shown_name(self) -> str:
        module = (self.fn.__module__ if self.fn is not None else self.made_scope.name)
        return f"{module}.{self.qualname}()" if module != "builtins" else f"{self.qualname}()"

    # ---- what a call needs
    def scope(self, tx: Any) -> Any:
        return self.made_scope if self.fn is None else tx.scope_of(self.fn.__globals__)

    def defaults(self, tx: Any) -> list[VariableTracker]:
        if DEFAULTS in self.parts:
            value = self.parts[DEFAULTS]
            return [] if isinstance(value, ConstantVariable) else value.items
        if self.fn is None or self.fn.__defaults__ is None:
            return []
        if self.source is None:
            return [tx.wrap_own(v) for v in self.fn.__defaults__]
        return tx.build(self.fn.__defaults__, Attr(self.source, "__defaults__")).items

    def kwdefaults(self, tx: Any) -> dict[str, VariableTracker]:
        if KWDEFAULTS in self.parts:
            value = self.parts[KWDEFAULTS]
            return {} if isinstance(value, ConstantVariable) else value.string_items(tx)
        if self.fn is None or not self.fn.__kwdefaults__:
            return {}
        if self.source is None:
            return {k: tx.wrap_own(v) for k, v in self.fn.__kwdefaults__.items()}
        return tx.build(self.fn.__kwdefaults__, Attr(self.source, "__kwdefaults__")).string_items(tx)

    def closure(self, tx: Any) -> list[Any]:
        if CLOSURE in self.parts:
            return [real(tx, cell) for cell in self.parts[CLOSURE].items]
        if self.fn is None or self.fn.__closure__ is None:
            return []
        if self.source is None:
            return [tx.own_cell(c) for c in self.fn.__closure__]
        base = Attr(self.source, "__closure__")
        return [tx.build(c, PlainItem(base, i, tuple)) for i, c in enumerate(self.fn.__closure__)]

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if self.fn is not None:
            try:
                result = call_marked(tx, self, args, kwargs)
            except Raised as raised:
                tracebacks.hidden(tx, raised.exc)
                raise
            if result is not None:
                return result
        return tx.inline(self, args, kwargs)

    # ---- making it again
    @property
    def lost_at(self) -> int | None:
        """For restarts: a function whose globals are a dict made while tracing is made by Python."""
        return None if self.fn is not None or self.made_scope.value is None else self.made_scope.made_at

    def children(self) -> list[VariableTracker]:
        if self.lost_at is not None:
            raise CannotRebuild(self, "a function whose globals are a dict that exec() was given")
        return [*self.parts.values(), *[v for v in self.fields.values() if v is not None]]

    def rebuild(self, out: Any) -> None:
        if self.fn is not None:
            raise CannotRebuild(self, "a function that has no path from the arguments")
        self.create(out)
        if self.fields:
            out.keep(self)
            self.fill(out)

    def create(self, out: Any) -> None:
        out.make_function(self)

    def fill(self, out: Any) -> None:
        self.replay(out)

    # ---- attributes
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in self.fields:
            value = self.fields[name]
            if value is None:
                attribute_error(tx, self, name)
            return value
        reader = FUNCTION_ATTRIBUTES.get(name)
        if reader is not None:
            return reader(tx, self)
        if self.fn is not None and self.fn.__dict__ and name in self.fn.__dict__ and self.source is not None:
            return tx.build(self.fn.__dict__[name], InstanceAttr(self.source, name))
        value = generic_getattr(tx, self, name)
        if value is None:
            if self.source is not None:
                tx.guard_instance_lacks(self.source, name)
            attribute_error(tx, self, name)
        return value

    def instance_get(self, tx: Any, name: str) -> VariableTracker | None:
        return self.fields.get(name)

    def instance_set(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        """An item of its ``__dict__``; a name the user's function never had goes without a trace."""
        own = () if self.fn is None else self.fn.__dict__
        if name not in own and (value is None or self.fields.get(name, self) is None):
            tx.journal.set(self, "fields", {k: v for k, v in self.fields.items() if k != name})
        if value is not None or name in own:
            tx.journal.put(self.fields, name, value)
        tx.modified(self)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if name in FUNCTION_SLOTS:
            self.set_slot(tx, name, value)
            return
        if value is None:
            self.tp_getattro(tx, name)
        self.instance_set(tx, name, value)

    def set_slot(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        """func_set_name and its like; what changes how calls are bound is left to Python."""
        if name in BINDINGS:
            self.set_binding(tx, name, *BINDINGS[name], value)
            return
        kinds = FUNCTION_SLOTS[name]
        if kinds is None or value is None or self.source is None and self.fn is not None:
            tx.unsupported(self, f".{name} = ...")
        if kinds and value.py_type() not in kinds:
            tx.unsupported(self, f".{name} = ... of a wrong type")
        tx.journal.put(self.fields, name, value)
        tx.modified(self)

    def set_binding(self, tx: Any, name: str, bit: int, kind: type, value: VariableTracker | None) -> None:
        """func_set_defaults, func_set_kwdefaults."""
        value = value if value is not None else ConstantVariable(None)
        if value.py_type() not in (kind, type(None)):
            tx.raise_(TypeError, f"{name} must be set to a {kind.__name__} object")
        if self.fn is None:
            parts = {b: v for b, v in self.parts.items() if b != bit}
            tx.journal.set(self, "parts", parts if value.py_type() is type(None) else {**parts, bit: value})
        elif self.source is None:
            tx.unsupported(self, f".{name} = ...")
        else:
            tx.journal.put(self.parts, bit, value)
            tx.journal.put(self.fields, name, value)
        tx.modified(self)

    def replay(self, out: Any) -> None:
        for name, value in self.fields.items():
            out.set_attribute(self, name, value)

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        return self if obj is None else BoundMethodVariable(self, obj)

    def tp_repr(self, tx: Any) -> VariableTracker:
        """func_repr."""
        return tx.text_with_address(f"<function {self.tp_getattro(tx, '__qualname__').as_constant()} at ", self)


BINDINGS = {"__defaults__": (DEFAULTS, tuple), "__kwdefaults__": (KWDEFAULTS, dict)}
# Attributes that are not in ``__dict__``: the types they take, () for any, None where setting is not modelled.
FUNCTION_SLOTS: dict[str, tuple[type, ...] | None] = {
    "__name__": (str,), "__qualname__": (str,), "__doc__": (), "__module__": (), "__annotations__": (dict,),
    **dict.fromkeys(("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__", "__dict__", "__class__",
                     "__builtins__"), None),
    "__type_params__": (tuple,),
}


def wrapped_name(tx: Any, fn: FunctionVariable, name: str) -> VariableTracker:
    if fn.fn is None:
        return ConstantVariable(getattr(fn.code, f"co_{name.strip('_')}"))
    if fn.source is not None:
        return tx.build(getattr(fn.fn, name), Attr(fn.source, name))
    return tx.wrap(getattr(fn.fn, name))


def function_dict(tx: Any, fn: FunctionVariable) -> VariableTracker:
    return tx.function_namespace(fn)


def function_part(name: str, bit: int) -> Any:
    def read(tx: Any, fn: FunctionVariable) -> VariableTracker:
        if bit in fn.parts:
            return fn.parts[bit]
        if fn.fn is None:
            if bit != ANNOTATIONS:
                return ConstantVariable(None)
            tx.journal.put(fn.fields, name, DictVariable({}))         # func_get_annotations keeps the dict it makes
            return fn.fields[name]
        if fn.source is None:
            return tx.unsupported(fn, f".{name}")
        return tx.build(getattr(fn.fn, name), Attr(fn.source, name))
    return read


def type_params(tx: Any, fn: FunctionVariable) -> VariableTracker:
    """func_get_type_params, since 3.12."""
    if not facts.FUNCTIONS_HAVE_TYPE_PARAMS:
        attribute_error(tx, fn, "__type_params__")
    return TupleVariable([]) if fn.fn is None else wrapped_name(tx, fn, "__type_params__")


FUNCTION_ATTRIBUTES = {
    "__name__": lambda tx, fn: wrapped_name(tx, fn, "__name__"),
    "__qualname__": lambda tx, fn: wrapped_name(tx, fn, "__qualname__"),
    "__module__": lambda tx, fn: fn.made_scope.module_name(tx) or tx.wrap(None) if fn.fn is None
    else wrapped_name(tx, fn, "__module__"),
    "__doc__": lambda tx, fn: tx.wrap(doc_of(fn.code)) if fn.fn is None else wrapped_name(tx, fn, "__doc__"),
    "__code__": lambda tx, fn: CodeVariable(fn.code),
    "__defaults__": function_part("__defaults__", DEFAULTS),
    "__kwdefaults__": function_part("__kwdefaults__", KWDEFAULTS),
    "__annotations__": function_part("__annotations__", ANNOTATIONS),
    "__closure__": function_part("__closure__", CLOSURE),
    "__type_params__": type_params,
    "__dict__": function_dict,
    "__globals__": lambda tx, fn: tx.scope_value(fn.scope(tx)),
    "__class__": lambda tx, fn: tx.wrap(types.FunctionType),
}


def doc_of(code: types.CodeType) -> str | None:
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None


class CodeVariable(HashedByIdentity):
    """A code object."""

    __slots__ = ("value",)
    kind = "code"

    def __init__(self, value: types.CodeType, source: Any = None) -> None:
        self.value, self.source = value, source

    def py_type(self) -> type:
        return types.CodeType

    def as_constant(self) -> Any:
        return self.value

    def identity(self) -> object:
        return self.value

    def rebuild(self, out: Any) -> None:
        out.load_object_unchecked(self.value)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name.startswith("co_") and hasattr(self.value, name) and not callable(getattr(self.value, name)):
            return tx.wrap(getattr(self.value, name))
        return super().tp_getattro(tx, name)


@wraps(types.CodeType)
def wrap_code(tx: Any, obj: types.CodeType) -> VariableTracker:
    return CodeVariable(obj)


@builds(types.CodeType)
def build_code(tx: Any, obj: types.CodeType, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return CodeVariable(obj, source)


def own_function(fn: types.FunctionType) -> FunctionVariable:
    """One of our own functions (a polyfill): no source, no guard."""
    return FunctionVariable(fn, fn.__code__)


def call_marked(tx: Any, function: FunctionVariable, args: list, kwargs: dict) -> VariableTracker | None:
    """What the user or torch declared about a Python function; None means: inline it."""
    fn = function.fn
    wrapper = marks.wrapped_by(fn)
    if wrapper is not None:
        kind, inside = wrapper
        if kind == "nonstrict":
            return tx.call_nonstrict(function, args, kwargs)
        if kind == "disabled":
            tx.stop(reasons.DISABLED_FUNCTION, name=getattr(inside, "__qualname__", repr(inside)))
        cell = function.closure(tx)[fn.__code__.co_freevars.index("fn")]
        return tx.call(cell.get(tx), args, kwargs)
    if fn in marks.DISABLED:
        tx.stop(reasons.DISABLED_FUNCTION, name=fn.__qualname__)
    marked = torch_ops.call_marked(tx, fn, args, kwargs)
    if marked is not None:
        if function.source is not None:              # the mark belongs to this very function, not to its code
            tx.guard(SameObject(function.source, fn))
        return marked
    result = calls.call_c(tx, fn, args, kwargs)
    if result is not None:
        return result
    if torch_ops.is_graph_op(fn):
        result = torch_ops.call_op(tx, fn, args, kwargs)
        if result is not None:
            return result
    stock = torch_ops.stock_behind(fn)
    if stock is not None:
        return tx.inline(own_function(stock), args, kwargs)
    why = torch_ops.why_not_inlined(fn)
    if why:
        tx.leave_if_watched(fn, args, kwargs)
        tx.stop(reasons.SKIPPED_FUNCTION, name=why)
    return None


def build_function(tx: Any, obj: types.FunctionType, source: Any) -> VariableTracker:
    """Functions are guarded by their code, in namespaces also by identity (elsewhere they may be made for each call)."""
    tx.guard(CodeIs(source, obj.__code__))               # a function may be given another
    if isinstance(source, DictItem) or source.kind in ("global", "imported"):
        tx.guard(SameObject(source, obj))
    else:
        tx.guard(TypeIs(source, types.FunctionType))
        tx.guard(SameObject(Attr(source, "__globals__"), obj.__globals__))      # code may be shared
    return FunctionVariable(obj, obj.__code__, source)


builds(types.FunctionType)(build_function)


@wraps(types.FunctionType)
def wrap_function(tx: Any, obj: types.FunctionType) -> VariableTracker:
    return FunctionVariable(obj, obj.__code__)


METHODS_OF_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)


class BoundMethodVariable(VariableTracker):
    """A method object: a callable and the object it is bound to."""

    __slots__ = ("function", "obj")
    kind = "bound method"

    def __init__(self, function: VariableTracker, obj: VariableTracker, source: Any = None) -> None:
        self.function, self.obj, self.source = function, obj, source

    def py_type(self) -> type:
        return types.MethodType

    def shown_name(self) -> str:
        return self.function.shown_name()

    def children(self) -> list[VariableTracker]:
        return [self.function, self.obj]

    def rebuild(self, out: Any) -> None:
        out.call_function(types.MethodType, self.function, self.obj)

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return real(tx, self.function).tp_call(tx, [real(tx, self.obj), *args], kwargs)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__self__":
            return real(tx, self.obj)
        if name == "__func__":
            return real(tx, self.function)
        if name == "__class__":
            return tx.wrap(types.MethodType)
        raw = type_attribute(types.MethodType, name)
        if isinstance(raw, METHODS_OF_METHODS):             # method_getattro asks the type first
            return tx.bound_c_method(self, raw)
        return real(tx, self.function).tp_getattro(tx, name)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not isinstance(other, BoundMethodVariable) or symbol not in ("==", "!="):
            return NotImplemented
        same = (real(tx, self.obj).identity() is real(tx, other.obj).identity()
                and real(tx, self.function).identity() is real(tx, other.function).identity())
        return ConstantVariable(same is (symbol == "=="))

    def tp_hash(self, tx: Any) -> VariableTracker:
        """method_hash, of two addresses."""
        return tx.hash_by_address(self)

    def tp_repr(self, tx: Any) -> VariableTracker:
        """method_repr."""
        name = None
        for attribute in ("__qualname__", "__name__"):
            name = name or getattr_or_none(tx, real(tx, self.function), attribute)
        shown = name.as_constant() if name is not None and name.py_type() is str else "?"
        return tx.join_text([ConstantVariable(f"<bound method {shown} of "), real(tx, self.obj).tp_repr(tx),
                             ConstantVariable(">")])

    def key(self, tx: Any) -> Any:
        return ("bound method", IdKey(real(tx, self.function).identity()), IdKey(real(tx, self.obj).identity()))


@meaning(types.MethodType)
def call_method_type(tx, function, obj, /):
    """method_new_impl."""
    if not defines(function.py_type(), "__call__"):
        tx.raise_(TypeError, "first argument must be callable")
    if obj.py_type() is type(None):
        tx.raise_(TypeError, "instance must not be None")
    return BoundMethodVariable(function, obj)


@builds(types.MethodType)
def build_method(tx: Any, obj: types.MethodType, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, types.MethodType))
    function = tx.build(obj.__func__, Attr(source, "__func__"))
    return BoundMethodVariable(function, tx.lazy(obj.__self__, Attr(source, "__self__")), source)
