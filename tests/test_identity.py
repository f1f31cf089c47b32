"""`is`, over every way one object, or one like it, comes about: as in CPython, captured whole."""
import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter, check, same

X = torch.arange(4.0)
PROGRAMS = []


def program(fn):
    PROGRAMS.append(pytest.param(fn, id=fn.__name__))
    return fn


@program
def constants_of_the_code(x):
    a, b, empty, text, number, real = (1, 2), (1, 2), (), "hello", 1000, 1.5
    c, nothing, word, thousand, half = (1, 2), (), "hello", 1000, 1.5
    return x + 1, [a is b, b is c, empty is nothing, text is word, number is thousand, real is half, number is text]


@program
def empty_and_small(x):
    built, nothing, text, letter, no_bytes, pair = tuple([]), (), "hello", "e", b"", (1, 2)
    return x + 1, [built is nothing, pair[0:0] is built, [x][0:0] is [x][1:], int("5") is len(text), letter is text[1:2],
                   chr(104) is text[0], bytes(0) is no_bytes, frozenset() is frozenset([1])]


@program
def immutable_copies(x):
    pair, text, data, mixed, number, imaginary = (1, 2), "hello", b"ab", (x, 1), 1000, 1j
    return x + 1, [pair[:] is pair, pair + () is pair, () + pair is pair, tuple(pair) is pair, pair * 1 is pair,
                   str(text) is text, text[:] is text, text + "" is text, text.strip() is text, "".join([text]) is text,
                   bytes(data) is data, data[:] is data, mixed[:] is mixed, tuple(mixed) is mixed, mixed[0:1] is mixed,
                   f"{text}" is text, text.replace("z", "y") is text, int(number) is number, complex(imaginary) is imaginary]


@program
def tensors(x):
    y = x + 1
    return y, [y.add_(1) is y, y.contiguous() is y, y.float() is y, y.to(torch.float32) is y, y.clone() is y, y[:] is y,
               y.view_as(y) is y, y.shape is y.shape, y.dtype is y.dtype, y.device is y.device, y.t() is y, y.detach() is y,
               y.requires_grad_(False) is y]


class Thing:
    shared = [1]

    def method(self):
        return self

    @staticmethod
    def static():
        pass

    @classmethod
    def klass(cls):
        return cls


@program
def attributes(x):
    thing = Thing()
    return x + 1, [thing.method is thing.method, thing.method == thing.method, thing.static is Thing.static,
                   Thing.klass is Thing.klass, thing.klass() is Thing, thing.shared is Thing.shared, thing.method() is thing,
                   thing.__dict__ is vars(thing), type(thing) is Thing, len is len, (lambda: 1) is (lambda: 1)]


@program
def through_containers(x):
    key, item = "".join(["a", "b"]), [1]
    found = {key: item}
    return x + 1, [next(iter(found)) is key, found[key] is item, [item].pop() is item, sorted([key])[0] is key,
                   max([key]) is key, dict([(key, item)])[key] is item, [item, item][1] is item, [*(item,)][0] is item,
                   list(found.values())[0] is item, found.copy()[key] is item, found.copy() is found]


@pytest.mark.parametrize("fn", PROGRAMS)
def test_identity(fn):
    found = check(fn, X, graphs=1)
    assert not found.breaks


def test_identity_of_what_the_caller_gives():
    """What is one object at one call and two at the next is compiled for both."""
    def run(optimize):
        minidynamo.reset()
        shared, log = [1], []

        def fn(x, a, b, c):
            if a is b:
                log.append("same")
                return x + 1
            return x + 2 if a is c else x + 3

        call = optimize(fn)
        calls = (shared, shared, shared), (shared, [1], shared), ([1], [1], [1]), (shared, shared, [1]), (shared, [1], [1])
        return [call(X, *args) for args in calls], log

    counter = CompileCounter()
    assert same(run(lambda fn: fn), run(minidynamo.optimize(backend=counter)))
    assert counter.frame_count == 3
