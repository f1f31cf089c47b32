"""Tracing runs real torch and Python state switches; this puts back what the user had."""
from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

# name -> (read, write)
STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "grad mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "deterministic": (
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda v: torch.use_deterministic_algorithms(v[0], warn_only=v[1])),
    "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    "cpu autocast": (
        lambda: (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        lambda v: (torch.set_autocast_enabled("cpu", v[0]), torch.set_autocast_dtype("cpu", v[1]))),     # type: ignore[func-returns-value]
    "cuda autocast": (
        lambda: (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")),
        lambda v: (torch.set_autocast_enabled("cuda", v[0]), torch.set_autocast_dtype("cuda", v[1]))),   # type: ignore[func-returns-value]
    "torch generator": (torch.get_rng_state, torch.set_rng_state),
    "random": (random.getstate, random.setstate),
}


@contextlib.contextmanager
def preserved() -> Iterator[None]:
    """Everything in `STATE`, and numpy's generator if numpy is there, as it was; on every way out."""
    saved = [(write, read(), read) for read, write in STATE.values()]
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        for write, value, read in saved:
            now = read()
            same = torch.equal(now, value) if isinstance(value, torch.Tensor) else now == value
            if not same:
                write(value)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
