"""Public exceptions."""
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
