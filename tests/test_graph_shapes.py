"""Shapes: when the facts hold for other inputs, the graph gives eager's result on them."""
from __future__ import annotations

import shutil

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minidynamo.base.journal import Journal
from minidynamo.graph.fake import FakeEnv
from minidynamo.graph.shapes import ShapeHistory, Shapes
from minidynamo.graph.subgraph import ChildTape
from minidynamo.graph.tape import Tape
from minidynamo.graph.to_fx import to_fx
from minidynamo.sources import Local


def read_number(value, kind, *where):
    return value if kind in ("int", "float") else getattr(value, kind)(*where)


class Trace:
    """A program ``f(op, *inputs)`` traced with symbolic sizes; `op` calls or records."""

    def __init__(self, program, inputs, *, dynamic=True, history=None):
        self.env = FakeEnv()
        self.tape = Tape(self.env, Journal())
        self.shapes = Shapes(self.env, dynamic=dynamic, history=history)
        self.inputs, nodes = inputs, []
        for i, value in enumerate(inputs):
            source = Local(f"a{i}")
            if isinstance(value, torch.Tensor):
                nodes.append(self.tape.input(value, source, fake=self.shapes.fakify(value, source)))
            elif isinstance(value, int):
                nodes.append(self.tape.input(value, source, fake=self.env.symint(value, source)))
            else:
                nodes.append(self.tape.input_float(value, source))
        self.outputs = program(self.record, *nodes)
        self.lowered = to_fx(self.tape, self.outputs)

    def record(self, target, *args, **kwargs):
        return self.tape.call(target, args, kwargs, method=isinstance(target, str))

    def facts_hold(self, inputs):
        by_text = {f"L['a{i}']": v for i, v in enumerate(inputs)}
        return all(f.holds({n: read_number(by_text[s.text()], *a) for n, s, a in f.names})
                   for f in self.shapes.facts())

    def pattern_holds(self, inputs):
        """What a tensor guard checks besides."""
        for old, new in zip(self.inputs, inputs, strict=True):
            if isinstance(old, torch.Tensor):
                sizes, strides = self.shapes.pattern(old)
                if len(sizes) != new.dim():
                    return False
                if any(a is not None and a != b for a, b in zip(sizes + strides, (*new.shape, *new.stride()), strict=True)):
                    return False
        return True

    def accepts(self, inputs):
        return self.facts_hold(inputs) and self.pattern_holds(inputs)

    def arguments(self, inputs):
        used = [int(n.source.key[1:]) for n in self.lowered.inputs]
        values = [inputs[i] for i in used]
        return [torch.tensor(v, dtype=torch.float64) if isinstance(v, float) else v for v in values]


def eager(target, *args, **kwargs):
    return getattr(args[0], target)(*args[1:], **kwargs) if isinstance(target, str) else target(*args, **kwargs)


def value_of(x):
    return getattr(x, "value", x)


def flatten(op, x, y):
    n = value_of(x).shape
    return [op("reshape", x, n[0] * n[1]), op("view", op("contiguous", y), -1)]


def branch_on_size(op, x, y):
    a, b = value_of(x), value_of(y)
    if a.shape[0] > 4:
        return [op("sum", x)]
    return [op("mul", x, a.shape[0] + 2 * b.shape[1])]


def divisible(op, x, y):
    n = value_of(x).shape[0]
    if n % 2 == 0:
        return [op("reshape", x, n // 2, 2, -1)]
    return [op("neg", x)]


def broadcast(op, x, y):
    return [op(torch.add, x, y)]


def matmul(op, x, y):
    return [op(torch.matmul, x, op("t", y))]


def concatenated(op, x, y):
    z = op(torch.cat, [x, y], 0)
    return [op(torch.zeros, value_of(z).shape[0]), op("narrow", z, 0, 0, value_of(x).shape[0])]


def contiguity(op, x, y):
    return [op("neg", x) if value_of(x).is_contiguous() else op("exp", x)]


def extremes(op, x, y):
    n = value_of(x).shape[0]
    return [op(torch.zeros, torch.sym_max(n, 3), torch.sym_min(n // 2, 3))]


PROGRAMS = [flatten, branch_on_size, divisible, broadcast, matmul, concatenated, contiguity, extremes]
sizes = st.integers(0, 7)


@st.composite
def tensors(draw):
    kind = draw(st.sampled_from(["plain", "transposed", "sliced", "offset", "expanded", "column"]))
    m, n = draw(sizes), draw(sizes)
    return {
        "plain": lambda: torch.randn(m, n),
        "transposed": lambda: torch.randn(n, m).t(),
        "sliced": lambda: torch.randn(m, 2 * n)[:, ::2],
        "offset": lambda: torch.randn(m + 1, n)[1:],
        "expanded": lambda: torch.randn(1, n).expand(m, n),
        "column": lambda: torch.randn(m, n + 2)[:, :n],
    }[kind]()


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(PROGRAMS), st.tuples(tensors(), tensors()), st.lists(st.tuples(tensors(), tensors()), min_size=1, max_size=6))
def test_if_the_facts_hold_the_graph_is_right(program, first, others):
    try:
        want = program(eager, *first)
    except (RuntimeError, IndexError):
        assume(False)
    trace = Trace(program, first)
    assert trace.accepts(first), [str(f) for f in trace.shapes.facts()]
    for inputs in (first, *others):
        if trace.accepts(inputs):
            got = trace.lowered.gm(*trace.arguments(inputs))
            want = program(eager, *inputs)
            for g, w in zip(got, want, strict=True):
                assert g.stride() == w.stride()
                torch.testing.assert_close(g, w)


def accepts(program, first, other):
    return Trace(program, first).accepts(other)


def test_facts_let_other_sizes_in_and_keep_wrong_ones_out():
    x, y = torch.randn(3, 5), torch.randn(4, 6)
    assert accepts(flatten, (x, y), (torch.randn(2, 7), torch.randn(9, 3)))
    assert accepts(branch_on_size, (x, y), (torch.randn(4, 7), y))
    assert not accepts(branch_on_size, (x, y), (torch.randn(5, 7), y))
    assert not accepts(branch_on_size, (x, y), (torch.randn(1, 7), y))
    assert not accepts(divisible, (torch.randn(4, 5), y), (torch.randn(5, 7), y))
    z = torch.randn(3, 6)  # not 4: equal sizes are taken to be one symbol
    assert accepts(divisible, (torch.randn(4, 5), z), (torch.randn(6, 7), z))
    assert not accepts(divisible, (torch.randn(2, 1), z), (torch.randn(0, 0), z))  # divides by a size
    assert not accepts(broadcast, (x, torch.randn(3, 5)), (torch.randn(3, 5), torch.randn(1, 5)))
    assert not accepts(contiguity, (x, y), (torch.randn(5, 3).t(), y))


def test_ints_and_floats():
    def program(op, x, n, f):
        z = op(torch.mul, op(torch.add, x, n), f)
        return [z, op(torch.mul, z, 2)] if value_of(n) > 3 else [z]

    first = (torch.randn(3), 7, 2.5)
    trace = Trace(program, first)
    for inputs in (first, (torch.randn(5), 9, -1.5), (torch.randn(5), 2, 0.0)):
        assert trace.facts_hold(inputs) == (inputs[1] > 3)
        if inputs[1] > 3:
            got = trace.lowered.gm(*trace.arguments(inputs))
            torch.testing.assert_close(got[0], (inputs[0] + inputs[1]) * inputs[2])
    assert not trace.facts_hold((torch.randn(5), 9, float("nan")))


def test_symbols_reach_a_child_tape_as_captures():
    def program(op, x, y):
        child = ChildTape(x.tape)
        inner = child.operand(y)
        n = x.value.shape[0] * 2
        return [x, child.finish([child.call(torch.mul, (inner, n), {})])]

    x, y = torch.randn(3), torch.randn(4)
    nodes = []
    Trace(lambda op, x, y: nodes.extend(program(op, x, y)) or [x], (x, y))
    body = nodes[1]
    assert [n.value.node.expr for n in body.captures] == [nodes[0].value.shape[0].node.expr]
    torch.testing.assert_close(body.gm(y, 5)[0], y * 10)


def test_facts_print_as_the_user_reads_them():
    trace = Trace(lambda op, x: [op("view", x, 4, 3)], (torch.randn(12),))
    assert "L['a0'].size(0) == 12" in [str(f) for f in trace.shapes.facts()]


def test_static_programs_have_no_facts():
    trace = Trace(flatten, (torch.randn(3, 5), torch.randn(4, 6)), dynamic=False)
    assert trace.shapes.facts() == []
    assert trace.shapes.pattern(trace.inputs[0]) == ((3, 5), (5, 1))


def test_metadata_changes_do_not_move_the_facts():
    trace = Trace(lambda op, x, y: [op("sum", op("t_", x))], (torch.randn(3, 5), torch.randn(2, 2)))
    assert trace.accepts((torch.randn(6, 7), torch.randn(3, 3)))


# ---- policy
def test_history_makes_what_varied_dynamic():
    history = ShapeHistory()
    shapes = lambda: Shapes(FakeEnv(), history=history)
    assert shapes().dynamic_dims(torch.randn(4, 8), Local("x")) == {}
    assert list(shapes().dynamic_dims(torch.randn(5, 8), Local("x"))) == [0]
    assert list(shapes().dynamic_dims(torch.randn(5, 8), Local("x"))) == [0]
    assert list(shapes().dynamic_dims(torch.randn(1, 9), Local("x"))) == [1]
    assert shapes().dynamic_dims(torch.randn(5), Local("x")) == {}
    assert not shapes().is_dynamic_number(3, Local("n"))
    assert shapes().is_dynamic_number(4, Local("n")) and shapes().is_dynamic_number(1, Local("n"))
    assert Shapes(FakeEnv(), dynamic=False, history=history).dynamic_dims(torch.randn(7, 8), Local("x")) == {}


@pytest.mark.parametrize("attribute", ["_dynamo_{}_indices", "_minidynamo_{}_dims"])
def test_marks(attribute):
    x = torch.randn(4, 8)
    setattr(x, attribute.format("dynamic"), {1})
    assert list(Shapes(FakeEnv(), dynamic=False).dynamic_dims(x, Local("x"))) == [1]
    setattr(x, attribute.format("static"), {0})
    assert list(Shapes(FakeEnv(), dynamic=True).dynamic_dims(x, Local("x"))) == [1]
    trace = Trace(lambda op, x: [op("view", x, 4, 8)], (x,), dynamic=None)
    assert trace.shapes.specialised_marks() == ["L['a0'].size(1) == 8"]


def test_parameters_are_static_unless_marked():
    w = torch.nn.Parameter(torch.randn(4, 4))
    assert Shapes(FakeEnv(), dynamic=True).dynamic_dims(w, Local("w")) == {}


# ---- backends
def compiler(name):
    if name == "inductor":
        return torch._TorchCompileInductorWrapper("default", None, True)
    return torch._TorchCompileWrapper(name, None, None, None).compiler_fn


BACKENDS = ["aot_eager", pytest.param("inductor", marks=[
    pytest.mark.slow, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")])]


def compiled(trace, name):
    context = trace.env.tracing_context()
    with torch._guards.tracing(context):
        return compiler(name)(trace.lowered.gm, trace.lowered.example_inputs)


def backend_program(op, x, n, f):
    rows, columns = value_of(x).shape
    z = op(torch.mul, op(torch.add, op("view", op("sin", x), rows * columns), n), f)
    return [z, op(torch.zeros, rows + 1), op(torch.mul, z, value_of(n) * rows)]


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_take_symbolic_graphs(name):
    first = (torch.randn(4, 8, requires_grad=True), 7, 2.5)
    trace = Trace(backend_program, first)
    run = compiled(trace, name)
    for inputs in (first, (torch.randn(6, 5, requires_grad=True), 9, 1.25)):
        assert trace.accepts(inputs)
        got, want = run(*trace.arguments(inputs)), backend_program(eager, *inputs)
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g, w)
        got[0].sum().backward()
        grad, inputs[0].grad = inputs[0].grad, None
        want[0].sum().backward()
        torch.testing.assert_close(grad, inputs[0].grad)


@pytest.mark.parametrize("name", BACKENDS[:1])
@pytest.mark.parametrize("dynamic", [False, True])
def test_backends_see_inputs_as_on_entry(name, dynamic):
    def program(op, x, w):
        op("mul_", x, w)
        op("t_", x)
        return [op("sum", x, 0)]

    first = (torch.randn(4, 3), torch.nn.Parameter(torch.randn(3)))
    trace = Trace(program, first, dynamic=dynamic)
    run = compiled(trace, name)
    x = torch.randn(6 if dynamic else 4, 3)
    assert trace.accepts((x, first[1]))
    mine, theirs = x.clone(), x.clone()
    torch.testing.assert_close(run(*trace.arguments((mine, first[1])))[0], program(eager, theirs, first[1])[0])
    torch.testing.assert_close(mine, theirs)
    assert mine.shape == theirs.shape and mine.requires_grad
