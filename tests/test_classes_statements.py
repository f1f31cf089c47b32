"""Class statements inside a traced function: bodies, metaclasses, hooks, slots, ABCs, and classes that leave it."""
from __future__ import annotations

from abc import ABC, abstractmethod, update_abstractmethods

import torch

from minidynamo import optimize
from minidynamo.testing import check

X = torch.ones(2)
NEW_CLASS = {"cached": False}        # a resume function sees another class on each call, and says so by its guards


def test_members_of_every_kind():
    def fn(x):
        class C:
            k = 3

            def __init__(self, a):
                self.a = a

            def m(self):
                return self.a * self.k

            @property
            def p(self):
                return self.a + 1

            @p.setter
            def p(self, v):
                self.a = v

            @classmethod
            def cm(cls, v):
                return cls(v)

            @staticmethod
            def sm(v):
                return v - 1
        c = C(x)
        c.p = x * 2
        return c.m(), c.p, C.cm(x).m(), C.sm(x), C.__name__, isinstance(c, C)
    check(fn, X, graphs=1, fullgraph=True)


def test_super_and_mro():
    def fn(x):
        class A:
            def m(self):
                return 1

        class B(A):
            def m(self):
                return super().m() + 1

            def __repr__(self):
                return f"B({self.m()})"
        return B().m() + x, repr(B()), [k.__name__ for k in B.__mro__]
    check(fn, X, graphs=1, fullgraph=True)


def test_class_and_instance_survive_a_break():
    def fn(x):
        class A:
            def m(self):
                return 1

        class B(A):
            y = x

            def m(self):
                return super().m() + 1
        b = B()
        b.z = 3
        same = B
        print("break")
        names = [n for n in vars(B) if n not in ("__static_attributes__", "__firstlineno__")]
        return b.m() + x, b.z, same is B, type(b) is B, B.y, B.__name__, B.__qualname__, B.__module__, B.__doc__, names
    check(fn, X, min_graphs=1, **NEW_CLASS)


def test_metaclass():
    def fn(x):
        class M(type):
            def __new__(meta, name, bases, space, **kwargs):
                space["extra"] = 7
                return super().__new__(meta, name, bases, space)

            def __init__(cls, name, bases, space, **kwargs):
                cls.kept = kwargs

            def __call__(cls, *args):
                made = super().__call__(*args)
                made.called = True
                return made

        class C(metaclass=M, opt=1):
            pass
        c = C()
        print("break")
        return C.extra, C.kept, c.called, type(C).__name__, C().called, x + C.extra
    check(fn, X, min_graphs=1, **NEW_CLASS)


def test_prepare_and_body_names():
    def fn(x):
        class Space(dict):
            def __setitem__(self, key, value):
                if not key.startswith("__"):
                    value = (value, len(self))
                super().__setitem__(key, value)

        class M(type):
            @classmethod
            def __prepare__(meta, name, bases):
                return Space()

        class C(metaclass=M):
            a = 1
            b = a
            del a
        return C.b, hasattr(C, "a"), x + 1
    check(fn, X, graphs=1)


def test_set_name_and_init_subclass_run_once():
    def fn(x):
        class D:
            def __set_name__(self, owner, name):
                self.seen = getattr(self, "seen", []) + [(owner.__name__, name)]

            def __get__(self, obj, owner):
                return self.seen

        class B:
            made = []

            def __init_subclass__(cls, **kwargs):
                B.made.append((cls.__name__, kwargs))

        class C(B, q=1):
            d = D()
        print("break")
        return C().d, B.made, x + 1
    check(fn, X, min_graphs=1, **NEW_CLASS)


def test_slots():
    def fn(x):
        class S:
            __slots__ = ("a", "b")

            def __init__(self):
                self.a = 1
        s, texts = S(), []
        for name in ("b", "c"):
            try:
                getattr(s, name)
            except AttributeError as error:
                texts.append(str(error))
        try:
            s.c = 1
        except AttributeError as error:
            texts.append(str(error))
        print("break")
        return texts, s.a, x + 1
    check(fn, X, min_graphs=1, **NEW_CLASS)


def test_abstract_classes():
    def fn(x):
        class A(ABC):
            @abstractmethod
            def m(self): ...

            @property
            @abstractmethod
            def p(self): ...

        class B(A):
            p = 3

            def m(self):
                return 2
        texts = []
        try:
            A()
        except TypeError as error:
            texts.append(str(error))
        print("break")
        try:
            A()
        except TypeError as error:
            texts.append(str(error))
        return texts, B().m(), B().p, isinstance(B(), A), x + 1
    check(fn, X, min_graphs=1, **NEW_CLASS)


def test_type_call_and_exception_class():
    def fn(x):
        made = type("T", (), {"a": 1, "f": lambda self: 5})

        class E(Exception):
            def __init__(self, v):
                super().__init__(v)
                self.v = v

            def __str__(self):
                return f"E<{self.v}>"
        try:
            raise E(3)
        except E as error:
            text = str(error)
        return made().f(), made.a, made.__module__, text, E(4).args, x + 1
    check(fn, X, graphs=1, fullgraph=True)


def test_impossible_classes_raise():
    def fn(x):
        texts = []
        for bases, space in (((bool,), {}), ((int, str), {}), ((object, int), {}), ((), {"__slots__": ("1a",)})):
            try:
                type("T", bases, space)
            except TypeError as error:
                texts.append(str(error))
        return texts, x + 1
    check(fn, X, graphs=1)


def test_base_from_outside_keeps_its_hook():
    def fn(x):
        before = len(Hooked.seen)

        class C(Hooked, tag="t"):
            pass
        print("break")
        return Hooked.seen[before:], C.tag, x + 1
    check(fn, X, min_graphs=1, **NEW_CLASS)


class Hooked:
    seen: list = []

    def __init_subclass__(cls, tag="none"):
        Hooked.seen.append(tag)
        cls.tag = tag


def test_property_made_inside_keeps_its_texts():
    def fn(x):
        class C:
            def get(self):
                "doc of get"
                return 1
            p = property(get)
            q = property(None, lambda self, v: None)
        texts = [C.p.__doc__]
        for name in ("p", "q"):
            for act in (lambda: getattr(C(), name), lambda: setattr(C(), name, 1), lambda: delattr(C(), name)):
                try:
                    texts.append(act())
                except AttributeError as error:
                    texts.append(str(error))
        return texts, x + 1
    check(fn, X, graphs=1)


def test_exec_of_constant_text():
    def fn(x):
        space = {}
        exec("def made(a, b=2):\n    return a + b\nvalue = made(1)", globals(), space)
        return space["made"](x), space["value"], list(space), eval("value + 1", globals(), space)
    check(fn, X)


def test_abstract_names_brought_up_to_date():
    def fn(x):
        class A(ABC):
            @abstractmethod
            def m(self): ...

        class B(A):
            pass
        B.m = lambda self: 3
        update_abstractmethods(B)
        texts = [sorted(A.__abstractmethods__), sorted(B.__abstractmethods__), B().m()]
        print("break")
        try:
            A()
        except TypeError as error:
            texts.append(str(error))
        return texts, B().m(), sorted(B.__abstractmethods__), x + 1
    check(fn, X, min_graphs=1, **NEW_CLASS)


def test_bases_and_names_are_guarded():
    def fn(x):
        return [b.__name__ for b in Moving.__bases__], Moving.__name__, len(Moving.__mro__), x + 1
    check(fn, X, graphs=1)
    Moving.__bases__ = (Second, First)
    Moving.__name__ = "Renamed"
    check(fn, X, graphs=1)
    compiled = optimize(fn)
    assert compiled(X)[:2] == (["Second", "First"], "Renamed")
    Moving.__bases__, Moving.__name__ = (First,), "Moving"
    assert compiled(X)[:3] == fn(X)[:3] == (["First"], "Moving", 3)


class First:
    pass


class Second:
    pass


class Moving(First):
    pass
