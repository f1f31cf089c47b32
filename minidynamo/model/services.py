"""Services: what families of values ask of one another, as methods of the tracer. Each is declared where it is done."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from minidynamo.base.table import DuplicateEntry, Table

F = TypeVar("F", bound=Callable[..., Any])

SERVICES: Table[str] = Table("services", "what one family of values asks of another: tx.name(...)")


class Services:
    """Mixed into Tracer; `service` fills it."""


def service(fn: F) -> F:
    """Declare a function ``(tx, ...)`` that families beside or above call as ``tx.<its name>(...)``."""
    if hasattr(Services, fn.__name__):
        raise DuplicateEntry(f"service {fn.__name__!r}")
    setattr(Services, fn.__name__, fn)
    SERVICES.add(fn, (fn.__doc__ or "").partition("\n")[0])
    return fn
