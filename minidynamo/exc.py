"""Exceptions that users see; each says what to do about it."""
from minidynamo.reasons.errors import (
    BackendCompilerFailed,
    InternalError,
    MiniDynamoError,
    RecompileLimitExceeded,
    Unsupported,
    UserError,
)

__all__ = ["BackendCompilerFailed", "InternalError", "MiniDynamoError", "RecompileLimitExceeded",
           "Unsupported", "UserError"]
