"""Values of the standard library's C types: datetime, decimal, struct.Struct: folded, guarded, and exact in everything."""
from __future__ import annotations

import calendar
import copy
import datetime
import decimal
import fractions
import locale
import math
import pickle
import statistics
import struct
import time
import zoneinfo
from datetime import date, timedelta, timezone
from decimal import Decimal

import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.arange(3.)
DAY, NOON, MONEY = date(2024, 1, 2), datetime.datetime(2024, 1, 2, 12, tzinfo=timezone.utc), Decimal("1.50")
BERLIN, HEADER = zoneinfo.ZoneInfo("Europe/Berlin"), struct.Struct("<IH")


def captured(fn, *args, **more):
    assert not check(fn, *args, graphs=1, **more).breaks


# ---------------------------------------------------------------- one family each
def dates(x):
    made = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
    return (x + DAY.day, DAY + timedelta(days=2), (date(2024, 3, 1) - DAY).days, DAY.isocalendar(), [*DAY.isocalendar()],
            DAY.isocalendar().week, made.replace(year=2020), str(made), repr(made), made.isoformat(" "), made.timetuple(),
            made.date(), made.time(), date.fromisoformat("2024-05-06"), date.max - DAY, {DAY: 1}[date(2024, 1, 2)],
            sorted([date(2, 1, 1), DAY, date(1, 1, 1)]), min(DAY, date(1, 1, 1)), DAY == date(2024, 1, 2), DAY < date(2025, 1, 1),
            hash(DAY) == hash(date(2024, 1, 2)), bool(timedelta()), abs(-timedelta(1)), timedelta(3) / timedelta(2),
            divmod(timedelta(3), timedelta(2)), sum([timedelta(1), timedelta(2)], timedelta()), f"{DAY:%d.%m.%Y} {DAY!r:>20}")


def zones(x):
    there = NOON.astimezone(BERLIN)
    east = timezone(timedelta(hours=2), "east")
    return (x + 1, there, there.tzinfo is BERLIN, there.utcoffset(), NOON.timestamp(), NOON.tzinfo is timezone.utc,
            datetime.datetime.fromtimestamp(0, east), east.tzname(None), there == NOON, NOON.strftime("%H:%M %z %Z"),
            datetime.datetime.strptime("2024-01-02 +0300", "%Y-%m-%d %z"), timezone(timedelta(0)) is timezone.utc)


def decimals(x):
    third = Decimal(1) / 3
    return (x + 1, MONEY, third, MONEY + 1, 2 * MONEY, MONEY ** 2, divmod(MONEY, 1), -MONEY, MONEY.quantize(Decimal("0.1")),
            round(MONEY, 1), round(MONEY), math.floor(MONEY), math.sqrt(Decimal(4)), int(MONEY), float(MONEY), complex(MONEY),
            MONEY == 1.5, MONEY < 2, {MONEY: "a"}[1.5], {1: "b"}.get(Decimal(1)), sum([MONEY, 2]), max(MONEY, 1),
            MONEY.as_tuple(), f"{MONEY:.1f}|{MONEY:>8}", "%s %.2f %d" % (MONEY, MONEY, MONEY), Decimal("NaN").is_nan(),
            statistics.mean([Decimal(1), Decimal(2)]), fractions.Fraction(MONEY), Decimal(MONEY) is MONEY)


def structs(x):
    packer, room = struct.Struct("<H"), bytearray(8)
    packer.pack_into(room, 1, 258)
    struct.pack_into("<b", room, -1, -1)
    return (room, x + HEADER.size, HEADER.pack(1, 2), HEADER.unpack(b"abcdef"), packer.pack(7), packer.format, struct.unpack("<H", b"ab"),
            struct.unpack_from("<H", bytearray(b"abc"), 1))


def calendars(x):
    return (x + 1, calendar.monthrange(2024, 2), calendar.monthcalendar(2024, 2), calendar.month_name[3],
            calendar.TextCalendar().formatmonth(2024, 2), calendar.timegm((2024, 1, 1, 0, 0, 0)))


def copies(x):
    return (x + 1, copy.copy(NOON), copy.deepcopy([NOON, DAY, MONEY]), copy.copy(MONEY) is MONEY, pickle.loads(pickle.dumps(DAY)))


@pytest.mark.parametrize("fn", [dates, zones, decimals, structs, calendars, copies])
def test_values_of_the_library(fn):
    captured(fn, X)


# ---------------------------------------------------------------- what they refuse
REFUSED = [
    lambda: date(2024, 13, 1), lambda: DAY + 1, lambda: DAY < 1, lambda: DAY + torch.ones(1), lambda: timedelta(1) * "a", lambda: -DAY,
    lambda: NOON < datetime.datetime(2024, 1, 1), lambda: date("a"), lambda: date(), lambda: timedelta(nothing=1), lambda: DAY.nothing,
    lambda: date.fromisoformat("x"), lambda: timezone(3), lambda: timezone(timedelta(3)), lambda: len(DAY), lambda: DAY[0],
    lambda: iter(timedelta(1)), lambda: DAY(), lambda: 1 in timedelta(1), lambda: int(DAY), lambda: math.sqrt(DAY), lambda: round(DAY),
    lambda: sorted([DAY, 3]), lambda: divmod(timedelta(1), 0), lambda: [1][MONEY], lambda: range(MONEY), lambda: "%d" % DAY,
    lambda: Decimal("x"), lambda: MONEY / 0, lambda: Decimal(0) / 0, lambda: MONEY + "a", lambda: MONEY < 1j, lambda: hash(Decimal("sNaN")),
    lambda: Decimal("sNaN") == 1, lambda: Decimal("nan") < 1, lambda: f"{MONEY:zz}", lambda: f"{timedelta(1):zz}",
    lambda: struct.Struct("zz"), lambda: HEADER.pack("a", 1), lambda: struct.pack("<b", 300), lambda: Decimal(fractions.Fraction(1, 2)),
    lambda: struct.pack_into("<H", bytearray(1), 0, 1), lambda: [*MONEY], lambda: {**MONEY}, lambda: print(*MONEY), lambda: getattr(DAY, MONEY),
]


def refused(x):
    found = []
    for attempt in REFUSED:
        try:
            found.append(attempt())
        except Exception as error:
            found.append((type(error), str(error), error.args, error.__context__))
    return x + 1, found


def test_what_they_refuse():
    captured(refused, X)


# ---------------------------------------------------------------- guards
def test_values_from_outside_are_guarded_by_value_and_type():
    def fn(x, when):
        return x + when.day, when, when + timedelta(1)
    compiled = minidynamo.optimize(fn, backend="eager", fullgraph=True)
    for when in (DAY, date(2024, 1, 2), date(2023, 5, 6), datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 2, fold=1), NOON):
        assert repr(compiled(X, when)) == repr(fn(X, when))
        assert compiled(X, when)[1] is when


def test_equal_values_are_told_apart():
    def fn(x, value):
        return x + 1, str(value), value.is_signed() if isinstance(value, Decimal) else value.tzinfo
    east, also = timezone(timedelta(hours=1), "a"), timezone(timedelta(hours=1), "b")
    compiled = minidynamo.optimize(fn, backend="eager", fullgraph=True)
    for value in (Decimal("1.0"), Decimal("1.00"), Decimal("0"), Decimal("-0"), NOON.replace(tzinfo=east), NOON.replace(tzinfo=also)):
        assert repr(compiled(X, value)) == repr(fn(X, value))
        assert compiled(X, value)[2] is fn(X, value)[2]


def test_identity():
    def fn(x, a, b):
        made = DAY + timedelta(1)
        return x + 1, a is b, a is a, made is DAY + timedelta(1), [made, made], made
    compiled = minidynamo.optimize(fn, backend="eager", fullgraph=True)
    other = date(2024, 1, 2)
    for a, b in ((DAY, DAY), (DAY, other), (other, other)):
        assert compiled(X, a, b)[1:4] == fn(X, a, b)[1:4]
    first, second = compiled(X, DAY, DAY), compiled(X, DAY, DAY)
    assert first[-1] is first[-2][0] and first[-1] is not second[-1]


def test_a_value_that_is_never_the_same_does_not_use_up_the_limit():
    def fn(x, when):
        return x * 2, when.isoformat()
    compiled = minidynamo.optimize(fn, backend="eager")
    minidynamo.reset()
    for day in range(1, 29):
        assert compiled(X, date(2024, 1, day))[1] == f"2024-01-{day:02}"
    assert minidynamo.counters["frames"]["total"] < 16 and not minidynamo.counters["skips"]["MD0801"]


class Own(date):
    def isoformat(self):
        return "own"


class Zone(datetime.tzinfo):
    def utcoffset(self, when):
        return timedelta(0)


def test_the_users_own_classes_stay_pythons():
    def fn(x, own):
        return (x + 1, own + timedelta(1), f"{own}", own == DAY, DAY == own, Own(2024, 1, 1),
                NOON - datetime.datetime(1, 1, 1, tzinfo=Zone()))
    check(fn, min_graphs=1, make=lambda: (X, Own(2024, 1, 2)))


# ---------------------------------------------------------------- global state
def test_decimal_context_is_guarded_and_its_flags_are_set():
    def fn(x):
        return x + 1, Decimal(1) / 3
    compiled = minidynamo.optimize(fn, backend="eager", fullgraph=True)
    for prec in (28, 5, 28):
        with decimal.localcontext() as context:
            context.prec = prec
            for _ in range(2):
                context.clear_flags()
                assert compiled(X)[1] == fn(X)[1]
                context.clear_flags()
                compiled(X)
                assert [s for s, on in context.flags.items() if on] == [decimal.Inexact, decimal.Rounded]
    with decimal.localcontext() as context:
        context.traps[decimal.Inexact] = True
        with pytest.raises(decimal.Inexact):
            minidynamo.optimize(fn, backend="eager")(X)


def test_decimal_context_set_in_the_frame():
    def fn(x):
        with decimal.localcontext() as context:
            context.prec = 5
            short = Decimal(1) / 3
        return x + 1, short, Decimal(1) / 3, decimal.getcontext().prec
    check(fn, X, min_graphs=1)


def test_the_local_time_zone_is_pythons(monkeypatch):
    def fn(x):
        naive = datetime.datetime(2024, 7, 1)
        return x + 1, naive.timestamp(), naive.astimezone(timezone.utc), datetime.datetime.fromtimestamp(0), date.fromtimestamp(0)
    compiled = minidynamo.optimize(fn, backend="eager")
    try:
        for zone in ("UTC", "America/New_York"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert compiled(X)[1:] == fn(X)[1:]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_names_of_days_are_guarded_by_the_locale():
    def fn(x):
        return x + 1, DAY.strftime("%A"), f"{DAY:%x}"
    compiled = minidynamo.optimize(fn, backend="eager", fullgraph=True)
    before = locale.setlocale(locale.LC_ALL)
    try:
        for name in ("C", "C.UTF-8", "C"):
            locale.setlocale(locale.LC_ALL, name)
            assert compiled(X)[1:] == fn(X)[1:]
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_the_clock_is_read_each_time():
    def fn(x):
        return x + 1, datetime.datetime.now(timezone.utc), time.perf_counter()
    compiled = minidynamo.optimize(fn, backend="eager")
    first, second = compiled(X), compiled(X)
    assert first[1] < second[1] and first[2] < second[2]
