"""Classes made while tracing (type_new in typeobject.c): a stand-in class while tracing, a real one at run time.

The stand-in is a real class object with the same bases, names and slots, so that layout, MRO and every
question about names is CPython's own answer.  What its names *mean* is in ``tx.class_writes``; the
stand-in's own values are stubs.  No user code runs when it is made, neither here nor in the output code:
``__set_name__`` and ``__init_subclass__`` are traced as the calls they are.
"""
from __future__ import annotations

import _abc
import threading
import types
from typing import Any

from minidynamo import code, reasons
from minidynamo.code import facts
from minidynamo.model.services import service
from minidynamo.model.tables import meaning
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import NotConstant, VariableTracker, defines, is_subtype, real
from minidynamo.protocol import attrs
from minidynamo.protocol.attrs import describe, type_lookup
from minidynamo.variables.bases import HashedByIdentity, TypeAttributesOnly
from minidynamo.variables.classes import ClassVariable, lookup_in
from minidynamo.variables.constants import LITERAL_TYPES, ConstantVariable
from minidynamo.variables.descriptors import DescriptorVariable, ClassMethodVariable, PropertyVariable, StaticMethodVariable
from minidynamo.variables.exceptions import make_exception
from minidynamo.variables.functions import FunctionVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable, inner
from minidynamo.variables.sets import FrozensetVariable

EARLY = ("__module__", "__qualname__", "__slots__", "__classcell__")    # names that type_new itself reads
IMPLICIT = {"__new__": StaticMethodVariable, "__init_subclass__": ClassMethodVariable,
            "__class_getitem__": ClassMethodVariable}
DICT_BACKED = ("__doc__", "__module__", "__annotations__")              # getsets of type that write the namespace
NO_VALUE = object()


class MadeClassVariable(ClassVariable):
    """A class statement's class; ``cls`` is its stand-in."""

    __slots__ = ("tx", "meta", "bases", "names", "early", "made_at")
    kind = "class made while tracing"

    def __init__(self, tx: Any, cls: type, meta: ClassVariable, bases: list[ClassVariable], names: tuple[str, ...],
                 early: dict[str, VariableTracker], made_at: int) -> None:
        super().__init__(cls)
        self.tx, self.meta, self.bases, self.names, self.early = tx, meta, bases, names, early
        self.made_at = made_at

    def as_object(self) -> Any:
        raise NotConstant(self)

    # ---- making it again
    def written(self, tx: Any) -> dict[str, VariableTracker | None]:
        return tx.class_writes[self.cls]

    def children(self) -> list[VariableTracker]:
        written = self.written(self.tx).values()
        return [self.meta, *self.bases, *self.early.values(), *[v for v in written if v is not None]]

    def create(self, out: Any) -> None:
        out.begin_call_of(new_class)
        out.load(self.meta)
        out.load_const(self.cls.__name__)
        for base in self.bases:
            out.load(base)
        out.op("BUILD_TUPLE", len(self.bases))
        out.load_const(self.names)
        for name, value in self.early.items():
            out.load_const(name)
            if name == "__classcell__" and value.source is None and id(value) not in out.temps:
                value.create(out)                    # type.__new__ fills it
                out.keep(value)
            else:
                out.load(value)
        out.op("BUILD_MAP", len(self.early))
        out.call(5)

    def fill(self, out: Any) -> None:
        for name, value in self.written(out.tx).items():
            if self.early.get(name) is not value and name != "__abstractmethods__":
                out.set_attribute(self, name, value, type)
        if "_abc_impl" in attrs.CLASS_DICT.__get__(self.cls):
            out.call_function(_abc._abc_init, self)
            out.op("POP")
        abstract = self.written(out.tx).get("__abstractmethods__")
        if abstract is not None:
            out.set_attribute(self, "__abstractmethods__", abstract, type)

    def rebuild(self, out: Any) -> None:
        self.create(out)
        out.keep(self)
        self.fill(out)

    def effect_children(self, tx: Any) -> list[VariableTracker]:
        return self.children()

    # ---- attributes
    def set_own(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        """type_setattro without the metaclass's own ``__setattr__``."""
        if name in ("__name__", "__qualname__") and value is not None and value.py_type() is str:
            self.rename(tx, name, value)
            return
        found = type_lookup(tx, type(self.cls), name)
        if found is not None and attrs.is_data(found) and name not in DICT_BACKED and not (
                name == "__abstractmethods__" and value is not None):
            descriptor = attrs.class_value(tx, found)
            if descriptor.tp_descr_set is None or isinstance(found.raw, attrs.C_ATTRIBUTES):
                tx.unsupported(self, f".{name} = ...")
            descriptor.tp_descr_set(tx, self, value)
            return
        if not isinstance(name, str):
            tx.unsupported(self, "setattr() with a name that is not a str")
        own = attrs.CLASS_DICT.__get__(self.cls)
        if value is None and name not in own:
            tx.raise_attribute_error(f"type object '{self.cls.__name__}' has no attribute '{name}'", self, name)
        old = own.get(name, NO_VALUE)
        if name == "__abstractmethods__":
            mirror(self.cls, name, frozenset(real(tx, i).as_constant() for i in tx.collect(value)))
        else:
            mirror(self.cls, name, NO_VALUE if value is None else stub(tx, value))
        tx.journal.did(mirror, self.cls, name, old)
        writes = dict(self.written(tx))
        if value is None and name not in self.names:
            writes.pop(name, None)
        else:
            writes[name] = value
        tx.journal.put(tx.class_writes, self.cls, writes)
        tx.journal.set(tx, "type_memo", {})


    def rename(self, tx: Any, name: str, value: VariableTracker) -> None:
        """type_set_name and type_set_qualname."""
        tx.journal.did(mirror, self.cls, name, getattr(self.cls, name))
        mirror(self.cls, name, value.as_constant())
        if name == "__qualname__":
            tx.journal.put(self.early, name, value)
            if name not in self.names:
                tx.journal.set(self, "names", (*self.names, name))


def mirror(cls: type, name: str, value: Any) -> None:
    """Give the stand-in the same names as the class it stands for."""
    if value is NO_VALUE:
        type.__delattr__(cls, name)
    else:
        type.__setattr__(cls, name, value)


# ---------------------------------------------------------------- at run time, and for stand-ins
_LOCK = threading.RLock()


def new_class(meta: type, name: str, bases: tuple[type, ...], names: tuple[str, ...], early: dict[str, Any]) -> type:
    """``type.__new__`` with all names in their order, and no user code run; values follow by ``type.__setattr__``."""
    hooks = subclass_hooks(bases)
    with _LOCK:
        try:
            for klass, _ in hooks:                  # their calls were traced
                type.__setattr__(klass, "__init_subclass__", SILENT)
            return type.__new__(meta, name, bases, {n: early.get(n) for n in names})
        finally:
            for klass, hook in hooks:
                type.__setattr__(klass, "__init_subclass__", hook)


def subclass_hooks(bases: tuple[type, ...]) -> list[tuple[type, Any]]:
    """The classes among `bases` and theirs that have an ``__init_subclass__`` of their own."""
    found = {}
    for base in bases:
        for klass in type.mro(base) if isinstance(base, type) else ():
            if klass is not object and "__init_subclass__" in attrs.CLASS_DICT.__get__(klass):
                found[id(klass)] = (klass, attrs.CLASS_DICT.__get__(klass)["__init_subclass__"])
    return list(found.values())


SILENT = classmethod(lambda cls, **kwargs: None)


class Stub:
    """Stands in a stand-in class for a value that is only known symbolically."""


def stub(tx: Any, value: VariableTracker) -> Any:
    """What the stand-in's namespace holds for `value`: enough for CPython's own questions about it."""
    if value.__class__ is ConstantVariable:
        return value.value
    body = types.FunctionType(_stub_body.__code__, {})
    if is_abstract(tx, value):
        body.__isabstractmethod__ = True             # type: ignore[attr-defined]
    if isinstance(value, FunctionVariable):
        return body
    if isinstance(value, (PropertyVariable, StaticMethodVariable, ClassMethodVariable)):
        return value.made_type(body)
    return Stub()


def _stub_body(*args: Any, **kwargs: Any) -> None:
    """Never called."""


def is_abstract(tx: Any, value: VariableTracker) -> bool:
    """The truth of ``value.__isabstractmethod__``, for kinds where asking runs no user code."""
    if isinstance(value, FunctionVariable):
        mark = value.fields.get("__isabstractmethod__") or (value.fn is not None and vars(value.fn).get("__isabstractmethod__"))
        return mark is not None and mark is not False
    return isinstance(value, DescriptorVariable) and any(is_abstract(tx, part) for part in value.part_values(tx))


_GRAVES: dict[type, type] = {}


def forget(standin: type) -> None:
    """Take a stand-in out of its bases' ``__subclasses__``: nobody is to find it there."""
    solid = next(k for k in type.mro(standin) if code.is_static(k))
    grave = _GRAVES.get(solid)
    if grave is None:
        grave = _GRAVES[solid] = type.__new__(type, "Grave", (solid,), {})
    for name in ("__slots__", "__init_subclass__"):
        if name in attrs.CLASS_DICT.__get__(standin):
            return                       # another layout; it goes with the next garbage collection
    try:
        vars(type)["__bases__"].__set__(standin, (grave,))
    except TypeError:
        pass                             # CPython finds the layouts too different: as above


# ---------------------------------------------------------------- type.__new__
@service
def type_new(tx: Any, meta: ClassVariable, args: list, kwargs: dict) -> VariableTracker:
    """type_new: metaclass, layout and names; then ``__set_name__`` and ``__init_subclass__``."""
    if len(args) != 3:
        tx.stop(reasons.UNSUPPORTED_CALL, call="type.__new__", kind=f"{len(args)} arguments")
    if not all(issubclass(arg.py_type(), kind) for arg, kind in zip(args, (str, tuple, dict))):
        tx.stop(reasons.UNSUPPORTED_CALL, call="type.__new__", kind="arguments of other types")
    name, bases = inner(args[0]).as_constant(), [real(tx, b) for b in inner(args[1]).items]
    space = inner(args[2])
    if not isinstance(space, DictVariable) or not all(isinstance(b, ClassVariable) for b in bases):
        tx.stop(reasons.CLASS_BODY, name=name)
    winner = most_derived(tx, meta.cls, bases)
    if winner is not meta.cls:
        meta = tx.class_of(winner)
        new = type_lookup(tx, winner, "__new__")
        if new.value is not None or new.raw is not vars(type)["__new__"]:
            return tx.call(describe(tx, new, None, winner), [meta, *args], kwargs)
    check_metaclass(tx, meta, name)
    if not all(k.py_type() is str for k, _ in space.entries.values()):
        tx.stop(reasons.CLASS_BODY, name=name)
    items = {k.as_constant(): real(tx, v) for k, v in space.entries.values()}
    if "__module__" not in items:
        module = tx.frame.scope.module_name(tx)
        if module is not None:
            items["__module__"] = module
    made = make_stand_in(tx, meta, name, bases, items)
    call_set_names(tx, made, items)
    found = lookup_in(tx, made.cls.__mro__[1:], "__init_subclass__")
    tx.call(describe(tx, found, None, made.cls), [], kwargs)
    return made


def most_derived(tx: Any, meta: type, bases: list) -> type:
    """_PyType_CalculateMetaclass."""
    for base in bases:
        kind = base.py_type()
        if is_subtype(meta, kind):
            continue
        if not is_subtype(kind, meta):
            tx.raise_(TypeError, "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass "
                                 "of the metaclasses of all its bases")
        meta = kind
    return meta


def check_metaclass(tx: Any, meta: ClassVariable, name: str) -> None:
    """What a metaclass may do behind the back of ``type.__new__``."""
    for hook in ("mro", "__hash__", "__eq__"):
        if type_lookup(tx, meta.cls, hook).owner not in (type, object):
            tx.stop(reasons.METACLASS_CALL, name=name, why=f"a metaclass with its own {hook}()")


def make_stand_in(tx: Any, meta: ClassVariable, name: str, bases: list, items: dict) -> MadeClassVariable:
    names = tuple(items)
    early = {n: items[n] for n in sorted(items, key="__classcell__".__ne__) if is_early(tx, meta, n)}
    stubs = {n: stub(tx, v) for n, v in items.items()}
    if "__slots__" in items:
        stubs["__slots__"] = slot_names(tx, items["__slots__"])
    cell = items.pop("__classcell__", None)
    if cell is not None:
        stubs["__classcell__"] = types.CellType()
    try:
        standin = new_class(meta.cls, name, tuple(b.cls for b in bases), names, stubs)
    except Exception as error:
        tx.raise_real(error)
    made = MadeClassVariable(tx, standin, meta, bases, names, early, tx.root_step)
    tx.enter(standin, made)
    tx.journal.put(tx.made_classes, id(standin), made)
    writes = {n: IMPLICIT[n].of(v) if n in IMPLICIT and isinstance(v, FunctionVariable) else v
              for n, v in items.items() if n not in ("__qualname__", "__slots__") or n in vars(standin) and n != "__qualname__"}
    tx.journal.put(tx.class_writes, standin, writes)
    if cell is not None:
        cell.set(tx, made)
    return made


def is_early(tx: Any, meta: ClassVariable, name: str) -> bool:
    """Names that must be in the namespace from the start: setting them afterwards would mean something else."""
    if name in EARLY:
        return True
    found = None if name in DICT_BACKED else type_lookup(tx, meta.cls, name)
    return found is not None and attrs.is_data(found)


def slot_names(tx: Any, value: VariableTracker) -> Any:
    """The real value of ``__slots__``."""
    value = inner(value)
    if value.__class__ is ConstantVariable:
        return value.value
    items = value.fast_items and value.fast_items(tx)
    if items is None:
        tx.stop(reasons.CLASS_BODY, name="a class whose __slots__ are not a list of names")
    return tuple(real(tx, i).as_constant() for i in items)


def call_set_names(tx: Any, made: MadeClassVariable, items: dict[str, VariableTracker]) -> None:
    """type_new_set_names."""
    for name, value in items.items():
        if type(value) in (ConstantVariable, FunctionVariable):
            continue
        hook = type_lookup(tx, value.py_type(), "__set_name__")
        if hook is None:
            continue
        try:
            tx.call(describe(tx, hook, value, value.py_type()), [made, tx.wrap(name)])
        except Raised as raised:
            set_name_failed(tx, raised.exc, value, name, made)


def set_name_failed(tx: Any, error: VariableTracker, value: VariableTracker, name: str, made: MadeClassVariable) -> None:
    """_PyErr_FormatFromCause up to 3.11; later versions add a note instead."""
    if facts.SET_NAME_ERRORS_GET_NOTES:
        tx.stop(reasons.CLASS_BODY, name=made.cls.__name__)
    text = (f"Error calling __set_name__ on '{value.py_type().__name__}' instance '{name}' "
            f"in '{made.cls.__name__}'")
    wrapped = make_exception(tx, RuntimeError, [tx.wrap(text)])
    wrapped.cause = wrapped.context = error
    wrapped.suppress = True
    raise Raised(wrapped)


@meaning(type.mro)
def call_mro(tx, cls, /):
    """type_mro_impl: the order worked out anew, which is the order it has, unless the class is only being made."""
    if cls.cls.__mro__ is None:
        tx.stop(reasons.CLASS_BODY, name=cls.cls.__name__)
    return ListVariable(list(cls.tp_getattro(tx, "__mro__").items))


@meaning(vars(type)["__prepare__"])
def call_prepare(tx, meta, *args, **kwargs):
    """type___prepare___impl."""
    return DictVariable({})


@meaning(_abc._abc_init)
def call_abc_init(tx, cls, /):
    """_abc__abc_init: the abstract names, from the stubs' marks, and the registry."""
    if not isinstance(cls, MadeClassVariable):
        tx.stop(reasons.UNSUPPORTED_CALL, call="_abc_init", kind="a class from outside")
    for value in cls.early.values():                     # a property of the value may say that it is abstract
        if value.kind == "object" and defines(value.py_type(), "__isabstractmethod__"):
            tx.stop(reasons.UNSUPPORTED_CALL, call="_abc_init", kind="an abstract method of the user's own kind")
    _abc._abc_init(cls.cls)
    return ConstantVariable(None)


@service
def made_class_part(tx: Any, raw: Any) -> VariableTracker:
    """What type_new itself put into a made class: slots, ``__dict__``, ``__weakref__``, None."""
    if type(raw) in LITERAL_TYPES:
        return ConstantVariable(raw)
    if type(raw) is frozenset:                           # the abstract names
        return FrozensetVariable.of_items(tx, [ConstantVariable(item) for item in sorted(raw)])
    if not isinstance(raw, DESCRIPTORS):
        return ClassPart(raw)
    return tx.builder(raw)(tx, raw, None)


class ClassPart(TypeAttributesOnly, HashedByIdentity):
    """What C put into the namespace of a class made while tracing (``_abc_impl``): the class made at run time has another."""

    __slots__ = ("raw",)
    kind = "part of a class made while tracing"

    def __init__(self, raw: Any) -> None:
        self.raw, self.source = raw, None

    def py_type(self) -> type:
        return type(self.raw)

    def identity(self) -> object:
        return self.raw


DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.BuiltinFunctionType)


def bases_of(tx: Any, values: list[VariableTracker]) -> tuple[list[VariableTracker], bool]:
    """update_bases: ``__mro_entries__`` of what is not a class."""
    given = TupleVariable(list(values))
    result, changed = [], False
    for value in values:
        hook = None if isinstance(value, ClassVariable) else attrs.getattr_or_none(tx, value, "__mro_entries__")
        if hook is None:
            result.append(value)
            continue
        entries = tx.call(hook, [given])
        if not isinstance(entries, TupleVariable):
            tx.raise_(TypeError, "__mro_entries__ must return a tuple")
        result.extend(real(tx, e) for e in entries.items)
        changed = True
    return result, changed
