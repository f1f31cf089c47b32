"""bytearray: every method on known bytes, mutation seen by the caller."""
from __future__ import annotations

import torch

from minidynamo.testing import check

X = torch.ones(2)


class MyBytes(bytearray):
    pass


def text_of(thunk):
    try:
        return thunk()
    except Exception as error:
        return type(error), str(error)


def test_methods():
    def fn(b, x):
        b.append(65)
        b.extend(b"bc")
        b[0] = 66
        b[1:2] = [67, 68]
        del b[-1]
        b += b"!"
        c = b.upper()
        c.insert(1, 32)
        out = [b.find(b"C"), list(b), len(b), bytes(b), b + b"x", b * 2, b[1:], b[0], 66 in b, b == b"a", b.decode(), repr(b),
               bytearray(3), bytearray("é", "utf8"), bytearray([1, 2]), b.split(b"D"), bytearray(b"-").join([b"a", b"b"]), b.hex(),
               b"%d" % 3, bytearray(b"%s") % b"z"]
        out += [text_of(f) for f in (lambda: b.append("a"), lambda: b.append(300), lambda: b.pop(99), lambda: b.remove(1),
                                     lambda: b[99], lambda: b.append(), lambda: hash(b), lambda: bytearray("a"), lambda: b + 1)]
        return out, c, b, [i for i in reversed(b)], b.pop(), x + 1
    assert not check(fn, bytearray(b"xyz"), X, graphs=1).breaks


def test_subclass():
    def fn(b, x):
        b.append(1)
        b.tag = x
        c = MyBytes(b"ab")
        c.extend([1])
        return b, c, len(c), x + 1
    assert not check(fn, MyBytes(b"q"), X, graphs=1).breaks
