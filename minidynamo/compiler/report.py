"""Report: what one compile did, as plain data made from the stages' results. Readers attach to `READERS`."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import CodeType
from typing import Any

from minidynamo.base.config import config
from minidynamo.code import listing
from minidynamo.codegen.effects import effects
from minidynamo.compiler.frame import Frame
from minidynamo.reasons import Stop
from minidynamo.side_effects.effect import Effect


@dataclasses.dataclass(slots=True)
class Report:
    """One attempt at one frame.  Held by readers only, so that nothing here keeps a model alive."""

    compile_id: str
    code: CodeType
    exit_kind: str = ""                     # "return", "break", "skip", "failed"
    stop: Stop | None = None                # of a break or skip
    graph: Any = None                       # the GraphModule
    inputs: Any = None
    trace: Any = None
    new_code: CodeType | None = None
    guards: Any = None
    recompile_reason: str | None = None
    error: BaseException | None = None
    times_us: dict[str, int] = dataclasses.field(default_factory=dict)

    def effects(self) -> list[Effect]:
        """What the new code replays."""
        return effects(self.trace)

    def guards_text(self) -> str:
        """The guards as a Python function."""
        return str(self.guards.source_text()) if self.guards is not None else "no guards"

    def bytecode_text(self) -> str:
        """Old and new instructions."""
        old, new = listing(self.code), "as before" if self.new_code is None else listing(self.new_code)
        return f"old\n{old}\nnew\n{new}"

    def metrics(self, frame: Frame, backend: str) -> dict[str, Any]:
        """The fields of the metrics record that this report knows."""
        nodes = list(self.graph.graph.nodes) if self.graph is not None else []
        return {
            "compile_id": self.compile_id,
            "co_name": frame.code.co_qualname,
            "co_filename": frame.code.co_filename,
            "co_firstlineno": frame.code.co_firstlineno,
            "exit_kind": self.exit_kind,
            "break_reasons": [self.stop.id] if self.stop and self.exit_kind == "break" else None,
            "skip_reason": self.stop.id if self.stop and self.exit_kind == "skip" else None,
            "fail_user_filename": self._place("filename"),
            "fail_user_lineno": self._place("lineno"),
            "graph_node_count": len(nodes),
            "graph_op_count": sum(node.op.startswith("call_") for node in nodes),
            "graph_input_count": sum(node.op == "placeholder" for node in nodes),
            "guard_count": _size(getattr(self.guards, "guards", None)),
            "effect_count": _size(getattr(getattr(self.trace, "plan", None), "effects", None)),
            "recompile_reason": self.recompile_reason,
            "backend": backend,
            "config": repr(config.to_dict()),
        }

    def _place(self, name: str) -> Any:
        return getattr(self.stop.where, name) if self.stop is not None and self.stop.where is not None else None


def _size(thing: Any) -> int | None:
    try:
        return len(thing)
    except TypeError:
        return None


READERS: list[Callable[[Report], None]] = []


def tell(report: Report) -> None:
    for reader in tuple(READERS):     # a reader may leave
        reader(report)
