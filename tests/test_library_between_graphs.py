"""What library calls between two graphs give is another value each time: no recompile per call, and the right answer."""
from __future__ import annotations

import random
import sys
import time
import uuid

import pytest
import torch

import minidynamo
from minidynamo.testing import same

A = torch.arange(4.0)


def scaled(x):
    return x * random.random()


def branch(x):
    if random.random() < 0.5:
        x = x * 2
    return x + random.uniform(1, 2)


def gaussian(x):
    y = x + 1
    return y * random.gauss(0, 1), y


def chosen(x):
    return x + random.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])


def shuffled(x):
    order = list(range(4))
    random.shuffle(order)
    return x[order] * 2, order


def one_of_many(x):
    return x + [10, 20, 30, 40, 50, 60][random.randint(0, 5)]


def seeded(x):
    random.seed(3)
    first = random.random()
    random.seed(3)
    return x * first, first == random.random()


def state_kept(x):
    state = random.getstate()
    first = random.random()
    random.setstate(state)
    return x * first, first == random.random()


def own_generator(x):
    generator = random.Random(5)
    return x * generator.random() + generator.randint(1, 9)


@pytest.mark.parametrize("program", [scaled, branch, gaussian, chosen, shuffled, one_of_many, seeded, state_kept, own_generator])
def test_random_numbers(program):
    minidynamo.reset()
    compiled = minidynamo.optimize(program)
    random.seed(11)
    want = [program(A) for _ in range(16)]
    after = random.getstate()
    random.seed(11)
    with minidynamo.config.patch(error_on_internal=True):
        got = [compiled(A) for _ in range(16)]
    assert same(want, got, tol=0.0) and random.getstate() == after
    assert minidynamo.counters["frames"]["ok"] and not minidynamo.counters["limits"]


def timed(x):
    start = time.perf_counter()
    y = x.sin()
    spent = time.perf_counter() - start
    return y, spent >= 0.0, f"{spent:.1f}".count(".")


def named(x):
    name = uuid.uuid4().hex
    y = x.cos()
    return y * len(name), f"run-{name}".startswith("run-"), "-" in name, name.upper() == name


@pytest.mark.parametrize("program", [timed, named])
def test_times_and_names(program):
    minidynamo.reset()
    compiled = minidynamo.optimize(program)
    with minidynamo.config.patch(error_on_internal=True):
        for turn in range(30):
            if turn == 28:
                before = minidynamo.counters["frames"]["total"]
            assert same(program(A), compiled(A), tol=0.0)
    assert minidynamo.counters["frames"]["total"] - before <= 1 and not minidynamo.counters["limits"]


def test_a_stream_that_is_replaced_is_not_a_fact(capsys):
    def fn(x):
        sys.stdout.write("seen\n")
        return x + 1

    class Stream:
        __slots__ = ("wrote",)

        def __init__(self):
            self.wrote = []

        def write(self, text):
            self.wrote.append(text)

    minidynamo.reset()
    compiled, streams = minidynamo.optimize(fn), [Stream() for _ in range(20)]
    before = sys.stdout
    try:
        for stream in streams:
            sys.stdout = stream
            compiled(A)
    finally:
        sys.stdout = before
    assert all(stream.wrote == ["seen\n"] for stream in streams) and not minidynamo.counters["limits"]
