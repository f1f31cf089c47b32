"""Torch functions, methods and attributes: results, aliases, named tuples, and what must break."""
from __future__ import annotations

import enum
import threading
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import minidynamo
from minidynamo import reasons
from minidynamo.testing import CompileCounter, check


class Number(enum.IntEnum):
    TWO = 2


def f_finfo(x):
    return torch.finfo(x.dtype).eps + x, torch.iinfo(torch.int32).max, torch.finfo(x.dtype).dtype


def f_int_subclass(x):
    return x * Number.TWO, torch.sum(x, dim=Number.TWO - 2)


def f_same_object(x):
    return (x.contiguous() is x, x.to(x.dtype) is x, x.float() is x, torch.atleast_1d(x) is x, x.cpu() is x,
            F.dropout(x, 0.5, False) is x, x.expand(x.shape) is x, x.add_(1) is x, x.detach() is x)


def f_metadata(x):
    return (torch.result_type(x, 1.0), x.numel(), torch.numel(x), torch.is_floating_point(x), x.is_contiguous(),
            torch.broadcast_shapes((1, 3), (2, 1)), x.type(), x.stride(), x.T.is_contiguous(), torch.is_tensor(x)), x + 1


def f_out(x):
    out = torch.empty_like(x)
    r = torch.add(x, 1, out=out)
    values, indices = torch.empty(3), torch.empty(3, dtype=torch.long)
    pair = torch.max(x, 0, out=(values, indices))
    return r is out, out, pair, pair[0] is values


def f_named(x):
    r = torch.max(x, dim=0)
    s = torch.linalg.svd(x)
    return r, r.values + r.indices, type(r), s.S, torch.topk(x, 1), torch.linalg.lu_factor(x).LU.shape


def f_comparisons(x):
    return x == None, x == "a", x != [1], (x == 1) | (x > 2), x + 0  # noqa: E711


def f_torch_ops(x):
    return torch.ops.aten.add.Tensor(x, x), torch.ops.aten.mul(x, 2), torch.ops.aten.relu.default(x)


def f_checks(x):
    torch._check(x.shape[0] == 3, lambda: "no")
    return x + 1, torch.jit.is_scripting(), torch.overrides.is_tensor_like(x)


def f_callable_argument(x):
    return F.triplet_margin_with_distance_loss(x, x + 1, x * 2, distance_function=lambda a, b: (a - b).abs().sum(-1))


def f_scalar_from_tensor(x):
    return torch.full((3,), x[0, 0]) + x.add(x, alpha=x[1, 1]), x.clone().addcdiv_(x, x + 1, value=x[0, 1])


@pytest.mark.parametrize("fn", [f_finfo, f_int_subclass, f_same_object, f_metadata, f_out, f_named, f_comparisons,
                                f_torch_ops, f_checks, f_callable_argument, f_scalar_from_tensor],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph(fn, backend):
    assert not check(fn, torch.rand(3, 3), graphs=1, backend=backend, tol=1e-5 if backend == "aot_eager" else 0.0).breaks


def f_grad_written(x):
    x.grad = None
    y = x * 2
    x.grad = torch.ones_like(x)
    return y, x.grad is None, x.grad + 1


def f_zero_grad(x):
    x.grad = torch.ones_like(x)
    before = x.grad
    x.grad = None
    return before * x.detach(), x.grad


@pytest.mark.parametrize("fn", [f_grad_written, f_zero_grad], ids=lambda f: f.__name__)
def test_grad(fn):
    assert not check(fn, torch.rand(3, 3, requires_grad=True), graphs=1).breaks


def b_requires_grad(x):
    y = x.detach().clone()
    y.requires_grad_()
    return y * 2, y.is_leaf


def b_leaf(x):
    return torch.ones(3, requires_grad=True) * x


def b_wrong_grad(x):
    try:
        x.grad = torch.ones(1)
    except RuntimeError as error:
        return x + 1, str(error)


def b_data_written(x):
    y = x * 2
    x.data = torch.zeros(2)
    return y, x + 1


def b_item(x):
    return x.sum().item() + 1, x * 2


def b_numpy(x):
    return (x + 1).numpy() * np.float32(2), x * np.float64(2.5)


def b_op_error(x):
    y = x + 1
    try:
        return y @ torch.ones(7, 7)
    except RuntimeError as error:
        return y, type(error).__name__, str(error)


def b_operand_error(x):
    try:
        return x + [1]
    except TypeError as error:
        return x + 1, str(error)


def b_data_dependent_shape(x):
    return x[x > 0.5] + 1, torch.nonzero(x > 0.5), x.unique() + 1


def b_sparse(x):
    return x.to_sparse().to_dense() + 1


def b_generator(x):
    g = torch.Generator().manual_seed(3)
    return torch.rand(3, generator=g) + x


BREAKS = {b_requires_grad: reasons.METADATA_MUTATION, b_leaf: reasons.UNSUPPORTED_ARGUMENTS,
          b_wrong_grad: reasons.METADATA_MUTATION, b_data_written: reasons.METADATA_MUTATION,
          b_item: reasons.DATA_DEPENDENT_VALUE, b_numpy: reasons.ITERATE_TENSOR_VALUES, b_op_error: reasons.OP_RAISED,
          b_operand_error: None, b_data_dependent_shape: None, b_sparse: None, b_generator: None}


@pytest.mark.parametrize("fn", BREAKS, ids=lambda f: f.__name__)
def test_breaks_and_agrees(fn):
    found = check(fn, torch.rand(3, 3), min_graphs=1)
    if BREAKS[fn] is not None:
        assert found.breaks[BREAKS[fn].id], found.breaks


def test_numpy_values_compile_nothing_anew():
    def f(x, array):
        return x + 1, array

    check(f, torch.ones(2), np.ones(3), graphs=1, make=lambda: (torch.ones(2), np.ones(3)))


def test_modules_behind_modules_and_weak_references():
    lstm, attention = torch.nn.LSTM(3, 4, 2), torch.nn.MultiheadAttention(4, 2)
    check(lambda x: lstm(x), torch.rand(5, 2, 3), graphs=1)
    check(lambda x: attention(x, x, x), torch.rand(5, 2, 4), graphs=1)


def test_opaque_arguments_compile_nothing_anew():
    def f(x, lock):
        return x + 1, lock

    made = [threading.Lock() for _ in range(4)]
    check(f, graphs=1, make=lambda: (torch.ones(2), made[0]))

    counter = CompileCounter()
    compiled = minidynamo.optimize(f, backend=counter)
    for lock in made:
        assert compiled(torch.ones(2), lock)[1] is lock
    assert counter.frame_count == 1


def test_operators_without_symbols_get_numbers():
    def f(x, n):
        return F.pad(x, (n, 1)) + n

    compiled = minidynamo.optimize(f, backend="eager", fullgraph=True)
    for n in (2, 3, 4, 5):
        assert torch.equal(compiled(torch.ones(2, 3), n), f(torch.ones(2, 3), n))


def test_warnings_come_once():
    def f(x):
        return F.mse_loss(x, x[:1])

    compiled = minidynamo.optimize(f, backend="eager")
    minidynamo.reset()
    for _ in range(2):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            compiled(torch.ones(3, 3))
        assert len(seen) == 1 and "target size" in str(seen[0].message)


def test_in_place_operators_over_one_memory_are_pythons():
    """Whether the written and the read parts overlap is found out by the operation itself."""
    def f(x, seen):
        seen.append("before")
        low, high = x[:-1], x[1:]
        try:
            low += high
        except RuntimeError as error:
            return x * 2, str(error)
        return x

    found = check(f, torch.arange(4.0), [], min_graphs=1)
    assert found.breaks["MD0105"] == 1
