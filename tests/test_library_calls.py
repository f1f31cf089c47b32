"""Library calls in a traced function: captured where they are pure, and never anything but CPython's answer."""
from __future__ import annotations

import array
import base64
import binascii
import contextvars
import datetime
import decimal
import enum
import functools
import logging
import math
import os
import pathlib
import re
import statistics
import string
import threading
import typing
import weakref
import zlib

import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.arange(4.0) + 1


# ---------------------------------------------------------------- operators of values that are not modelled
DATE, DAY = datetime.date(2024, 1, 2), datetime.timedelta(days=1)
MONEY, NUMBERS, LOCAL = decimal.Decimal("1.5"), array.array("i", [1, 2]), threading.local()


class OwnDate(datetime.date):
    pass


OWN = OwnDate(2018, 1, 5)


def sums(x):
    try:
        return x + 1, DATE + DAY, OWN + DAY, 1 + MONEY, NUMBERS + NUMBERS, NUMBERS * 2
    except TypeError as error:
        return str(error)


def signs(x):
    try:
        return x + 1, -DAY, abs(MONEY), int(MONEY), float(MONEY), +MONEY
    except TypeError as error:
        return str(error)


def in_place(x):
    money = MONEY
    try:
        money += 1
        return x + 1, money
    except TypeError as error:
        return str(error)


def ordered(x):
    try:
        return x + 1, DATE < OWN, DATE == datetime.date(2024, 1, 2), MONEY != 1.5, NUMBERS == NUMBERS, 2 in NUMBERS
    except TypeError as error:
        return str(error)


def thread_local(x):
    try:
        LOCAL.value = 3
    except AttributeError as error:
        return str(error)
    return x * LOCAL.value


def refused(x):
    found = []
    for fn in (lambda: DATE + 1, lambda: DATE < 1, lambda: -DATE, lambda: MONEY + "a"):
        try:
            fn()
        except TypeError as error:
            found.append(str(error))
    return x + len(found), found


@pytest.mark.parametrize("program", [sums, signs, in_place, ordered, thread_local, refused])
def test_operators_of_a_type_without_a_kind_are_pythons(program):
    check(program, X, min_graphs=1)


# ---------------------------------------------------------------- enums
class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


class Loud(enum.Enum):
    A = 1

    def __hash__(self):
        print("hash")
        return 3


class Word(str, enum.Enum):
    YES = "yes"


COUNTS, ACTIONS = {Color.RED: 2, Color.GREEN: 3}, {Color.RED: torch.relu, Color.GREEN: torch.tanh}
COLORS, LOUD = {Color.RED, Color.GREEN}, {Loud.A: 1}


class Acts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = Color.GREEN

    def forward(self, x):
        return ACTIONS[self.kind](x)


ACTS = Acts()


def looked_up(x):
    return x * COUNTS[Color.GREEN], Color.BLUE in COUNTS, COUNTS.get(Color.BLUE), Color.RED in COLORS, list(COUNTS)


def through_a_module(x):
    return ACTS(x)


def put_in(x):
    found = {Color.RED: x}
    found[Color.RED] += 1
    return found, hash(Color.RED) == hash("RED")


def shown(x):
    return x + 1, f"{Word.YES}|{Word.YES:>5}|{Color.RED}|{Color.RED!r:>20}", str.__format__("a", ">4"), format(Word.YES, "<5")


@pytest.mark.parametrize("program", [looked_up, through_a_module, put_in, shown])
def test_enum_members_as_keys_and_text(program):
    assert not check(program, X, graphs=1).breaks


def test_another_member_is_another_trace():
    model = Acts()
    compiled = minidynamo.optimize(model)
    for kind in (Color.RED, Color.GREEN, Color.RED):
        model.kind = kind
        assert torch.equal(compiled(X), model(X))



def test_a_hash_of_the_users_runs_as_often_as_in_python():
    check(lambda x: x * LOUD[Loud.A], X, min_graphs=1)          # it prints


# ---------------------------------------------------------------- context variables
LEVEL: contextvars.ContextVar = contextvars.ContextVar("level", default=3)
BARE: contextvars.ContextVar = contextvars.ContextVar("bare")


def read(x):
    return x * LEVEL.get(), BARE.get(5)


def unset(x):
    try:
        return BARE.get()
    except LookupError as error:
        return x + 1, error.args[0] is BARE


@pytest.mark.parametrize("program", [read, unset])
def test_context_variables_are_read(program):
    assert not check(program, X, graphs=1).breaks


def test_a_context_variable_is_a_fact():
    compiled = minidynamo.optimize(lambda x: x * LEVEL.get())
    assert torch.equal(compiled(X), X * 3)
    token = LEVEL.set(5)
    assert torch.equal(compiled(X), X * 5)
    LEVEL.reset(token)
    assert torch.equal(compiled(X), X * 3)


def test_setting_a_context_variable_is_pythons():
    def fn(x):
        token = LEVEL.set(5)
        y = x * LEVEL.get()
        LEVEL.reset(token)
        return y * LEVEL.get()
    check(fn, X, min_graphs=2)


# ---------------------------------------------------------------- logging
LOG = logging.getLogger("minidynamo.tests.library")


def test_a_message_below_the_level_costs_nothing():
    def fn(x):
        LOG.debug("shape %s", x.shape)
        if LOG.isEnabledFor(logging.INFO):
            x = x * 2
        return x + 1
    LOG.setLevel(logging.WARNING)
    LOG.isEnabledFor(logging.DEBUG), LOG.isEnabledFor(logging.INFO)        # the logger's own cache
    minidynamo.reset()
    compiled = minidynamo.optimize(fn, fullgraph=True)
    assert torch.equal(compiled(X), X + 1)
    LOG.setLevel(logging.INFO)
    try:
        assert torch.equal(minidynamo.optimize(fn)(X), X * 2 + 1)
    finally:
        LOG.setLevel(logging.WARNING)


def test_a_message_that_is_shown_is_shown(caplog):
    def fn(x):
        y = x + 1
        LOG.warning("sum %s", y.sum().item())
        return y * 2
    compiled = minidynamo.optimize(fn)
    with caplog.at_level(logging.WARNING, logger=LOG.name):
        assert torch.equal(compiled(X), fn(X))
    ours, plain = [record for record in caplog.records if record.name == LOG.name]
    assert (ours.getMessage(), ours.lineno, ours.funcName) == (plain.getMessage(), plain.lineno, plain.funcName)


# ---------------------------------------------------------------- weak containers
class Key:
    pass


KEY, OTHER = Key(), Key()
BY_KEY: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary({KEY: 4})
BY_NAME: weakref.WeakValueDictionary = weakref.WeakValueDictionary({"a": KEY})
MEMBERS = weakref.WeakSet([KEY])


def weakly_held(x):
    return (x * BY_KEY[KEY], KEY in BY_KEY, OTHER in BY_KEY, len(BY_KEY), BY_KEY.get(OTHER, 7), BY_NAME["a"] is KEY,
            len(BY_NAME), BY_NAME.get("b"), KEY in MEMBERS, OTHER in MEMBERS, 3 in MEMBERS, len(MEMBERS))


@functools.singledispatch
def doubled(value):
    return 0


@doubled.register
def _(value: int):
    return value * 2


@doubled.register(torch.Tensor)
def _(value):
    return value + value


def test_weak_containers_are_read():
    assert not check(weakly_held, X, graphs=1).breaks


def test_single_dispatch_is_captured_once_it_is_cached():
    def fn(x):
        return doubled(x) * doubled(3)
    fn(X)
    assert not check(fn, X, graphs=1).breaks


# ---------------------------------------------------------------- pure functions
UserId = typing.NewType("UserId", int)
PATTERN = re.compile(r"(\d+)")
FILE = pathlib.Path("/a/b.txt")


def folded_sums(x):
    return x * math.prod(x.shape), math.prod([1.5, 2]), math.prod([], start=3), math.fsum([0.1] * 10), math.dist([0, 0], (3, 4))


def reduced(x):
    found = []
    for args in (([],), (3,), ([1], 2, 3)):
        try:
            functools.reduce(lambda a, b: a, *args)
        except TypeError as error:
            found.append(str(error))
    return functools.reduce(torch.add, [x, x, x]), functools.reduce(lambda a, b: a + b, [1, 2, 3], 10), found


def matches(x):
    numbers = PATTERN.finditer("1 22 333")
    first = next(numbers)
    return (x + sum(int(m.group()) for m in numbers), first.span(), [m.start() for m in re.finditer("a*", "baac")],
            type(numbers).__name__)


def half_used(x):
    numbers = PATTERN.finditer("1 22 333")
    next(numbers)
    print("break")
    return x + len([m[0] for m in numbers])


def replaced(x):
    return (x + 1, re.sub(r"\d+", lambda m: str(int(m.group()) * 2), "a1b22"), re.subn("a*", lambda m: "-", "baac"),
            re.sub("x*", lambda m: "-", "abxd"), PATTERN.sub(lambda m: m[1] * 2, "1b2", count=1),
            re.sub(b"b", lambda m: b"z", b"abcb"), string.Template("$a is ${b} $$").substitute(a=1, b="z"))


def replaced_by_no_text(x):
    try:
        return re.sub("a", lambda m: 3, "bab")
    except TypeError as error:
        return x + 1, str(error)


def paths(x):
    return (x + 1, os.fspath("a"), os.path.join("a", "b", "/c", "d"), os.path.splitext("a/b.c"), os.path.dirname("/a/b"),
            os.path.normpath("a/../b"), os.fspath(FILE), FILE.suffix)


def no_path(x):
    try:
        return os.fspath(3)
    except TypeError as error:
        return x + 1, str(error)


def digests(x):
    return x + zlib.crc32(b"abc") % 7, base64.b64encode(b"ab"), base64.b64decode("YWI="), binascii.hexlify(b"a")


def new_type(x):
    return x * UserId(4)


def averages(x):
    return x * statistics.mean([1, 2, 3]) + statistics.fmean([1.0, 2.0]) + statistics.median([1, 2])


PURE = [folded_sums, reduced, matches, replaced, replaced_by_no_text, paths, no_path, digests, new_type, averages]


@pytest.mark.parametrize("program", PURE)
def test_pure_functions_are_captured(program):
    assert not check(program, X, graphs=1).breaks


def test_matches_that_are_left_over_at_a_break():
    check(half_used, X, graphs=1)


def shown_with_traceback(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        error.add_note("note")
        error.place = 3
        return x + error.place, error.__notes__[0], "place" in vars(error)


def test_an_exception_takes_attributes():
    assert not check(shown_with_traceback, X, graphs=1).breaks
