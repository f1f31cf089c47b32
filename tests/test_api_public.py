"""The public door: forms of optimize, modules, marks, devices, options, refusals."""
from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

import minidynamo
from minidynamo import exc
from minidynamo.compiler import frontend
from minidynamo.model import marks
from minidynamo.observe import counters


@pytest.fixture(autouse=True)
def identity_frontend(monkeypatch):
    monkeypatch.setattr(frontend, "FRONTEND", frontend.IDENTITY)
    minidynamo.reset()
    with minidynamo.config.patch(rewrite_frames_without_graph=True, error_on_internal=True):
        yield
    minidynamo.reset()


def double(x, *, by=2):
    """Twice."""
    return x * by


class Callee:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return x + self.n

    def method(self, x):
        return x - self.n

    @minidynamo.optimize
    def decorated(self, x):
        return x * self.n

    @staticmethod
    @minidynamo.optimize
    def static(x):
        return x

    @classmethod
    @minidynamo.optimize
    def of(cls, n):
        return cls(n)


@pytest.mark.parametrize("fn, expected", [
    (double, 6), (lambda x: x + 1, 4), (Callee(2), 5), (Callee(2).method, 1), (Callee(2).decorated, 6),
    (functools.partial(double, by=5), 15), (minidynamo.optimize(double), 6), (abs, 3), (Callee.static, 3),
])
def test_forms(fn, expected):
    assert minidynamo.optimize(fn)(3) == expected
    assert minidynamo.optimize(backend="eager")(fn)(3) == expected
    assert counters["frames"]["ok"] >= 1


def test_decorated_methods():
    assert Callee(3).decorated(2) == 6
    assert Callee.of(7).n == 7


def test_wrapper_looks_like_the_function():
    wrapped = minidynamo.optimize(double)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == ("double", "Twice.", double)
    assert inspect.signature(wrapped) == inspect.signature(double)


@pytest.mark.parametrize("bad, message", [
    (lambda: minidynamo.optimize(3), "can be called, not an int"),
    (lambda: minidynamo.optimize(Callee), "not the class Callee|not the class .*Callee"),
    (lambda: minidynamo.optimize(double, mode="x", options={}), "mode or options, not both"),
    (lambda: minidynamo.optimize(double, dynamic=3), "dynamic is None, True or False"),
    (lambda: minidynamo.optimize(double, options=3), "options is a dict"),
    (lambda: minidynamo.optimize(double, backend=3), "a name or a callable"),
    (lambda: minidynamo.optimize(double, backend="eager", options={"a": 1}), "takes no mode and no options"),
    (lambda: minidynamo.nonstrict_trace(3), "MD0605"),
    (lambda: minidynamo.allow_in_graph(3), "allow_in_graph takes something"),
    (lambda: minidynamo.opaque(double, when="never"), "one of now, later, break"),
    (lambda: minidynamo.disable(3), "disable takes something"),
    (lambda: minidynamo.mark_dynamic(3, 0), "takes a tensor"),
    (lambda: minidynamo.mark_dynamic(torch.ones(2), 1), "has 1 dimension,"),
    (lambda: minidynamo.register_backend(3), "a backend is a callable"),
])
def test_refusals(bad, message):
    with pytest.raises(exc.UserError, match=message):
        bad()


def test_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError):
        minidynamo.optimize(double, fulgraph=True)


def test_disabled():
    assert minidynamo.optimize(double, disable=True) is double
    with minidynamo.config.patch(disable=True):
        assert minidynamo.optimize(double) is double


# ------------------------------------------------------------------ modules
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x, scale=1):
        """Forward."""
        self.calls += 1
        return self.inner(x) * scale

    def twice(self, x):
        return self(self(x))


def test_module_keeps_its_class():
    net = Net()
    opt = minidynamo.optimize(net)
    x = torch.randn(3, 2)
    assert torch.equal(opt(x, scale=2), net(x, scale=2))
    assert isinstance(opt, Net)
    assert isinstance(opt, minidynamo.OptimizedModule)
    assert list(opt.state_dict()) == list(net.state_dict())
    assert opt._orig_mod is net
    assert [id(p) for p in opt.parameters()] == [id(p) for p in net.parameters()]
    assert (opt.calls, net.calls) == (2, 2)
    opt.eval()
    opt.extra = 5
    opt.inner.weight = nn.Parameter(torch.zeros(2, 2))
    assert (net.training, net.extra, float(net.inner.weight.detach().sum())) == (False, 5, 0.0)
    assert repr(opt) == repr(net)
    assert opt.forward.__doc__ == "Forward."
    assert str(inspect.signature(opt.forward)) == "(x, scale=1)"
    opt.load_state_dict(net.state_dict())
    assert torch.equal(opt.twice(x), net.twice(x))


def test_module_hooks_fire_in_both_directions():
    net = Net()
    opt = minidynamo.optimize(net)
    fired = []
    net.register_forward_hook(lambda *a: fired.append("net"))
    handle = opt.register_forward_pre_hook(lambda *a: fired.append("opt"))
    opt(torch.ones(1, 2))
    net(torch.ones(1, 2))
    assert fired == ["opt", "net"] * 2
    handle.remove()
    opt(torch.ones(1, 2))
    assert fired[4:] == ["net"]


def test_module_copies_and_pickles():
    opt = minidynamo.optimize(Net())
    x = torch.ones(1, 2)
    for other in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt)), copy.copy(opt)):
        assert isinstance(other, minidynamo.OptimizedModule)
        assert other._orig_mod is not opt._orig_mod
        assert torch.equal(other(x), opt(x))
    assert minidynamo.optimize(opt)._orig_mod is opt._orig_mod


def test_module_trains():
    torch.manual_seed(0)
    net = Net()
    twin = copy.deepcopy(net)
    opt = minidynamo.optimize(net)
    x = torch.randn(4, 2)
    opt(x).sum().backward()
    twin(x).sum().backward()
    assert torch.equal(net.inner.weight.grad, twin.inner.weight.grad)
    opt.zero_grad()
    assert net.inner.weight.grad is None


# ------------------------------------------------------------------ keeping things out
def test_disable_keeps_callees_out_too():
    def inner(x):
        return x + 1

    @minidynamo.disable
    def middle(x):
        return inner(x)
    f = minidynamo.optimize(lambda x: middle(x))
    assert f(1) == 2
    assert counters["frames"]["total"] == 1
    assert marks.wrapped_by(middle)[0] == "disabled"


def test_disable_not_recursive():
    def inner(x):
        return x + 1

    @minidynamo.disable(recursive=False)
    def middle(x):
        return inner(x)
    f = minidynamo.optimize(lambda x: middle(x))
    assert f(1) == 2
    assert counters["frames"]["total"] == 2        # the lambda and `inner`
    assert middle in marks.DISABLED


def test_disable_modules_and_classes():
    off = minidynamo.disable(Net())
    assert isinstance(off, Net)

    @minidynamo.disable
    class Off:
        def __call__(self, x):
            return x
    obj = Off()
    assert minidynamo.optimize(lambda x: obj(off(x)))(torch.ones(1, 2)).shape == (1, 2)
    assert counters["frames"]["total"] == 1


def test_marks():
    def f(x):
        return x
    assert minidynamo.allow_in_graph(f) is f
    assert minidynamo.allow_in_graph([f, f]) == [f, f]
    assert f in marks.ALLOW_IN_GRAPH
    assert minidynamo.assume_constant_result(f) is f
    assert minidynamo.opaque(f, when="later") is f
    assert marks.OPAQUE.get(f)[0] == "later"
    g = minidynamo.nonstrict_trace(f)
    assert marks.wrapped_by(g) == ("nonstrict", f)
    assert g(3) == 3
    assert minidynamo.graph_break("why") is None
    assert minidynamo.is_compiling() is False


def test_mark_sizes():
    t = torch.ones(2, 3)
    minidynamo.mark_dynamic(t, -1, min=2, max=9)
    minidynamo.mark_dynamic(t, [0])
    minidynamo.mark_static(t)
    assert t._minidynamo_dynamic_dims == {0, 1}
    assert t._minidynamo_dynamic_range == {1: (2, 9), 0: (None, None)}
    assert t._minidynamo_static_dims == {0, 1}


def test_backends(monkeypatch):
    from minidynamo.compiler import backends
    monkeypatch.setattr(backends, "BACKENDS", dict(backends.BACKENDS))
    monkeypatch.setattr(backends, "TAGS", dict(backends.TAGS))

    @minidynamo.register_backend(name="mine")
    def my_compiler(gm, example_inputs):
        return gm.forward
    assert {"eager", "inductor", "mine"} <= set(minidynamo.list_backends())
    assert "aot_eager" in minidynamo.list_backends(exclude_tags=None)
    assert minidynamo.optimize(double, backend="mine")(1) == 2
    with pytest.raises(exc.UserError, match="already"):
        minidynamo.register_backend(lambda gm, inputs: gm, name="mine")


@pytest.mark.parametrize("device, expected", [
    ("cpu", True), ("cpu:0", True), (torch.device("cpu"), True), ("nope", False), ("cuda:99", False), (None, False),
    ([], False), ("", False), ("xpu:7", False), ("mps", torch.backends.mps.is_available()),
    ("cuda", torch.cuda.is_available()),
])
def test_is_compile_supported(device, expected):
    assert minidynamo.is_compile_supported(device) is expected


# ------------------------------------------------------------------ config
def test_config_patch():
    config = minidynamo.config
    with config.patch(recompile_limit=3), config.patch("specialize_float", False), config.patch({"guards": "python"}):
        assert (config.recompile_limit, config.specialize_float, config.guards) == (3, False, "python")
    assert (config.recompile_limit, config.specialize_float, config.guards) == (8, True, "tree")

    @config.patch(recompile_limit=5)
    def inside(n):
        return config.recompile_limit, n and inside(n - 1)
    assert inside(1) == (5, (5, 0))
    assert config.recompile_limit == 8


def test_config_refuses():
    with pytest.raises(AttributeError, match="no option 'recompile_limt'"):
        minidynamo.config.recompile_limt = 3
    with pytest.raises(AttributeError, match="no option 'x'"):
        minidynamo.config.patch(x=1)
    with pytest.raises(TypeError, match="is int, not 'many'"):
        minidynamo.config.recompile_limit = "many"
    with pytest.raises(TypeError), minidynamo.config.patch(fail_on_recompile_limit_hit=True, recompile_limit="many"):
        pass
    assert minidynamo.config.fail_on_recompile_limit_hit is False


def test_config_is_a_module():
    import minidynamo.config as imported
    assert imported is minidynamo.config
    assert minidynamo.config.to_dict()["recompile_limit"] == 8


def test_config_from_the_environment():
    from minidynamo.base.config import READERS
    assert READERS[bool]("on") is True
    assert READERS[int]("12") == 12
    with pytest.raises(ValueError, match="maybe"):
        READERS[bool]("maybe")


def test_a_bad_environment_is_told_and_the_program_runs():
    program = "import torch, minidynamo; minidynamo.optimize(torch.sin)(torch.ones(2)); print('ran')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={
        **os.environ, "MINIDYNAMO_LOGS": "times,lunch", "MINIDYNAMO_RECOMPILE_LIMIT": "many"})
    assert done.stdout == "ran\n"
    assert "no log artefact lunch" in done.stderr and "[minidynamo.times]" in done.stderr
    assert "MINIDYNAMO_RECOMPILE_LIMIT='many' is not int; it stays 8" in done.stderr


def test_every_public_name_is_there_and_documented():
    for name in minidynamo.__all__:
        assert inspect.getdoc(getattr(minidynamo, name)), name
    with pytest.raises(AttributeError):
        minidynamo.nothing  # noqa: B018
