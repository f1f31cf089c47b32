"""Holding the objects that guards name: weakly where the type allows, so models are freed."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_HEAP_TYPE = 1 << 9       # Py_TPFLAGS_HEAPTYPE: static types live as long as the interpreter


class Keep:
    """A strong reference with a weak one's interface."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __call__(self) -> Any:
        return self.obj


Held = Callable[[], Any]


def is_heap_type(kind: type) -> bool:
    """Whether a class may go away, and whether its instances may be given another ``__class__``."""
    return bool(type.__dict__["__flags__"].__get__(kind) & _HEAP_TYPE)


def hold(obj: Any) -> Held:
    """A weak reference to `obj`, or a strong one where none can be had or none is needed."""
    if issubclass(type(obj), type) and not is_heap_type(obj):
        return Keep(obj)
    try:
        return weakref.ref(obj)
    except TypeError:
        return Keep(obj)


def held_key(held: Held) -> int:
    """Equal for two holds of one object; never compares the objects themselves.

    The weak reference without callback is one per object and kept by the guard, so its address
    stays its own even after the object died.
    """
    return id(held.obj) if type(held) is Keep else id(held)


def holds_object(held: Held, value: Any) -> bool:
    """Whether `value` is the held object and that is alive."""
    return value is held() and (value is not None or type(held) is Keep)


class Deaths:
    """Weakly held objects of one guard tree; `dead` gets an entry when one of them goes.

    Guards compare addresses, and an address may be given to a new object. `dead` is read by the
    tree as a dict of length zero, so nothing passes once an object that it names has died. No
    C++ structure is touched from the callback, which may run while guards are being checked.
    """

    __slots__ = ("dead", "refs", "__weakref__")

    def __init__(self) -> None:
        self.dead: dict[int, bool] = {}
        self.refs: dict[int, weakref.ref[Any]] = {}

    def watch(self, held: Held) -> int:
        """The address to compare with; the tree fails from the object's death on."""
        obj = held()
        if type(held) is Keep:
            return id(obj)
        if obj is None:
            self.dead[0] = True
            return 0
        if id(obj) not in self.refs:
            def on_death(_: Any, dead: dict[int, bool] = self.dead, key: int = id(obj)) -> None:
                dead[key] = True
            self.refs[id(obj)] = weakref.ref(obj, on_death)
        return id(obj)
