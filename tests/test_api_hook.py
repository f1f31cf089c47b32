"""The hook and the pipeline around an identity frontend: skips, limits, errors, threads, re-entrance."""
from __future__ import annotations

import functools
import gc
import threading
import weakref
from types import SimpleNamespace

import pytest
import torch

import minidynamo
from minidynamo import exc, reasons
from minidynamo.base.config import config
from minidynamo.compiler import frontend, identity
from minidynamo.compiler.pipeline import PATIENCE
from minidynamo.hook import adapter
from minidynamo.observe import counters
from minidynamo.reasons import Stop


@pytest.fixture(autouse=True)
def identity_frontend(monkeypatch):
    """Frames are reassembled; each test may replace parts with `use`."""
    monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY)
    minidynamo.reset()
    with config.patch(rewrite_frames_without_graph=True, error_on_internal=True):
        yield lambda **parts: monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY._replace(**parts))
    minidynamo.reset()


@pytest.fixture
def use(identity_frontend):
    return identity_frontend


def helper(x):
    return x + 1


def test_called_frames_are_seen_and_cached():
    f = minidynamo.optimize(lambda x: helper(x) * 2)
    assert f(3) == 8
    assert f(4) == 10
    assert counters["frames"] == {"total": 2, "ok": 2}


def test_exceptions_restore_the_hook():
    @minidynamo.optimize
    def f(x):
        raise KeyError(x)
    for _ in range(3):
        with pytest.raises(KeyError):
            f(1)
        assert not adapter.active()


def test_every_call_form():
    @minidynamo.optimize
    def f(a, /, b, *args, c=3, **kwargs):
        return a, b, args, c, kwargs
    assert f(1, 2, 4, c=5, d=6) == (1, 2, (4,), 5, {"d": 6})
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f(1)


def test_closures_and_cells():
    def outer(n):
        total = n

        def add(x):
            nonlocal total
            total += x
            return total
        return minidynamo.optimize(add), lambda: total
    add, read = outer(10)
    assert (add(1), add(2), read()) == (11, 13, 13)


def test_recursion():
    @minidynamo.optimize
    def down(n):
        return 0 if n == 0 else 1 + plain(n - 1)

    def plain(n):
        return 0 if n == 0 else 1 + down(n - 1)
    assert down(100) == 100


def test_compiled_in_compiled():
    inner = minidynamo.optimize(lambda x: helper(x))
    outer = minidynamo.optimize(lambda x: inner(x) + helper(x), backend=lambda gm, inputs: gm.forward)
    assert outer(1) == 4
    assert not adapter.active()


def test_threads():
    @minidynamo.optimize
    def f(x):
        return helper(x)
    found: list[int] = []
    threads = [threading.Thread(target=lambda n=n: found.append(f(n))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 9))


def test_generators_are_left_alone():
    def gen(n):
        for i in range(n):
            yield helper(i)

    @minidynamo.optimize
    def f(n):
        return list(gen(n))
    assert f(3) == [1, 2, 3]
    assert counters["skips"][reasons.GENERATOR_FRAME.id] == 1

    @minidynamo.optimize(fullgraph=True)
    def g():
        yield 1
    with pytest.raises(exc.Unsupported, match="MD0502"):
        next(g())


def test_module_bodies_and_class_bodies_are_left_alone():
    @minidynamo.optimize
    def f():
        class A:
            x = helper(1)
        return A.x
    assert f() == 2
    assert counters["skips"][reasons.MODULE_FRAME.id] == 1


def test_keyboard_interrupt_while_tracing(use):
    def interrupted(*args):
        raise KeyboardInterrupt
    use(trace=interrupted)
    f = minidynamo.optimize(helper)
    with pytest.raises(KeyboardInterrupt):
        f(1)
    assert not adapter.active()
    use()
    assert f(1) == 2
    assert counters["frames"]["ok"] == 1


def test_a_bug_of_ours_is_told_and_the_frame_runs(use, caplog):
    def buggy(*args):
        raise ZeroDivisionError("oops")
    use(trace=buggy)
    f = minidynamo.optimize(helper)
    with pytest.raises(exc.InternalError, match="ZeroDivisionError: oops") as caught:
        f(1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with config.patch(error_on_internal=False):
        assert [f(1), f(2)] == [2, 3]
    assert counters["skips"][reasons.INTERNAL_ERROR.id] == 2
    assert counters["errors"]["ZeroDivisionError"] == 3
    assert caplog.text.count("MD0901") == 1        # said once


def test_state_is_put_back_when_tracing_fails(use):
    def messy(*args):
        torch._C._set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(0)
        raise ZeroDivisionError
    use(trace=messy)
    before = torch.get_rng_state()
    with config.patch(error_on_internal=False):
        assert minidynamo.optimize(helper)(1) == 2
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() is torch.float32
    assert torch.equal(before, torch.get_rng_state())


def skip_with(reason, **fields):
    return lambda program, *rest: identity.Trace(program, identity.Skip(Stop(reason, fields)))


def test_skips_are_counted_and_then_kept(use):
    use(trace=skip_with(reasons.UNCAUGHT_EXCEPTION, type="ValueError", message="x"))
    f = minidynamo.optimize(helper)
    for _ in range(10):
        assert f(1) == 2
    assert counters["skips"] == {reasons.UNCAUGHT_EXCEPTION.id: PATIENCE}


def test_fullgraph_raises_the_reason(use):
    use(trace=skip_with(reasons.PRINT_NOW, call="print(1)"))
    with pytest.raises(exc.Unsupported, match="MD0101  print") as caught:
        minidynamo.optimize(helper, fullgraph=True)(1)
    assert caught.value.reason is reasons.PRINT_NOW
    use(trace=lambda program, *rest: identity.Trace(
        program, identity.Break(Stop(reasons.PRINT_NOW, {"call": "print(1)"}))))
    with pytest.raises(exc.Unsupported, match="hint: move it out"):
        minidynamo.optimize(helper, fullgraph=True)(1)


def test_frames_without_graph_are_left_and_told():
    with config.patch(rewrite_frames_without_graph=False):
        f = minidynamo.optimize(helper)
        assert [f(i) for i in range(3)] == [1, 2, 3]
    assert counters["skips"][reasons.NO_TENSOR_IN_FRAME.id] == 1


# ------------------------------------------------------------------ limits
def never_fits(trace, frame):
    guards = adapter.NoGuards()
    guards.root.add_lambda_guard(lambda scope: False, ["never"], None)
    return guards


def test_recompile_limit(use, caplog):
    use(guards=never_fits)
    f = minidynamo.optimize(helper)
    with config.patch(recompile_limit=3):
        assert [f(i) for i in range(6)] == [1, 2, 3, 4, 5, 6]
    assert counters["frames"]["ok"] == 3
    assert counters["limits"] == {reasons.RECOMPILE_LIMIT.id: 3}
    assert counters["recompiles"]["helper"] == 2
    assert caplog.text.count("config.recompile_limit = 3") == 1
    other = minidynamo.optimize(helper, backend=lambda gm, inputs: gm.forward)
    other(1)                            # another backend has entries of its own
    assert counters["frames"]["ok"] == 4


def test_accumulated_limit(use):
    use(guards=never_fits)
    with config.patch(accumulated_recompile_limit=2):
        f = minidynamo.optimize(helper)
        assert [f(i) for i in range(4)] == [1, 2, 3, 4]
    assert counters["limits"] == {reasons.ACCUMULATED_LIMIT.id: 2}


def test_limit_can_raise(use):
    use(guards=never_fits)
    f = minidynamo.optimize(helper)
    with config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        f(1)
        with pytest.raises(exc.RecompileLimitExceeded, match="MD0801"):
            f(1)


# ------------------------------------------------------------------ backends
def graph_of_relu(trace):
    gm = torch.fx.symbolic_trace(lambda x: (torch.relu(x),))
    return SimpleNamespace(gm=gm, example_inputs=[torch.ones(2)], grad_mode=None)


def test_backend_that_raises(use):
    use(lower=graph_of_relu)

    def backend(gm, inputs):
        raise ValueError("no such device")
    f = minidynamo.optimize(helper, backend=backend)
    with pytest.raises(exc.BackendCompilerFailed, match="MD0902") as caught:
        f(1)
    assert isinstance(caught.value.__cause__, ValueError)
    with config.patch(suppress_errors=True):
        assert f(1) == 2


def test_backend_that_returns_nothing(use):
    use(lower=graph_of_relu)
    f = minidynamo.optimize(helper, backend=lambda gm, inputs: None)
    with pytest.raises(exc.BackendCompilerFailed, match=r"MD0903(.|\n)*returned a NoneType; it must return a function"):
        f(1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", lambda gm, inputs: gm, lambda gm, inputs: gm.forward,
                                     lambda gm, inputs: functools.partial(lambda x: (torch.relu(x),))])
def test_graph_callables_run(use, backend):
    seen = []
    use(lower=graph_of_relu, emit=lambda trace, lowered, call: seen.append(call) or identity.emit(trace, lowered, call))
    assert minidynamo.optimize(helper, backend=backend)(1) == 2
    assert torch.equal(seen[0](torch.tensor([-1.0, 2.0]))[0], torch.tensor([0.0, 2.0]))
    assert counters["stats"] == {"unique_graphs": 1, "calls_captured": 1}


def test_unknown_backend():
    with pytest.raises(exc.UserError, match="no backend is called 'nope'; there are"):
        minidynamo.optimize(helper, backend="nope")


def test_entries_of_dead_guards_are_let_go(use):
    made = []

    def guards(trace, frame):
        made.append(never_fits(trace, frame))
        return made[-1]
    use(guards=guards)
    f = minidynamo.optimize(helper)
    for i in range(20):
        f(i)
        made[-1].alive = False
    assert counters["frames"]["ok"] == 20          # dead entries do not count against the limit


def test_a_wrapper_and_its_model_are_freed():
    model = torch.nn.Linear(2, 2)
    opt = minidynamo.optimize(model)
    opt(torch.ones(1, 2))
    dead = weakref.ref(model)
    del model, opt
    gc.collect()
    assert dead() is None


def test_torch_compile_in_the_same_process():
    def f(x):
        return torch.sin(x) + helper(x)
    theirs, ours = torch.compile(f, backend="eager"), minidynamo.optimize(f)
    x = torch.ones(2)
    expected = f(x)
    for _ in range(2):
        assert torch.equal(theirs(x), expected)
        assert torch.equal(ours(x), expected)
    both = minidynamo.optimize(lambda x: theirs(x))
    assert torch.equal(both(x), expected)
    assert torch.equal(torch.compile(lambda x: x + 1, backend="eager")(ours(x)), expected + 1)


def test_torch_compile_recompiles_beside_our_entries(monkeypatch):
    """It reads every entry of its region when it compiles again; ours are in another one."""
    monkeypatch.setattr(frontend, "FRONTEND", frontend.REAL)
    def f(x):
        return torch.sin(x) * 2
    ours, theirs = minidynamo.optimize(f), torch.compile(f, backend="eager")
    for make in (lambda: torch.ones(2), lambda: torch.ones(3), lambda: torch.ones(2, dtype=torch.float64)):
        for compiled in (ours, theirs, ours):
            assert torch.equal(compiled(make()), f(make()))
    assert len(adapter.entries_of(f.__code__)) == 3


def test_reset_forgets_entries():
    f = minidynamo.optimize(helper)
    f(1)
    minidynamo.reset()
    f(1)
    assert counters["frames"]["total"] == 1
