"""Generators: a suspended symbolic frame with send, throw and close (Objects/genobject.c)."""
from __future__ import annotations

import builtins
import types
from typing import Any, NoReturn

from minidynamo import reasons
from minidynamo.code import facts
from minidynamo.model.tables import Methods, builds
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import CannotRebuild, VariableTracker, real
from minidynamo.protocol.attrs import attribute_error, getattr_or_none
from minidynamo.variables import exceptions
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import ConstantVariable

CREATED, SUSPENDED, RUNNING, CLOSED = "created", "suspended", "running", "closed"


class GeneratorVariable(HashedByIdentity):
    """A generator made while tracing; ``start`` is what would make it again before its first step."""

    __slots__ = ("frame", "state", "start", "name", "lost_at", "named", "born", "in_root")
    kind = "generator"

    def __init__(self, frame: Any, start: Any, name: str, made_at: int) -> None:
        self.frame, self.start, self.name, self.lost_at, self.source = frame, start, name, made_at, None
        self.state = CREATED
        self.in_root = False                               # made by the frame being traced
        self.born: dict[str, VariableTracker] = {}         # the function's names when it was called
        self.named: dict[str, VariableTracker] = {}        # names given to it

    def py_type(self) -> type:
        return types.GeneratorType

    def tp_iter(self, tx: Any) -> VariableTracker:
        return self

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        return self.resume(tx, ConstantVariable(None))

    def children(self) -> list[VariableTracker]:
        if self.state == CLOSED:
            return list((self.born | self.named).values())
        if self.named:
            raise CannotRebuild(self, "a generator that was given a name")
        if self.state == CREATED:
            fn, args, kwargs = self.start
            return [fn, *args, *kwargs.values()]
        raise CannotRebuild(self, "a generator that has begun to run")

    def rebuild(self, out: Any) -> None:
        if self.state == CLOSED:
            out.call_function(finished, *self.children())
            return
        fn, args, kwargs = self.start
        out.begin_call()
        out.load(fn)
        out.callable_done()
        for value in (*args, *kwargs.values()):
            out.load(value)
        out.call(len(args) + len(kwargs), tuple(kwargs))

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in self.named:
            return self.named[name]
        if name in self.born:
            return self.born[name]
        if name == "gi_running":
            return tx.wrap(self.state == RUNNING)
        if name == "gi_suspended":
            return tx.wrap(self.state == SUSPENDED)
        if name == "gi_yieldfrom":
            receiver = self.delegate()
            return tx.wrap(None) if receiver is None else real(tx, receiver)
        if name == "gi_frame":
            return tx.wrap(None) if self.state == CLOSED else tx.frame_value(self.frame)
        if name == "gi_code":
            return tx.wrap(self.start[0].code)
        if not hasattr(types.GeneratorType, name):
            attribute_error(tx, self, name)
        if name == "__class__":
            return tx.wrap(types.GeneratorType)
        return tx.bound_c_method(self, getattr(types.GeneratorType, name))

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        if name not in ("__name__", "__qualname__"):
            super().tp_setattro(tx, name, value)
            return
        if value is None or not issubclass(value.py_type(), str):
            tx.raise_(TypeError, f"{name} must be set to a string object")
        tx.journal.put(self.named, name, value)

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
        outer = tx.handled
        if frame.handled is not None:                  # it was left inside an except clause: that goes on over ours
            tx.handled = frame.handled
            tx.rebase_handled(frame.stack, outer)
        if self.state == SUSPENDED and sent is not None:
            frame.stack.append(sent)
        first, self.state = self.state, RUNNING
        try:
            outcome = tx.run_generator(frame, error, first == CREATED)
        except Raised as raised:
            self.state = CLOSED
            frame.stack.clear()
            if issubclass(raised.exc.py_type(), StopIteration):        # gen_send_ex2: it must not look like an end
                raise Raised(tx.generator_raised_stop(raised.exc)) from None
            raise
        finally:
            inside, tx.handled, frame.caller = tx.handled, outer, None
        frame.handled = inside if tx.is_handling(frame.stack) else None
        if outcome == "yielded":
            self.state = SUSPENDED
            return real(tx, frame.stack.pop())
        self.state = CLOSED
        return None

    # ---- throw and close
    def delegate(self) -> VariableTracker | None:
        """_PyGen_yf: the iterator that a ``yield from`` stands at."""
        if self.state != SUSPENDED or self.frame.op.name != "YIELD" or self.frame.op.arg != 2:
            return None
        return self.frame.stack[-1]  # type: ignore[no-any-return]

    def throw(self, tx: Any, exc: VariableTracker) -> VariableTracker | None:
        """_gen_throw: to the iterator of a ``yield from`` first."""
        receiver = self.delegate()
        if receiver is None:
            return self.resume(tx, None, Raised(exc))
        receiver = real(tx, receiver)
        self.snapshot(tx)
        self.state, self.frame.caller = RUNNING, tx.frame
        outer, tx.frame = tx.frame, self.frame             # what goes on inside sees this frame
        try:
            if issubclass(exc.py_type(), GeneratorExit):
                close_iterator(tx, receiver)
                yielded, error = None, Raised(exc)
            else:
                yielded, error = self.throw_into(tx, receiver, exc)
        except Raised as raised:
            yielded, error = None, raised
        finally:
            tx.frame, self.frame.caller = outer, None
        self.state = SUSPENDED
        if yielded is not None:
            return yielded
        if error is not None and issubclass(error.exc.py_type(), StopIteration) and error.exc is not exc:
            self.frame.pc = self.frame.ops[self.frame.pc - 2].target       # SEND ends with the value
            return self.resume(tx, exceptions.stop_value(tx, error.exc))
        return self.resume(tx, None, error)

    def throw_into(self, tx: Any, receiver: VariableTracker, exc: VariableTracker) -> tuple[Any, Any]:
        if isinstance(receiver, GeneratorVariable):
            yielded = receiver.throw(tx, exc)
            if yielded is None:
                tx.raise_stop_iteration(receiver)
            return yielded, None
        method = getattr_or_none(tx, receiver, "throw")
        if method is None:
            return None, Raised(exc)
        return tx.call(method, [exc]), None

    def close(self, tx: Any) -> VariableTracker | None:
        """gen_close; the value that the generator returns when told."""
        if self.state == CREATED:
            tx.journal.set(self, "state", CLOSED)
        if self.state == CLOSED:
            return None
        exc = exceptions.make_exception(tx, GeneratorExit, [])
        try:
            result = self.throw(tx, exc)
        except Raised as raised:
            if issubclass(raised.exc.py_type(), (GeneratorExit, StopIteration)):
                return None
            raise
        if result is not None:
            tx.raise_(RuntimeError, "generator ignored GeneratorExit")
        return self.frame.result

    def is_guarded(self) -> bool:
        """Whether closing it runs code of the user's: it stands inside a with or finally, or an except that takes GeneratorExit.

        Handlers the compiler adds do not begin with PUSH_EXC_INFO.
        """
        if self.state != SUSPENDED:
            return False
        ops, handler = self.frame.ops, self.frame.op.handler
        while handler is not None:
            first = ops[handler.target]
            if first.name == "PUSH_EXC_INFO":
                again = passed_on(self.frame, handler.target)
                if again is None:
                    return True
                first = ops[again] if ops[again].handler is None else ops[ops[again].handler.target]
            handler = first.handler
        return False

    def snapshot(self, tx: Any) -> None:
        """Everything a step may change, for the journal."""
        frame = self.frame
        tx.journal.did(self.restore, self.state, frame.pc, frame.op, frame.stack[:], dict(frame.local), frame.handled,
                       frame.result)

    def restore(self, state: str, pc: int, op: Any, stack: list, local: dict, handled: Any, result: Any) -> None:
        frame = self.frame
        self.state, frame.pc, frame.op, frame.stack, frame.local = state, pc, op, stack, local
        frame.handled, frame.result = handled, result


def passed_on(frame: Any, at: int) -> int | None:
    """Index of the RERAISE by which the except clauses at `at` let GeneratorExit through; None where one may take it.

    Only clauses that name builtin exceptions are looked at.
    """
    ops = frame.ops
    at += 1
    while ops[at].name != "RERAISE":
        names = []
        while ops[at].name == "LOAD_GLOBAL":
            names.append(ops[at].arg)
            at += 1
        at += ops[at].name == "BUILD_TUPLE"
        check, jump = ops[at], ops[at + 1]
        kinds = [None if n in frame.scope.mapping else vars(builtins).get(n) for n in names]
        if check.name != "CHECK_EXC_MATCH" or jump.name != "JUMP_IF" or jump.arg != "false" or not kinds:
            return None
        if not all(isinstance(kind, type) and not issubclass(GeneratorExit, kind) for kind in kinds):
            return None
        at = jump.target
    return at


def finished(name: str, qualname: str) -> Any:
    """A generator that has ended."""
    generator: Any = (x for x in ())
    for _ in generator:
        pass
    generator.__name__, generator.__qualname__ = name, qualname
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
        result = self.throw(tx, exc)
        if result is None:
            tx.raise_stop_iteration(self)
        return result

    def close(tx, self, /):
        result = self.close(tx)
        return tx.wrap(None) if result is None or not facts.CLOSE_RETURNS else real(tx, result)


def close_iterator(tx: Any, iterator: VariableTracker) -> None:
    """gen_close_iter: a generator is closed, of others ``close`` is called where there is one."""
    if isinstance(iterator, GeneratorVariable):
        iterator.close(tx)
        return
    method = getattr_or_none(tx, iterator, "close")
    if method is not None:
        tx.call(method, [])


def thrown(tx: Any, kind: VariableTracker, value: VariableTracker | None) -> VariableTracker:
    """_gen_throw's arguments as an exception."""
    if isinstance(kind, ClassVariable) and issubclass(kind.cls, BaseException):
        if isinstance(value, exceptions.ExceptionVariable) and issubclass(value.py_type(), kind.cls):
            return value
        given = [] if value is None or exceptions.is_none(value) else list(value.items) if value.py_type() is tuple else [value]
        try:
            made = tx.call(kind, given)
            if not issubclass(made.py_type(), BaseException):
                tx.raise_(TypeError, f"calling {kind.cls!r} should have returned an instance of BaseException, "
                                     f"not {made.py_type()!r}")
        except Raised as raised:                  # PyErr_NormalizeException: what went wrong is thrown instead
            return raised.exc
        return made
    if isinstance(kind, exceptions.ExceptionVariable):
        return kind
    tx.raise_(TypeError, "exceptions must be classes or instances deriving from BaseException, "
                         f"not {kind.py_type().__name__}")


class InputGenerator(HashedByIdentity):
    """A generator that came from outside: it runs in Python only."""

    __slots__ = ("obj",)
    kind = "generator of the caller's"

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

    def throw(self, tx: Any, exc: VariableTracker) -> NoReturn:
        self.resume(tx, None)

    def close(self, tx: Any) -> NoReturn:
        self.resume(tx, None)


@builds(types.GeneratorType)
def build_generator(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard_type(source, obj)
    return InputGenerator(obj, source)
