"""C functions and methods: builtin functions, method descriptors, slot wrappers, and methods bound to a value."""
from __future__ import annotations

import re
import types
from typing import Any

from minidynamo.guards.kinds import Equal, SameObject, TypeIs
from minidynamo.model.tables import CALLS, FOLD, POLYFILLS, TORCH_RULES, builds, wraps
from minidynamo.model.variable import IdKey, VariableTracker, is_subtype, real
from minidynamo.protocol import calls
from minidynamo.protocol.attrs import attribute_error
from minidynamo.sources import Attr
from minidynamo.variables import torch_ops
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable


class CFunctionVariable(HashedByIdentity):
    """A C callable that is not a class: builtin function, method descriptor, slot wrapper."""

    __slots__ = ("fn",)
    kind = "C function"

    def __init__(self, fn: Any, source: Any = None) -> None:
        self.fn, self.source = fn, source

    def py_type(self) -> type:
        return type(self.fn)

    def as_object(self) -> Any:
        return self.fn

    def identity(self) -> object:
        return self.fn

    def shown_name(self) -> str:
        module = getattr(self.fn, "__module__", None)
        name = getattr(self.fn, "__qualname__", repr(self.fn))
        return f"{module}.{name}()" if module not in (None, "builtins") else f"{name}()"

    def rebuild(self, out: Any) -> None:
        out.load_object_unchecked(self.fn)             # immutable, lives as long as the interpreter

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        if self.fn.__class__ is types.MethodDescriptorType:
            check_receiver(tx, self.fn, args)
        return self.call_bound(tx, args, kwargs)

    def call_bound(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        marked = torch_ops.call_marked(tx, self.fn, args, kwargs)
        if marked is not None:
            return marked
        result = calls.call_c(tx, self.fn, args, kwargs)
        if result is not None:
            return result
        if torch_ops.is_graph_op(self.fn):
            return torch_ops.call_op(tx, self.fn, args, kwargs)
        result = tx.call_slot_wrapper(self.fn, args, kwargs)
        if result is not None:
            return result
        return tx.call_unknown_c(self.fn, args, kwargs)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__module__", "__doc__") and hasattr(self.fn, name):
            return tx.wrap(getattr(self.fn, name))
        if name == "__class__":
            return tx.wrap(type(self.fn))
        if name == "__self__" and isinstance(self.fn, types.BuiltinFunctionType):
            return tx.object_value(self.fn.__self__)
        if not hasattr(self.fn, name):
            attribute_error(tx, self, name)
        if name == "__objclass__":
            return tx.class_of(self.fn.__objclass__)
        if name == "__text_signature__":
            return tx.wrap(self.fn.__text_signature__)
        raw = tx.c_method_of(type(self.fn), name) if isinstance(self.fn, C_CALLABLES) else None
        if raw is not None:
            return tx.bound_c_method(self, raw)
        return super().tp_getattro(tx, name)

    def tp_repr(self, tx: Any) -> VariableTracker:
        """meth_repr and its kin; a function of a module, a descriptor and a slot show no address."""
        if isinstance(self.fn, types.BuiltinFunctionType) and not isinstance(self.fn.__self__, types.ModuleType):
            return tx.text_with_address(f"<built-in method {self.fn.__name__} of {type(self.fn.__self__).__name__} object at ",
                                        tx.object_value(self.fn.__self__))
        return ConstantVariable(repr(self.fn))

    def tp_descr_get(self, tx: Any, obj: VariableTracker | None, cls: type) -> VariableTracker:
        kind = type(self.fn)
        if kind is types.ClassMethodDescriptorType:
            return tx.bound_c_method(tx.class_of(cls), self.fn)
        if obj is None or kind is types.BuiltinFunctionType:
            return self
        check_receiver(tx, self.fn, [obj])
        return tx.bound_c_method(obj, self.fn)


def check_receiver(tx: Any, raw: Any, args: list) -> None:
    """method_check_args and descr_check: what a C method is called on."""
    owner = raw.__objclass__
    if not args:
        tx.raise_(TypeError, f"unbound method {raw.__qualname__}() needs an argument")
    if not is_subtype(args[0].py_type(), owner):
        tx.raise_(TypeError, f"descriptor '{raw.__name__}' for '{owner.__name__}' objects doesn't apply to a "
                             f"'{args[0].py_type().__name__}' object")


C_CALLABLES = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
               types.ClassMethodDescriptorType)


@builds(types.BuiltinFunctionType, type(re.compile("").match))
def build_builtin(tx: Any, obj: Any, source: Any) -> VariableTracker:
    """A C function, or a C method bound to some object."""
    owner = getattr(obj, "__self__", None)
    if owner is not None and not isinstance(owner, (types.ModuleType, type)) and CALLS.get(obj) is None \
            and not FOLD.get(obj) and not POLYFILLS.get(obj) and not TORCH_RULES.get(obj) \
            and not torch_ops.is_graph_op(obj):
        raw = tx.c_method_of(type(owner), obj.__name__)
        if raw is not None:
            tx.guard(TypeIs(source, type(obj)))
            tx.guard(Equal(Attr(source, "__name__"), obj.__name__))
            return tx.bound_c_method(tx.build(owner, Attr(source, "__self__")), raw, source)
    if isinstance(owner, type) and not isinstance(owner, types.ModuleType):
        tx.guard(Equal(Attr(source, "__name__"), obj.__name__))
        raw = tx.c_method_of(owner, obj.__name__)
        if raw is not None:
            return tx.bound_c_method(tx.build(owner, Attr(source, "__self__")), raw, source)
    tx.guard(SameObject(source, obj))
    return CFunctionVariable(obj, source)


@builds(types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
def build_descriptor(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return CFunctionVariable(obj, source)


@builds(types.MethodWrapperType)
def build_method_wrapper(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, types.MethodWrapperType))
    tx.guard(Equal(Attr(source, "__name__"), obj.__name__))
    raw = tx.c_method_of(type(obj.__self__), obj.__name__)
    return tx.bound_c_method(tx.build(obj.__self__, Attr(source, "__self__")), raw, source)


@wraps(*C_CALLABLES)
def wrap_c_callable(tx: Any, obj: Any) -> VariableTracker:
    return CFunctionVariable(obj)


class BoundCMethodVariable(VariableTracker):
    """A C method bound to a value: ``[].append``, ``"".join``, ``x.sum``."""

    __slots__ = ("obj", "raw")
    kind = "bound C method"

    def __init__(self, obj: VariableTracker, raw: Any, source: Any = None) -> None:
        self.obj, self.raw, self.source = obj, raw, source

    def py_type(self) -> type:
        return types.MethodWrapperType if isinstance(self.raw, types.WrapperDescriptorType) \
            else types.BuiltinFunctionType

    def shown_name(self) -> str:
        return f"{self.raw.__qualname__}()"

    def children(self) -> list[VariableTracker]:
        return [self.obj]

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(bind_raw)
        out.load_object_unchecked(self.raw)
        out.load(self.obj)
        out.call(2)

    def tp_call(self, tx: Any, args: list, kwargs: dict) -> VariableTracker:
        return CFunctionVariable(self.raw).call_bound(tx, [real(tx, self.obj), *args], kwargs)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name == "__self__":
            return real(tx, self.obj)
        if name in ("__name__", "__qualname__", "__doc__", "__text_signature__"):
            return tx.wrap(getattr(self.raw, name))
        if name == "__class__":
            return tx.class_of(self.py_type())
        is_slot = self.py_type() is types.MethodWrapperType
        if name == "__objclass__" and is_slot:
            return tx.class_of(self.raw.__objclass__)
        if name == "__module__" and not is_slot:
            return tx.wrap(None)
        raw = tx.c_method_of(self.py_type(), name)
        if raw is not None:
            return tx.bound_c_method(self, raw)
        if not hasattr(self.py_type(), name):
            attribute_error(tx, self, name)
        return super().tp_getattro(tx, name)

    def tp_hash(self, tx: Any) -> VariableTracker:
        return tx.hash_by_address(self)

    def tp_repr(self, tx: Any) -> VariableTracker:
        """meth_repr and wrapper_repr."""
        obj = real(tx, self.obj)
        if self.py_type() is types.MethodWrapperType:
            return tx.text_with_address(f"<method-wrapper '{self.raw.__name__}' of {obj.py_type().__name__} object at ", obj)
        return tx.text_with_address(f"<built-in method {self.raw.__name__} of {obj.py_type().__name__} object at ", obj)

    def key(self, tx: Any) -> Any:
        return ("bound C method", IdKey(self.raw), IdKey(real(tx, self.obj).identity()))

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not isinstance(other, BoundCMethodVariable) or symbol not in ("==", "!="):
            return NotImplemented
        same = self.raw is other.raw and real(tx, self.obj).identity() is real(tx, other.obj).identity()
        return ConstantVariable(same is (symbol == "=="))


def bind_raw(raw: Any, obj: Any) -> Any:
    """``raw.__get__(obj, type(obj))``, the way attribute access binds a C method.

    The type is always given: method_get in descrobject.c reads it unasked for methods that want their class.
    """
    return raw.__get__(None, obj) if issubclass(type(obj), type) and isinstance(raw, types.ClassMethodDescriptorType) \
        else raw.__get__(obj, type(obj))
