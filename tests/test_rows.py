"""R1-R7 of the mission as properties: hypothesis chooses the values, plain CPython says what is right."""
from __future__ import annotations

import collections
import typing
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import minidynamo
from minidynamo.code.writer import UnsafeConstant, Writer, is_safe_constant
from minidynamo.observe.describe import describe, difference

EXAMPLES = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck),
                    phases=(Phase.explicit, Phase.generate))
LITERALS = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "", b"x", 2.5, None, True, ..., (1, "b")]))


def same(fn: Any, make: Any, calls: int = 3) -> None:
    """`fn(*make())`, several times, eagerly and compiled, with and without a break; arguments are seen afterwards."""
    minidynamo.reset()
    compiled = minidynamo.optimize(fn)
    with minidynamo.config.patch(error_on_internal=True):
        ours, theirs = make(), make()
        for _ in range(calls):
            seen = difference(describe([outcome(fn, theirs), theirs]), describe([outcome(compiled, ours), ours]))
            assert seen is None, seen
    assert minidynamo.counters["stats"]["unique_graphs"], "nothing was captured"


def outcome(fn: Any, args: Any) -> Any:
    try:
        return fn(*args)
    except Exception as error:
        return type(error), error.args


class Thing:
    def __init__(self, k: int) -> None:
        self.k = k


# ---------------------------------------------------------------- R1
@EXAMPLES
@given(st.frozensets(LITERALS, max_size=4), st.sampled_from(["tensor", "thing", "none"]))
def test_r1_frozensets(items, kind):
    """A frozenset is a constant only if every item is a literal: what is done to a tensor or an object in it is seen."""
    def make():
        more = {"tensor": [torch.ones(2)], "thing": [Thing(1)], "none": []}[kind]       # one: their order is by address
        return frozenset([*items, *more]), torch.ones(2)

    def f(s, x):
        for item in s:
            if isinstance(item, torch.Tensor):
                x = x + item
                item.add_(1)
            elif isinstance(item, Thing):
                x = x * item.k
                item.k += 1
        minidynamo.graph_break()
        return x + len(s), 1 in s, s | {"more"}, s
    same(f, make)


# ---------------------------------------------------------------- R2
@EXAMPLES
@given(st.recursive(LITERALS, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=2)), max_leaves=4),
       st.sampled_from([torch.ones(1), Thing(1), [1], {1}, {}, list[int], object(), typing.Optional[int]]))
def test_r2_constants(literal, other):
    """LOAD_CONST is for literals through and through; anything else is refused where the instruction is made."""
    out = Writer()
    out.load_const(literal)
    assert is_safe_constant(literal)
    for refused in (other, (literal, other), ((other,), literal)):
        with pytest.raises(UnsafeConstant):
            out.load_const(refused)


# ---------------------------------------------------------------- R3
@EXAMPLES
@given(st.integers(0, 3), st.just(1))          # of more, the order is by address: Python iterates
def test_r3_no_source_no_guard(start, count):
    """What is made while tracing, and items of a set, install no guards of their own: equal sets share an entry."""
    def f(s, x):
        made = {Thing(start + i) for i in range(count)}
        total = sum(thing.k for thing in made) + sum(s)
        minidynamo.graph_break()
        return x + total
    minidynamo.reset()
    compiled = minidynamo.optimize(f)
    x = torch.ones(2)
    counts = []
    for _ in range(3):
        assert torch.equal(compiled({1, 2}, x), f({1, 2}, x))
        counts.append(minidynamo.counters["frames"]["ok"])
    assert counts[0] >= 2, "the frame and its resume function"
    assert counts[2] == counts[1]


# ---------------------------------------------------------------- R4
ALIASES = [list[int], dict[str, int], typing.Optional[int], typing.List[int], typing.Union[int, str], tuple[int, ...], int | None,
           typing.Callable[[int], str], collections.deque[int], type[int], dict[str, list[int]]]


@EXAMPLES
@given(st.sampled_from(ALIASES), st.sampled_from(ALIASES))
def test_r4_typing_aliases(first, second):
    """An alias stays the same alias over a break and back, and another one is another fact."""
    def f(alias, x):
        kept = [alias, list[int], typing.Optional[int]]
        minidynamo.graph_break()
        return kept, typing.get_origin(alias), typing.get_args(alias), alias == second, x + len(typing.get_args(alias))
    compiled = minidynamo.optimize(f)
    x = torch.ones(1)
    minidynamo.reset()
    for alias in (first, second, first):
        kept, *rest = compiled(alias, x)
        assert kept[0] is alias
        assert kept[1:] == [list[int], typing.Optional[int]] and type(kept[1]) is type(list[int])
        assert difference(describe(rest), describe([*f(alias, x)[1:]])) is None


# ---------------------------------------------------------------- R5, R6
class Lst(list):
    def __getitem__(self, at):
        return "mine"

    def append(self, value):
        self.log = [*getattr(self, "log", []), value]
        super().append(value)

    def extend(self, values):
        raise RuntimeError("not by the user's own")

    def __len__(self):
        return 77

    def __iter__(self):
        return iter(["mine"])


LIST_STEPS = {
    "append": lambda l, v: l.append(v), "base append": lambda l, v: list.append(l, v), "attribute": lambda l, v: setattr(l, "tag", v),
    "set": lambda l, v: l.__setitem__(0, v), "insert": lambda l, v: l.insert(0, v), "pop": lambda l, v: l.pop(),
    "slice": lambda l, v: l.__setitem__(slice(0, 1), [v, v]), "clear": lambda l, v: l.clear(), "delete": lambda l, v: l.__delitem__(0),
    "read": lambda l, v: (l[0], len(l), list.__len__(l), [i for i in l])}


@EXAMPLES
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.lists(st.sampled_from(sorted(LIST_STEPS)), min_size=1, max_size=5), st.booleans())
def test_r5_list_subclasses(items, steps, broken):
    """Items and attributes are tracked apart, and written back through list's own methods."""
    todo = [LIST_STEPS[name] for name in steps]

    def f(l, x):
        x = x + 1
        seen = []
        for step in todo:
            try:
                seen.append(step(l, x))
            except IndexError as error:
                seen.append(str(error))
            if broken:
                minidynamo.graph_break()
        return seen, x
    same(f, lambda: (Lst(items), torch.ones(2)))


class Dct(dict):
    def keys(self):
        return ["mine"]

    def __iter__(self):
        return iter(["mine"])

    def __missing__(self, key):
        return ("missing", key)

    def __setitem__(self, key, value):
        self.last = key
        super().__setitem__(key, value)

    def update(self, *args, **kwargs):
        raise RuntimeError("not by the user's own")


class Odd(collections.OrderedDict):
    def __iter__(self):
        return iter(["mine"])


DICT_STEPS = {
    "set": lambda d, v: d.__setitem__("k", v), "base set": lambda d, v: dict.__setitem__(d, "b", v), "read": lambda d, v: (d.get("a"), len(d)),
    "missing": lambda d, v: d.get("gone", v), "pop": lambda d, v: d.pop("a", None), "attribute": lambda d, v: setattr(d, "tag", v),
    "iterate": lambda d, v: [*d], "items": lambda d, v: list(dict.items(d)), "clear": lambda d, v: d.clear(), "in": lambda d, v: "a" in d,
    "setdefault": lambda d, v: d.setdefault("s", v)}


@EXAMPLES
@given(st.sampled_from([Dct, Odd, dict, collections.OrderedDict]), st.lists(st.sampled_from(sorted(DICT_STEPS)), min_size=1, max_size=5), st.booleans())
def test_r6_dict_subclasses(kind, steps, broken):
    """Keys are read with dict's own methods; overridden ones are the user's code."""
    todo = [DICT_STEPS[name] for name in steps if (name != "attribute" or kind in (Dct, Odd)) and (name != "base set" or kind in (Dct, dict))]

    def make():
        made = kind()
        dict.__setitem__(made, "a", 1) if kind in (Dct, dict) else collections.OrderedDict.__setitem__(made, "a", 1)
        return made, torch.ones(2)

    def f(d, x):
        x = x * 2
        seen = []
        for step in todo:
            seen.append(step(d, x))
            if broken:
                minidynamo.graph_break()
        return seen, x
    same(f, make)


# ---------------------------------------------------------------- R7
ITERATORS = {
    "range": lambda n: iter(range(1, 2 * n + 9, 2)), "backwards": lambda n: iter(range(n + 9, -9, -1)), "list": lambda n: iter(list(range(n + 5))),
    "tuple": lambda n: iter((7, 8, 9, 10, 11, 12)), "str": lambda n: iter("abcdefgh"), "dict": lambda n: iter(dict.fromkeys(range(n + 7))),
    "zip": lambda n: zip(range(9), "abcdefghi"), "enumerate": lambda n: enumerate("abcdefghi", n), "reversed": lambda n: reversed([1, 2, 3, 4, 5, 6])}


@EXAMPLES
@given(st.sampled_from(sorted(ITERATORS)), st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), st.booleans())
def test_r7_iterators_as_inputs(kind, size, before, steps, broken):
    """What a call takes from an iterator its caller sees taken, over a break and on every later call."""
    def make():
        made = ITERATORS[kind](size)
        for _ in range(before):
            next(made)
        return made, torch.ones(2)

    def f(it, x):
        x = x + 1
        seen = []
        for _ in range(steps):
            seen.append(next(it, "end"))
            if broken:
                minidynamo.graph_break()
        return seen, x
    same(f, make)
    ours, theirs = make(), make()
    compiled = minidynamo.optimize(f)
    for _ in range(2):
        compiled(*ours), f(*theirs)
    assert list(ours[0]) == list(theirs[0])
