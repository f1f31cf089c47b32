"""collections: OrderedDict, defaultdict, deque, Counter, ChainMap, User*, namedtuple; % and str.format."""
from __future__ import annotations

import copy
import heapq
import operator
import time
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple

import pytest
import torch

from minidynamo.testing import check

X = torch.ones(2)
Point = namedtuple("Point", "a b", defaults=[5])


class MyOrdered(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


class MyDeque(deque):
    def append(self, value):
        super().append(value)
        super().append(value)


class MyDefault(defaultdict):
    pass


def text_of(thunk):
    try:
        return thunk()
    except Exception as error:
        return type(error), str(error)


def ordered(d, x):
    d.move_to_end("a")
    d["z"] = x
    d.pop("b")
    seen = list(d), d.popitem(last=False), list(reversed(d)), d == OrderedDict(d), d == {1: 2}
    return (seen, d, d | {"q": x}, repr(OrderedDict([(1, OrderedDict()), (2, [3])])), d.copy(), d.keys(), x + 1,
            iter(d.items()))


def ordered_made_inside(x):
    d = OrderedDict(a=1, b=x)
    d.move_to_end("b", last=False)
    d.setdefault("k", x + 1)
    out = [text_of(lambda: d.pop("nope"))]
    try:
        for k in d:
            out.append(k)
            d[k + "1"] = 1
    except RuntimeError as e:
        out.append(str(e))
    return d, out, OrderedDict.fromkeys("abc", x), OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1)


def default(d, x):
    d["k"].append(x)
    d["j"]
    counts = defaultdict(int)
    for c in "hello":
        counts[c] += 1
    return d, counts, d.default_factory, repr(counts), counts | {"q": 2}, x + 1, d.copy(), text_of(lambda: defaultdict()[1])


def queue(d, x):
    d.append(x)
    d.appendleft(1)
    d.rotate(1)
    d.extend([3, 4])
    d.extendleft([5])
    first = d.popleft()
    d[0] = 9
    del d[1]
    d.insert(1, 7)
    return (first, d, len(d), list(reversed(d)), d.maxlen, 3 in d, d.index(9), d + deque([1]), d * 2,
            repr(deque([1, 2], 3)), d.copy(), x + 1, iter(d))


def queue_errors(x):
    d = deque([1, 2, 3], maxlen=3)
    d.append(4)
    out = []
    try:
        for i in d:
            out.append(1)
            d.append(i)
    except RuntimeError as e:
        out.append(str(e))
    out += [text_of(f) for f in (lambda: d.foo, lambda: d[9], lambda: d[1:], lambda: d + [1], lambda: deque().pop(),
                                 lambda: deque(1), lambda: deque([], -1), lambda: hash(d), lambda: d.remove(77))]
    return d, out, deque(range(3)) == deque([0, 1, 2]), deque([1]) < deque([2]), x + 1


def subclasses(o, q, d, x):
    o["c"] = x
    q.append(x)
    d["l"].append(x)
    q.y = 1
    o.z = x
    return o, q, d, list(o), len(q), o.copy(), q.copy(), x + 1


def subclasses_made_inside(x):
    o = MyOrdered(a=1)
    o.update(b=x)
    q = MyDeque([1], maxlen=5)
    q.append(x)
    d = MyDefault(list)
    d["a"].append(x)
    c = Counter("hello")
    c.update("abc")
    return o, q, d, c, c.most_common(2), x + 1


def counter(c, x):
    c["a"] += 1
    c.update("zz")
    return c, c["nope"], +c, c - Counter("a"), c.most_common(1), x + 1


def user_classes(x, m):
    chain = ChainMap({"a": 1}, {"b": x})
    chain["c"] = 2
    d = UserDict(a=1)
    d["b"] = x
    items = UserList([1, x])
    items.append(3)
    text = UserString("ab") + "c"
    return chain["b"], list(chain), d, items, text, text.upper(), len(d), m["b"], x + 1


def named(p, x):
    q = Point(x, 2)
    return (p.a + q.a, p, q, q._replace(b=3), Point._make([1, x]), q._asdict(), p == (1, 5), repr(Point(1, 2)), Point(1), p[0],
            operator.itemgetter(1, 0)(q), operator.attrgetter("a")(q))


@pytest.mark.parametrize(("fn", "args"), [
    (ordered, (OrderedDict(a=1, b=2, c=3), X)), (ordered_made_inside, (X,)), (default, (defaultdict(list, a=[1]), X)),
    (queue, (deque([1, 2]), X)), (queue, (deque([1, 2], maxlen=6), X)), (queue_errors, (X,)),
    (subclasses, (MyOrdered(a=1), MyDeque([1, 2], 5), MyDefault(list), X)), (subclasses_made_inside, (X,)),
    (counter, (Counter("abca"), X)), (user_classes, (X, ChainMap({"a": 1}, {"b": 2}))), (named, (Point(1), X))])
def test_collections(fn, args):
    assert not check(fn, *args, graphs=1).breaks


class Shown:
    def __init__(self, value):
        self.value = value

    def __str__(self):
        return f"<{self.value}>"

    def __repr__(self):
        return f"Shown({self.value})"

    def __format__(self, spec):
        return f"[{spec}|{self.value}]"

    def __int__(self):
        return 7

    def __float__(self):
        return 2.5

    def __index__(self):
        return 255


def test_percent_and_format():
    def fn(v, x):
        d = {"a": v, "b": [v, 1]}
        return [text_of(f) for f in (
            lambda: "%s %r %5s|%-9r|%.2s" % (v, v, "ab", v, "xyz"), lambda: "%d %x %f %5.1e" % (v, v, v, v),
            lambda: "%(a)s %(b)r" % d, lambda: "%*d|%-*d" % (5, 3, 4, 2), lambda: "%s" % v, lambda: "%s" % (v,),
            lambda: "%s %s" % (v,), lambda: "%s" % (v, v), lambda: "%d" % "a", lambda: "%z" % v, lambda: "%c%c" % (65, "b"),
            lambda: "{} {!r} {:>5}".format(v, v, "x"), lambda: "{0} {1} {0}".format(v, 2), lambda: "{a.value} {b[0]}".format(**d),
            lambda: "{:{}}".format(v, 3), lambda: "{} {0}".format(v), lambda: "{1}".format(v), lambda: "{z}".format(v),
            lambda: "{".format(v), lambda: "{a}".format_map(d), lambda: f"{v!r:>12}{v:abc}{v}", lambda: "%%", lambda: "%i%%" % v)
        ], x + 1
    assert not check(fn, Shown(3), X, graphs=1).breaks


def test_dict_views_from_outside():
    def fn(keys, values, items, x):
        return list(keys), [v + x for v in values], len(items), ("a", 1) in items, keys & {"a"}, list(reversed(keys))
    d = {"a": 1, "b": 2}
    assert not check(fn, make=lambda: (dict(d).keys(), dict(d).values(), dict(d).items(), X), graphs=1).breaks


def test_wrong_arguments():
    def fn(x):
        items, d, s = [1], {}, set()
        return [text_of(f) for f in (
            lambda: items.append(), lambda: items.insert(1), lambda: items.reverse(1), lambda: list(1, 2), lambda: list(a=1),
            lambda: d.get(), lambda: d.update(1, 2), lambda: s.add(), lambda: len(), lambda: sorted([1], 1), lambda: "a".join(),
            lambda: "a".split(foo=1), lambda: zip(foo=1), lambda: range(), lambda: isinstance(1), lambda: next(),
            lambda: [].__len__(1), lambda: min(), lambda: {}.setdefault(), lambda: items.sort(foo=1), lambda: float(1, 2))], x + 1
    assert not check(fn, X, graphs=1).breaks


class Times:
    def __index__(self):
        return 2

    def __rmul__(self, other):
        return "rmul", other


class Index:
    def __index__(self):
        return 3


def test_operators():
    def fn(x):
        class Q(deque):
            pass

        class O(OrderedDict):
            pass

        class D(defaultdict):
            pass
        q, o, d, n = Q([1], 3), O(a=1), D(int, b=2), Index()
        return [type(v).__name__ for v in (q + q, q * 2, 2 * q, q.copy(), o | {}, {} | o, OrderedDict() | o, d | {}, {} | d)], [
            text_of(f) for f in (
                lambda: [1] * Times(), lambda: (1,) * n, lambda: "ab" * n, lambda: b"a" * n, lambda: n * [1], lambda: "a" + n,
                lambda: [1] + n, lambda: (1,) + [1], lambda: n + 1, lambda: 1 - n, lambda: b"" + "", lambda: [1] * "a", lambda: {} | n,
                lambda: deque() + 1, lambda: set() - [1], lambda: "a" - "b", lambda: q + 1)], x + 1
    assert not check(fn, X, graphs=1).breaks


class Tagged(float):
    def __init__(self, value, tag=None):
        self.tag = tag


def test_searches_copies_of_slices_and_floats_with_names():
    def fn(x):
        s = slice(1, 2, [3])
        shallow, deep = copy.copy(s), copy.deepcopy(s)
        return [text_of(f) for f in (
            lambda: operator.countOf([1, 2, 1], 1), lambda: operator.indexOf("abc", "c"), lambda: operator.indexOf([], 1),
            lambda: operator.countOf(3, 1))], Tagged(1.5, tag=2).tag, shallow == s, deep == s, deep.step is s.step, x + 1
    assert not check(fn, X, graphs=1).breaks


class Heavy:
    """Compares by weight, and notes each comparison."""

    def __init__(self, weight, log):
        self.weight, self.log = weight, log

    def __lt__(self, other):
        self.log.append((self.weight, other.weight))
        return self.weight < other.weight


@pytest.mark.parametrize("numbers", [[], [3], [5, 1, 4, 1, 5, 9, 2, 6], list(range(7, 0, -1))])
def test_heaps(numbers):
    """Every function of the C module over one list: the order of comparisons is CPython's."""
    def heaps(x, numbers):
        log, out = [], []
        for heapify, pop, replace in ((heapq.heapify, heapq.heappop, heapq.heapreplace),
                                      (heapq._heapify_max, heapq._heappop_max, heapq._heapreplace_max)):
            heap = [Heavy(n, log) for n in numbers]
            heapify(heap)
            for function, *args in ((replace, Heavy(4, log)), (heapq.heappush, Heavy(2, log)),
                                    (heapq.heappushpop, Heavy(3, log)), (pop,), (pop,), (pop,)):
                try:
                    popped = function(heap, *args)
                except IndexError as error:
                    out.append(str(error))
                else:
                    out.append(popped and popped.weight)
            out.append([item.weight for item in heap])
        return log, out, x + len(log)
    check(heaps, X, numbers, min_graphs=1)


def test_a_heap_that_changes_while_it_is_compared():
    class Growing(int):
        def __lt__(self, other):
            HEAP.append(self)
            return int.__lt__(self, other)

    def grows(x):
        try:
            heapq.heapify(HEAP)
        except RuntimeError as error:
            return str(error), x + len(HEAP)

    HEAP = []

    def run(x):
        HEAP[:] = [Growing(n) for n in (3, 2, 1)]
        return grows(x)
    check(run, X, min_graphs=1)


def test_many_small_changes_of_a_long_list():
    """Each costs by what it moves, not by a copy of the list."""
    def fn(x):
        items, queue = list(range(20_000)), deque(range(20_000))
        total = 0
        for _ in range(3_000):
            total += items.pop() + queue.popleft()
            items[5] += 1
            queue.append(total)
            del items[7]
            items.insert(3, total)
        return items[:10], len(items), len(queue), queue[-1], x + total
    began = time.perf_counter()
    check(fn, X, graphs=1, calls=1)
    assert time.perf_counter() - began < 60


def test_index_arguments_too_large():
    def fn(x):
        texts = []
        for act in (lambda: [1].pop(1 << 70), lambda: [1].insert(1 << 70, 2), lambda: deque([1]).insert(-1 << 70, 2),
                    lambda: [1] * (1 << 70), lambda: (1,) * (1 << 62), lambda: [1].pop(5), lambda: [].pop(-1)):
            try:
                act()
            except Exception as error:
                texts.append((type(error).__name__, str(error)))
        return texts, x + 1
    check(fn, X, graphs=1)


def test_heaps_of_literals_and_of_others():
    class Item:
        def __init__(self, rank):
            self.rank = rank

        def __lt__(self, other):
            return self.rank < other.rank

    def fn(x):
        heap, others, texts = [5, 3, 8, 1, 9, 2], [Item(n) for n in (4, 1, 3)], []
        heapq.heapify(heap)
        heapq.heapify(others)
        heapq.heappush(heap, 0)
        out = [heapq.heappop(heap), heapq.heappushpop(heap, 4), heapq.heapreplace(heap, 7), heapq.heappop(others).rank]
        for act in (lambda: heapq.heappush((), 1), lambda: heapq.heapify({}), lambda: heapq.heappop([]), lambda: heapq.heappush(1),
                    lambda: heapq.heappush([1], "a"), lambda: heapq.heapreplace(deque(), 1)):
            try:
                out.append(act())
            except Exception as error:
                texts.append((type(error).__name__, str(error)))
        return out, heap, heapq.nlargest(2, heap), texts, x + 1
    check(fn, X, graphs=1)
