"""Guards through torch's own C hook: hits, misses, cells, eviction of the code, both forms."""
from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from minidynamo.guards.kinds import (
    Aliased, CodeIs, Equal, GlobalState, Guard, ModeStack, SameObject, ShapeExpr, SizeOf, TensorMatch, TypeIs,
)
from minidynamo.guards.manager import GuardManagerWrapper, build_guards
from minidynamo.sources import Attr, Global, Local, TypeOf
from torch._C._dynamo import eval_frame

FACTOR = 2
PLAN = eval_frame._FrameExecStrategy(eval_frame._FrameAction.DEFAULT, eval_frame._FrameAction.DEFAULT)


class Hooked:
    """Calls a function under the hook; the cached code is the function's own, unchanged."""

    def __init__(self, function: Callable[..., Any], guards: Callable[[dict[str, Any]], list[Guard]],
                 form: str) -> None:
        self.function, self.guards, self.form = function, guards, form
        self.entries: list[GuardManagerWrapper] = []

    def callback(self, frame: Any, entry: Any, state: Any) -> Any:
        answer = types.SimpleNamespace(guarded_code=None, apply_to_code=False, frame_exec_strategy=PLAN)
        if frame.f_code is self.function.__code__:
            made = build_guards(self.guards(frame.f_locals), frame.f_locals, frame.f_globals, frame.f_code, self.form)
            self.entries.append(made)
            answer.guarded_code = types.SimpleNamespace(
                code=frame.f_code.replace(), guard_manager=made, compile_id="0/0", trace_annotation="test")
            answer.apply_to_code = True
        return answer

    def __call__(self, *args: Any) -> Any:
        old = eval_frame.set_eval_frame(self.callback)
        try:
            return self.function(*args)
        finally:
            eval_frame.set_eval_frame(old)

    def misses(self, *args: Any) -> int:
        """How many compiles the call asked for."""
        before = len(self.entries)
        self(*args)
        return len(self.entries) - before


@pytest.fixture(params=["tree", "python"])
def hooked(request: Any) -> Iterator[Callable[..., Hooked]]:
    made: list[Hooked] = []

    def make(function: Callable[..., Any], guards: Callable[[dict[str, Any]], list[Guard]]) -> Hooked:
        made.append(Hooked(function, guards, request.param))
        return made[-1]

    yield make
    for one in made:
        eval_frame.reset_code(one.function.__code__)


def test_hit_and_miss(hooked: Callable[..., Hooked]) -> None:
    def f(x: Any, y: Any) -> Any:
        return x * FACTOR + y

    run = hooked(f, lambda L: [GlobalState(), ModeStack([]), *(TensorMatch(Local(n), L[n]) for n in "xy"),
                               Equal(Global("FACTOR"), FACTOR)])
    a, b = torch.ones(2, 3), torch.ones(3)
    assert [run.misses(a, b), run.misses(a, b), run.misses(b, b), run.misses(a, b), run.misses(b, b)] == [1, 0, 1, 0, 0]
    with torch.no_grad():
        assert [run.misses(a, b), run.misses(a, b)] == [1, 0]
    assert run.misses(a, b) == 0
    assert run.entries[0].cache_entry is not None and run.entries[0].extra_state is not None
    globals()["FACTOR"] = 3
    try:
        assert [run.misses(a, b), run.misses(a, b)] == [1, 0]
    finally:
        globals()["FACTOR"] = 2
    assert run.misses(a, b) == 0
    assert torch.equal(run(a, b), a * 2 + b)


def test_cells_free_variables_and_starred_arguments(hooked: Callable[..., Hooked]) -> None:
    outer = 7

    def f(a: Any, /, b: Any, *rest: Any, k: Any = 4, **kw: Any) -> Any:
        return lambda: (b, outer, rest, k, kw, a)

    def guards(L: dict[str, Any]) -> list[Guard]:
        return [Equal(Local("b", is_cell=True), L["b"]), Equal(Local("outer", is_cell=True), L["outer"]),
                Equal(Local("a"), L["a"]), Equal(Local("rest"), L["rest"]), Equal(Local("k"), L["k"]),
                TypeIs(Local("kw"), dict)]

    run = hooked(f, guards)
    assert [run.misses(1, 2, 3), run.misses(1, 2, 3), run.misses(1, 5, 3), run.misses(1, 5, 3)] == [1, 0, 1, 0]
    assert [run.misses(1, 2, 3, 4), run.misses(0, 2, 3), run.misses(1, 2, 3)] == [1, 1, 0]
    outer = 8
    assert [run.misses(1, 2, 3), run.misses(1, 2, 3)] == [1, 0]
    outer = 7
    assert run.misses(1, 2, 3) == 0


def test_relations_between_locals(hooked: Callable[..., Hooked]) -> None:
    def f(x: Any, y: Any) -> Any:
        return x

    def guards(L: dict[str, Any]) -> list[Guard]:
        x, y = Local("x"), Local("y")
        same = [Aliased(x, y)] if L["x"] is L["y"] else []
        return [*same, ShapeExpr("a == b", (("a", x, SizeOf(0)), ("b", y, SizeOf(0)))) if len(L["x"]) == len(L["y"])
                else ShapeExpr("a != b", (("a", x, SizeOf(0)), ("b", y, SizeOf(0))))]

    run = hooked(f, guards)
    a, b, c = torch.ones(2), torch.ones(2), torch.ones(3)
    assert [run.misses(a, a), run.misses(b, b), run.misses(a, b), run.misses(a, a)] == [1, 0, 1, 0]
    assert [run.misses(a, c), run.misses(c, a), run.misses(b, a)] == [1, 0, 0]


def test_death_is_a_miss(hooked: Callable[..., Hooked]) -> None:
    class Thing: ...

    def f(x: Any) -> Any:
        return None

    run = hooked(f, lambda L: [SameObject(Local("x"), L["x"])])
    thing = Thing()
    assert [run.misses(thing), run.misses(thing)] == [1, 0]
    address = id(thing)
    del thing
    for _ in range(20000):
        thing = Thing()
        if id(thing) == address:
            break
    assert run.misses(thing) == 1


@pytest.mark.parametrize("form", ["tree", "python"])
def test_a_compiled_function_is_freed(form: str) -> None:
    class Model:
        def run(self, x: Any) -> Any:
            return x

    def once() -> list[weakref.ref[Any]]:
        def f(m: Any, x: Any) -> Any:
            return m.run(x)

        f = types.FunctionType(f.__code__.replace(), globals())      # whose code is no constant of ours
        model = type("M", (Model,), {})()
        run = Hooked(f, lambda L: [GlobalState(), TypeIs(Local("m"), type(model)), SameObject(Local("m"), model),
                                   CodeIs(Attr(TypeOf(Local("m")), "run"), Model.run.__code__),
                                   TensorMatch(Local("x"), L["x"])], form)
        x = torch.ones(2)
        assert [run.misses(model, x), run.misses(model, x)] == [1, 0]
        gone = [weakref.ref(part) for part in (f, f.__code__, model, type(model), x, run.entries[0])]
        run.function, run.guards = len, list         # the entry holds the callback, and that holds `run`
        run.entries.clear()
        return gone

    gone = once()
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)
