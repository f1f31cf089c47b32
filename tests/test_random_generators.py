"""random: numbers of generators whose state is known while tracing, and the state afterwards."""
from __future__ import annotations

import copy
import random

import pytest
import torch

import minidynamo
from minidynamo.testing import check

X = torch.ones(2)


class Loaded(random.Random):
    def random(self):
        return super().random() / 2


def draws(generator):
    items = list(range(9))
    generator.shuffle(items)
    return (generator.random(), generator.randrange(100), generator.randint(1, 6), generator.choice("abc"), items,
            generator.sample(range(50), 5), generator.choices("xyz", k=4), generator.uniform(1, 2), generator.gauss(0, 1),
            generator.gauss(0, 1), generator.getrandbits(70), generator.betavariate(1, 2), generator.randbytes(3))


@pytest.mark.parametrize("make", [lambda: random.Random(3), lambda: Loaded(4)])
def test_a_generator_of_the_caller(make):
    def fn(generator, x):
        return draws(generator), generator.getstate(), x + generator.random()
    check(fn, make=lambda: (make(), X), graphs=1)


def test_the_module_seeded_here():
    def fn(x):
        random.seed(5)
        out = draws(random)
        random.seed(2.5)
        state = random.getstate()
        out += (random.random(),)
        random.setstate(state)
        return out, random.random(), x + 1
    assert not check(fn, X, graphs=1, calls=3).breaks


def test_generators_made_here():
    def fn(x):
        mine, other = random.Random(7), Loaded(8)
        out = draws(mine), draws(other)
        twin = copy.copy(mine)
        return out, twin.random() == mine.random(), mine, other, x + 1
    check(fn, X, graphs=1)


def test_a_break_between_two_draws():
    def fn(generator, x):
        first = generator.random()
        print("break")
        return first, generator.random(), generator.getrandbits(3), x + 1
    check(fn, make=lambda: (random.Random(3), X), min_graphs=1)


def test_wrong_arguments():
    def fn(x):
        out = []
        for act in (lambda: random.Random(1).getrandbits(-1), lambda: random.Random(1).setstate((3, (1, 2), None)),
                    lambda: random.Random(1).seed([1]), lambda: random.Random(1).choice([])):
            try:
                act()
            except Exception as error:
                out.append((type(error).__name__, str(error)))
        return out, x + 1
    check(fn, X, graphs=1)


def test_a_state_that_varies_is_left_to_python():
    def fn(x):
        return random.random(), x + 1

    def run(function):
        random.seed(3)
        return [function(X)[0] for _ in range(6)]
    plain = run(fn)
    compiled = minidynamo.optimize(fn)
    with minidynamo.config.patch(error_on_internal=True):
        assert run(compiled) == plain
        before = minidynamo.counters["frames"]["total"]
        assert [compiled(X)[1].tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
        assert minidynamo.counters["frames"]["total"] - before <= 9
    minidynamo.reset()
