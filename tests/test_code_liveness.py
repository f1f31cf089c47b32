"""Liveness, stack depths, bound locals and loops."""
from __future__ import annotations

import dataclasses

import pytest

from minidynamo.code import Op, Program, StackError, decode, live_locals, loops, stack_depths
from minidynamo.code.liveness import bound_loads


def program_of(text: str) -> Program:
    scope: dict = {}
    exec(text, scope)
    return decode(scope["f"].__code__)


def at(program: Program, name: str, arg: object = None, nth: int = 0) -> int:
    return [index for index, op in enumerate(program.ops)
            if op.name == name and (arg is None or op.arg == arg)][nth]


def test_dead_after_last_read() -> None:
    program = program_of("def f(a, b):\n c = a + b\n print(1)\n return c\n")
    live = live_locals(program)
    assert live[0] == {"a", "b"}
    assert live[at(program, "LOAD_GLOBAL", "print")] == {"c"}
    assert live[len(program.ops) - 1] == set()


def test_loops_keep_what_the_next_turn_reads() -> None:
    program = program_of("def f(xs, t):\n for x in xs:\n  t = t + x\n return t\n")
    live = live_locals(program)
    assert live[at(program, "FOR_ITER")] == {"t"}
    assert live[at(program, "BINARY", "+")] == set()


def test_handlers_keep_what_they_read() -> None:
    program = program_of("def f(a, b):\n try:\n  g()\n  b = 2\n except E:\n  return a\n return b\n")
    live = live_locals(program)
    assert live[at(program, "LOAD_GLOBAL", "g")] == {"a"}
    assert "a" not in live[at(program, "RETURN", nth=len(
        [op for op in program.ops if op.name == "RETURN"]) - 1)]


def test_deleting_reads() -> None:
    program = program_of("def f(a):\n g()\n del a\n")
    assert live_locals(program)[at(program, "LOAD_GLOBAL", "g")] == {"a"}


def test_cells_are_read_by_every_use() -> None:
    program = program_of("def f(a):\n g()\n a = 1\n return lambda: a\n")
    assert live_locals(program)[at(program, "LOAD_GLOBAL", "g")] == {"a"}


def test_bare_super_reads_the_frame() -> None:
    scope: dict = {}
    exec("class C:\n def f(self):\n  g()\n  return super().f()\n", scope)
    live = live_locals(decode(scope["C"].f.__code__))
    assert live[0] == {"self", "__class__"}


def test_depths() -> None:
    program = program_of("def f(x):\n with x as y:\n  return y.a(1, *x)\n")
    depths = stack_depths(program)
    assert depths[0] == 0 and depths[at(program, "BEFORE_WITH")] == 1
    assert depths[at(program, "PUSH_EXC_INFO")] == 3       # exit, lasti, exception
    assert stack_depths(program) is depths


def test_unreachable_is_none() -> None:
    program = program_of("def f():\n return 1\n")
    ops = [*program.ops, Op("NOP"), Op("NOP")]
    depths = stack_depths(dataclasses.replace(program, ops=ops))
    assert depths[-2:] == [None, None]


def test_unbalanced_stack_is_named() -> None:
    program = program_of("def f():\n return 1\n")
    with pytest.raises(StackError, match="takes 1 of 0"):
        stack_depths(dataclasses.replace(program, ops=[Op("RETURN")]))
    twice = [Op("LOAD_CONST", 1), Op("JUMP", target=0)]
    with pytest.raises(StackError, match="reached at depths"):
        stack_depths(dataclasses.replace(program, ops=twice))


def test_nested_loops() -> None:
    program = program_of(
        "def f(xs):\n for x in xs:\n  for y in x:\n   g(y)\n  h()\n while xs:\n  k()\n")
    found = loops(program)
    heads = [head for head, _ in found]
    outer, inner = at(program, "FOR_ITER"), at(program, "FOR_ITER", nth=1)
    assert outer in heads and inner in heads and len(found) == 3
    bodies = dict(found)
    assert bodies[inner] < bodies[outer]
    assert at(program, "LOAD_GLOBAL", "h") in bodies[outer] - bodies[inner]
    assert at(program, "LOAD_GLOBAL", "k") not in bodies[outer]


def test_straight_code_has_no_loops() -> None:
    assert loops(program_of("def f(x):\n return x if x else 1\n")) == []


def test_bound_loads() -> None:
    program = program_of(
        "def f(a, b):\n if a: c = 1\n d = 2\n print(c, d, b)\n del b\n return b\n")
    bound = bound_loads(program)
    assert at(program, "LOAD_LOCAL", "c") not in bound
    assert at(program, "LOAD_LOCAL", "d") in bound
    assert at(program, "LOAD_LOCAL", "b") in bound
    assert at(program, "LOAD_LOCAL", "b", nth=1) not in bound


def test_bound_in_handlers_means_bound_before() -> None:
    program = program_of("def f():\n try:\n  g()\n  c = 1\n  g()\n except E:\n  return c\n return c\n")
    bound = bound_loads(program)
    loads = [i for i, op in enumerate(program.ops) if op.name == "LOAD_LOCAL" and op.arg == "c"]
    lines = {program.ops[i].pos.lineno: i in bound for i in loads}
    assert lines == {7: False, 8: True}
