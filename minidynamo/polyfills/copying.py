"""object.__reduce_ex__ as Python to inline (object___reduce_ex___impl and reduce_newobj in typeobject.c)."""
from __future__ import annotations

import collections
import copyreg
import types
from typing import Any

from minidynamo.model.tables import polyfill


DISALLOW_INSTANTIATION = 1 << 7    # Py_TPFLAGS_DISALLOW_INSTANTIATION


@polyfill(object.__reduce_ex__)
def reduce_ex(self: Any, protocol: int) -> Any:
    """The class's own ``__reduce__`` if it has one, else the parts that ``copyreg`` puts together."""
    cls = type(self)
    if cls.__reduce__ is not object.__reduce__:
        return self.__reduce__()
    if protocol < 2:
        return copyreg._reduce_ex(self, protocol)          # type: ignore[attr-defined]
    if cls.__flags__ & DISALLOW_INSTANTIATION:
        raise TypeError(f"cannot pickle '{cls.__name__}' object")
    args, names = new_arguments(self)
    required = args is None and not isinstance(self, (list, dict))
    maker = copyreg.__newobj__                              # type: ignore[attr-defined]
    if names:
        maker, parts = copyreg.__newobj_ex__, (cls, args or (), names)      # type: ignore[attr-defined]
    else:
        parts = (cls, *(args or ()))
    state = state_of(self, required)
    items = iter(self) if isinstance(self, list) else None
    pairs = iter(self.items()) if isinstance(self, dict) else None
    return maker, parts, state, items, pairs


def new_arguments(self: Any) -> tuple[Any, Any]:
    """_PyObject_GetNewArguments."""
    if hasattr(self, "__getnewargs_ex__"):
        given = self.__getnewargs_ex__()
        if not isinstance(given, tuple):
            raise TypeError(f"__getnewargs_ex__ should return a tuple, not '{type(given).__name__}'")
        if len(given) != 2:
            raise ValueError(f"__getnewargs_ex__ should return a tuple of length 2, not {len(given)}")
        args, names = given
        if not isinstance(args, tuple):
            raise TypeError("first item of the tuple returned by __getnewargs_ex__ must be a tuple, "
                            f"not '{type(args).__name__}'")
        if not isinstance(names, dict):
            raise TypeError("second item of the tuple returned by __getnewargs_ex__ must be a dict, "
                            f"not '{type(names).__name__}'")
        return args, names
    if hasattr(self, "__getnewargs__"):
        args = self.__getnewargs__()
        if not isinstance(args, tuple):
            raise TypeError(f"__getnewargs__ should return a tuple, not '{type(args).__name__}'")
        return args, None
    return None, None


def state_of(self: Any, required: bool) -> Any:
    """object_getstate."""
    if type(self).__getstate__ is not object.__getstate__:
        return self.__getstate__()
    if required and cls_holds_more(type(self)):
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")
    return default_state(self)


def cls_holds_more(cls: Any) -> bool:
    """Whether instances have memory beside their dict, slots and weak references."""
    known = (cls.__dictoffset__ != 0) + (cls.__weakrefoffset__ != 0) + len(copyreg._slotnames(cls))       # type: ignore[attr-defined]
    return cls.__itemsize__ == 0 and cls.__basicsize__ > object.__basicsize__ + 8 * known


@polyfill(object.__getstate__)
def default_state(self: Any) -> Any:
    """object_getstate_default: the instance dict, and the slots that have values."""
    state = None
    if hasattr(self, "__dict__") and self.__dict__:
        state = self.__dict__
    names = copyreg._slotnames(type(self))                  # type: ignore[attr-defined]
    slots = {}
    for name in names:
        try:
            slots[name] = getattr(self, name)
        except AttributeError:
            pass
    return (state, slots) if slots else state


# ---------------------------------------------------------------- types with a ``__reduce__`` of their own
@polyfill(object.__reduce__)
def object_reduce(self: Any) -> Any:
    """object___reduce___impl."""
    return copyreg._reduce_ex(self, 0)          # type: ignore[attr-defined]


def ordered_dict_reduce(self: Any) -> Any:
    """odict_reduce."""
    state = self.__getstate__()
    return type(self), (), state, None, iter(self.items())


@polyfill(collections.defaultdict.__reduce__)
def default_dict_reduce(self: Any) -> Any:
    """defdict_reduce."""
    factory = self.default_factory
    return type(self), () if factory is None else (factory,), None, None, iter(self.items())


@polyfill(collections.deque.__reduce__)
def deque_reduce(self: Any) -> Any:
    """deque_reduce."""
    state = self.__getstate__()
    return type(self), () if self.maxlen is None else ((), self.maxlen), state, iter(self)


@polyfill(set.__reduce__, frozenset.__reduce__)
def set_reduce(self: Any) -> Any:
    """set_reduce."""
    return type(self), (list(self),), self.__getstate__()


@polyfill(range.__reduce__)
def range_reduce(self: Any) -> Any:
    """range_reduce."""
    return range, (self.start, self.stop, self.step)


@polyfill(bytearray.__reduce_ex__)
def bytearray_reduce_ex(self: Any, proto: int = 0, /) -> Any:
    """_common_reduce."""
    state = self.__getstate__()
    if proto < 3:
        return type(self), (bytes(self).decode("latin-1"), "latin-1"), state
    return type(self), (bytes(self),) if len(self) else (), state


@polyfill(types.MethodType.__reduce__)
def method_reduce(self: Any) -> Any:
    """method___reduce___impl."""
    return getattr, (self.__self__, self.__func__.__name__)


@polyfill(type(...).__reduce__)
def ellipsis_reduce(self: Any) -> str:
    return "Ellipsis"


@polyfill(type(NotImplemented).__reduce__)
def not_implemented_reduce(self: Any) -> str:
    return "NotImplemented"
