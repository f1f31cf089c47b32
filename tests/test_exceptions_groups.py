"""Exception groups and except*; builtin exceptions whose constructors do more."""
from __future__ import annotations

import torch

from minidynamo.testing import check

X = torch.ones(2)


def test_split_and_subgroup():
    def fn(x):
        group = ExceptionGroup("m", [ValueError(1), TypeError(2), ExceptionGroup("n", [KeyError(3), ValueError(4)])])
        a, b = group.split(ValueError)
        return (str(group), repr(group), len(group.exceptions), group.message, str(a), [str(e) for e in a.exceptions], str(b),
                group.subgroup(OSError), str(group.subgroup(lambda e: isinstance(e, KeyError))),
                type(BaseExceptionGroup("q", [ValueError()])).__name__, x + 1)
    check(fn, X, graphs=1)


def test_refused_arguments():
    def fn(x):
        out = []
        for args in (("m",), ("m", []), ("m", [3]), (3, [ValueError()]), ("m", 5), ("m", [KeyboardInterrupt()])):
            try:
                ExceptionGroup(*args)
            except (TypeError, ValueError) as error:
                out.append((type(error).__name__, str(error)))
        return out, x + 1
    check(fn, X, graphs=1)


def test_except_star():
    def fn(x):
        out = []
        try:
            try:
                raise ExceptionGroup("m", [ValueError(1), TypeError(2), KeyError(3)])
            except* ValueError as error:
                out.append(("v", [str(e) for e in error.exceptions]))
            except* TypeError as error:
                out.append(("t", [str(e) for e in error.exceptions]))
        except ExceptionGroup as left:
            out.append(("left", str(left), [str(e) for e in left.exceptions]))
        try:
            raise ValueError("naked")
        except* ValueError as error:
            out.append((type(error).__name__, str(error)))
        return out, x + 1
    check(fn, X, graphs=1)


def test_raising_inside_except_star():
    def fn(x):
        try:
            try:
                raise ExceptionGroup("m", [ValueError(1), TypeError(2)])
            except* ValueError:
                raise OSError(5)
            except* TypeError:
                raise
        except ExceptionGroup as error:
            return str(error), [(type(e).__name__, str(e)) for e in error.exceptions], x + 1
    check(fn, X, graphs=1)


def test_group_that_leaves():
    def fn(x):
        y = x + 1
        try:
            raise ExceptionGroup("m", [ValueError(1), TypeError(2)])
        except* ValueError:
            y = y + 1
    check(fn, X, calls=1)


def test_subclass_with_derive():
    def fn(x):
        class G(ExceptionGroup):
            def __new__(cls, message, excs, code):
                made = super().__new__(cls, message, excs)
                made.code = code
                return made

            def derive(self, excs):
                return G(self.message, excs, self.code)
        group = G("m", [ValueError(1), TypeError(2)], 42)
        a, b = group.split(TypeError)
        return type(a).__name__, a.code, b.code, str(b), x + a.code
    check(fn, X, graphs=1)


def test_error_numbers_choose_the_class():
    def fn(x):
        made = [OSError(2, "no"), OSError(13, "denied", "file"), OSError("text"), OSError()]
        texts = []
        for bad in (lambda: UnicodeDecodeError("a"), lambda: UnicodeDecodeError("utf8", b"a", 0, 1, "r")):
            try:
                texts.append(str(bad()))
            except TypeError as error:
                texts.append(str(error))
        return [(type(e).__name__, e.args, str(e), e.errno) for e in made], made[1].filename, texts, x + 1
    check(fn, X, graphs=1)


def test_cycle_in_contexts_ends():
    def fn(x):
        a, b, c = ValueError("a"), ValueError("b"), ValueError("c")
        a.__context__, b.__context__ = b, a
        try:
            try:
                raise a
            except ValueError:
                raise c
        except ValueError as error:
            return error.__context__ is a, x + 1
    check(fn, X)


def test_group_of_a_list_that_grows():
    def fn(x):
        excs = [ValueError(1)]
        group = ExceptionGroup("m", excs)
        excs.append(TypeError(2))
        print("break")
        return len(group.exceptions), group.args[1] is excs, len(excs), x + 1
    check(fn, X, min_graphs=1)


def test_group_raised_in_pieces():
    def fn(x):
        y, excs = x + 1, []
        for kind in (ValueError, TypeError):
            try:
                raise kind(1)
            except Exception as error:
                excs.append(error)
        try:
            raise ExceptionGroup("m", excs)
        except ExceptionGroup as group:
            return [type(e).__name__ for e in group.exceptions], y
    check(fn, X, min_graphs=1)


# ---------------------------------------------------------------- members of C structs
def test_members_of_exceptions():
    def fn(x):
        out = []
        u = UnicodeEncodeError("baz", "xxxxx", 1, 5, "foo")
        out.append(str(u))
        u.end = 2
        u.reason = 965
        out.append((str(u), u.encoding, u.end))
        for bad in (lambda: setattr(u, "start", "1"), lambda: delattr(u, "start"), lambda: ImportError("m", invalid=1),
                    lambda: ValueError(x=1), lambda: setattr(ExceptionGroup("m", [KeyError()]), "message", 3),
                    lambda: NameError(path=3)):
            try:
                out.append(bad())
            except (TypeError, AttributeError) as error:
                out.append((type(error), str(error)))
        e = ImportError("test", name="somename", path="somepath")
        out.append((e.name, e.path, e.msg))
        e.__init__("other")
        out.append((e.name, e.path, e.msg, e.args))
        s = SyntaxError("m", ("f", 1, 2, "text"))
        s.lineno = 7
        del s.offset
        s.args = (3,)
        out.append((s.msg, s.filename, s.lineno, s.offset, str(s), s.args))
        return x + 1, out, u, e, s
    check(fn, X, graphs=1)


def test_members_of_an_exception_from_outside():
    def fn(x, error):
        return x + 1, error.errno, error.strerror, error.filename, str(error)
    error = OSError(2, "none", "file")
    error.strerror = "changed"
    check(fn, X, error, graphs=1)

    def syntax(x):
        try:
            compile("a = ", "name", "exec", optimize=0)
        except SyntaxError as caught:
            return x + 1, caught.lineno, caught.offset, caught.filename, str(caught)
    check(syntax, X)


def test_members_of_a_syntax_error_found_late():
    def fn(x):
        out = []
        for text in ("def f():\n  global x\n  x: int", "a = ", "[(yield i) for i in x]"):
            try:
                compile(text, "name", "exec")
            except SyntaxError as error:
                out.append((error.msg, error.args, error.lineno, error.offset, error.filename, error.text, error.end_lineno,
                            error.print_file_and_line, str(error)))
        return x + 1, out
    check(fn, X, graphs=1)


def test_text_of_a_group_from_outside():
    class Named(ExceptionGroup):
        pass

    def fn(x, group):
        return x + 1, str(group), repr(group), f"{group}"
    for made in (ExceptionGroup("one", [KeyError(1)]), Named("two", [KeyError(1), ExceptionGroup("in", [OSError()])])):
        check(fn, torch.ones(2), made, min_graphs=1)
