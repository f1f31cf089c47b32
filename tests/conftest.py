"""No test leaves the process other than it found it: what one leaks, the next to run on its worker would meet."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

try:
    import torch  # noqa: F401
except ImportError:                     # the tests of code/ run where there is none
    READ: dict[str, Any] = {}
else:
    from minidynamo.base.config import config
    from minidynamo.compiler.preserve import STATE
    from minidynamo.hook import adapter
    from minidynamo.interp.loop import HANDLERS

    READ = {name: read for name, (read, _) in STATE.items() if name not in ("torch generator", "random")}
    READ |= {"options": config.to_dict, "handlers": HANDLERS.copy, "hook": adapter.active}


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    before = {name: read() for name, read in READ.items()}
    yield
    after = {name: read() for name, read in READ.items()}
    assert after == before, [name for name in before if before[name] != after[name]]
