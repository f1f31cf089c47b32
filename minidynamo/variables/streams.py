"""io.StringIO and io.BytesIO made while tracing, and print() into them (Modules/_io/stringio.c, builtin_print)."""
from __future__ import annotations

import io
import sys
from typing import Any

from minidynamo import reasons
from minidynamo.model.tables import meaning
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import compare, text
from minidynamo.variables.bases import HashedByIdentity, TypeAttributesOnly
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.sequences import ListVariable, inner

ATTRIBUTES = ("closed", "line_buffering", "encoding", "errors")
METHODS = ("write", "read", "readline", "readlines", "getvalue", "seek", "tell", "truncate", "close", "flush", "isatty",
           "readable", "writable", "seekable")


class StreamVariable(TypeAttributesOnly, HashedByIdentity):
    """A stream in memory; ``state`` is what pickling it would keep, None once it is closed."""

    __slots__ = ("cls", "state")
    kind = "stream in memory"

    def __init__(self, cls: type, state: Any) -> None:
        self.cls, self.state, self.source = cls, state, None

    def py_type(self) -> type:
        return self.cls

    def rebuild(self, out: Any) -> None:
        out.begin_call_of(stream_of)
        out.load_object_unchecked(self.cls)
        for part in self.state or (None,):
            out.load_const(part)
        out.call(1 + len(self.state or (None,)))

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ATTRIBUTES and hasattr(self.cls, name):
            return self.run(tx, lambda stream: getattr(stream, name))
        return super().tp_getattro(tx, name)

    def tp_iter(self, tx: Any) -> VariableTracker:
        self.run(tx, iter)
        return self

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        line = self.run(tx, lambda stream: stream.readline())
        return line if compare.truth(tx, line) else None

    def run(self, tx: Any, ask: Any) -> VariableTracker:
        """Ask a real stream in this state, and keep the state it is in then."""
        stream, error = stream_of(self.cls, *(self.state or (None,))), None
        try:
            result = ask(stream)
        except Exception as raised:
            error = raised
        state = None if stream.closed else stream.__getstate__()[:-1]
        if state != self.state:
            tx.journal.set(self, "state", state)
            tx.modified(self)
        if error is not None:
            tx.raise_real(error)
        if isinstance(result, list):
            return ListVariable([tx.wrap(item) for item in result])
        return NONE if result is stream or result is NotImplemented else tx.wrap(result)     # type: ignore[no-any-return]


def stream_of(cls: type, *state: Any) -> Any:
    """A stream in this state."""
    stream: Any = cls()
    if state == (None,):
        stream.close()
    else:
        stream.__setstate__((*state, None))
    return stream


def make_stream(cls: type) -> Any:
    def make(tx, *args, **kwargs):
        values = [inner(a).as_constant() for a in args]
        names = {name: inner(a).as_constant() for name, a in kwargs.items()}
        try:
            state = cls(*values, **names).__getstate__()[:-1]
        except Exception as error:
            tx.raise_real(error)
        if cls is io.StringIO and state[1] not in ("\n", "\r", "\r\n"):       # whose decoder remembers what it has seen
            tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call="io.StringIO", why="it translates line ends")
        return StreamVariable(cls, state)
    return make


def method(name: str) -> Any:
    """A method by its own doing; None for a stream of another kind, which is left to whoever knows it."""
    def call(tx, self, *args):
        if not isinstance(self, StreamVariable):
            return None
        values = [inner(a).as_constant() for a in args]
        return self.run(tx, lambda stream: getattr(stream, name)(*values))
    return call


def enter(tx, self, /):
    if not isinstance(self, StreamVariable):
        return None
    self.run(tx, lambda stream: stream.__enter__())
    return self


def leave(tx, self, *error):
    return self.run(tx, lambda stream: stream.close()) if isinstance(self, StreamVariable) else None


def write_lines(tx, self, lines, /):
    if not isinstance(self, StreamVariable):
        return None
    for line in tx.collect(lines):
        tx.call(self.tp_getattro(tx, "write"), [real(tx, line)])
    return NONE


def declare() -> None:
    known: set[Any] = set()
    for cls in (io.StringIO, io.BytesIO):
        meaning(cls)(make_stream(cls))
        for name, call in (*((n, method(n)) for n in METHODS), ("__enter__", enter), ("__exit__", leave),
                           ("writelines", write_lines)):
            raw = next((vars(k)[name] for k in cls.__mro__ if name in vars(k)), None)
            if raw is not None and raw not in known:
                known.add(raw)
                meaning(raw)(call)


declare()


# ---------------------------------------------------------------- print
def stream_to_print(tx: Any, file: VariableTracker | None) -> VariableTracker | None:
    """``file``, or what the trace has put in the place of ``sys.stdout``; None for what only Python can write to."""
    if file is None or file.py_type() is type(None):
        file = tx.scope_of(vars(sys)).written.get("stdout")
    if file is None:
        return None
    file = real(tx, file)
    return file if isinstance(file, (StreamVariable, ObjectVariable)) or file.py_type() is type(None) else None


@meaning(print)
def call_print(tx, *values, sep=None, end=None, file=None, flush=None):
    """builtin_print_impl."""
    stream = stream_to_print(tx, file)
    if stream is None:
        tx.stop(reasons.PRINT_NOW, call=tx.where().text())
    if stream.py_type() is type(None):
        return NONE
    for name, given in (("sep", sep), ("end", end)):
        if given is not None and given.py_type() is not type(None) and not issubclass(given.py_type(), str):
            tx.raise_(TypeError, f"{name} must be None or a string, not {given.py_type().__name__}")
    between, last = [ConstantVariable(default) if given is None or given.py_type() is type(None) else given
                     for given, default in ((sep, " "), (end, "\n"))]
    pieces = [piece for value in values for piece in (between, value)][1:]
    for piece in (*pieces, last):
        write = stream.tp_getattro(tx, "write")
        tx.call(write, [text.to_str(tx, piece)])
    if flush is not None and compare.truth(tx, flush):
        tx.call(stream.tp_getattro(tx, "flush"), [])
    return NONE
