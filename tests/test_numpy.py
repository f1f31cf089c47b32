"""numpy values that follow from literals are computed while tracing; all others are Python's."""
from __future__ import annotations

import numpy as np
import pytest
import torch

import minidynamo
from minidynamo.testing import check


def test_shapes_are_computed_with_numpy():
    def f(x, patch):
        size = np.array(x.shape[1:])
        rest = (size % np.power(patch, 2)) > 0
        if rest.any():
            raise ValueError(f"wrong size {size}")
        strides = np.prod(size), int(size.max()), size.tolist(), np.cumsum(size)[-1], len(size), [int(n) for n in size]
        return x.reshape(int(np.prod(x.shape))) * float(np.sqrt(16.0)), strides

    check(f, torch.ones(2, 4, 8), 2, graphs=1, fullgraph=True)
    check(f, torch.ones(2, 4, 7), 2)


def test_scalars_and_arrays_leave():
    def f(x):
        a = np.arange(6).reshape(2, 3)
        b = np.zeros((2, 2), dtype=np.float32)
        return x + 1, a.sum(), np.float32(2.5), b, np.linspace(0, 1, 3), f"{np.float64(1.5):.2f}", a.shape, a.ndim

    check(f, torch.ones(2), graphs=1, fullgraph=True)


def test_views_are_pythons():
    def f(x):
        a = np.arange(6)
        b = a[1:]
        b[0] = 7
        return x + 1, a, b

    check(f, torch.ones(2), min_graphs=1)


def test_each_call_makes_a_new_array():
    def f(x):
        return x + 1, np.array([1, 2])

    minidynamo.reset()
    compiled = minidynamo.optimize(f, fullgraph=True)
    first, second = compiled(torch.ones(2))[1], compiled(torch.ones(2))[1]
    first[0] = 9
    assert second.tolist() == [1, 2] and compiled(torch.ones(2))[1].tolist() == [1, 2]


def test_warnings_are_given_each_time():
    def f(x):
        return x + 1, np.log(np.array([0.0, 1.0]))

    minidynamo.reset()
    compiled = minidynamo.optimize(f)
    for _ in range(2):
        with pytest.warns(RuntimeWarning):
            compiled(torch.ones(2))


def test_errors_are_numpys():
    def f(x):
        try:
            return x + np.array([1, 2]).reshape(3, 4).sum()
        except ValueError as error:
            return x * 2, str(error)

    check(f, torch.ones(2), min_graphs=1)


def test_arrays_from_outside_and_random_numbers_are_not_known():
    def f(x, a):
        n = int((a + 1).sum())
        return x * n, np.random.rand(2), np.array([x.shape[0], a[0]])

    check(f, torch.ones(2), np.array([1, 2]), min_graphs=1)
