"""The match statement, regular expressions over literals, notes, divmod."""
from __future__ import annotations

import re
import unittest

import torch

from minidynamo.testing import check

X = torch.ones(2)
CASE = unittest.TestCase()


def test_match_statement():
    def fn(x):
        class P:
            __match_args__ = ("a", "b")

            def __init__(self, a, b):
                self.a, self.b = a, b
        out = []
        for v in (1, "x", [1, 2, 3], {"k": 1, "j": 2}, P(1, 2), P(3, 4), (), 2.5):
            match v:
                case int(n):
                    out.append(("int", n))
                case str() as s:
                    out.append(("s", s))
                case [a, *r]:
                    out.append((a, r))
                case {"k": k, **rest}:
                    out.append((k, rest))
                case P(1, b=q):
                    out.append(("P1", q))
                case P(a, b):
                    out.append(("P", a, b))
                case []:
                    out.append("empty")
                case _:
                    out.append("other")
        return out, x + 1
    check(fn, X, graphs=1)


def test_match_errors():
    def fn(x, subject, cls):
        try:
            match subject:
                case cls(1, 2):
                    return x + 1
        except TypeError as error:
            return str(error), x + 2
        return x + 3

    class Two:
        __match_args__ = ["a", "b"]
    check(fn, X, 3, int, graphs=1)
    check(fn, X, 3, 3, graphs=1)
    check(fn, X, Two(), Two, graphs=1)


def test_assert_raises_and_patterns():
    def fn(x):
        with CASE.assertRaises(ValueError) as caught:
            raise ValueError("a")
        with CASE.assertRaisesRegex(ValueError, "b+"):
            raise ValueError("abb")
        m = re.search(r"(\d+)-(?P<n>\w+)", "x 12-ab")
        print("break")
        return (x + 1, str(caught.exception), m.group(1), m["n"], m.groups(), m.groupdict(), re.sub("a", "b", "aaa"),
                re.split(",", "a,b"), re.match("z", "a"))
    check(fn, X, min_graphs=1)


def test_notes_and_divmod():
    def fn(x):
        class D:
            def __divmod__(self, other):
                return ("d", other)

            def __rdivmod__(self, other):
                return ("r", other)
        error = ValueError("a")
        error.add_note("n1")
        error.add_note("n2")
        texts = []
        for bad in (lambda: divmod(1, 0), lambda: divmod("a", 1), lambda: error.add_note(3)):
            try:
                bad()
            except (TypeError, ZeroDivisionError) as failed:
                texts.append(str(failed))
        return error.__notes__, divmod(D(), 1), divmod(2, D()), divmod(7, 2), divmod(7.5, 2), texts, x + 1
    check(fn, X, graphs=1)


def test_divmod_slots_by_name():
    def fn(x):
        return ((7).__divmod__(2), (2).__rdivmod__(7), (7).__divmod__("a"), (7.5).__divmod__(2), int.__divmod__(True, 2),
                (7).__divmod__(2.5), (7).__divmod__(object()) is NotImplemented, x + 1)
    check(fn, X, graphs=1)
