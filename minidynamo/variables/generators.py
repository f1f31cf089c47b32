"""Generators: a suspended symbolic frame with send, throw and close (Objects/genobject.c)."""
from __future__ import annotations

import types
from typing import Any, NoReturn

from minidynamo import reasons
from minidynamo.model.tables import Methods, builds
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol.attrs import attribute_error
from minidynamo.variables import exceptions
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.functions import HashedByIdentity

CREATED, SUSPENDED, RUNNING, CLOSED = "created", "suspended", "running", "closed"


class GeneratorVariable(HashedByIdentity):
    """A generator made while tracing; ``start`` is what would make it again before its first step."""

    __slots__ = ("frame", "state", "start", "name", "lost_at")
    kind = "generator"

    def __init__(self, frame: Any, start: Any, name: str, made_at: int) -> None:
        self.frame, self.start, self.name, self.lost_at, self.source = frame, start, name, made_at, None
        self.state = CREATED

    def py_type(self) -> type:
        return types.GeneratorType

    def tp_iter(self, tx: Any) -> VariableTracker:
        return self

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        return self.resume(tx, ConstantVariable(None))

    def children(self) -> list[VariableTracker]:
        if self.state == CREATED:
            fn, args, kwargs = self.start
            return [fn, *args, *kwargs.values()]
        if self.state == CLOSED:
            return []
        raise CannotRebuild(self, "a generator that has begun to run")

    def rebuild(self, out: Any) -> None:
        if self.state == CLOSED:
            out.begin_call()
            out.load_object_unchecked(finished)
            out.callable_done()
            out.call(0)
            return
        fn, args, kwargs = self.start
        out.begin_call()
        out.load(fn)
        out.callable_done()
        for value in (*args, *kwargs.values()):
            out.load(value)
        out.call(len(args) + len(kwargs), tuple(kwargs))

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__"):
            return tx.wrap(getattr(self.frame.program, name.strip("_")))
        if name == "gi_running":
            return tx.wrap(self.state == RUNNING)
        if not hasattr(types.GeneratorType, name):
            attribute_error(tx, self, name)
        if name == "__class__":
            return tx.wrap(types.GeneratorType)
        return tx.bound_c_method(self, getattr(types.GeneratorType, name))

    # ---- running
    def resume(self, tx: Any, sent: VariableTracker | None, error: Raised | None = None) -> VariableTracker | None:
        """gen_send_ex: the yielded value, or None when it returned (``frame.result`` then holds the value)."""
        frame = self.frame
        if self.state == RUNNING:
            tx.raise_(ValueError, "generator already executing")
        if self.state == CLOSED:
            frame.result = None
            if error is not None:
                raise error
            return None
        if self.state == CREATED and sent is not None and not exceptions.is_none(sent):
            tx.raise_(TypeError, "can't send non-None value to a just-started generator")
        self.snapshot(tx)
        outer, tx.handled = tx.handled, frame.handled if frame.handled is not None else tx.handled
        own_context = frame.handled
        if self.state == SUSPENDED and sent is not None:
            frame.stack.append(sent)
        first, self.state = self.state, RUNNING
        try:
            outcome = tx.run_generator(frame, error, first == CREATED)
        except Raised:
            self.state = CLOSED
            frame.stack.clear()
            raise
        finally:
            inside, tx.handled = tx.handled, outer
        frame.handled = inside if inside is not outer or own_context is not None else None
        if outcome == "yielded":
            self.state = SUSPENDED
            return real(tx, frame.stack.pop())
        self.state = CLOSED
        return None

    def snapshot(self, tx: Any) -> None:
        """Everything a step may change, for the journal."""
        frame = self.frame
        tx.journal.did(self.restore, self.state, frame.pc, frame.op, frame.stack[:], dict(frame.local), frame.handled,
                       frame.result)

    def restore(self, state: str, pc: int, op: Any, stack: list, local: dict, handled: Any, result: Any) -> None:
        frame = self.frame
        self.state, frame.pc, frame.op, frame.stack, frame.local = state, pc, op, stack, local
        frame.handled, frame.result = handled, result


def finished() -> Any:
    """A generator that has ended."""
    generator = (x for x in ())
    for _ in generator:
        pass
    return generator


class GeneratorMethods(Methods, of=types.GeneratorType):
    """send, throw, close."""

    def send(tx, self, value, /):
        result = self.resume(tx, value)
        if result is None:
            tx.raise_stop_iteration(self)
        return result

    def throw(tx, self, kind, value=None, traceback=None, /):
        exc = thrown(tx, kind, value)
        if exc.source is not None:
            tx.stop(reasons.RAISE_EXISTING, type=exc.py_type().__name__)
        result = self.resume(tx, None, Raised(exc))
        if result is None:
            tx.raise_stop_iteration(self)
        return result

    def close(tx, self, /):
        if self.state == CREATED:
            tx.journal.set(self, "state", CLOSED)
            return tx.wrap(None)
        if self.state == CLOSED:
            return tx.wrap(None)
        exc = exceptions.make_exception(tx, GeneratorExit, [])
        try:
            result = self.resume(tx, None, Raised(exc))
        except Raised as raised:
            if issubclass(raised.exc.py_type(), (GeneratorExit, StopIteration)):
                return tx.wrap(None)
            raise
        if result is not None:
            tx.raise_(RuntimeError, "generator ignored GeneratorExit")
        return tx.wrap(None)


def thrown(tx: Any, kind: VariableTracker, value: VariableTracker | None) -> VariableTracker:
    """_gen_throw's arguments as an exception."""
    if isinstance(kind, ClassVariable) and issubclass(kind.cls, BaseException):
        if value is None or exceptions.is_none(value):
            return exceptions.instantiate(tx, kind)
        if isinstance(value, exceptions.ExceptionVariable):
            return value
        return tx.call(kind, list(value.items) if value.py_type() is tuple else [value])
    if isinstance(kind, exceptions.ExceptionVariable):
        return kind
    tx.raise_(TypeError, "exceptions must be classes or instances deriving from BaseException, "
                         f"not {kind.py_type().__name__}")


class InputGenerator(HashedByIdentity):
    """A generator that came from outside: it runs in Python only."""

    __slots__ = ("obj",)
    kind = "generator of the caller's"
    state = SUSPENDED

    def __init__(self, obj: Any, source: Any) -> None:
        self.obj, self.source = obj, source

    def py_type(self) -> type:
        return types.GeneratorType

    def identity(self) -> object:
        return self.obj

    def tp_iter(self, tx: Any) -> VariableTracker:
        return self

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        return self.resume(tx, None)

    def resume(self, tx: Any, sent: VariableTracker | None, error: Raised | None = None) -> NoReturn:
        tx.stop(reasons.GENERATOR_ESCAPES, name=self.obj.__name__, why="it was made outside")


@builds(types.GeneratorType)
def build_generator(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard_type(source, obj)
    return InputGenerator(obj, source)
