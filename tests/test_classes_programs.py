"""Programs that use the object model in many ways at once, compared with CPython in everything."""
from __future__ import annotations

import abc
import contextlib
import enum
import functools
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import Generic, NamedTuple, Protocol, TypeVar

import pytest
import torch

from minidynamo.testing import check

T = TypeVar('T')


class Reg(abc.ABC):
    pass


def nested_classes_and_private_names(x):
    k = 5

    class Outer:
        __priv = 1
        a: int = k
        lst = [i * k for i in range(3)]

        class Inner:
            v = k + 1

            def f(self):
                return (self.v, k)

        def m(self):
            return (self.__priv, self.Inner().f(), __class__.__name__)
    print('b')
    return (Outer().m(), Outer.__annotations__, Outer.lst, Outer.Inner.__qualname__, x + Outer.a)


def decorated_classes(x):

    def deco(cls):
        cls.extra = 'd'
        return cls

    def wrap(cls):

        class W(cls):

            def m(self):
                return 'W' + super().m()
        W.__module__ = 'elsewhere'
        W.__doc__ = 'doc'
        W.__name__ = 'Renamed'
        return W

    @wrap
    @deco
    class C:

        def m(self):
            return 'C'
    print('b')
    return (C().m(), C.extra, C.__module__, C.__doc__, C.__name__, C.__mro__[1].__name__, x + 1)


def named_tuple(x):

    class P(NamedTuple):
        a: int
        b: str = 'q'
    p = P(1)
    return (p, p.a, p._replace(a=3), P._fields, x + p.a)


def generic_class(x):

    class G(Generic[T]):

        def __init__(self, v: T):
            self.v = v

    class H(G[int]):
        pass
    return (H(3).v, G(4).v, x + 1)


def protocol(x):

    class Pr(Protocol):

        def m(self):
            ...

    class Im:

        def m(self):
            return 1
    return (Im().m(), x + 1)


def dataclass_with_everything(x):

    @dataclass
    class A:
        a: int
        b: InitVar[int] = 3
        _: KW_ONLY
        c: int = field(default=4, repr=False, compare=False)

        def __post_init__(self, b):
            self.d = b + self.a

    @dataclass
    class B(A):
        e: list = field(default_factory=lambda: [1])
    o = B(1, c=9)
    print('b')
    return (repr(o), o.d, o.c, o.e, B.__match_args__, [f.name for f in fields(B)], o == B(1), x + o.d)


def enum_with_methods(x):

    class E(enum.Enum):
        A = enum.auto()
        B = enum.auto()

        def m(self):
            return self.name.lower()

        @property
        def p(self):
            return self.value * 10

        @classmethod
        def d(cls):
            return cls.B
    print('b')
    return (E.A.m(), E.B.p, E.d().name, list(E.__members__), E(1) is E.A, x + E.A.value)


def registered_class(x):

    class V:
        pass
    Reg.register(V)
    return (isinstance(V(), Reg), x + 1)


def cached_property_and_singledispatchmethod(x):

    class C:

        @functools.cached_property
        def cp(self):
            calls.append(1)
            return 7

        @functools.singledispatchmethod
        def sd(self, a):
            return 'base'
    calls = []
    c = C()
    return (c.cp, c.cp, len(calls), c.__dict__, x + 1)


def total_ordering(x):

    @functools.total_ordering
    class C:

        def __init__(self, v):
            self.v = v

        def __eq__(self, o):
            return self.v == o.v

        def __lt__(self, o):
            return self.v < o.v
    a, b = (C(1), C(2))
    return (a <= b, a > b, sorted([b, a])[0] is a, max(a, b).v, C.__hash__, x + 1)


def context_managers(x):

    class CM:

        def __enter__(self):
            self.log = ['in']
            return self

        def __exit__(self, t, v, tb):
            self.log.append((t.__name__ if t else None, str(v)))
            return t is KeyError
    with CM() as c:
        raise KeyError('k')
    with contextlib.ExitStack() as st:
        d = st.enter_context(CM())
        st.callback(c.log.append, 'cb')

    @contextlib.contextmanager
    def m(a):
        c.log.append(a)
        try:
            yield a
        except ValueError as e:
            c.log.append(str(e))
        finally:
            c.log.append('f')
    with m(3) as v, contextlib.suppress(ZeroDivisionError):
        raise ValueError('ve')
    return (c.log, d.log, x + 1)


def metaclass_slots(x):

    class Meta(type):

        def __getattr__(cls, n):
            return n * 2

        def __len__(cls):
            return 5

        def __iter__(cls):
            return iter('ab')

        def __contains__(cls, o):
            return o == 1

        def __getitem__(cls, i):
            return ('gi', i)

        def __bool__(cls):
            return False

        def __repr__(cls):
            return 'M!'

        @property
        def pr(cls):
            return cls.__name__

        def __call__(cls, *a):
            return ('made', a)

    class C(metaclass=Meta):
        pass
    return (C.zz, len(C), list(C), 1 in C, C[3], bool(C), repr(C), C.pr, C(1), x + 1)


def instances_with_every_slot(x):

    class Node:
        count = 0

        def __init__(self, v):
            Node.count += 1
            self.v = v
            self.kids = []

        def __add__(self, o):
            return Node(self.v + o.v)

        def __radd__(self, o):
            return Node(o + self.v)

        def __getitem__(self, i):
            return self.kids[i]

        def __iter__(self):
            yield from self.kids

        def __getattr__(self, n):
            if n.startswith('dyn_'):
                return n[4:]
            raise AttributeError(n)

        def __setattr__(self, n, v):
            object.__setattr__(self, n, v)
    a = Node(1)
    b = Node(2)
    a.kids.append(b)
    b.kids.append(a)
    c = sum([a, b])
    print('b')
    return (c.v, Node.count, a.kids[0].kids[0] is a, a.dyn_q, hasattr(a, 'zz'), [k.v for k in a], x + c.v)


PROGRAMS = [
    nested_classes_and_private_names,
    decorated_classes,
    named_tuple,
    generic_class,
    protocol,
    dataclass_with_everything,
    enum_with_methods,
    registered_class,
    cached_property_and_singledispatchmethod,
    total_ordering,
    context_managers,
    metaclass_slots,
    instances_with_every_slot,
]


@pytest.mark.parametrize('program', PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    check(program, torch.ones(2), min_graphs=1, cached=False)
