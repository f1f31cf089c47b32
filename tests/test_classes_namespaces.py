"""Namespaces: locals(), vars(), dir(), exec and eval in dicts of the program's; reprs and hashes that show an address."""
from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import re

import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


def test_locals():
    def inner(a, b=3, *args, **kwargs):
        c = a + 1
        d = 4

        def g():
            return d
        first = locals()
        names = list(first)
        del c
        second = locals()
        return names, sorted(second), second["d"], second is first, sorted(vars()), dir(), g

    def fn(x):
        class A:
            b = 3
            names = sorted(locals())
            listed = dir()
        return x + 1, inner(1, 2, 3, k=4)[:-1], A.names, A.listed
    check(fn, X, graphs=1)


def test_locals_of_the_compiled_function():
    def fn(x, a=3):
        y = x + a

        def g():
            return a
        found = locals()
        return y, sorted(found), found["a"], found["y"]
    check(fn, X, graphs=1)


def test_dir():
    class Base:
        one = 1

        def __init__(self):
            self.two = 2

    class Own(Base):
        def __dir__(self):
            return ["b", "a"]

    def fn(x):
        return x + 1, dir(Base()), dir(Own()), dir(Base), dir(3), dir(functools)[:3], dir([])
    check(fn, X, graphs=1)


def test_exec_and_eval():
    def fn(x, k=2):
        space = {"k": 5}
        exec("a = k + 1\ndef f(u): return u + a + k\nclass C:\n  v = a\nb = [q for q in range(a)]", space)
        y = space["f"](x)
        exec("global m\nm = 1\ndel m\nn = 2", space)
        inner = {}
        eval("q", {"q": 3}, inner)
        return (y, space["a"], space["C"].v, space["C"].__module__, space["f"].__module__, space["b"], eval("k + 1"), eval("x + k"),
                eval("k", {"k": 7}), sorted(space), inner)
    check(fn, X, graphs=1)


def test_exec_writes_the_locals_dict():
    def inner(p):
        exec("q = 9; p = 1")
        found = locals()
        return p, sorted(found)

    def fn(x):
        return x + 1, inner(3)
    check(fn, X, graphs=1)


def test_exec_refuses():
    def fn(x):
        out = []
        for text in ("exec('1', 1)", "eval('1', 1)", "eval('1', [])", "exec('a', {}, 3)", "eval('a', {}, 3)", "eval('1 +')",
                     "vars(3)", "eval('not_there')"):
            try:
                out.append(eval(text))
            except Exception as error:
                out.append((type(error), str(error)))
        return x + 1, out
    check(fn, X, graphs=1)


def test_a_function_of_exec_that_leaves_is_made_by_python():
    def fn(x):
        space = {}
        exec("def f(u): return u + w\nw = 3", space)
        return x + 1, space["f"]
    out, f = minidynamo.optimize(fn)(X)
    assert f(1) == 4
    f.__globals__["w"] = 5
    assert f(1) == 6


# ---------------------------------------------------------------- addresses
class Plain:
    pass


def without_addresses(text):
    return re.sub("0x[0-9a-f]+", "ADDRESS", text) if isinstance(text, str) else text


def test_reprs_that_show_an_address():
    def fn(x):
        p = Plain()
        f = lambda: 3  # noqa: E731
        held = [p, {1: f}, (p,)]
        return x + 1, [repr(p), str(p), f"{p}", "%r and %s" % (p, 3), "{} {}".format(p, "z"), repr(f), repr(held), repr([].append),
                       repr(held.__len__), repr(f.__call__), "Plain object" in repr(p), repr(p).startswith("<"),
                       repr(p) == repr(p), repr(p).replace(" at ", " AT "), repr(f.__get__(p)), p]
    got, expected = minidynamo.optimize(fn, fullgraph=True)(X)[1], fn(X)[1]
    assert list(map(without_addresses, got[:-1])) == list(map(without_addresses, expected[:-1]))
    assert got[0] == repr(got[-1])


def test_hashes_of_addresses():
    def fn(x, p):
        made = Plain()
        return (x + 1, hash(p), hash(made) == hash(made), hash(made.__repr__) == hash(made.__repr__), {hash(p): 2}[hash(p)],
                isinstance(hash(made), int))
    compiled = minidynamo.optimize(fn)
    for p in (Plain(), Plain()):          # another object each time
        assert compiled(X, p)[1:] == fn(X, p)[1:]


ASKS = {
    "no receiver": lambda: set.add(), "wrong receiver": lambda: set.add(0), "wrong get": lambda: set.add.__get__(0),
    "slot's class": lambda: list.__add__.__objclass__, "bound slot's class": lambda: [1].__add__.__objclass__,
    "bound slot's self": lambda: [1].__add__.__self__, "no class": lambda: [].append.__objclass__,
    "get": lambda: list.append.__get__([1], list)(2), "module": lambda: [].append.__module__,
    "call": lambda: [3].__len__.__call__(), "call of a function": lambda: len.__call__([1]),
}


@pytest.mark.parametrize("ask", list(ASKS))
def test_attributes_of_c_methods(ask):
    def fn(x):
        try:
            return x + 1, ASKS[ask]()
        except Exception as error:
            return x + 1, type(error), str(error)
    check(fn, X, graphs=1)


def test_super_of_an_object_that_claims_another_class():
    class Base:
        def f(self):
            return "base"

    class Derived(Base):
        def f(self):
            return super().f() + " derived"

    class Proxy:
        def __init__(self, obj):
            self.obj = obj

        def __getattribute__(self, name):
            return object.__getattribute__(self, name) if name == "obj" else getattr(self.obj, name)

    def fn(x):
        return x + 1, Derived.f(Proxy(Derived()))
    check(fn, X, graphs=1)


def test_numbers_and_text_inside_subclasses():
    class Int(int):
        pass

    class Str(str):
        pass

    def fn(x):
        return (x + 1, 2 + 0j == Int(2), 2.0 == Int(2), "ab" == Str("ab"), Str("b") in "abc", 1j + Int(3), 2.5 * Int(2))
    check(fn, X, graphs=1)


def test_substitution_by_a_function():
    def fn(x):
        double = lambda m: m.group() * 2  # noqa: E731
        return (x + 1, re.sub("[ab]", double, "xaybz"), re.subn("q*", lambda m: "-", "aqqb"), re.sub("a", double, "aaa", count=2), re.sub("a", double, "aaa", count=-1),
                re.sub(b"a", lambda m: b"<>", b"bab"))
    check(fn, X, graphs=1)


# ---------------------------------------------------------------- what C runs of the user's, and how often
class Sized:
    def __init__(self, log):
        self.log = log

    def __iter__(self):
        self.log.append("iter")
        return iter((1, 2))

    def __len__(self):
        self.log.append("len")
        return 2


class Hinted:
    def __init__(self, log):
        self.log = log

    def __iter__(self):
        self.log.append("iter")
        return iter((1, 2))

    def __length_hint__(self):
        self.log.append("hint")
        return 7


TAKERS = {"list": list, "tuple": tuple, "set": set, "sorted": sorted, "extend": lambda v: [].extend(v), "star": lambda v: [*v],
          "call": lambda v: max(*v), "sum": sum, "+=": lambda v: [].__iadd__(v), "unpacked": lambda v: (lambda a, b: a)(*v)}


@pytest.mark.parametrize("taker", list(TAKERS))
@pytest.mark.parametrize("kind", [Sized, Hinted])
def test_length_hints(taker, kind):
    def fn(x):
        log = []
        return x + 1, TAKERS[taker](kind(log)), log
    check(fn, X, graphs=1)


def test_new_without_init():
    def fn(x):
        return (x + 1, list.__new__(list, [1]), dict.__new__(dict, {1: 2}), set.__new__(set, [1]),
                str(UnicodeEncodeError.__new__(UnicodeEncodeError)), repr(ValueError.__new__(ValueError, 3)))
    check(fn, X, graphs=1)


def test_a_class_attribute_named_class():
    class Fake:
        __class__ = str

    def fn(x):
        fake = Fake()
        return x + 1, isinstance(fake, str), isinstance(fake, Fake), fake.__class__, type(fake) is Fake
    check(fn, X, graphs=1)


def test_a_submodule_that_an_import_loads(tmp_path, monkeypatch):
    package = tmp_path / "package_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("value = 3")
    monkeypatch.syspath_prepend(str(tmp_path))
    import package_of_test  # noqa: F401

    def fn(x):
        from package_of_test import part
        return x + part.value
    assert torch.equal(minidynamo.optimize(fn)(X), X + 3)


def test_slots_taken_from_another_class():
    class Odd(int):
        __eq__ = str.__eq__
        __add__ = str.__add__
        __hash__ = int.__hash__

    def fn(x):
        odd, out = Odd(3), []
        for ask in (lambda: odd == odd, lambda: odd + 1, lambda: hash(odd)):
            try:
                out.append(ask())
            except TypeError as error:
                out.append(str(error))
        return x + 1, out
    check(fn, X, graphs=1)


def test_class_of_values_without_a_dict():
    class C:
        pass

    def fn(x):
        out = []
        for value, cls in (([], C), ((), list), (3, bool), (C(), 3), (C(), list), ("a", C)):
            try:
                value.__class__ = cls
            except TypeError as error:
                out.append(str(error))
        try:
            del [].__class__
        except TypeError as error:
            out.append(str(error))
        return x + 1, out
    check(fn, X, graphs=1)


def test_parts_of_number_subclasses():
    class Number(complex):
        def __repr__(self):
            return f"{self.real}/{self.imag}"

    class Int(int):
        pass

    def fn(x):
        return x + 1, repr(Number(3 + 4j)), Int(3).numerator, Int(3).imag, complex(Number(1j)), Number.real.__objclass__
    check(fn, X, graphs=1)


def test_named_tuples_and_abstract_classes_made_while_tracing():
    def fn(x):
        Point = collections.namedtuple("Point", "a b", defaults=(5,))

        class Base(abc.ABC):
            @abc.abstractmethod
            def f(self):
                ...

        @dataclasses.dataclass
        class Data(Base):
            point: Point = None
            other: object = None

            def f(self):
                return self.point
        p = Point(1)
        d = Data(p)
        return (x + 1, p.a, p.b, p._replace(a=3)._asdict(), Point._fields, repr(p), d.f().a, sorted(Base.__dict__)[:2],
                Data.__doc__.startswith("Data("), Base.__abstractmethods__)
    check(fn, X, graphs=1)


def test_messages_name_the_function_as_it_is_called_now():
    def fn(x):
        def inner(a, b):
            return a
        inner.__qualname__ = "Renamed.inner"
        try:
            inner(1)
        except TypeError as error:
            return x + 1, str(error)
    check(fn, X, graphs=1)


def defaulted(a, b=2, *, c=3):
    return a, b, c


def test_defaults_are_assigned():
    def fn(x):
        def made(a, b=2, *, c=3):
            return a, b, c
        out = []
        for f in (made, defaulted):
            f.__defaults__ = (7, 8)
            f.__kwdefaults__ = {"c": 9}
            out.append((f(), f.__defaults__, f.__kwdefaults__))
            f.__defaults__ = None
            try:
                f(1)
            except TypeError as error:
                out.append(str(error))
            del f.__kwdefaults__
            for bad in ([], 3):
                try:
                    f.__defaults__ = bad
                except TypeError as error:
                    out.append(str(error))
            f.__defaults__, f.__kwdefaults__ = (2,), {"c": 3}
        return x + 1, out, made
    check(fn, X, graphs=1)
    assert defaulted(1) == (1, 2, 3)
