"""Grammar that 3.11 does not parse: PEP 695 type parameters and aliases, PEP 701 f-strings, PEP 696 defaults; and what
the newer versions changed in older statements."""
from __future__ import annotations

import linecache

import pytest
import torch

from minidynamo.code import python_version
from minidynamo.testing import check

X = torch.arange(4.0)
PROGRAMS = []


def program(name, text, since=(3, 12), breaks=False):
    if python_version >= since:
        PROGRAMS.append(pytest.param(name, text, breaks, id=name))


@pytest.mark.parametrize(("name", "text", "breaks"), PROGRAMS)
def test_program(name, text, breaks):
    """`text` defines ``fn``; whether it is captured in one piece is said beside it."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"torch": torch, "__name__": "programs"}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    found = check(space["fn"], X, cached=False, min_graphs=1)
    assert bool(found.breaks) is breaks, found.breaks


# ---------------------------------------------------------------- 3.12: f-strings are grammar (PEP 701)
program("fstrings", r'''
def fn(x):
    d, n = {"a": 1}, 3
    return f"{d["a"]}", f"{f"{f"{n}"}"}", f"{"\n".join(["a", "b"])}", f"{n!r:>{n + 2}}", f"{
        n  # a comment
        + 1}", f"{n=}", f"{n = :>5}", f"{'{'}{{}}", f"{(k := n)}", k, f"{n:{'>'}{5}}", f"{x.shape=}", x + 1
''')

# ---------------------------------------------------------------- 3.12: type parameters and aliases (PEP 695)
program("generics from outside", '''
type Pair[T] = tuple[T, T]

def double[T: int](a: T) -> T:
    return a * 2

class Box[T]:
    def __init__(self, v: T): self.v = v
    def get[S](self, s: S) -> tuple[S, T]: return s, self.v

def fn(x):
    b = Box(x)
    return double(x), b.get(1), isinstance(b, Box), type(b).__name__, double.__name__
''')
program("parts of generics from outside", '''
type Number = int
type Pair[T] = tuple[T, T]

def double[T: int](a: T) -> T:
    return a * 2

class Box[T]:
    def __init__(self, v: T): self.v = v

def fn(x):
    return Number.__value__, Number.__name__, double.__type_params__[0].__name__, Box[int](2).v, Pair[int].__args__, x + 1
''', breaks=True)
program("generic function made inside", '''
def fn(x):
    def f[T: int, U: (str, bytes), *Ts, **P](a: T, *args: *Ts) -> U:
        return a
    T, U, Ts, P = f.__type_params__
    return f(x) + 1, T.__bound__, U.__constraints__, Ts.__name__, P.__name__, T.__infer_variance__, f.__annotations__["a"] is T
''', breaks=True)
program("generic class made inside", '''
def fn(x):
    seen = []
    class M(type):
        @classmethod
        def __prepare__(meta, name, bases, **kw):
            seen.append((name, sorted(kw)))
            return {}
        def __new__(meta, name, bases, space, **kw): return super().__new__(meta, name, bases, space)
        def __init__(cls, name, bases, space, **kw): pass
    class C[T](metaclass=M, opt=1):
        k: T
        n = [T.__name__ for _ in range(2)]
        def m[S](self, s: S) -> tuple[S, T]: return s
    return seen, C.n, type(C).__name__, C().m(3), C.__type_params__[0].__name__, x + 1
''', breaks=True)
program("aliases made inside", '''
def fn(x):
    type A = missing
    try:
        A.__value__
    except NameError as error:
        first = str(error)
    missing = 5
    class C:
        n = 3
        def m[T](self, a: T = n) -> T: return a
        type B = n
    return first, A.__value__, C().m(), C.B.__value__, x + 1
''', breaks=True)
program("defaults of type parameters", '''
def fn(x):
    class Box[T = int]: pass
    def f[T = str](a: T): return a
    return Box.__type_params__[0].__default__, f.__type_params__[0].has_default(), f(x) + 1
''', since=(3, 13), breaks=True)

# ---------------------------------------------------------------- statements of 3.11 that later versions changed
program("what close() gives", '''
def fn(x):
    def g():
        try:
            yield 1
        except GeneratorExit:
            return 7
    i = g()
    next(i)
    return i.close(), i.close(), x + 1
''', since=(3, 11))
program("what a class is told of itself", '''
def fn(x):
    class C:
        "doc"
        def __init__(self): self.a = 1; self.b = 2
        def m(self): self.c = 3
    return sorted(C.__dict__.get("__static_attributes__", ())), C.__dict__.get("__firstlineno__"), C.__doc__, x + 1
''', since=(3, 11))
program("docstrings and their indentation", r'''
def fn(x):
    def f():
        """first

            second
        third
        """
    class C:
        """a
           b
        """
    return f.__doc__, C.__doc__, x + 1
''', since=(3, 11))
program("super without a call", '''
class A:
    v = 1
    @property
    def p(self): return "p", type(self).__name__
    def m(self, *a): return "m", a
    @classmethod
    def c(cls): return cls.__name__

class B(A):
    v = 2
    def __init__(self): super().__init__()
    def run(self):
        out = [super().v, super().p, super().m(1, 2), super(B, self).m(*[3]), super().c(), super(B, type(self)).c()]
        f = super().m
        for bad in (lambda: super(B, self).nope, lambda: super(B, self).nope(), lambda: super(int, self).m()):
            try:
                bad()
            except (AttributeError, TypeError) as error:
                out.append(str(error))
        return out, f(9)
    def shadowed(self):
        super = lambda: A()
        return super().m(1)

def fn(x):
    return B().run(), B().shadowed(), x + 1
''', since=(3, 11))
program("error in __set_name__", '''
def fn(x):
    class D:
        def __set_name__(self, owner, name): raise ValueError("no " + name)
    try:
        class C:
            d = D()
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "__notes__", None), type(error.__cause__).__name__, x + 1
''', since=(3, 11), breaks=python_version >= (3, 12))
