"""Fast fakes answer what torch's own fake mode answers, for metadata, aliasing and autograd."""
from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from minidynamo.graph import fast_fake
from minidynamo.graph.fast_fake import hasten

OPS = {
    "add": lambda x, w: x + w,
    "scalar": lambda x, w: (x * 2, x * 2.0, x + True, x // 2),
    "promotes": lambda x, w: x.to(torch.int32) + 1.5,
    "matmul": lambda x, w: x @ w,
    "view": lambda x, w: x.view(-1),
    "transpose": lambda x, w: x.t().contiguous().view(2, -1),
    "slice": lambda x, w: (x[1:, ::2], x[0], x[..., None], x[[0, 1]]),
    "split": lambda x, w: torch.split(x, 2),
    "unbind": lambda x, w: torch.unbind(x),
    "max": lambda x, w: x.max(dim=0),
    "inplace": lambda x, w: x.clone().add_(1).mul_(w.detach()),
    "copy": lambda x, w: torch.empty(4, 4).copy_(x),
    "inplace on a view": lambda x, w: x.clone()[0].add_(1),
    "dtype": lambda x, w: (x.double(), x.half(), x.to("cpu"), x.to(torch.float32)),
    "cat": lambda x, w: torch.cat([x, w, x], dim=1),
    "expand": lambda x, w: x[:1].expand(4, 4),
    "complex": lambda x, w: (torch.complex(x, x).conj(), torch.complex(x, x).imag, torch.view_as_real(torch.complex(x, x))),
    "norm": lambda x, w: torch.nn.functional.layer_norm(x, (4,), w[0], w[1]),
    "softmax": lambda x, w: (x @ w).softmax(-1).sum(),
    "factory": lambda x, w: (torch.ones(3), torch.zeros_like(x), x.new_empty(2, 2), torch.arange(3.0)),
    "detach": lambda x, w: (w.detach(), w.data, w * 1),
    "svd": lambda x, w: torch.linalg.svd(x),
    "where": lambda x, w: torch.where(x > 0, x, w),
    "nothing": lambda x, w: (x.to(x.dtype), x.contiguous(), x.reshape(4, 4)),
}


def run(mode, op):
    x = mode.from_tensor(torch.arange(16.0).view(4, 4), static_shapes=True)
    w = mode.from_tensor(torch.nn.Parameter(torch.ones(4, 4)), static_shapes=True)
    with mode:
        return facts(op(x, w), [x, w])


def facts(result, inputs):
    if isinstance(result, (tuple, list)):
        return type(result), [facts(r, inputs) for r in result]
    storages = [t.untyped_storage()._cdata for t in inputs]
    storage = result.untyped_storage()
    return (type(result).__name__, result.dtype, tuple(result.shape), result.stride(), result.storage_offset(),
            result.device, result.requires_grad, result.is_leaf, type(result.grad_fn).__name__, result.is_conj(),
            result._is_view(), result._version, storage.nbytes(),
            storages.index(storage._cdata) if storage._cdata in storages else None,
            [result is t for t in inputs])


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("grad", [True, False])
def test_second_time_as_the_first(name, grad, monkeypatch):
    monkeypatch.setattr(fast_fake, "_CACHES", {})
    op = OPS[name]
    with torch.set_grad_enabled(grad):
        expected = run(FakeTensorMode(shape_env=ShapeEnv()), op)
        for _ in range(2):
            mode = FakeTensorMode(shape_env=ShapeEnv())
            hasten(mode)
            assert run(mode, op) == expected
    assert name == "nothing" or any(fast_fake._CACHES.values()), "nothing was remembered"


def test_hits_do_not_reach_torch(monkeypatch):
    monkeypatch.setattr(fast_fake, "_CACHES", {})
    slow = []
    original = FakeTensorMode.dispatch
    monkeypatch.setattr(FakeTensorMode, "dispatch", lambda self, func, *a: slow.append(func) or original(self, func, *a))
    for _ in range(2):
        mode = FakeTensorMode(shape_env=ShapeEnv())
        hasten(mode)
        slow.clear()
        x = mode.from_tensor(torch.ones(3), static_shapes=True)
        with mode:
            (x.sin() + x).mul_(2)
    assert not [f for f in slow if f in (torch.ops.aten.sin.default, torch.ops.aten.add.Tensor, torch.ops.aten.mul_.Tensor)]


def test_constants_keep_their_values():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    hasten(mode)
    for value in (1, 2, 1):
        with mode:
            assert (torch.tensor(value) + 1).item() == value + 1


def test_symbolic_sizes_go_the_long_way():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    hasten(mode)
    x = mode.from_tensor(torch.ones(5, 3), static_shapes=False)
    with mode:
        assert type((x + 1).shape[0]) is torch.SymInt


def test_a_resized_tensor_is_another_key():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    hasten(mode)
    with mode:
        for n in (2, 5, 3):
            x = torch.empty(0)
            torch.add(torch.ones(n), 1, out=x)
            assert x.shape == (n,) and (x + x).shape == (n,)


def test_dtype_default_is_part_of_the_key():
    seen = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            mode = FakeTensorMode(shape_env=ShapeEnv())
            hasten(mode)
            with mode:
                seen.append((torch.ones(2, dtype=torch.int64) / 2).dtype)
        finally:
            torch.set_default_dtype(torch.float32)
    assert seen == [torch.float32, torch.float64]


# ---------------------------------------------------------------- inputs
def gone_to_zero():
    t = torch.ones(3)
    t.untyped_storage().resize_(0)
    return t


def with_gradient():
    t = torch.ones(3, requires_grad=True)
    (t * 2).sum().backward()
    return t


INPUTS = {
    "tensor": lambda: torch.ones(2, 3), "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.ones(2, 3), requires_grad=False),
    "leaf": lambda: torch.ones(2, requires_grad=True), "strides": lambda: torch.empty_strided((2, 3), (1, 2)),
    "gaps": lambda: torch.empty_strided((2, 3), (6, 2)), "expanded": lambda: torch.empty_strided((2, 3), (0, 1)),
    "empty": lambda: torch.ones(0, 3), "scalar": lambda: torch.ones(()), "view": lambda: torch.ones(4)[1:3],
    "no leaf": lambda: torch.ones(2, requires_grad=True) * 2, "detached": lambda: torch.ones(4)[1:].detach(),
    "buffer": lambda: torch.nn.Buffer(torch.ones(3)), "ints": lambda: torch.arange(3), "no memory": gone_to_zero,
    "gradient": with_gradient, "conjugate": lambda: torch.ones(2, dtype=torch.complex64).conj(),
}


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("name", INPUTS)
def test_fakes_of_inputs_are_torchs(name):
    real = INPUTS[name]()
    ours, theirs = FakeTensorMode(shape_env=ShapeEnv()), FakeTensorMode(shape_env=ShapeEnv())
    made, want = fast_fake.plain_fake(ours, real), theirs.from_tensor(real, static_shapes=True)
    if name in ("tensor", "parameter", "frozen parameter", "leaf", "strides", "ints"):
        assert made is not None
    if made is None:
        return
    assert facts(made, []) == facts(want, []) and isinstance(made, torch.nn.Parameter) is isinstance(want, torch.nn.Parameter)
    assert {k for k in vars(made)} == {k for k in vars(want)}
    assert ours.from_tensor(real, static_shapes=True) is made, "torch's converter knows it"


def test_inputs_over_one_memory_share_it_as_fakes():
    mode, first = FakeTensorMode(shape_env=ShapeEnv()), torch.ones(4)
    second = torch.empty(0).set_(first.untyped_storage(), 0, (4,), (1,))
    a, b = fast_fake.plain_fake(mode, first), fast_fake.plain_fake(mode, second)
    assert a is not None and b is None
    b = mode.from_tensor(second, static_shapes=True)
    assert a.untyped_storage()._cdata == b.untyped_storage()._cdata


def test_inside_is_torchs_own_entry():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    inside = fast_fake.Inside(mode)
    before = torch._C._only_lift_cpu_tensors()

    def seen():
        return (torch._C._get_dispatch_mode(fast_fake.FAKE_KEY), torch._C._only_lift_cpu_tensors(),
                torch.utils._python_dispatch.is_in_torch_dispatch_mode())

    with mode:
        want = seen()
    with inside:
        assert seen() == want
        with inside:
            assert seen() == want
        assert seen() == want
        with pytest.raises(ValueError, match="x"), inside:
            raise ValueError("x")
        assert seen() == want
    assert seen() == (None, before, False)


def test_a_fake_like_the_first_is_torchs():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    mode._allow_unsafe_data_ptr_access = False
    hasten(mode)
    device = torch.device("cpu")
    first, second = [fast_fake.fake_over(mode, torch.empty(2, 3, device="meta"), device) for _ in range(2)]
    torchs = fast_fake.FakeTensor(mode, torch.empty(2, 3, device="meta"), device)
    for fake in (first, second):
        assert facts(fake, []) == facts(torchs, []) and vars(fake) == vars(torchs) and fake.device == torchs.device
        assert torch._C._dispatch_keys(fake).raw_repr() == torch._C._dispatch_keys(torchs).raw_repr()
        with pytest.raises(RuntimeError):
            fake.data_ptr()
    fast_fake.slow_down(mode)
    assert "given" not in vars(mode)
