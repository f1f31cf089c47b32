"""Services that are no one family's; the others are declared where they are done (``@service``)."""
from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn


from minidynamo.base.text import tp_name
from minidynamo import reasons
from minidynamo.guards.kinds import InInstanceDict, Predicate
from minidynamo.interp.state import DictScope, PreviousException, Scope
from minidynamo.model.services import Services
from minidynamo.model.variable import VariableTracker, real
from minidynamo.polyfills import copying, match, pickling
from minidynamo.protocol import attrs, iters, text
from minidynamo.reasons import Stop
from minidynamo.sources import DictRoot, Imported, Source, TypeOf
from minidynamo.variables import (
    exceptions, namespaces, slot_calls, weakrefs,
)
from minidynamo.variables.cells import CellVariable
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.c_functions import BoundCMethodVariable
from minidynamo.variables.generators import GeneratorVariable
from minidynamo.variables.iterators import (
    DictIterator, RangeIterator, ReversedIterator, SequenceIterator, SetIterator)
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import ListVariable, SequenceVariable, inner
from minidynamo.variables.sets import SetVariable

C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


class FrameServices(Services):
    """Those that are about the running frame, or too short to stand with their family."""

    builtins_source = DictRoot(builtins.__dict__, "builtins")

    # ---- literals and small values
    def literal(self, op: Any) -> VariableTracker:
        return self.constant(op.arg)

    def constant(self, obj: Any) -> VariableTracker:
        """One value for each object among a program's constants: the compiler has merged equal ones."""
        value = self.literals.get(id(obj))
        if value is None:
            value = self.literals[id(obj)] = \
                self.wrap_tuple([self.constant(item) for item in obj]) if type(obj) is tuple else self.wrap(obj)
            if type(obj) is tuple:
                self.constant_tuples[id(value)] = obj
        return value

    def real(self, value: VariableTracker) -> VariableTracker:
        return real(self, value)

    def collect(self, value: VariableTracker) -> list[VariableTracker]:
        return iters.collect(self, value)

    def list_of(self, items: list[VariableTracker]) -> VariableTracker:
        return ListVariable(items)

    def empty_dict(self) -> VariableTracker:
        return DictVariable({})

    def make_set(self, items: list[VariableTracker]) -> VariableTracker:
        return SetVariable.of_items(self, items)

    def is_set(self, value: VariableTracker) -> bool:
        return isinstance(inner(value), SetVariable)

    def builtin_part(self, value: VariableTracker) -> VariableTracker:
        return inner(value)

    def resumes(self) -> bool:
        """Whether the frame is a resume function's: its arguments are what Python made in the middle of the user's."""
        return self.options.first > 0

    def is_restless(self, value: Any, source: Source) -> bool:
        """Whether a guard on this value would be one of many: some others were met at this place."""
        return self.shapes.history.is_restless(source.text(), value)

    def is_settled(self, source: Source) -> bool:
        """Whether an earlier trace needed the value of the number at this place, symbol or not."""
        return source.text() in self.shapes.history.settled

    # ---- text
    def text_of(self, value: VariableTracker) -> str:
        """``repr(value)`` as a Python string."""
        return inner(text.to_repr(self, value)).as_constant()

    def to_str(self, value: VariableTracker) -> VariableTracker:
        return text.to_str(self, value)

    def default_repr(self, value: VariableTracker) -> VariableTracker:
        """object_repr."""
        cls = self.class_of(value.py_type())
        module = self.catching(AttributeError, lambda: cls.tp_getattro(self, "__module__"))
        name = cls.tp_getattro(self, "__qualname__").as_constant()
        if module is not None and module.py_type() is str and module.as_constant() != "builtins":
            name = f"{module.as_constant()}.{name}"
        return self.text_with_address(f"<{name} object at ", value)

    def checked_text(self, name: str, value: VariableTracker) -> VariableTracker:
        if not issubclass(value.py_type(), str):
            self.raise_(TypeError, f"{name} returned non-string (type {tp_name(value.py_type())})"
                        if name != "__format__" else f"__format__ must return a str, not {tp_name(value.py_type())}")
        return value

    def checked_length(self, value: VariableTracker) -> VariableTracker:
        number = value.nb_unary(self, "index")
        if number is NotImplemented:
            self.raise_(TypeError, f"'{tp_name(value.py_type())}' object cannot be interpreted as an integer")
        if isinstance(number, ConstantVariable):
            try:
                return ConstantVariable(len(_Sized(number.value)))
            except (ValueError, OverflowError) as error:
                self.raise_real(error)
        return number

    def checked_unary(self, symbol: str, value: VariableTracker) -> VariableTracker:
        wanted = {"int": int, "float": float, "index": int, "complex": complex}.get(symbol)
        if wanted is not None and value.py_type() is not wanted:
            name = {"index": "__index__", "int": "__int__", "float": "__float__", "complex": "__complex__"}[symbol]
            if issubclass(value.py_type(), wanted):             # deprecated, and then made exact
                self.stop(reasons.WARNING_CALL, call=name)
            self.raise_(TypeError, f"{name} returned non-{wanted.__name__} (type {tp_name(value.py_type())})")
        return value

    def not_implemented(self, value: VariableTracker) -> Any:
        """A traced ``NotImplemented`` as Python's own."""
        return NotImplemented if isinstance(value, ConstantVariable) and value.value is NotImplemented else value

    # ---- classes and objects
    def class_of(self, cls: type) -> ClassVariable:
        known = self.by_id.get(id(cls))
        return known if known is not None else self.enter(cls, ClassVariable(cls))

    def type_of(self, value: VariableTracker) -> VariableTracker:
        cls = self.class_of(value.py_type())
        if cls.source is None and value.source is not None:
            self.journal.set(cls, "source", TypeOf(value.source))
        return cls

    def object_value(self, obj: Any) -> VariableTracker:
        if isinstance(obj, type):
            return self.class_of(obj)
        return self.wrap(obj)

    def wrap_own(self, obj: Any) -> VariableTracker:
        """A default of one of our own functions, or of a function without a path."""
        return self.by_id.get(id(obj)) or self.wrap(obj)

    def own_cell(self, cell: types.CellType) -> CellVariable:
        known = self.by_id.get(id(cell))
        if known is None:
            known = self.enter(cell, CellVariable(self.wrap_own(cell.cell_contents), None))
        return known

    def bound_c_method(self, obj: VariableTracker, raw: Any, source: Source | None = None) -> VariableTracker:
        return BoundCMethodVariable(obj, raw, source)

    def c_method_of(self, cls: type, name: str) -> Any:
        for klass in cls.__mro__:
            raw = vars(klass).get(name)
            if raw is not None:
                return raw if isinstance(raw, C_METHODS) else None
        return None

    def special_method(self, value: VariableTracker, name: str) -> VariableTracker | None:
        return attrs.lookup_special(self, value, name)

    def overrides(self, value: VariableTracker, *names: str) -> bool:
        return isinstance(value, ObjectVariable) and any(attrs.special_is_python(self, value.cls, n) for n in names)

    def super_arguments(self) -> tuple[VariableTracker, VariableTracker]:
        """super() without arguments: ``__class__`` cell and first parameter of the running frame."""
        frame = self.frame
        if not frame.program.argcount:
            self.raise_(RuntimeError, "super(): no arguments")
        cell = frame.cells.get("__class__")
        if cell is None or cell.get(self) is None:
            self.raise_(RuntimeError, "super(): __class__ cell not found")
        first = frame.program.varnames[0] if frame.program.varnames else ""
        value = frame.local.get(first)
        if value is None and first in frame.cells:
            value = frame.cells[first].get(self)
        if value is None:
            self.raise_(RuntimeError, "super(): arg[0] deleted")
        return cell.get(self), real(self, value)

    def call_slot_wrapper(self, raw: Any, args: list, kwargs: dict) -> VariableTracker | None:
        if isinstance(raw, types.BuiltinFunctionType) and raw.__name__ == "__new__" and isinstance(raw.__self__, type):
            return slot_calls.c_new(self, raw, args, kwargs)
        return slot_calls.call_slot_wrapper(self, raw, args, kwargs)

    def plain_object(self) -> VariableTracker:
        return ObjectVariable(object)

    def call_unknown_c(self, fn: Any, args: list, kwargs: dict) -> VariableTracker:
        weakrefs.leave_if_watched(self, fn, args, kwargs)
        name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", repr(fn))
        module = getattr(fn, "__module__", None)
        self.stop(reasons.UNSUPPORTED_CALL, call=f"{module}.{name}" if module else name, kind=type(fn).__name__)

    def scope_of_namespace(self, space: VariableTracker) -> Scope | None:
        """The globals that exec and eval make of a dict."""
        if isinstance(space, namespaces.ScopeNamespace):
            return space.scope
        return DictScope(space, self.root_step) if space.__class__ in (DictVariable, namespaces.PartialDict) else None

    def globals_namespace(self) -> VariableTracker:
        """``globals()`` of the running frame."""
        return self.scope_value(self.frame.scope)

    def pickler(self, name: str) -> Any:
        """What stands for a C function of pickling."""
        return getattr(pickling, name, None) or getattr(copying, name)

    def mapping_to_kwargs(self, value: VariableTracker) -> dict[str, VariableTracker]:
        result = DictVariable({})
        result.update(self, value)
        return result.string_items(self)

    # ---- names
    def loaded_module(self, name: str) -> VariableTracker:
        """A module of ``sys.modules`` as the trace has left that; a real import runs in Python."""
        seen = self.by_id.get(id(sys.modules))
        if seen is not None and id(seen) in self.changed:
            value = seen.find(self, self.wrap(name))                      # type: ignore[attr-defined]
            if value is None:
                self.stop(reasons.IMPORT_UNKNOWN, name=name)
            return real(self, value)
        module = sys.modules.get(name)
        if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
            self.stop(reasons.IMPORT_UNKNOWN, name=name)
        return self.build(module, Imported(name))

    def write_global(self, scope: Scope, name: str, value: VariableTracker | None) -> None:
        if scope.value is not None:
            scope.value.mp_ass_subscript(self, ConstantVariable(name), value)
            return
        self.journal.put(scope.written, name, value)
        self.journal.set(scope, "seen", {k: v for k, v in scope.seen.items() if k != name})
        if id(scope) not in self.changed:
            self.journal.put(self.changed, id(scope), scope)

    def raise_name_error(self, name: str) -> NoReturn:
        exc = self.make_exception(NameError, f"name '{name}' is not defined")
        exc.fields["name"] = ConstantVariable(name)
        self.raise_value(exc)

    def stop_op(self, op: Any) -> NoReturn:
        self.stop(reasons.UNSUPPORTED_OP, opcode=f"{op.name} {op.arg}")

    def guard_cell_empty(self, source: Source) -> None:
        self.guard(Predicate(source, _cell_is_empty, "the cell is empty"))

    def guard_instance_lacks(self, source: Source, name: str) -> None:
        self.guard(InInstanceDict(source, name, False))

    # ---- iteration
    def sequence_iterator(self, value: VariableTracker) -> VariableTracker:
        return SequenceIterator(value)

    def range_iterator(self, value: range) -> VariableTracker:
        return RangeIterator(value)

    def dict_iterator(self, mapping: Any, what: str, backwards: bool = False) -> VariableTracker:
        return DictIterator(mapping, what, backwards)

    def reversed_sequence(self, value: VariableTracker) -> VariableTracker:
        return ReversedIterator(value, len(inner(value).items) - 1)

    def base_iterator(self, value: VariableTracker) -> VariableTracker:
        """What the ``__iter__`` of the builtin base class gives for a subclass's instance."""
        part = inner(value)
        if isinstance(part, DictVariable):
            return self.dict_iterator(value, "keys")
        if isinstance(part, SetVariable):
            return self.set_iterator(value)
        return SequenceIterator(value) if isinstance(part, SequenceVariable) else part.tp_iter(self)

    def set_iterator(self, value: Any) -> VariableTracker:
        return SetIterator(value, inner(value).ordered(self))

    def raise_stop_iteration(self, iterator: VariableTracker) -> NoReturn:
        """StopIteration; a generator's carries what it returned."""
        value = iterator.frame.result if isinstance(iterator, GeneratorVariable) else None
        if value is None or isinstance(real(self, value), ConstantVariable) and real(self, value).value is None:
            self.raise_(StopIteration)
        self.raise_(StopIteration, real(self, value))

    def catching_attribute_error(self, thunk: Callable[[], Any], cls: type) -> Any:
        """None for AttributeError, where the class has a ``__getattr__`` to ask next."""
        if attrs.type_lookup(self, cls, "__getattr__") is None:
            return thunk()
        return self.catching(AttributeError, thunk)

    def make_generator(self, frame: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker:
        made = GeneratorVariable(frame, (fn, args, kwargs), fn.name, self.root_step)
        made.in_root = self.frame is self.root
        self.generators.append(made)
        made.born = {name: fn.tp_getattro(self, name) for name in ("__name__", "__qualname__")}      # gen_new_with_qualname
        return made

    def dropped(self, name: str, in_root: bool) -> Stop:
        """Why Python must make an object that runs code when it dies: it may die in the frame being traced, and there
        even a resume function's caller would hold it; or in a call, which is left to Python."""
        if in_root:
            return Stop(reasons.RUNS_WHEN_DROPPED, {"name": name}, self.where())
        return Stop(reasons.DIES_IN_A_CALL, {"name": name}, self.where())

    def is_handling(self, stack: list[Any]) -> bool:
        """Whether a suspended frame stands inside an except clause of its own."""
        return any(isinstance(entry, PreviousException) for entry in stack)

    def rebase_handled(self, stack: list[Any], outer: VariableTracker | None) -> None:
        """What a generator's outermost except clause goes back to is what its present caller handles."""
        for at, entry in enumerate(stack):
            if isinstance(entry, PreviousException):
                stack[at] = PreviousException(outer)
                return

    def chain(self, exc: VariableTracker) -> None:
        exceptions.chain(self, exc, self.handled)

    def generator_raised_stop(self, exc: VariableTracker) -> VariableTracker:
        made = self.make_exception(RuntimeError, "generator raised StopIteration")
        made.cause = made.context = exc
        made.suppress = True
        return made

    # ---- match
    def match_keys(self, subject: VariableTracker, keys: VariableTracker) -> VariableTracker:
        return self.call_python(match.match_keys, real(self, subject), keys)

    def match_class(self, subject: VariableTracker, cls: VariableTracker, count: int, names: Any) -> VariableTracker:
        matches_self = isinstance(cls, ClassVariable) and bool(cls.cls.__flags__ & (1 << 22))   # _Py_TPFLAGS_MATCH_SELF
        return self.call_python(match.match_class, subject, cls, ConstantVariable(count), names,
                                ConstantVariable(matches_self))



def _cell_is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


class _Sized:
    """Lets CPython judge what a ``__len__`` returned."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __len__(self) -> int:
        return self.value

