"""object.__reduce_ex__ as Python to inline (object___reduce_ex___impl and reduce_newobj in typeobject.c)."""
from __future__ import annotations

import copyreg
from typing import Any

from minidynamo.model.tables import polyfill


@polyfill(object.__reduce_ex__)
def reduce_ex(self: Any, protocol: int) -> Any:
    """The class's own ``__reduce__`` if it has one, else the parts that ``copyreg`` puts together."""
    cls = type(self)
    if cls.__reduce__ is not object.__reduce__:
        return self.__reduce__()
    if protocol < 2:
        return copyreg._reduce_ex(self, protocol)          # type: ignore[attr-defined]
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
    return default_state(self)


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
