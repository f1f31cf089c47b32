"""nonstrict_trace: pytrees in and out, constants, captured tensors, gradients, misuse."""
from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.utils._pytree as pytree

import minidynamo
from minidynamo.testing import check

nonstrict = minidynamo.nonstrict_trace
BACKENDS = ["eager", "aot_eager"]


@nonstrict
def scale(x, y, k=2):
    return x * k + y


@nonstrict
def containers(d, items, *, t):
    return {"s": d["a"] + items[0], "t": (t[0], [t[1], 3, None, "x"])}


@dataclasses.dataclass
class Pair:
    x: torch.Tensor
    y: torch.Tensor
    n: int = 3
    z: object = None


pytree.register_dataclass(Pair)


@nonstrict
def of_pair(p):
    return Pair(p.x + p.n, p.y * 2, 4)


class Scaled:
    """Registered with functions of its own."""

    def __init__(self, n, t):
        self.n, self.t = n, t

    @nonstrict
    def times(self, x):
        return Scaled(self.n, x * self.n + self.t)

    @nonstrict
    def itself(self, x):
        return self, x


pytree.register_pytree_node(Scaled, lambda v: ([v.t], v.n), lambda c, n: Scaled(n, c[0]))


@dataclasses.dataclass(frozen=True)
class Norm:
    name: str
    k: int = 2


pytree.register_constant(Norm)
NORM = Norm("l2")


@nonstrict
def normed(c, x):
    return x * c.k if c.name == "l2" else x


@nonstrict
def next_norm(c, x):
    return Norm("new", c.k + 1), x + 1


WEIGHT = torch.arange(3.0).requires_grad_()
FACTOR = 3
LINEAR = torch.nn.Linear(3, 3)


@nonstrict
def reads_globals(x):
    return x * WEIGHT * FACTOR


@nonstrict
def by_module(m, x):
    return m(x).relu()


@nonstrict
def by_function(f, x):
    return f(x) + 1


def helper(x):
    return x.cos()


@nonstrict
def nested(x):
    return scale(x, x) + reads_globals(x)


@nonstrict
def in_place(x):
    x.add_(1)
    return x


def f_keywords(x):
    return scale(x, {"a": x + 1}["a"], k=3).sin()


def f_containers(x):
    items = [x]
    items.append(x * 2)
    r = containers({"a": x}, items, t=(x + 1, x + 2))
    return r, r["t"][1]


def f_dataclass(x):
    p = Pair(x, x + 1)
    p.x = p.x * 3
    q = of_pair(p)
    return q.x + q.y, q


def f_method(x):
    r = Scaled(3, x).times(x + 1)
    return r.t * 2, r


def f_argument_returned(x):
    n = Scaled(3, x)
    a, b = n.itself(x)
    return a is n, b is x, a.t + 1


def f_constant(x):
    return normed(NORM, x).sin()


def f_constant_made_inside(x):
    return normed(Norm("l2", 4), x).sin()


def f_constant_returned(x):
    c, y = next_norm(NORM, x)
    return c, y * c.k


def f_globals(x):
    return reads_globals(x).sin()


def f_module(x):
    return by_module(LINEAR, x).sin()


def f_functions(x):
    return by_function(helper, x), by_function(torch.sin, x)


def f_nested(x):
    return nested(x) + nested(x)


def f_closure(x):
    w = x * 2

    def inner(y):
        return y + w
    return scale(inner(x), w)


ONE_GRAPH = [f_keywords, f_containers, f_dataclass, f_method, f_argument_returned, f_constant, f_constant_made_inside,
             f_constant_returned, f_globals, f_module, f_functions, f_nested, f_closure]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("fn", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph(fn, backward, backend):
    found = check(fn, torch.randn(3, requires_grad=backward), graphs=1, backward=backward, backend=backend,
                  tol=0.0 if backend == "eager" else 1e-6)
    assert not found.breaks


def test_inductor():
    found = check(f_globals, torch.randn(3, requires_grad=True), graphs=1, backward=True, backend="inductor", tol=1e-5)
    assert not found.breaks


def test_the_node_is_flat_apply_with_constant_specs():
    graph = check(f_keywords, torch.randn(3)).graphs[0]
    calls = [n for n in graph.graph.nodes if n.op == "call_function" and n.target.__class__.__name__ == "FlatApply"]
    assert len(calls) == 1
    f_spec, in_spec = calls[0].args[:2]
    assert f_spec.op == in_spec.op == "get_attr"
    assert isinstance(getattr(graph, in_spec.target), pytree.TreeSpec)


def test_in_place_work_on_arguments():
    def f(x):
        y = x * 2
        z = in_place(y)
        return z is y, y, in_place(x)
    for backend in BACKENDS:
        check(f, torch.randn(3), graphs=1, backend=backend)


def test_gradient_reaches_a_module_that_was_passed():
    LINEAR.zero_grad()
    minidynamo.optimize(f_module, backend="aot_eager")(torch.ones(3)).sum().backward()
    ours = LINEAR.weight.grad.clone()
    LINEAR.zero_grad()
    f_module(torch.ones(3)).sum().backward()
    torch.testing.assert_close(ours, LINEAR.weight.grad)
    LINEAR.zero_grad()


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_body_reads_is_guarded(backend, monkeypatch):
    f = minidynamo.optimize(f_globals, backend=backend)
    module = __import__(__name__)
    x = torch.ones(3)
    assert torch.equal(f(x), f_globals(x))
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert torch.equal(f(x), f_globals(x))
    monkeypatch.setitem(globals(), "WEIGHT", torch.full((3,), 7.0, requires_grad=True))
    assert torch.equal(f(x), f_globals(x))
    assert module is not None


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_constants_share_a_graph_and_others_do_not(backend):
    counting = minidynamo.testing.CompileCounterWithBackend(backend)

    def f(c, x):
        return normed(c, x).sin()
    g = minidynamo.optimize(f, backend=counting)
    x = torch.ones(3)
    for c, graphs in ((Norm("l2", 5), 1), (Norm("l2", 5), 1), (Norm("l2", 6), 2)):
        assert torch.equal(g(c, x), f(c, x))
        assert counting.frame_count == graphs


# ---------------------------------------------------------------- misuse: a reason and plain Python, never a crash
class Unknown:
    def __init__(self, x):
        self.x = x


class OddContext:
    def __init__(self, x):
        self.x = x


pytree.register_pytree_node(OddContext, lambda v: ([v.x], Unknown(3)), lambda c, n: OddContext(c[0]))
counter = 0


@nonstrict
def of_unknown(u):
    return u.x + 1


@nonstrict
def gives_unknown(x):
    return Unknown(x)


@nonstrict
def raises(x):
    raise ValueError("a")


@nonstrict
def counts(x):
    global counter
    counter += 1
    return x + counter


@nonstrict
def prints(x):
    print("inside")
    return x + 1


@nonstrict
def appends(items):
    items.append(1)
    return items[0]


@nonstrict
def needs_data(x):
    return x * float(x.sum().item())


def m_unregistered(x):
    return of_unknown(Unknown(x * 2)) + 1


def m_context(x):
    return of_unknown(OddContext(x * 2)) + 1


def m_output(x):
    return gives_unknown(x * 2).x + 1


def m_raises(x):
    y = x * 2
    try:
        raises(y)
    except ValueError as e:
        return str(e), y + 1


def m_counts(x):
    return counts(x) * 2, counter


def m_prints(x):
    return prints(x * 2) * 2


def m_appends(x):
    items = [x * 2]
    return appends(items), items


def m_needs_data(x):
    return needs_data(x + 1) + 1


def m_inside(x):
    h = nonstrict(lambda t: t + 1)
    return h(x * 2) * 2


def m_pending(x):
    global WEIGHT
    WEIGHT = x * 5
    return reads_globals(x) * 2


@pytest.mark.parametrize("fn,reason", [
    (m_unregistered, "MD0601"), (m_context, "MD0603"), (m_output, "MD0604"), (m_raises, "MD0607"), (m_counts, "MD0610"),
    (m_prints, "MD0610"), (m_appends, "MD0610"), (m_needs_data, "MD0607"), (m_inside, "MD0606"), (m_pending, "MD0609")])
def test_misuse_breaks_with_its_reason(fn, reason):
    found = check(fn, torch.randn(3), min_graphs=1, cached=fn is not m_inside)
    assert reason in found.breaks


def test_not_callable():
    with pytest.raises(minidynamo.exc.UserError, match="MD0605"):
        nonstrict(3)


def test_a_tensor_without_path_breaks():
    class Hidden:
        __slots__ = ("t",)

    hidden = Hidden()
    hidden.t = torch.ones(3)

    @nonstrict
    def reads_hidden(x):
        return x + hidden.t

    def f(x):
        return reads_hidden(x * 2) + 1
    found = check(f, torch.randn(3), min_graphs=1)
    assert "MD0608" in found.breaks


# ---------------------------------------------------------------- state within reach
CONFIG = {"k": 2, "steps": [1, 2]}
TOTAL = torch.zeros(3)


class Owner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.k = 2

    @nonstrict
    def helper(self, x):
        return self.norm(x) * self.k

    def forward(self, x):
        return self.helper(x).relu()


@nonstrict
def reads_config(x):
    return x * CONFIG["k"] + sum(CONFIG["steps"])


@nonstrict
def adds_to_total(x):
    TOTAL.add_(x)
    return x + TOTAL


@pytest.mark.parametrize("backend", BACKENDS)
def test_plain_state_that_the_body_reads_is_guarded(backend):
    m = Owner()
    f = minidynamo.optimize(lambda x: (m(x), reads_config(x)), backend=backend)
    x = torch.randn(4, 3)

    def same():
        before = {k: v.clone() for k, v in m.state_dict().items()}
        want = (m(x), reads_config(x))
        after = {k: v.clone() for k, v in m.state_dict().items()}
        m.load_state_dict(before)
        got = f(x)
        assert all(torch.allclose(v, after[k]) for k, v in m.state_dict().items())      # one update, not two
        return all(torch.allclose(a, b) for a, b in zip(want, got))
    try:
        assert same()
        m.k = 5
        assert same()
        CONFIG["k"] = 7
        assert same()
        CONFIG["steps"].append(3)
        assert same()
        m.eval()
        assert same()
    finally:
        CONFIG.update(k=2, steps=[1, 2])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_global_tensor_written_by_the_body(backend):
    f = minidynamo.optimize(lambda x: adds_to_total(x) * 2, backend=backend)
    x = torch.ones(3)
    TOTAL.zero_()
    for turn in (1, 2, 3):
        assert torch.equal(f(x), (x + turn) * 2)
        assert torch.equal(TOTAL, x * turn)
