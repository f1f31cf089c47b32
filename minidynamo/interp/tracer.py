"""Tracer: the state of one trace: how values are built, guarded, changed and entered in the graph."""
from __future__ import annotations

import contextlib
import dataclasses
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch.utils import _device

from minidynamo import reasons
from minidynamo.base.config import config
from minidynamo.base.journal import Journal
from minidynamo.code import Program, decode
from minidynamo.graph import ambient
from minidynamo.graph.fake import CannotFake, DataDependent, FakeEnv, OpError, UnsupportedByFake, warnings_once
from minidynamo.graph.overlap import may_overlap
from minidynamo.graph.shapes import Shapes
from minidynamo.graph.symbols import UnknownSymbol
from minidynamo.graph.tape import Node, Tape
from minidynamo.guards.kinds import (
    Aliased, DefaultDevice, GlobalState, Guard, ModeStack, NotAliased, SameObject, TypeIs)
from minidynamo.guards.set import GuardSet
from minidynamo.guards.state import mode_stack
from minidynamo.interp import loop
from minidynamo.interp.services import FrameServices
from minidynamo.interp.state import Frame, Scope
from minidynamo.model.tables import adopt, BUILD_EXACT, BUILD_SUBCLASS, PREDICATES, WRAP
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import LazyVariable, NotConstant, VariableTracker, real
from minidynamo.reasons import Stop, Where
from minidynamo.side_effects.effect import Changed
from minidynamo.sources import Cell, Source
from minidynamo.protocol import attrs
from minidynamo.variables import (
    class_making, constants, exception_fields, exceptions, functions, mappings, opaque, sequences, symbols, tensors)


@dataclasses.dataclass(slots=True)
class Options:
    """What the caller of ``optimize`` and the pipeline decided for this frame."""

    dynamic: bool | None = None
    fullgraph: bool = False
    history: Any = None                       # graph.shapes.ShapeHistory of the code object
    resume_loops: frozenset[int] = frozenset()   # heads of loops this resume function starts inside of
    first: int = 0                            # op where the user's own code begins, after a resume function's entry
    closure: tuple[types.CellType, ...] = ()     # the frame's own free cells, in the order of freevars


class Tracer(FrameServices):
    """One trace of one frame."""

    def __init__(self, program: Program, frame_locals: dict[str, Any], frame_globals: dict[str, Any],
                 options: Options, stop_at: dict[int, Stop]) -> None:
        self.program, self.options, self.stop_at, self.config = program, options, stop_at, config
        self.entry_locals, self.entry_globals = frame_locals, frame_globals
        self.journal = Journal()
        self.env = FakeEnv(capture_scalar_outputs=config.capture_scalar_outputs,
                           capture_dynamic_output_shape_ops=config.capture_dynamic_output_shape_ops)
        self.shapes = Shapes(self.env, dynamic=options.dynamic, history=options.history)
        self.tape = Tape(self.env, self.journal)
        self.tensor_of: dict[Node, VariableTracker] = {}
        self.sym_nodes: dict[int, Node] = {}              # nodes of inexact symbolic numbers
        self.input_tensors: list[VariableTracker] = []
        self.literals: dict[int, VariableTracker] = {}
        self.constant_tuples: dict[int, tuple[Any, ...]] = {}     # by id of their values
        self.namespaces: list[Any] = []                   # that were looked at; each and its owner hold one another
        self.repr_running: list[VariableTracker] = []
        self.guards = GuardSet()
        for guard in (GlobalState(), ModeStack(mode_stack()), DefaultDevice(_device.CURRENT_DEVICE)):
            self.guards.add(guard)
        self.by_id: dict[int, VariableTracker] = {}       # user's objects seen so far
        self.keep: list[Any] = []                         # keeps them alive while ids are in use
        self.type_memo: dict[tuple[type, str], Any] = {}
        self.class_writes: dict[type, dict[str, VariableTracker | None]] = {}
        self.generators: list[Any] = []       # all that were made
        self.made_classes: dict[int, VariableTracker] = {}  # by id of the stand-in
        self.changed: dict[int, Changed] = {}             # user's objects the trace modified, in order
        self.changed_at: dict[int, Where] = {}            # ... and where each was modified first
        # The frame's own cells are out of the guards' sight: the output code itself checks that they
        # are (or are not) the objects these sources lead to, and runs the original code otherwise.
        self.entry_checks: list[tuple[str, Source, bool]] = []
        self.alias_groups: list[list[Source]] = []
        self.on_entry: list[ambient.Setting] = []         # torch state that the graph may switch, as it was
        self.at_exit: list[ambient.Setting] = []          # ... and what is to be set at the exit
        self.nesting = 0                                  # autocast regions entered, less those left
        self.watched: dict[int, VariableTracker] = {}     # arguments of deferred calls
        self.pure: tuple[str, set[int]] | None = None     # op whose body is traced, values it may not change
        self.torch_function_off = False                   # inside ``Tensor.__torch_function__``
        self.assumptions: list[Any] = []                  # branches taken that the graph checks
        self.scopes: dict[int, Scope] = {id(frame_globals): Scope(frame_globals, True)}
        self.handled: VariableTracker | None = None       # sys.exc_info() of the running frame
        self.caller_handles = sys.exc_info()[1] is not None   # an exception, before the frame handles one
        self.frame: Frame | None = None
        self.root: Frame = Frame(program, self.scopes[id(frame_globals)], None)
        self.root_step = -1
        self.steps = -options.first
        forced = config.force_break_every or (0 if options.first else config.force_break_at)
        self.forced = bool(forced)
        self.last_step = forced - 1 if forced else config.max_trace_ops

    def release(self) -> None:
        """The trace has been used: let go of the user's objects now, not when the garbage collector finds our cycles."""
        root, journal, env = self.root, self.journal, self.env
        journal.log.clear()
        root.stack.clear()
        root.local.clear()
        root.cells.clear()
        for node in self.tape.nodes:
            node.real = None
        env.forget_inputs()
        for space in self.namespaces:
            space.release()
        vars(self).clear()

    def abandoned(self) -> Any:
        """A generator left inside a try or with block, which Python closes when it dies (_PyGen_Finalize); or None."""
        return next((generator for generator in self.generators if generator.is_guarded()), None)

    # ---------------------------------------------------------------- values from objects
    def build(self, obj: Any, source: Source) -> VariableTracker:
        """The value of a user's object found at `source`, guarded; one tracker per object."""
        known = self.by_id.get(id(obj))
        if known is not None:
            if isinstance(known.source, Cell):
                self.journal.append(self.entry_checks, (known.source.key, source, True))
            elif known.source is not None and known.source != source:
                self.guard(Aliased(known.source, source))
            return known
        return self.enter(obj, self.builder(obj)(self, obj, source))

    def build_unguarded(self, obj: Any, source: Source) -> VariableTracker:
        """As `build` where the place cannot change (attributes of immutable types)."""
        known = self.by_id.get(id(obj))
        if known is not None:
            return known
        mark = self.guards.mark()
        value = self.builder(obj)(self, obj, source)
        self.guards.rewind(mark)
        return self.enter(obj, value)

    def enter(self, obj: Any, value: VariableTracker) -> VariableTracker:
        """Remember the tracker of an object that has an identity of its own."""
        if value.one_per_object:
            self.keep.append(obj)
            self.journal.put(self.by_id, id(obj), value)
        return value

    def builder(self, obj: Any) -> Callable[..., VariableTracker]:
        """Exact type, then named predicates, then base classes, then the opaque kind."""
        cls = type(obj)
        found = BUILD_EXACT.get(cls)
        if found is None and adopt(cls):
            found = BUILD_EXACT.get(cls)
        if found is not None:
            return found
        if hides_dict(cls):
            return opaque.build_opaque
        for predicate in PREDICATES:
            if predicate.test(obj):
                return predicate.build
        for base in cls.__mro__[1:]:
            found = BUILD_SUBCLASS.get(base)
            if found is not None:
                return found
        return opaque.build_opaque

    def lazy(self, obj: Any, source: Source) -> VariableTracker:
        """A value that is built, and guarded, when it is first looked at."""
        known = self.by_id.get(id(obj))
        if known is not None and known.source == source:
            return known
        return LazyVariable(obj, source)

    def wrap(self, obj: Any) -> VariableTracker:
        """The value of an object made while tracing: no source, no guard."""
        wrapper = WRAP.get(type(obj))
        if wrapper is None:
            known = self.by_id.get(id(obj))
            if known is not None:
                return known
            self.stop(reasons.OPAQUE_VALUE, text="a value made by a folded call", kind=type(obj).__name__)
        return wrapper(self, obj)

    def wrap_tuple(self, items: list[VariableTracker]) -> VariableTracker:
        return sequences.TupleVariable(list(items))

    def wrap_kwargs(self, items: dict[str, VariableTracker]) -> VariableTracker:
        return mappings.DictVariable.from_names(self, items)

    # ---------------------------------------------------------------- facts
    def guard(self, guard: Guard) -> None:
        self.guards.add(guard)

    def guard_identity(self, left: VariableTracker, right: VariableTracker) -> None:
        """Both sources lead to one object."""
        assert left.source is not None and right.source is not None
        self.guard(Aliased(left.source, right.source))

    def guard_distinct(self, left: VariableTracker, right: VariableTracker) -> None:
        """The sources lead to two objects.  Unlike types are guarded as such; literals are guarded by value."""
        assert left.source is not None and right.source is not None
        if left.py_type() is right.py_type() and left.py_type() not in constants.LITERAL_TYPES:
            self.guard(NotAliased((left.source, right.source)))

    def guard_type(self, source: Source, obj: Any) -> None:
        self.guard(TypeIs(source, type(obj)))

    def guard_same(self, source: Source, obj: Any) -> None:
        self.guard(SameObject(source, obj))

    def where(self) -> Where:
        """The user's line that is being traced, with the calls that led there."""
        return where_of(self.frame or self.root)

    def modified(self, value: VariableTracker) -> None:
        """The user's object behind `value` has changed; it is written back at the exit."""
        if id(value) in self.watched:
            self.stop(reasons.DEFERRED_ARGUMENT, kind=value.kind)
        if self.pure is not None and (value.source is not None or id(value) in self.pure[1]):
            self.stop(reasons.HIGHER_ORDER_BODY, op=self.pure[0], why=f"it changes a {value.kind}")
        if value.source is not None and id(value) not in self.changed:
            self.journal.put(self.changed, id(value), value)
            self.changed_at[id(value)] = self.where()

    def settle_aliases(self) -> None:
        """Find, once the trace has ended, which user objects must be distinct: a changed one from others of its type."""
        changed = {v.py_type() for v in self.changed.values() if isinstance(v, VariableTracker)}
        changed.update(v.py_type() for v in self.by_id.values() if id(v.inner) in self.changed)
        groups: dict[type, list[Source]] = {}
        for value in self.by_id.values():
            if value.source is not None and value.replay is not None and value.py_type() in changed:
                groups.setdefault(value.py_type(), []).append(value.source)
        self.alias_groups = [g for g in map(self.guardable, groups.values()) if len(g) > 1]

    def guardable(self, group: list[Source]) -> list[Source]:
        """Without the frame's own cells, which the output code tells apart from the others itself."""
        others = [s for s in group if not isinstance(s, Cell)]
        own = [s.key for s in group if isinstance(s, Cell) and s.key in self.program.freevars]
        self.entry_checks += [(name, source, False) for name in own for source in others]
        return others

    # ---------------------------------------------------------------- control
    def out_of_steps(self) -> NoReturn:
        """The trace has run `last_step` instructions."""
        if self.forced:
            self.stop(reasons.FORCED_BREAK, count=self.last_step)
        self.stop(reasons.TRACE_TOO_LONG, count=self.last_step, what="instructions")

    def stop(self, reason: Any, **fields: Any) -> NoReturn:
        raise Stop(reason, fields, self.where())

    def unsupported(self, value: VariableTracker, action: str) -> NoReturn:
        """A value kind has no meaning for what is asked of it."""
        raise Stop(reasons.OPAQUE_VALUE, {"text": action, "kind": f"{value.kind} ({value.py_type().__name__})"},
                   self.where())

    def raise_(self, exc_type: type, *args: Any) -> NoReturn:
        """Raise an exception of a builtin class in the traced program; `args` are trackers or literals."""
        values = [a if isinstance(a, VariableTracker) else self.wrap(a) for a in args]
        self.raise_value(exceptions.make_exception(self, exc_type, values))

    def make_exception(self, exc_type: type, *args: Any) -> Any:
        return exceptions.make_exception(self, exc_type, [self.wrap(a) for a in args])

    def raise_attribute_error(self, text: str, obj: VariableTracker, name: str) -> NoReturn:
        exc = exceptions.make_exception(self, AttributeError, [self.wrap(text)])
        exc.fields["name"], exc.fields["obj"] = self.wrap(name), obj
        self.raise_value(exc)

    def raise_value(self, exc: VariableTracker) -> NoReturn:
        """_PyErr_SetObject: the exception being handled becomes ``__context__``."""
        if exc.source is not None:
            self.stop(reasons.RAISE_EXISTING, type=exc.py_type().__name__)
        exceptions.chain(self, exc, self.handled)
        raise Raised(exc)

    def raise_real(self, error: BaseException) -> NoReturn:
        """Raise in the traced program what a folded call raised in ours."""
        exc_type = type(error)
        if exc_type.__module__ != "builtins" and not is_plain_error(exc_type) or error.__dict__:
            self.stop(reasons.UNCAUGHT_EXCEPTION, type=exc_type.__name__, message=str(error))
        exc = exceptions.make_exception(self, exc_type, [self.wrap(a) for a in error.args])
        exception_fields.copy_fields(self, exc, error)
        self.raise_value(exc)

    def catching(self, exc_type: type, thunk: Callable[[], VariableTracker]) -> VariableTracker | None:
        """The thunk's value, or None when the traced program raises `exc_type` in it."""
        handled, frame = self.handled, self.frame
        try:
            return thunk()
        except Raised as raised:
            if not issubclass(raised.exc.py_type(), exc_type):
                raise
            self.handled, self.frame = handled, frame
            return None

    # ---------------------------------------------------------------- calls
    def call(self, fn: VariableTracker, args: list[VariableTracker],
             kwargs: dict[str, VariableTracker] | None = None) -> VariableTracker:
        return real(self, fn.tp_call(self, [real(self, a) for a in args],
                                     {k: real(self, v) for k, v in kwargs.items()} if kwargs else {}))

    def call_python(self, fn: Any, *args: VariableTracker) -> VariableTracker:
        """Inline one of our own Python functions."""
        return self.call_polyfill(fn, list(args), {})

    def call_polyfill(self, fn: types.FunctionType, args: list, kwargs: dict) -> VariableTracker:
        return self.inline(functions.own_function(fn), args, kwargs)

    def inline(self, fn: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> VariableTracker:
        """Trace a call of a Python function (`fn` is a FunctionVariable) as part of this frame."""
        return loop.inline(self, fn, args, kwargs)

    def scope_of(self, mapping: dict[str, Any]) -> Scope:
        scope = self.scopes.get(id(mapping))
        if scope is None:
            scope = self.scopes[id(mapping)] = Scope(mapping, False)
        return scope

    def program_of(self, code: types.CodeType) -> Program:
        return decode(code)

    def fold(self, fn: Any, args: list[VariableTracker],
             kwargs: dict[str, VariableTracker] | None = None) -> VariableTracker:
        """Run a pure C function on literals and lists of such; raises NotConstant when an argument is neither."""
        try:
            values = [a.as_constant() for a in args]
        except NotConstant:
            values = [self.listed(a) for a in args]
        names = {k: v.as_constant() for k, v in kwargs.items()} if kwargs else {}
        try:
            result = fn(*values, **names)
        except Exception as error:
            self.raise_real(error)
        return self.wrap(result)

    def listed(self, value: VariableTracker) -> Any:
        if isinstance(value, sequences.ListVariable) and value.py_type() is list:
            return [self.listed(real(self, item)) for item in value.items]
        return value.as_constant()

    # ---------------------------------------------------------------- the graph
    def emit(self, target: Any, args: Any, kwargs: Any, *, method: bool = False) -> VariableTracker:
        """Put a torch call on the tape and return its result; errors of the op become breaks."""
        return self.from_node(self.emit_node(target, args, kwargs, method=method))

    def emit_node(self, target: Any, args: Any, kwargs: Any, *, method: bool = False) -> Node:
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        if may_overlap(target, args, kwargs):
            self.stop(reasons.UNSUPPORTED_ARGUMENTS, call=name, why="it writes into memory that another argument reads")
        try:
            return self.tape.call(target, args, kwargs, LazyWhere(self), method=method)
        except OpError as error:
            self.op_error(name, error.original)
        except DataDependent:
            self.stop(reasons.DATA_DEPENDENT_VALUE, op=name)
        except (UnsupportedByFake, CannotFake, UnknownSymbol) as error:
            # Operators that take no symbols get the numbers, as facts of this trace.
            known, named = symbols.settled(args), symbols.settled(kwargs)
            if known is not args or named is not kwargs:
                return self.emit_node(target, known, named, method=method)
            self.stop(reasons.FAKE_UNSUPPORTED, op=name, error=str(error))

    def place(self) -> LazyWhere:
        """Where a graph node comes from, to be formatted when it is shown."""
        return LazyWhere(self)

    def op_error(self, name: str, error: BaseException) -> NoReturn:
        """Eager would raise: Python runs the op itself, so that type, text and traceback are eager's."""
        self.stop(reasons.OP_RAISED, op=name, error=f"{type(error).__name__}: {error}")

    def from_node(self, node: Node) -> VariableTracker:
        return tensors.from_node(self, node)

    # ---------------------------------------------------------------- torch's global state
    @contextlib.contextmanager
    def ambient(self) -> Iterator[None]:
        """Torch state is switched for real while tracing, so that fakes see it, and put back here."""
        rng = torch.get_rng_state()
        self.on_entry = ambient.snapshot()
        try:
            with warnings_once():
                yield
            self.at_exit = ambient.changes(self.on_entry)
            if self.nesting:
                self.at_exit.append((ambient.nesting_by, (self.nesting,)))
        finally:
            for made in self.made_classes.values():
                class_making.forget(made.cls)
            ambient.nesting_by(-self.nesting)
            if ambient.changes(self.on_entry):
                ambient.restore(self.on_entry)
            if any(node.target is torch.set_autocast_enabled for node in self.tape.nodes):
                torch.clear_autocast_cache()        # of casts of fakes
            if not torch.equal(rng, torch.get_rng_state()):
                torch.set_rng_state(rng)


def is_plain_error(cls: type) -> bool:
    """Whether instances are made of their arguments alone: of an exception class of a C module (``struct.error``)."""
    own = [klass for klass in cls.__mro__ if klass.__module__ != "builtins"]
    return not any(name in vars(klass) for klass in own for name in ("__new__", "__init__", "__setattr__"))


def hides_dict(cls: type) -> bool:
    """Whether the class puts something of its own in the place of ``__dict__``: then nothing of an instance can be read

    without running that.
    """
    for klass in cls.__mro__:
        raw = attrs.namespace(klass).get("__dict__")
        if raw is not None:
            return not isinstance(raw, types.GetSetDescriptorType)
    return False


class LazyWhere:
    """The place of a graph node, as (program, op) pairs; text only when asked."""

    __slots__ = ("frames",)

    def __init__(self, tx: Tracer) -> None:
        frames = []
        frame = tx.frame
        while frame is not None:
            frames.append((frame.program, frame.op))
            frame = frame.caller
        self.frames = frames

    def where(self) -> Where:
        at: Where | None = None
        for program, op in reversed(self.frames):
            at = Where(program.filename, program.name, op.pos if op else reasons.NOWHERE, at)
        assert at is not None
        return at

    def stack_trace(self) -> str:
        return self.where().stack_trace()


def where_of(frame: Frame) -> Where:
    parent = where_of(frame.caller) if frame.caller is not None else None
    position = frame.op.pos if frame.op is not None else reasons.NOWHERE
    return Where(frame.program.filename, frame.program.name, position, parent)

