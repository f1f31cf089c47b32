"""Programs that the benchmarks run: each a function of no arguments that returns (callable, arguments)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Program = Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def one_op() -> Any:
    return (lambda x: x + 1), (torch.randn(4),)


def arguments() -> Any:
    def many(*xs: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return xs[0] * scale + xs[-1]
    return many, tuple(torch.randn(2) for _ in range(16))


def containers() -> Any:
    def nested(batch: dict[str, Any]) -> torch.Tensor:
        return batch["images"][1] * batch["options"]["scale"] + len(batch["images"])
    return nested, ({"images": [torch.randn(2), torch.randn(2)], "options": {"scale": 3}},)


class Settings:
    def __init__(self) -> None:
        self.scale, self.shift, self.name = 2.0, 1, "relu"


SETTINGS = Settings()


def objects() -> Any:
    def read(x: torch.Tensor) -> torch.Tensor:
        y = x * SETTINGS.scale + SETTINGS.shift
        return y.relu() if SETTINGS.name == "relu" else y
    return read, (torch.randn(4),)


def mutation() -> Any:
    def fill(x: torch.Tensor, out: dict[str, Any]) -> None:
        out["twice"] = x * 2
        out["more"] = [x + 1]
    return fill, (torch.randn(4), {"twice": 0, "more": 0})


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.outer(nn.functional.silu(self.inner(self.norm(x))))


def residual(depth: int) -> Program:
    return lambda: (nn.Sequential(*[Residual(8) for _ in range(depth)]).eval(), (torch.randn(2, 8),))


def transformer() -> Any:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).train(), (torch.randn(2, 6, 16),)


def chain(length: int) -> Program:
    """Straight-line code of `length` tensor operations."""
    def make() -> Any:
        lines = ["def f(x):", *[f"    x = (x * {number}).cos()" for number in range(length // 2)], "    return x"]
        space: dict[str, Any] = {}
        exec("\n".join(lines), space)
        return space["f"], (torch.randn(4),)
    return make


def plain_python() -> Any:
    """Little tensor work and much Python: integers, strings, lists, dicts, calls."""
    def step(state: dict[str, int], number: int) -> int:
        state[f"k{number % 5}"] = number
        return number * 3 % 7

    def run(x: torch.Tensor) -> torch.Tensor:
        state: dict[str, int] = {}
        total = 0
        for number in range(1000):
            total += step(state, number)
            if total % 2:
                total -= 1
        return x + total + sum(state.values())
    return run, (torch.randn(4),)


CALLS: dict[str, Program] = {
    "one op": one_op, "16 tensors": arguments, "containers": containers, "objects": objects, "mutation": mutation,
    "residual, 4 blocks": residual(4), "residual, 24 blocks": residual(24),
}
TRACES: dict[str, Program] = {
    "one op": one_op, "100 ops": chain(100), "800 ops": chain(800), "plain Python": plain_python,
    "residual, 24 blocks": residual(24), "transformer, 4 layers": transformer,
}
