"""The standard library's C functions: those that are pure, in one table, and those that only pass on what they are given."""
from __future__ import annotations

import binascii
import json.encoder
import math
import os
import posix
import typing
import zlib
from typing import Any

from minidynamo.base.text import tp_name
from minidynamo.model.tables import fold, meaning
from minidynamo.variables.sequences import inner


def named(module: Any, *names: str) -> list[Any]:
    """The functions of these names that this version of Python has."""
    return [vars(module)[name] for name in names if name in vars(module)]


fold(binascii.hexlify, binascii.unhexlify, binascii.b2a_hex, binascii.a2b_hex, binascii.b2a_base64, binascii.a2b_base64,
     binascii.crc32, binascii.crc_hqx, zlib.crc32, zlib.adler32,
     *named(json.encoder, "c_encode_basestring_ascii", "c_encode_basestring"),
     *named(math, "sumprod"), *named(posix, "_path_normpath", "_path_splitroot", "_path_splitroot_ex"))


@meaning(os.fspath)
def call_fspath(tx, path):
    """PyOS_FSPath."""
    if issubclass(path.py_type(), (str, bytes)):
        return path
    method = tx.special_method(path, "__fspath__")
    if method is None:
        tx.raise_(TypeError, f"expected str, bytes or os.PathLike object, not {tp_name(path.py_type())}")
    result = tx.call(method, [])
    if not issubclass(result.py_type(), (str, bytes)):
        tx.raise_(TypeError, f"expected {tp_name(path.py_type())}.__fspath__() to return str or bytes, "
                             f"not {tp_name(result.py_type())}")
    return result


@meaning(vars(typing.NewType)["__call__"])
def call_new_type(tx, x, /):
    """_typing._idfunc."""
    return x


def format_of_builtin(tx, self, spec="", /):
    """``str.__format__(text, spec)`` and its like: of the builtin part, whatever the class has of its own."""
    return inner(self).tp_format(tx, spec if isinstance(spec, str) else inner(spec).as_constant())


for kind_ in (str, int, float, complex):
    meaning(vars(kind_)["__format__"])(format_of_builtin)
