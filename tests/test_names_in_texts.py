"""``eval`` and ``exec`` of constant texts and ``locals``, ``vars``, ``dir`` in the names of the running frame."""
from __future__ import annotations

import torch

from minidynamo.testing import check

X = torch.ones(2)


def test_eval_reads_the_frame():
    def fn(x, n):
        z = 3

        def inner():
            return eval("z * 2"), z
        return eval("n + z"), inner(), eval("[u for u in (1, 2)]"), eval("lambda u: u + 1")(n), eval(" f'{n!r:>4}'"), x + 1
    check(fn, X, 5, graphs=1, fullgraph=True)


def test_eval_says_what_is_wrong():
    def fn(x):
        texts = []
        for text in ("1 +", "nothing_of_the_name", "1 / 0", "'a' + 1"):
            try:
                eval(text)
            except Exception as error:
                texts.append((type(error).__name__, str(error)))
        return texts, x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_exec_writes_into_the_namespace_only():
    def fn(x, n):
        exec("fresh = n + 1; n = 100")
        return n, locals().get("fresh"), x + 1
    check(fn, X, 5, graphs=1, fullgraph=True)


def test_given_locals():
    def fn(x):
        return eval("a + 1", None, {"a": 4}), x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_locals_in_a_called_function():
    def shown(a, b=4, *rest, k=1, **more):
        del b
        late = 9
        return list(locals().items()), sorted(vars()), dir(), late

    def cells(a):
        def reads():
            return a
        return reads, list(locals())

    def fn(x):
        class C:
            a = 1
            b = locals()["a"] + 1
            c = eval("b + 1")
        return shown(1, 2, 3, z=5), cells(1)[1], C.c, x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_one_namespace_for_each_frame():
    def called(a):
        first = locals()
        first["extra"] = 1
        later = 2
        second = locals()
        return first is second, sorted(first), sorted(second), later

    def fn(x):
        return called(1), x + 1
    check(fn, X, graphs=1, fullgraph=True)
