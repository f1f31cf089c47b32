"""What every written program stands on; read as text, and run anew for each."""
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools

import minidynamo
import torch

LOG = []
G = [1, 2]
N = 3
D = {"a": 1}
T = torch.arange(3.0)
NT = collections.namedtuple("NT", "f g")


class Failed(ValueError):
    pass


class P:
    k = 2

    def __init__(self, x=0, y=None):
        self.x = x
        self.y = y

    def __repr__(self):
        return f"P({self.x!r})"

    def __eq__(self, other):
        LOG.append("eq")
        return isinstance(other, P) and self.x == other.x

    def __hash__(self):
        return 7

    def __add__(self, other):
        return P(self.x + (other.x if isinstance(other, P) else other))

    def __len__(self):
        return 2

    def __getitem__(self, i):
        if i > 2:
            raise IndexError(i)
        return self.x

    @property
    def p(self):
        return self.x

    @p.setter
    def p(self, v):
        self.x = v

    def m(self, v=1, *rest, **more):
        self.x = v
        return self


class Q(P):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name

    def m(self, v=5, *rest, **more):
        LOG.append(len(rest))
        return super().m(v)


class R(P):
    """Overrides what P leaves alone."""

    count = 0

    def __init__(self, x=0):
        super().__init__(x, [x])
        type(self).count += 1

    def __setattr__(self, name, v):
        LOG.append(name)
        object.__setattr__(self, name, v)

    def __bool__(self):
        LOG.append("bool")
        return bool(self.x)

    def __lt__(self, other):
        return self.x < (other.x if isinstance(other, P) else other)

    def __radd__(self, other):
        return ("radd", other, self.x)

    def __iadd__(self, other):
        self.x = other
        return self

    def __call__(self, *args, **kwargs):
        self.y = args
        return len(args), kwargs

    def __contains__(self, v):
        return v == self.x

    def __iter__(self):
        yield self.x
        yield self.y

    def __setitem__(self, key, v):
        self.y = key, v

    def __format__(self, spec):
        return f"R<{spec}>"


class I:
    """An iterator of the user's."""

    def __init__(self, stop):
        self.at, self.stop = 0, stop

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= self.stop:
            raise StopIteration("done")
        self.at += 1
        LOG.append(self.at)
        return self.at


class L(list):
    def append(self, v):
        LOG.append("append")
        super().append(v)


class DD(dict):
    def __missing__(self, key):
        LOG.append("missing")
        self[key] = 0
        return key

    def __setitem__(self, key, v):
        dict.__setitem__(self, key, v)
        self.last = key


class S(set):
    def add(self, v):
        LOG.append("add")
        set.add(self, v)


class C(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(repr=False)      # its own would look up the id of `self` in a set: another one each time
class W:
    x: int = 1
    y: list = dataclasses.field(default_factory=list)

    def __repr__(self):
        return f"W({self.x}, {self.y})"


class M:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        LOG.append("in")
        return self

    def __exit__(self, kind, value, tb):
        LOG.append(kind.__name__ if kind else None)
        return self.swallow


@contextlib.contextmanager
def managed(v):
    LOG.append("enter")
    try:
        yield v
    except ZeroDivisionError:
        LOG.append("swallowed")
    finally:
        LOG.append("exit")


def numbers(stop=3):
    got = None
    try:
        for i in range(stop):
            try:
                got = yield (i, got)
            except Failed as error:
                got = error.args
    finally:
        LOG.append("closed")
    return "end"


def through(inner):
    got = yield from inner
    yield got


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        LOG.append("call")
        return fn(*args, **kwargs)
    return wrapper


def brk(v=None):
    minidynamo.graph_break()
    return v


def boom(v):
    LOG.append("boom")
    raise Failed(v)


def call(fn, *args, **kwargs):
    return fn(*args, **kwargs)


def many():
    """Whether the program has gone on for long."""
    return len(LOG) > 60 or len(G) > 40
