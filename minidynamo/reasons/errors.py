"""The exceptions users see.  They stand low so that every layer may raise them; ``minidynamo.exc`` is their door."""
from __future__ import annotations

from minidynamo.reasons.reason import Reason, Stop


class MiniDynamoError(RuntimeError):
    """Base of everything minidynamo raises on its own account."""


class Unsupported(MiniDynamoError):
    """``fullgraph=True`` met something that needs a graph break; `reason` says what."""

    def __init__(self, message: str, reason: Reason | None = None) -> None:
        super().__init__(message)
        self.reason = reason

    @classmethod
    def of(cls, stop: Stop) -> Unsupported:
        return cls(f"fullgraph=True, and the graph must end here\n{stop.render()}", stop.reason)


class BackendCompilerFailed(MiniDynamoError):
    """The backend raised, or returned something that cannot be called; its error is the cause."""

    def __init__(self, message: str, backend: object = None) -> None:
        super().__init__(message)
        self.backend = backend


class RecompileLimitExceeded(MiniDynamoError):
    """A limit of recompiles was hit and ``config.fail_on_recompile_limit_hit`` is set."""


class UserError(MiniDynamoError):
    """minidynamo was asked for something it cannot mean; the message says what to ask instead."""


class InternalError(MiniDynamoError):
    """A bug in minidynamo; the original error is the cause."""
