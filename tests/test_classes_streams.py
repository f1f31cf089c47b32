"""io.StringIO and io.BytesIO made while tracing, print() into them, sys.stdout redirected."""
from __future__ import annotations

import contextlib
import io

import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


def test_a_text_stream():
    def fn(x):
        s = io.StringIO("abc\ndef")
        out = [s.read(2), s.tell(), s.readline(), list(s), s.getvalue()]
        s.seek(0)
        s.write("ZZ")
        s.truncate(5)
        out.append((s.getvalue(), s.tell(), s.closed, s.readable(), s.isatty()))
        with io.StringIO() as u:
            u.write("x")
            u.writelines(["y", "z\n"])
            out.append(u.getvalue())
        return x + 1, out, u.closed
    check(fn, X, graphs=1)


def test_a_stream_of_bytes():
    def fn(x):
        b = io.BytesIO(b"12\n34")
        b.seek(0, 2)
        b.write(b"56")
        b.seek(1)
        return x + 1, b.getvalue(), b.tell(), b.readlines()
    check(fn, X, graphs=1)


REFUSED = {"number": lambda s: s.write(3), "sep": lambda s: print(1, sep=3, file=s), "value": lambda s: io.StringIO(3),
           "text": lambda s: io.BytesIO("a"), "seek": lambda s: s.seek(-1), "attribute": lambda s: s.nothing,
           "closed": lambda s: (s.close(), s.write("q"))}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_streams_refuse(case):
    def fn(x):
        s = io.StringIO("abc")
        try:
            return x + 1, REFUSED[case](s)
        except Exception as error:
            return x + 1, type(error), str(error), s.closed
    check(fn, X, graphs=1)


def test_streams_that_leave():
    def fn(x):
        s, b, closed = io.StringIO(), io.BytesIO(b"ab"), io.StringIO("c")
        s.write("text")
        s.seek(2)
        b.read(1)
        closed.close()
        return x + 1, s, b, closed, [s]
    _, s, b, closed, held = minidynamo.optimize(fn, fullgraph=True)(X)
    assert (s.getvalue(), s.tell(), b.getvalue(), b.tell(), closed.closed, held[0] is s) == ("text", 2, b"ab", 1, True, True)


class Tee:
    def __init__(self):
        self.parts = []

    def write(self, text):
        self.parts.append(text)

    def flush(self):
        self.parts.append("flushed")


def test_print_into_a_stream():
    def fn(x):
        s, tee = io.StringIO(), Tee()
        print("a", 1, [2], sep="-", end="!", file=s)
        print(1, "b", file=tee, flush=True)
        with contextlib.redirect_stdout(s):
            print("captured", x.shape)
            print()
            print(3, file=None)
        return x + 1, s.getvalue(), tee.parts
    found = check(fn, X, min_graphs=1, cached=False)      # what checks it puts another sys.stdout in place for each call
    assert not found.breaks


def test_a_break_while_output_is_redirected():
    def fn(x):
        s = io.StringIO()
        with contextlib.redirect_stdout(s):
            print("one")
            y = x + 1
            minidynamo.graph_break()
            print("two")
        print("outside")
        return y * 2, s.getvalue(), s.tell()
    check(fn, X, min_graphs=2, cached=False)
