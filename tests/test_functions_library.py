"""functools and operator: partials, caches, getters, cmp_to_key, reduce; C modules imported afresh; ``__dict__`` assigned to."""
from __future__ import annotations

import collections
import copy
import functools
import operator

import pytest
import torch
from test.support import import_helper

from minidynamo.testing import check

X = torch.arange(3.)
FRESH = import_helper.import_fresh_module("functools", fresh=["_functools"])
FRESH_OPERATOR = import_helper.import_fresh_module("operator", fresh=["_operator"])


class O:
    pass


class P(functools.partial):
    pass


class A(dict):
    def __init__(self, **k):
        dict.__init__(self, **k)
        self.__dict__ = self


class Shared:
    shared: dict = {}

    def __init__(self):
        self.__dict__ = self.shared


class Restored:
    def __setstate__(self, s):
        self.__dict__ = s


class M:
    def f(self, a, k=1):
        return a, k


def capture(*a, **k):
    return a, k


def err(f, *a, **k):
    try:
        return f(*a, **k)
    except Exception as e:
        return type(e), str(e)


# ------------------------------------------------------------------ partial
def made_partials(x):
    p = functools.partial(capture, 1, 2, a=10)
    p.name = "zz"
    q = functools.partial(p, 3, b=4)
    r = functools.partial(functools.partial(capture, 1), 2, c=3)
    s = P(capture, 5)
    s.k = 3
    t = P(s, 7)
    u = functools.partial(s)
    out = [p.func is capture, p.args, p.keywords, p.__dict__, q.func is p, q(8), r.func is capture, r(9), s(1), t.func is s,
           u.func is s, repr(functools.partial(len, 1, a=2)), repr(P(int)), p.__reduce__()[2][3], r.__reduce__()[2][3]]
    out += [err(functools.partial), err(functools.partial, 3), err(setattr, p, "func", 3), err(delattr, p, "__dict__"),
            err(iter, p), err(len, s)]
    return p, q, r, s, t, out, x + 1


def states(x):
    p = functools.partial(capture)
    p.a = 3
    p.__setstate__((p, (1,), {}, None))
    out = [p.__dict__, p.func is p, repr(functools.partial(len, []))]
    out += [err(p.__setstate__, bad) for bad in [(capture, (1,), None), (capture, [1], None, None), 3]]
    q = copy.copy(functools.partial(capture, [1], b=3))
    r = copy.deepcopy(functools.partial(capture, [1], b=3))
    p.__setstate__((capture, (1,), None, {"z": 1}))
    return p, q, r, q(), p.z, out, x + 1


def given_partial(x, p):
    p.z = 3
    p.keywords["q"] = 7
    return p(1), functools.partial(p), functools.partial(p, 2).func is p, x + 1


def changed_partial(x, p):
    p.__setstate__((len, ((1, 2),), {}, dict(a=3)))
    return p(), p.a, p.__dict__, x + 1


@pytest.mark.parametrize("fn", [made_partials, states])
def test_partials_made(fn):
    assert not check(fn, X).breaks


@pytest.mark.parametrize("fn", [given_partial, changed_partial])
@pytest.mark.parametrize("kind", [functools.partial, P, FRESH.partial])
def test_partials_given(fn, kind):
    assert not check(fn, make=lambda: (X, kind(capture, 1))).breaks


# ------------------------------------------------------------------ ``__dict__`` = ...
def dicts_assigned(x):
    a = A(b=1)
    a.c = 2
    a["d"] = 3
    out = [a.b, a["c"], a.d, dict(a), sorted(vars(a))]
    b = Shared()
    b.q = 3
    c = Shared()
    out += [c.q, Shared.shared]
    del c.q
    out.append(hasattr(b, "q"))
    y = Restored()
    y.old = 5
    before = y.__dict__
    y.__setstate__({"m": 1})
    y.n = 2
    before["old"] = 6
    out += [err(setattr, y, "__dict__", 3), hasattr(y, "old"), before]
    z = copy.copy(y)
    del y.__dict__
    return a, b, y, z, out, x + 1


def dict_of_argument_assigned(x, y):
    d = {"k": x}
    y.__dict__ = d
    y.m = 1
    d["n"] = 2
    return y.k, y.n, y.__dict__ is d, x + 1


def test_dicts_assigned():
    assert not check(dicts_assigned, X).breaks
    assert not check(dict_of_argument_assigned, make=lambda: (X, Restored())).breaks


# ------------------------------------------------------------------ getters, cmp_to_key, operator
def getters(x):
    o = O()
    o.a = O()
    o.a.b, o.c = 3, 4
    out=[operator.attrgetter("a.b","c")(o), operator.itemgetter(1,0)([5,6]), operator.methodcaller("join",["a","b"])("-"), operator.methodcaller("sort",reverse=True)([1,2])]
    ag=operator.attrgetter
    out+=[err(ag), err(ag,2), err(ag,"a",3), err(ag,"a",z=1), err(ag("a")), err(ag("a"),1,2), err(ag("a"),o=1), err(ag("zz"),o), err(operator.itemgetter), err(operator.methodcaller), err(operator.methodcaller,3),err(operator.methodcaller("x"))]
    out+=[repr(ag("a.b","c")), repr(operator.itemgetter(1,"z")), repr(operator.methodcaller("f",1,k=2)), ag("a").__reduce__()[1], operator.methodcaller("f",1,k=2).__reduce__()[1], operator.methodcaller("f",1,k=2).__reduce__()[0].keywords]
    out+=[copy.copy(ag("c"))(o), copy.deepcopy(operator.methodcaller("upper"))("x")]
    return out, x+1


def key_wrappers(x):
    K=functools.cmp_to_key(lambda a,b:b-a)
    out=[sorted([3,1,2],key=K), K(1)<K(2), K(obj=3).obj, err(K), err(K,1,2), err(K,1,x=2),err(K,z=2), err(type(K)), err(type(K(1))), err(hash,K(1)), err(lambda: K(1)<3), err(functools.cmp_to_key), err(functools.cmp_to_key,1,2)]
    return out,x+1


class AddsAnything:
    def __getitem__(self, at):
        return at

    def __add__(self, other):
        return "added"


def concatenated(x):
    return [operator.concat(AddsAnything(), []), err(operator.concat, AddsAnything(), 2)], x + 1


def operators(x):
    def hint(value):
        class H:
            def __length_hint__(self):
                return value
        return H()
    out = [err(operator.length_hint, hint(v)) for v in (3, -1, "a", NotImplemented, True)]
    out += [err(operator.length_hint, [1], "a"), err(operator.length_hint, 1, 5), operator.inv(3),
            operator.concat([1], [2]), err(operator.concat, 1, 2), err(operator.concat, [1], 2), err(operator.concat, {}, []),
            operator.iconcat([1], (2, 3)), err(operator.iconcat, 3, []), err(operator.concat, "a", "b")]
    out += [functools.reduce(operator.add, [1, 2], 5), functools.reduce(operator.add, "abc"), err(functools.reduce, max, []),
            err(functools.reduce, max, 5), err(functools.reduce, max), err(functools.reduce, max, [], 1, 2),
            err(functools.reduce, max, [3], a=1)]
    if hasattr(operator, "call"):
        out += [operator.call(capture, 1, a=2), err(operator.call), err(operator.call, 3)]
    return out, x + 1


@pytest.mark.parametrize("fn", [getters, key_wrappers, operators, concatenated])
def test_operator_and_functools(fn):
    assert not check(fn, X).breaks


def test_getters_given():
    def fn(x, call, item, names):
        return call("a"), item([1, 2]), names(M()), x + 1
    assert not check(fn, make=lambda: (X, operator.methodcaller("center", 5, "*"), operator.itemgetter(1),
                                       operator.methodcaller("f", 2, k=7))).breaks


# ------------------------------------------------------------------ lru_cache
def caches(x):
    @functools.lru_cache(maxsize=2)
    def f(a,b=1):
        """doc"""
        return (a,b)
    out=[f(1),f(1),f(2),f(1,b=1),f(3),f(1),f.cache_info(),f.__name__,f.__doc__,f.__wrapped__(1),f.cache_parameters()]
    f.cache_clear()
    out+=[f.cache_info(), f(1)is f(1)]
    @functools.cache
    def fib(n): return n if n<2 else fib(n-1)+fib(n-2)
    out+=[fib(50),fib.cache_info(), err(fib,[1])]
    @functools.lru_cache(maxsize=None,typed=True)
    def t(*a,**k): return a,k
    out+=[t(1),t(1.0),t(True),t(a=1),t(a=1.0),t(1,a=2),t.cache_info()]
    @functools.lru_cache(0)
    def z(a): return [a]
    out+=[z(1) is z(1), z.cache_info()]
    class A:
        @functools.lru_cache
        def m(self,x): return [x]
        @functools.lru_cache
        def n(self): raise KeyError("q")
    a,b=A(),A()
    out+=[a.m(1) is a.m(1), a.m(1) is b.m(1), A.m.cache_info(), err(a.n), err(a.n), A.n.cache_info(), a.m.__self__ is a, err(functools.lru_cache,maxsize="x"), err(functools.lru_cache(3),5)]
    out.append(copy.copy(f) is f and copy.deepcopy(f) is f)
    return out, x+1


@FRESH.lru_cache(maxsize=2)
def small(a, b=1):
    return [a, b]


def test_caches_made():
    assert not check(caches, X).breaks


def test_an_unused_cache_leaves_the_trace_and_a_used_one_is_pythons():
    def unused(x):
        @functools.lru_cache
        def f(a):
            return a + 1
        return f, x + 1

    def used(x):
        @functools.lru_cache
        def f(a):
            return a + 1
        f(2)
        return f.cache_info(), f(3), f, x + 1
    assert not check(unused, X).breaks
    assert check(used, X, cached=False).breaks


def test_a_full_cache_forgets():
    def fn(x):
        small.cache_clear()
        first = small(1)
        return first is small(1), small(2), small(1, b=1), small(3), small(1) is first, x + 1
    assert check(fn, X, cached=False).graphs


# ------------------------------------------------------------------ C modules imported afresh
def fresh_modules(x):
    p = FRESH.partial(capture, 1)

    class Mine(FRESH.partial):
        pass
    q = Mine(capture, 2)

    @FRESH.lru_cache
    def f(a):
        return a
    return (type(p) is FRESH.partial, type(p) is functools.partial, p(2), isinstance(q, Mine), q(3), f(1), f.cache_info()[0],
            sorted([3, 1], key=FRESH.cmp_to_key(lambda a, b: a - b)), FRESH_OPERATOR.attrgetter("shape")(x),
            FRESH_OPERATOR.itemgetter(1)([1, 2]), type(FRESH_OPERATOR.itemgetter(1)) is operator.itemgetter,
            FRESH_OPERATOR.methodcaller("upper")("a"), FRESH.reduce(lambda a, b: a + b, [1, 2]), x + 1)


def test_fresh_modules():
    assert FRESH.partial is not functools.partial
    assert not check(fresh_modules, X).breaks


# ------------------------------------------------------------------ facts of C classes
def c_classes(x):
    return (hasattr(collections.defaultdict, "__abstractmethods__"), hasattr(type, "__abstractmethods__"),
            err(getattr, int, "__abstractmethods__"), err(getattr, int, "__annotations__"), err(type(x for x in ())),
            hasattr([].append, "func"), err(getattr, [].append, "func"), x + 1)


def test_c_classes():
    assert not check(c_classes, X).breaks
