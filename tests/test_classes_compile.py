"""compile(), exec and eval of constant text."""
from __future__ import annotations

import torch

from minidynamo.testing import check

X = torch.ones(2)


def test_compiled_text_runs():
    def fn(x):
        code = compile("a = 1\nb = a + 1", "<here>", "exec")
        space = {}
        exec(code, globals(), space)
        return space, eval(compile("3 * 4", "f", "eval"), globals(), {}), code.co_filename, x + 1
    check(fn, X, graphs=1)


def test_refused_text():
    def fn(x):
        seen = []
        for text in ("def f(:", "  x", "return 1", "f(a=1, a=2)"):
            try:
                compile(text, "<here>", "exec")
            except SyntaxError as error:
                seen.append((type(error).__name__, error.args, error.msg, error.lineno, error.filename))
        return seen, x + 1
    check(fn, X, graphs=1)


def test_text_that_warns_is_left_to_python():
    def fn(x):
        y = x + 1
        code = compile("1 is 1", "<here>", "eval")
        return y, code.co_filename
    check(fn, X, min_graphs=1)
