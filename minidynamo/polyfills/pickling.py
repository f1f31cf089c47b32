"""pickle's C functions as Python to inline: the pickler and unpickler that the standard library has in Python.

What goes wrong is told in other words by the C code, so whoever calls these leaves all errors to it.
"""
from __future__ import annotations

import _compat_pickle
import pickle
import struct
from typing import Any

from minidynamo.code import facts

NESTED_BY_NAME = facts.NESTED_CLASSES_BY_NAME       # how C takes nested classes apart in old protocols
private: Any = pickle                # its names with an underscore


class Sink:
    """A file in memory to write to."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def write(self, data: Any) -> None:
        self.parts.append(data)
        self.size += len(data)

    def value(self) -> bytes:
        return b"".join(self.parts)


class Source:
    """A file in memory to read from."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self, count: int) -> bytes:
        start = self.at
        self.at = min(start + count, len(self.data))
        return self.data[start:self.at]

    def readline(self) -> bytes:
        end = self.data.find(b"\n", self.at) + 1
        return self.read((end or len(self.data)) - self.at)


class Framer:
    """private._Framer over a Sink."""

    _FRAME_SIZE_TARGET = private._Framer._FRAME_SIZE_TARGET

    def __init__(self, file: Sink) -> None:
        self.file = file
        self.frame: Any = None

    def start_framing(self) -> None:
        self.frame = Sink()

    def end_framing(self) -> None:
        if self.frame is not None and self.frame.size:
            self.commit_frame(force=True)
            self.frame = None

    def commit_frame(self, force: bool = False) -> None:
        frame = self.frame
        if frame is not None and (force or frame.size >= self._FRAME_SIZE_TARGET):
            if frame.size >= 4:
                self.file.write(pickle.FRAME + struct.pack("<Q", frame.size))
            self.file.write(frame.value())
            self.frame = Sink()

    def write(self, data: Any) -> None:
        (self.file if self.frame is None else self.frame).write(data)

    def write_large_bytes(self, header: bytes, payload: bytes) -> None:
        if self.frame is not None:
            self.commit_frame(force=True)
        self.file.write(header)
        self.file.write(payload)


def look_up(module: str, name: str) -> tuple[Any, Any]:
    """The object of that name, and what it was found in."""
    parent: Any = None
    found = __import__(module, None, None, ("*",), 0)
    for part in name.split("."):
        if part == "<locals>":
            raise AttributeError(name)
        parent, found = found, getattr(found, part)
    return found, parent


class Pickler(private._Pickler):
    """private._Pickler with our file and our own way to modules."""

    def __init__(self, protocol: Any, fix_imports: Any, buffer_callback: Any) -> None:
        self.sink = Sink()
        super().__init__(self.sink, protocol, fix_imports=fix_imports, buffer_callback=buffer_callback)
        self.framer = Framer(self.sink)
        self.write = self.framer.write
        self._write_large_bytes = self.framer.write_large_bytes

    def save_global(self, obj: Any, name: Any = None) -> None:
        if name is None:
            name = getattr(obj, "__qualname__", None)
        if name is None:
            name = obj.__name__
        module = "builtins" if obj is ... or obj is NotImplemented else obj.__module__
        if not isinstance(module, str):
            raise pickle.PicklingError(module)
        found, parent = look_up(module, name)
        if found is not obj:
            raise pickle.PicklingError(name)
        if self.proto >= 2 and (module, name) in private._extension_registry:
            raise pickle.PicklingError("extension")
        nested = "." in name
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        elif nested and not NESTED_BY_NAME:
            self.save_reduce(getattr, (parent, name.rpartition(".")[2]))
        elif nested:
            raise pickle.PicklingError("by its own opcodes")
        elif self.proto == 3:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        else:
            if self.fix_imports:
                if (module, name) in _compat_pickle.REVERSE_NAME_MAPPING:
                    module, name = _compat_pickle.REVERSE_NAME_MAPPING[(module, name)]
                elif module in _compat_pickle.REVERSE_IMPORT_MAPPING:
                    module = _compat_pickle.REVERSE_IMPORT_MAPPING[module]
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode("ascii"))
        self.memoize(obj)

    def save_str(self, obj: str) -> None:
        if self.proto:
            private._Pickler.save_str(self, obj)
            return
        text = obj
        for char, escaped in (("\\", "\\u005c"), ("\0", "\\u0000"), ("\n", "\\u000a"), ("\r", "\\u000d"), ("\x1a", "\\u001a")):
            text = text.replace(char, escaped)
        self.write(pickle.UNICODE + text.encode("raw-unicode-escape") + b"\n")
        self.memoize(obj)                               # the Python pickler of 3.11 remembers the escaped text

    def save_type(self, obj: Any) -> None:
        for value in (None, NotImplemented, ...):
            if obj is type(value):
                self.save_reduce(type, (value,), obj=obj)
                return
        self.save_global(obj)


Pickler.dispatch = {**private._Pickler.dispatch, type: Pickler.save_type, str: Pickler.save_str,
                    type(look_up): Pickler.save_global}


class Unpickler(private._Unpickler):
    """private._Unpickler that reads through frames and has our own way to modules."""

    dispatch = dict(private._Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3 and self.fix_imports:
            if (module, name) in _compat_pickle.NAME_MAPPING:
                module, name = _compat_pickle.NAME_MAPPING[(module, name)]
            elif module in _compat_pickle.IMPORT_MAPPING:
                module = _compat_pickle.IMPORT_MAPPING[module]
        return look_up(module, name)[0]


def load_frame(self: Unpickler) -> None:
    """A frame only says how much to read at once."""
    self.read(8)


Unpickler.dispatch[pickle.FRAME[0]] = load_frame


def dumps(obj: Any, protocol: Any = None, *, fix_imports: Any = True, buffer_callback: Any = None) -> bytes:
    """_pickle_dumps_impl."""
    pickler = Pickler(protocol, fix_imports, buffer_callback)
    pickler.dump(obj)
    return pickler.sink.value()


def loads(data: Any, /, *, fix_imports: Any = True, encoding: Any = "ASCII", errors: Any = "strict", buffers: Any = ()) -> Any:
    """_pickle_loads_impl."""
    return Unpickler(Source(bytes(data)), fix_imports=fix_imports, buffers=buffers, encoding=encoding, errors=errors).load()
