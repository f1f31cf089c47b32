"""VariableTracker: what the tracer knows about one value of the traced program.

Every Python value in a traced frame is one of these.  Its behaviour is CPython's type slots,
by name.  ``NotImplemented`` and ``None`` mean what they mean in CPython: not implemented for these operands,
iterator exhausted.  A slot either answers, raises the *user's* exception with ``tx.raise_``,
or gives up with ``tx.stop``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from minidynamo.base.text import tp_name
from minidynamo.model.slots import BINARY_DUNDER, COMPARE_DUNDER, CONVERSIONS, UNARY_DUNDER, binary_name
from minidynamo.side_effects.effect import Changed

if TYPE_CHECKING:
    from minidynamo.model.tracer import Tracer
    from minidynamo.sources import Source

Args = list["VariableTracker"]
Kwargs = dict[str, "VariableTracker"]


class NotConstant(Exception):
    """The value is not known at trace time."""


class CannotRebuild(Exception):
    """No code can make this value again; `value` says which, `why` says why."""

    def __init__(self, value: VariableTracker, why: str) -> None:
        super().__init__(why)
        self.value, self.why = value, why


def defines(cls: type, name: str) -> bool:
    """Whether instances of `cls` have the slot: the type's MRO is asked, never its metaclass."""
    return any(name in vars(klass) for klass in cls.__mro__)


def has_own(cls: type, name: str) -> bool:
    """Whether the slot is more than the one that every object has."""
    owner = next((klass for klass in cls.__mro__ if name in vars(klass)), object)
    return owner is not object and vars(owner)[name] is not None


def is_subtype(cls: type, base: type) -> bool:
    """PyType_IsSubtype: by the MRO, whatever ``__subclasscheck__`` a metaclass has."""
    return type.__subclasscheck__(base, cls)


class VariableTracker(Changed):
    """One value.  `source` says where the user's object is, None if it was made while tracing.

    An optional slot that a kind does not have is None, as an empty slot is NULL in a PyTypeObject.
    """

    __slots__ = ("source",)
    kind: ClassVar[str] = "value"
    source: Source | None
    one_per_object: ClassVar[bool] = True           # one tracker stands for one object of the user's

    inner: VariableTracker | None = None            # the builtin part of an instance of a subclass
    made_at: int | None = None                      # the root instruction that only Python can do again, if it made the value
    lost_at: int | None = None                      # ... if what it did is lost when the value leaves the trace
    raised_at: int | None = None                    # ... if it raised this exception

    # ---- how a value leaves the trace; `out` is a ``codegen.Restore``
    create: Callable[[Any], None] | None = None     # of kinds that may hold themselves: leave an empty one on the stack,
    fill: Callable[[Any], None] | None = None       # and put into it what it holds
    reads_when_made: Callable[[], VariableTracker] | None = None    # the object whose state making this one reads

    # ---- optional slots
    tp_descr_get: Callable[..., VariableTracker] | None = None      # (tx, obj or None, cls)
    tp_descr_set: Callable[..., None] | None = None                 # (tx, obj, value or None to delete)
    length_hint: Callable[..., int] | None = None                   # (tx): what an iterator has left
    reversed_iterator: Callable[..., VariableTracker] | None = None         # (tx): what reversed() gives
    repr_parts: Callable[..., tuple[str, list[VariableTracker], str]] | None = None     # (tx): what its repr is joined of
    bf_getbuffer: Callable[[], bytes] | None = None                 # the bytes of a buffer
    fast_items: Callable[..., list[VariableTracker] | None] | None = None   # (tx): what iterating gives, if no code runs

    # ---- optional slots of a builtin part; ``holder`` is the instance around it
    lacks_dict: Callable[..., bool] | None = None                   # (tx, holder): its C struct has no dict yet
    create_holder: Callable[..., None] | None = None                # (out, cls): leave an empty instance on the stack
    write_into: Callable[..., None] | None = None                   # (out, holder): put the part into it
    belongs_to: Callable[[type], None] | None = None                # (cls): the class of the new holder
    init: Callable[..., None] | None = None                         # (tx, holder, args, kwargs): the C ``__init__``
    call: Callable[..., VariableTracker] | None = None              # (tx, args, kwargs)
    descr_get: Callable[..., VariableTracker] | None = None         # (tx, holder, obj or None)
    binary_of_class: Callable[..., Any] | None = None               # (tx, holder, symbol, other, reflected)

    def __init__(self, source: Source | None = None) -> None:
        self.source = source

    def py_type(self) -> type:
        """The exact type of the value in the running program."""
        raise NotImplementedError(type(self))

    def as_constant(self) -> Any:
        """The value itself; raises NotConstant when it is not a safe, immutable literal."""
        raise NotConstant(self)

    def as_object(self) -> Any:
        """The user's own object this stands for, unmodified; raises NotConstant if there is none."""
        return self.as_constant()

    def shown_name(self) -> str:
        """_PyObject_FunctionStr: how messages name what is called; raises NotConstant where that is its str()."""
        raise NotConstant(self)

    def children(self) -> list[VariableTracker]:
        """The values that making this one again needs."""
        return []

    def effect_children(self, tx: Tracer) -> list[VariableTracker]:
        return self.children()

    def has_instance_dict(self) -> bool:
        """Whether the object has a ``__dict__`` of its own, which the next two read and write past all descriptors."""
        return False

    def instance_get(self, tx: Tracer, name: str) -> VariableTracker | None:
        return None

    def instance_set(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        tx.unsupported(self, f".{name} = ..." if value is not None else f"del .{name}")

    def rebuild(self, out: Any) -> None:
        """Write code that leaves the value on the stack (`out` is a ``codegen.Restore``)."""
        raise CannotRebuild(self, f"a {self.kind} made while tracing")

    def identity(self) -> object:
        """What ``is`` compares: two trackers of one object answer the same thing."""
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{'' if self.source is None else ' ' + str(self.source)}>"

    # ---- slots; ``protocol`` calls them, ``variables`` override them
    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        return tx.unsupported(self, f".{name}")

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        cls = self.py_type()
        if cls.__flags__ & (1 << 8) and not cls.__dictoffset__ and not has_own(cls, "__setattr__") \
                and not any(name in vars(k) for k in cls.__mro__):
            tx.raise_attribute_error(f"'{tp_name(cls)}' object has no attribute '{name}'", self, name)
        tx.unsupported(self, f".{name} = ..." if value is not None else f"del .{name}")

    def tp_call(self, tx: Tracer, args: Args, kwargs: Kwargs) -> VariableTracker:
        if not defines(self.py_type(), "__call__"):
            tx.raise_(TypeError, f"'{tp_name(self.py_type())}' object is not callable")
        return tx.unsupported(self, "()")

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        if not defines(self.py_type(), "__iter__") and not defines(self.py_type(), "__getitem__"):
            tx.raise_(TypeError, f"'{tp_name(self.py_type())}' object is not iterable")
        return tx.unsupported(self, "iter()")

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        if not defines(self.py_type(), "__next__"):
            tx.raise_(TypeError, f"'{tp_name(self.py_type())}' object is not an iterator")
        return tx.unsupported(self, "next()")

    def sq_length(self, tx: Tracer) -> VariableTracker:
        if not defines(self.py_type(), "__len__"):
            tx.raise_(TypeError, f"object of type '{tp_name(self.py_type())}' has no len()")
        return tx.unsupported(self, "len()")

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        if not defines(self.py_type(), "__getitem__"):
            tx.raise_(TypeError, f"'{tp_name(self.py_type())}' object is not subscriptable")
        return tx.unsupported(self, "[...]")

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        name, verb = ("__setitem__", "assignment") if value is not None else ("__delitem__", "deletion")
        if not defines(self.py_type(), name):
            tx.raise_(TypeError, f"'{tp_name(self.py_type())}' object does not support item {verb}"
                      if value is not None else f"'{tp_name(self.py_type())}' object doesn't support item {verb}")
        tx.unsupported(self, "[...] = ..." if value is not None else "del [...]")

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker | None:
        """None when the type has no ``__contains__``; ``protocol.contains`` then iterates."""
        return tx.unsupported(self, "in") if has_own(self.py_type(), "__contains__") else None

    def nb_bool(self, tx: Tracer) -> VariableTracker | None:
        """None when the type has neither ``__bool__`` nor ``__len__`` (then it is true)."""
        cls = self.py_type()
        if defines(cls, "__bool__") or defines(cls, "__len__"):
            return tx.unsupported(self, "bool()")
        return None

    # Operators of a kind that does not override these are Python's where the type has the slot.
    def nb_unary(self, tx: Tracer, symbol: str) -> Any:
        """``+ - ~`` and ``index int float complex abs``; NotImplemented when there is no slot."""
        names = CONVERSIONS.get(symbol) or (UNARY_DUNDER[symbol],)
        return tx.unsupported(self, names[0]) if any(defines(self.py_type(), n) for n in names) else NotImplemented

    def nb_binary(self, tx: Tracer, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        """``self symbol other``, or ``other symbol self`` when reflected; or NotImplemented."""
        name = binary_name(symbol, reflected)
        return tx.unsupported(self, name) if defines(self.py_type(), name) else NotImplemented

    def nb_inplace(self, tx: Tracer, symbol: str, other: VariableTracker) -> Any:
        """``self symbol= other``; NotImplemented when the type has no such slot."""
        name = f"__i{BINARY_DUNDER[symbol[:-1]]}__"
        return tx.unsupported(self, name) if defines(self.py_type(), name) else NotImplemented

    def tp_richcompare(self, tx: Tracer, symbol: str, other: VariableTracker) -> Any:
        """``self symbol other`` of this type alone, or NotImplemented."""
        name, cls = COMPARE_DUNDER[symbol], self.py_type()
        own = next(klass for klass in cls.__mro__ if name in vars(klass)) is not object
        return tx.unsupported(self, name) if own else NotImplemented

    def tp_hash(self, tx: Tracer) -> VariableTracker:
        return tx.unsupported(self, "hash()")

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.unsupported(self, "repr()")

    def tp_str(self, tx: Tracer) -> VariableTracker:
        return self.tp_repr(tx)

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        """object___format___impl, for types that leave it at that."""
        cls = self.py_type()
        if cls.__format__ is not object.__format__:
            return tx.unsupported(self, "format()")
        if spec:
            tx.raise_(TypeError, f"unsupported format string passed to {tp_name(cls)}.__format__")
        return self.tp_str(tx)

    def key(self, tx: Tracer) -> Any:
        """A hashable Python object that hashes and compares as this value does as a dict key."""
        return tx.unsupported(self, "hash()")

    def true_hash(self, tx: Tracer) -> HasHash:
        """A Python object that hashes exactly as the value does, for hashes of containers."""
        return HasHash(self.tp_hash(tx).as_constant())

    def hash_runs_code(self, tx: Tracer) -> bool:
        """Whether hashing or comparing it as a key runs the user's own code."""
        return False


class LazyVariable(VariableTracker):
    """A user's object not looked at yet: it costs no guard until `real` is called."""

    __slots__ = ("obj", "built")
    kind = "lazy"

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj, self.source = obj, source
        self.built: VariableTracker | None = None

    def py_type(self) -> type:
        return type(self.obj)

    def real(self, tx: Tracer) -> VariableTracker:
        built = self.built
        if built is None:
            built = tx.build(self.obj, self.source)
            tx.journal.set(self, "built", built)
        return built


def real(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """The value, built if it was lazy."""
    return value.real(tx) if value.__class__ is LazyVariable else value


class HasHash:
    """An object with a given hash."""

    __slots__ = ("hash",)

    def __init__(self, hash: int) -> None:
        self.hash = hash

    def __hash__(self) -> int:
        return self.hash


class IdKey:
    """Dict and set key of a value that hashes by identity."""

    __slots__ = ("what",)

    def __init__(self, what: object) -> None:
        self.what = what

    def __hash__(self) -> int:
        return id(self.what)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdKey) and other.what is self.what


def keys_born(stand_ins: Any) -> int | None:
    """The first root step at which one of these keys ran the user's ``__hash__``; None if none has its own.

    Putting such a key into a real container runs that code again, so Python must do it, at that step.
    """
    steps = []
    for key in stand_ins:
        if isinstance(key, (tuple, frozenset)):
            born = keys_born(key)
        else:
            born = getattr(key, "made_at", None)
        if born is not None:
            steps.append(born)
    return min(steps, default=None)
