"""Limits of recompiles, decided before any analysis."""
from __future__ import annotations

from typing import Any

from minidynamo.base.config import config
from minidynamo.compiler.frame import CodeState, Frame, Skipped
from minidynamo.guards.diff import explain_miss, table
from minidynamo.guards.manager import GuardManagerWrapper
from minidynamo.observe import recorder, warn
from minidynamo.reasons import ACCUMULATED_LIMIT, RECOMPILE_LIMIT, Reason
from minidynamo.reasons.errors import RecompileLimitExceeded


def over_limit(frame: Frame, state: CodeState, entries: list[Any]) -> Skipped | None:
    """None while one more entry may be made; `entries` are this backend's for this code object."""
    if state.compiles >= config.accumulated_recompile_limit:
        return _hit(ACCUMULATED_LIMIT, frame, state, entries, state.compiles, config.accumulated_recompile_limit)
    if len(entries) >= config.recompile_limit:
        return _hit(RECOMPILE_LIMIT, frame, state, entries, len(entries), config.recompile_limit)
    return None


def why_missed(frame: Frame, entries: list[Any]) -> str:
    """Which guard of which entry failed, as a table; asked only when it is shown."""
    with_guards = [entry.guard_manager for entry in entries if isinstance(entry.guard_manager, GuardManagerWrapper)]
    return table(explain_miss(with_guards, frame.locals, frame.globals)) or "no guard failed"


def _hit(reason: Reason, frame: Frame, state: CodeState, entries: list[Any], count: int, limit: int) -> Skipped:
    recorder.count("limits", reason.id)
    first = reason.id not in state.warned
    # Explaining a miss evaluates every guard in Python; later hits only count.
    why = why_missed(frame, entries) if first or config.fail_on_recompile_limit_hit else "as before"
    fields = {"name": frame.code.co_qualname, "count": count, "limit": limit, "why": why}
    text = (f"{reason.id}  {reason.title}: {reason.text(fields)} "
            f"[dynamic: automatic={config.automatic_dynamic_shapes}; accumulated {state.compiles}"
            f"/{config.accumulated_recompile_limit}; the frame runs as plain Python]")
    if config.fail_on_recompile_limit_hit:
        raise RecompileLimitExceeded(text)
    if first:
        state.warned.add(reason.id)
        recorder.event("limit", reason=reason.id, recompile_reason=why, config=config.to_dict())
        warn(text)
    return Skipped(reason, fields, forever=False)
