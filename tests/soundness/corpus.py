"""Small programs in every syntax form; each is run with a break forced at every one of its steps.

A program is a function whose name starts with ``p_``, called without arguments in a namespace of its own.
"""
import contextlib
import functools
import sys

import torch

G = [1, 2, 3]
COUNT = 0
T = torch.arange(4.0)


class Point:
    kind = "point"

    def __init__(self, x, y):
        self.x, self.y = x, y

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))

    def __repr__(self):
        return f"Point({self.x}, {self.y})"

    def move(self, dx=0, *, dy=0):
        self.x += dx
        self.y += dy
        return self


class Point3(Point):
    __match_args__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        super().__init__(x, y)
        self.z = z

    def move(self, dx=0, *, dy=0, dz=0):
        super().move(dx, dy=dy)
        self.z += dz
        return self

    def later(self):
        return lambda: (self.z, super(Point3, self).norm)

    def captured(self):
        get = lambda: self.z  # noqa: E731
        super().move(get())
        return self.x, get()


class Lookup:
    def __getattr__(self, name):
        if name.startswith("a"):
            return name * 2
        raise AttributeError(name)


class Manager:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, tb):
        self.log.append(kind.__name__ if kind else "fine")
        return self.swallow


class Mine(ValueError):
    pass


def fail(text):
    raise Mine(text)


def pair(a, b=2, *rest, c=3, **more):
    return a, b, rest, c, sorted(more.items())


# ---------------------------------------------------------------- names, operators
def p_arithmetic():
    a, b = 3, 4
    c = a * b + a - b // 2 ** a % 5
    d = (a < b <= c) and not a == b
    e = a & b | c ^ 1 << 2 >> 1
    return c, d, e, -a, +b, ~c, a / b, a if d else b


def p_tensor():
    x = T + 1
    y = x * 2
    x = y.sum() + x[1]
    return x, y


def p_tensor_inplace():
    x = T.clone()
    y = x
    x += 1
    y.mul_(2)
    x[1] = 7
    return x, y, x is y


def p_locals():
    a = 1
    b = a
    del a
    try:
        return a
    except UnboundLocalError as error:
        c = str(error)
    a = 5
    return a, b, c


def p_argument_gone():
    def inner(x, y):
        del x
        y = [y]
        try:
            x  # noqa: B018
        except UnboundLocalError:
            x = "back"
        return x, y
    return inner(1, 2)


def p_global():
    global COUNT
    COUNT += 1
    G.append(COUNT)
    COUNT = COUNT + len(G)
    return COUNT, G


def p_global_delete():
    global FRESH, COUNT
    FRESH = [1]
    a = FRESH
    del FRESH
    try:
        return FRESH
    except NameError as error:
        COUNT = "deleted"
        return a, str(error), COUNT


def p_nonlocal():
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total
    add(2)
    total *= 10
    add(3)
    return total, add(1)


def p_closures():
    made = []
    for i in range(3):
        made.append(lambda j=i: (i, j))
    x = 1
    get = lambda: x  # noqa: E731
    x = 2
    return [f() for f in made], get(), made[0] is not made[1]


def p_cell_delete():
    x = [1]

    def get():
        return x
    first = get()
    del x
    try:
        get()
    except NameError as error:
        text = str(error)
    x = [2]
    return first, text, get()


def p_walrus():
    if (n := len(G)) > 2 and (m := n + 1):
        return n, m, [y := 1, y + 1]
    return None


def p_chained():
    a = b = c = [0]
    b[0] = 5
    (d, e), *f = (1, 2), 3, 4
    *g, h = "xyz"
    return a, b, c, a is c, d, e, f, g, h


def p_augmented():
    x = [1, 2]
    y = x
    x += [3]
    x[0] += 10
    p = Point(1, 2)
    p.x += 4
    p.y **= 3
    s = {1}
    s |= {2}
    t = (1,)
    u = t
    t += (2,)
    return x, y, x is y, p, s, t, u


def p_subscripts():
    x = list(range(8))
    x[1:3] = "ab"
    del x[-1], x[0]
    d = {"a": {"b": 1}}
    d["a"]["c"] = d["a"].pop("b")
    return x, x[::2], x[1:-1], d


def p_fstring():
    a, b = 1.5, "z"
    return f"{a:>8.3f}|{b!r:>5}|{a}{b}|{a + 1!s}|{'x':{4}}|{{}}"


def p_compare_chain():
    x = [1]
    return 1 < 2 < 3 > 2, x is x, x is not None, 1 in x, 3 not in x, None is None


# ---------------------------------------------------------------- calls
def p_calls():
    return (pair(1), pair(1, 5, 6), pair(*[1, 2], *(3,)), pair(b=1, a=0), pair(1, c=9, d=4, **{"e": 5}),
            pair(**{"a": 1, "z": 2}))


def p_call_errors():
    found = []
    for call in (lambda: pair(), lambda: pair(1, a=2), lambda: pair(*1), lambda: pair(**3), lambda: fail()):
        try:
            call()
        except TypeError as error:
            found.append(str(error))
    return found


def p_methods():
    p = Point(1, 2)
    m = p.move
    m(1, dy=2)
    Point.move(p, 5)
    return p, p.norm, p + Point(1, 1), p.kind, "a-b".split("-"), [1, 2].index(2)


def p_super():
    p = Point3(1, 2, 3).move(1, dz=4)
    return p.x, p.y, p.z, p.later()(), p.captured()


def p_getattr():
    x = Lookup()
    try:
        x.other  # noqa: B018
    except AttributeError as error:
        return x.abc, str(error), hasattr(x, "b")


def p_decorated():
    def twice(fn):
        @functools.wraps(fn)
        def inner(*args):
            return fn(fn(*args))
        return inner

    @twice
    def add(x):
        """Adds."""
        return x + 1
    return add(1), add.__name__, add.__doc__


def p_defaults():
    box = []

    def f(a, b=box, *, c={"k": 1}):  # noqa: B006
        b.append(a)
        c["k"] += 1
        return b, c
    return f(1), f(2), f(3, [0], c={"k": 0}), box


def p_recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    return fib(5)


# ---------------------------------------------------------------- loops
def p_for():
    found = []
    for i in range(5):
        if i == 1:
            continue
        if i == 4:
            break
        found.append(i)
    else:
        found.append("else")
    for j in ():
        found.append(j)
    else:
        found.append("empty")
    return found, i


def p_while():
    n, seen = 6, []
    while n:
        n -= 1
        if n % 2:
            continue
        seen.append(n)
    else:
        seen.append("done")
    while True:
        n += 1
        if n > 2:
            break
    return n, seen


def p_nested_loops():
    found = []
    for i in range(3):
        for j in range(i):
            if (i + j) % 3 == 0:
                break
            found.append((i, j))
        else:
            found.append(i)
    return found


def p_loop_tensor():
    x = T
    for i, y in zip(range(3), (1.0, 2.0, 3.0)):
        x = x + i * y
        if i == 1:
            print("turn", i)
    return x


def p_loop_try():
    found = []
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            if i == 2:
                raise Mine(i)
            found.append(i)
        except Mine as error:
            found.append(str(error))
        finally:
            found.append("f")
    return found


def p_iterators():
    it = iter([1, 2, 3, 4])
    first = next(it)
    rest = [x for x in it if x > 2]
    e = enumerate("ab", 5)
    return first, rest, next(e), list(e), next(it, "end"), list(map(str, range(3))), list(reversed([1, 2]))


def p_iterator_in_loop():
    it = iter(range(6))
    found = []
    for x in it:
        found.append((x, next(it)))
    return found


# ---------------------------------------------------------------- comprehensions, generators
def p_comprehensions():
    n = 2
    a = [x * n for x in range(4) if x]
    b = {x: y for x, y in zip("ab", a)}
    c = {x % 2 for x in a}
    d = [[i + j for j in range(i)] for i in range(3)]
    return a, b, c, d, sum(x for x in a), [lambda: x for x in range(2)][0]()


def p_generator():
    def gen(n):
        got = yield n
        try:
            yield got
        finally:
            yield "closing"
        return "end"
    g = gen(1)
    return next(g), g.send(5), list(g)


def p_yield_from():
    def inner():
        x = yield 1
        return x

    def outer():
        r = yield from inner()
        yield ("got", r)
        yield from [7, 8]
    g = outer()
    return next(g), g.send("s"), list(g)


def p_generator_loop():
    def gen():
        for i in range(3):
            yield i, T + i
    total = 0
    for i, t in gen():
        total = total + t.sum() * i
    return total


# ---------------------------------------------------------------- exceptions
def p_try():
    log = []
    try:
        log.append(1)
        fail("a")
        log.append(2)
    except (KeyError, Mine) as error:
        log.append((type(error).__name__, error.args, error.__context__))
    else:
        log.append("else")
    finally:
        log.append("finally")
    try:
        pass
    except Exception:
        log.append("no")
    else:
        log.append("fine")
    return log


def p_reraise():
    try:
        try:
            fail("inner")
        except Mine:
            raise
    except ValueError as error:
        return type(error).__name__, error.args, error.__context__, error.__cause__


def p_raise_from():
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise Mine("second") from error
    except Mine as error:
        return error.args, error.__cause__, error.__context__ is error.__cause__, error.__suppress_context__


def p_context():
    try:
        try:
            1 // 0
        except ZeroDivisionError:
            [][1]
    except IndexError as error:
        return repr(error), repr(error.__context__), error.__cause__


def p_finally_return():
    def f(x):
        try:
            if x == 0:
                return "try"
            if x == 1:
                raise Mine("lost")
        finally:
            if x:
                return "finally"  # noqa: B012
        return "end"
    return f(0), f(1), f(2)


def p_uncaught():
    x = [1]
    x.append(2)
    y = T + len(x)
    G.append(y)
    raise Mine("out", x)


def p_uncaught_deep():
    def deep(n):
        if not n:
            G.append("deep")
            return {}["missing"]
        try:
            return deep(n - 1)
        finally:
            G.append(n)
    return deep(2)


def p_uncaught_chain():
    try:
        fail("first")
    except Mine as error:
        x = T * 2
        G.append(x)
        raise RuntimeError("second") from error


def p_uncaught_in_handler():
    try:
        fail("first")
    except Mine:
        return [][3]


def p_uncaught_reraise():
    try:
        fail("first")
    except KeyError:
        return None
    finally:
        G.append("finally")


def p_named_twice():
    error = 1
    try:
        fail("x")
    except Mine as error:  # noqa: F841
        kept = error
    try:
        error  # noqa: B018
    except UnboundLocalError:
        return kept.args


def p_nested_handlers():
    log = []
    try:
        fail("a")
    except Mine as a:
        try:
            fail("b")
        except Mine as b:
            log.append((a.args, b.args, b.__context__ is a))
        try:
            raise
        except Mine as again:
            log.append(again is a)
    return log


def p_torch_error():
    try:
        return T + torch.ones(3)
    except RuntimeError as error:
        return type(error).__name__, str(error)[:40]


def p_assert():
    x = 1
    assert x, "fine"
    try:
        assert not x, f"bad {x}"
    except AssertionError as error:
        return error.args


def p_groups():
    found = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), TypeError(3)])
    except* ValueError as group:
        found.append(group.exceptions)
    except* (KeyError, TypeError) as group:
        found.append(len(group.exceptions))
    return found


def handled():
    kind, value, tb = sys.exc_info()
    return None if kind is None else (kind.__name__, value.args, lines(tb))


def lines(tb):
    found = []
    while tb is not None:
        found.append((tb.tb_lineno, tb.tb_frame.f_code.co_name))
        tb = tb.tb_next
    return found


def p_exc_info():
    log = [handled()]
    try:
        fail("a")
    except Mine:
        log.append(handled())
        try:
            {}["b"]
        except KeyError:
            log.append(handled())
        log.append(handled())
    log.append(handled())
    return log


def p_exc_info_left():
    def leave(how):
        try:
            fail(how)
        except Mine:
            if how == "return":
                return handled()
            for _ in range(2):
                try:
                    fail("loop")
                except Mine:
                    if how == "break":
                        break
                    continue
        finally:
            seen.append(handled())
        return handled()
    seen = []
    return [leave("return"), leave("break"), leave("continue"), handled()], seen


def p_exc_info_of_caller():
    def inner():
        first = handled()
        try:
            fail("inner")
        except Mine as error:
            second = handled(), error.__context__ is None
        return first, second, handled()
    before = inner()
    try:
        fail("outer")
    except Mine:
        return before, inner(), handled()


def p_traceback_lines():
    def deep(n):
        if n:
            return deep(n - 1)
        x = T + 1
        return x[fail("deep")]
    try:
        try:
            deep(2)
        except Mine as error:
            first = lines(error.__traceback__)
            raise
    except ValueError as error:
        again = lines(error.__traceback__)
    try:
        raise error_of(3)
    except Mine as error:
        return first, again, lines(error.__traceback__)


def error_of(n):
    try:
        fail(n)
    except Mine as error:
        return error


def p_raise_kept():
    kept = error_of(1)
    seen = []
    for _ in range(2):
        try:
            raise kept
        except Mine as error:
            seen.append((error is kept, len(lines(error.__traceback__))))
    return seen


def p_bare_raise_in_helper():
    def again():
        raise
    try:
        try:
            fail("x")
        except Mine:
            again()
    except Mine as error:
        return lines(error.__traceback__), error.__context__


def p_nothing_to_raise():
    try:
        raise
    except RuntimeError as error:
        return error.args


def p_suppressed():
    try:
        try:
            fail("x")
        except Mine:
            raise KeyError("y") from None
    except KeyError as error:
        return error.__suppress_context__, error.__cause__, error.__context__.args


def p_exception_in_generator():
    def gen():
        try:
            yield handled()
            yield 2
        except Mine as error:
            yield error.args, handled()
        yield handled()
    g = gen()
    got = [next(g)]
    try:
        fail("outside")
    except Mine:
        got.append(next(g))
    got.append(g.throw(Mine("thrown")))
    got.append(next(g))
    return got


def p_finally_over():
    log = []

    def f():
        for i in range(3):
            try:
                if i == 1:
                    fail(i)
            finally:
                log.append((i, handled()))
                if i == 1:
                    continue  # noqa: B012
        return "end"
    return f(), log, handled()


# ---------------------------------------------------------------- with
def p_with():
    log = []
    with Manager(log) as a, Manager(log, True):
        log.append(a is not None)
        fail("swallowed")
    return log


def p_with_return():
    log = []

    def f():
        with Manager(log):
            for i in range(3):
                with Manager(log):
                    if i == 1:
                        return i
    return f(), log


def p_with_raise():
    log = []
    try:
        with Manager(log), Manager(log):
            fail("through")
    except Mine as error:
        log.append(error.args)
    return log


def p_with_torch():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
        z = torch.is_grad_enabled()
    w = x * 3
    return y, z, w, torch.is_grad_enabled()


def p_with_torch_raise():
    try:
        with torch.no_grad():
            x = T * 2
            fail(str(torch.is_grad_enabled()))
    except Mine as error:
        return x, error.args, torch.is_grad_enabled()


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield 5
    except Mine:
        log.append("caught")
    finally:
        log.append("out")


def p_contextmanager():
    log = []
    with managed(log) as x:
        log.append(x)
        fail("y")
    with contextlib.suppress(KeyError):
        {}["a"]
    return log


def p_finally_order():
    log = []
    for i in range(2):
        try:
            try:
                log.append(i)
                if i:
                    fail(i)
            finally:
                log.append("inner")
                y = T + i
        except Mine:
            log.append("caught")
        finally:
            log.append(y)
    return log


# ---------------------------------------------------------------- match
def p_match():
    found = []
    for subject in (1, "a", [1, 2, 3], {"k": 1, "z": 2}, Point3(1, 2, 3), (), None, Point(0, 1), [1, [2]], 2.5):
        match subject:
            case 1 | "a" as x:
                found.append(("literal", x))
            case [a, *rest] if len(rest) > 1:
                found.append((a, rest))
            case [a, [b]]:
                found.append((a, b))
            case {"k": k, **more}:
                found.append((k, more))
            case Point3(x, y, z=zz):
                found.append((x, y, zz))
            case Point(x=0):
                found.append("origin")
            case float(x):
                found.append(x)
            case None | []:
                found.append("none")
            case _:
                found.append("else")
    return found


# ---------------------------------------------------------------- classes, imports
def p_class():
    base = 3

    class Local(Point):
        count = base + 1
        names = [str(i) for i in range(2)]

        def area(self):
            return self.x * base
    p = Local(2, 1)
    return p.area(), Local.count, Local.names, Local.__name__, Local.__qualname__


def p_import():
    import math
    from collections import OrderedDict as Ordered
    import os.path as path
    return math.sqrt(4), Ordered(a=1), path.join("a", "b")


def p_lambda_default():
    fs = [lambda x, i=i: x + i for i in range(3)]
    key = sorted([3, 1, 2], key=lambda v: -v)
    return [f(1) for f in fs], key


# ---------------------------------------------------------------- effects, aliasing, cycles
def p_aliases():
    a = []
    b = {"a": a, "again": a}
    a.append(b)
    a.append(a)
    c = (a, b)
    a.append(c)
    return c, b["a"] is a


def p_swap_attributes():
    p, q = Point([1], [2]), Point([3], [4])
    p.x, q.x = q.x, p.x
    p.y = p
    q.y = [p, q]
    p.x.append(9)
    return p.x, q.x, q.y[0] is p, p.y is p


def p_old_in_new():
    old = G[:]
    new = [old, G]
    G.append(new)
    G[0] = old
    return new[1] is G, len(G), G[0] is old, G[-1] is new


def p_overwritten():
    p = Point(T, G)
    was = p.x
    p.x = was + 1
    p.y = [p.y, was]
    G.append(p)
    del p.x
    return was, p.y, hasattr(p, "x")


def p_delete_all():
    d = {"a": 1, "b": [2]}
    p = Point(1, d)
    del d["a"], p.x
    p.y["c"] = p
    return list(d), p.y is d, vars(p).keys() == {"y"}


def p_set_dict_methods():
    s = {3, 1}
    s.add(2)
    s.discard(1)
    d = dict(a=1)
    d.setdefault("l", []).append(s)
    d.update(b=2)
    k = d.popitem()
    return s, d, k, d.get("l")[0] is s


def p_print():
    print("a", T + 1)
    x = T * 2
    print("b", end="")
    G.append(x)
    print(len(G))
    return x
