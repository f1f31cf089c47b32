"""explain: what was compiled while a function or script ran, and why; an object to ask, and to print."""
from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from minidynamo.base.text import clip, count_of, indent, near
from minidynamo.code import listing
from minidynamo.codegen.resume import info_of
from minidynamo.compiler.backends import resolve
from minidynamo.compiler.report import READERS, Report
from minidynamo.observe import counters
from minidynamo.reasons import REASONS, Stop
from minidynamo.side_effects.effect import Effect

SHOWN_GUARDS, SHOWN_OPS = 8, 12


@dataclasses.dataclass
class FrameReport:
    """One compile of one frame, as plain data: nothing here keeps a trace alive."""

    compile_id: str
    code: CodeType
    new_code: CodeType | None
    exit: str                                   # "return", "break", "skip" or "failed"
    resumed_at: int | None                      # the line a resume function starts at
    stop: Stop | None
    graph: Any                                  # torch.fx.GraphModule, or None
    guards: tuple[str, ...]                     # Python expressions over L (locals) and G (globals)
    guard_function: str                         # the same as one runnable function
    effects: tuple[Effect, ...]
    recompile_reason: str | None
    times_us: dict[str, int]
    error: str | None

    @classmethod
    def of(cls, report: Report) -> FrameReport:
        trace = report.trace
        info = info_of(trace.program) if trace is not None else None
        guards = getattr(report.guards, "guards", ())
        return cls(
            compile_id=report.compile_id, code=report.code, new_code=report.new_code, exit=report.exit_kind,
            resumed_at=info.root.ops[info.start].pos.lineno if info is not None else None,
            stop=report.stop, graph=report.graph, guards=tuple(guard.text() for guard in guards),
            guard_function=report.guards_text(), effects=tuple(report.effects()),
            recompile_reason=report.recompile_reason, times_us=dict(report.times_us),
            error=f"{type(report.error).__name__}: {report.error}" if report.error is not None else None)

    @property
    def ops(self) -> list[str]:
        """The graph's operations by the names of their nodes."""
        nodes = self.graph.graph.nodes if self.graph is not None else ()
        return [node.name for node in nodes if node.op.startswith("call_")]

    @property
    def place(self) -> str:
        return f"{self.code.co_qualname}  {near(self.code.co_filename)}:{self.code.co_firstlineno}"

    def bytecode(self) -> str:
        """Old and new instructions."""
        new = listing(self.new_code) if self.new_code is not None else "as before"
        return f"old\n{listing(self.code)}\nnew\n{new}"

    def __str__(self) -> str:
        return self.text()

    def text(self, seen: set[str] | None = None) -> str:
        """The report of this frame; reasons that are in `seen` are named only, others are entered there."""
        return "\n".join(self._lines(set() if seen is None else seen))

    def _lines(self, seen: set[str]) -> Iterator[str]:
        start = f"from line {self.resumed_at}: " if self.resumed_at is not None else ""
        took = f"{self.times_us.get('compile', 0) / 1000:.1f} ms"
        yield f"{self.compile_id}  {start}{self._outcome()}   [{took}]"
        if self.recompile_reason:
            yield indent(f"compiled again\n{self.recompile_reason}", "     ")
        if self.ops:
            more = f" … {len(self.ops) - SHOWN_OPS} more" if len(self.ops) > SHOWN_OPS else ""
            yield f"     graph    {' '.join(self.ops[:SHOWN_OPS])}{more}"
        for label, texts in (("guards", [clip(text, 100) for text in self.guards]),
                             ("effects", [effect.text() for effect in self.effects])):
            for number, text in enumerate(texts[:SHOWN_GUARDS]):
                yield f"     {label if number == 0 else '':<8} {text}"
            if len(texts) > SHOWN_GUARDS:
                yield f"              … {len(texts) - SHOWN_GUARDS} more"
        if self.stop is not None:
            told = self.stop.render()
            again = f"{self.stop.id}  as above" if told in seen else told
            seen.add(told)
            yield indent(again, "     ")
        if self.error is not None:
            yield f"     error    {self.error}"

    def _outcome(self) -> str:
        graph = count_of(len(self.ops), "operation") if self.graph is not None else "no graph"
        ends = {"return": "to the end", "break": "then the graph breaks", "skip": "left to Python", "failed": "failed"}
        return f"{graph}, {ends.get(self.exit, self.exit)}"


@dataclasses.dataclass
class Explanation:
    """Everything that was compiled, frame by frame, in order."""

    frames: list[FrameReport] = dataclasses.field(default_factory=list)
    left_alone: Counter[str] = dataclasses.field(default_factory=Counter)      # frames never traced, by reason id
    result: Any = None

    @property
    def graphs(self) -> list[Any]:
        return [frame.graph for frame in self.frames if frame.graph is not None]

    @property
    def breaks(self) -> list[Stop]:
        return [frame.stop for frame in self.frames if frame.exit == "break" and frame.stop is not None]

    @property
    def skips(self) -> list[Stop]:
        return [frame.stop for frame in self.frames if frame.exit == "skip" and frame.stop is not None]

    @property
    def guards(self) -> dict[str, str]:
        """Python text of the guards, by compile id."""
        return {frame.compile_id: frame.guard_function for frame in self.frames}

    @property
    def effects(self) -> list[Effect]:
        return [effect for frame in self.frames for effect in frame.effects]

    @property
    def recompiles(self) -> dict[str, str]:
        """Why, by compile id."""
        return {frame.compile_id: frame.recompile_reason for frame in self.frames if frame.recompile_reason}

    @property
    def timings(self) -> Counter[str]:
        """Microseconds by stage; "compile" contains the others."""
        total: Counter[str] = Counter()
        for frame in self.frames:
            total.update(frame.times_us)
        return total

    def only(self, name: str) -> Explanation:
        """What concerns the function called `name`."""
        return Explanation([frame for frame in self.frames if name in (frame.code.co_name, frame.code.co_qualname)])

    def summary(self) -> str:
        ops = sum(len(frame.ops) for frame in self.frames)
        return (f"{count_of(len(self.frames), 'compile')}, {count_of(len(self.graphs), 'graph')} with "
                f"{count_of(ops, 'operation')}, {count_of(len(self.breaks), 'break')}, "
                f"{count_of(len(self.recompiles), 'recompile')}, {self.timings['compile'] / 1000:.0f} ms")

    def __str__(self) -> str:
        parts = [self.summary()]
        seen: set[str] = set()
        groups: dict[str, list[FrameReport]] = {}
        for frame in self.frames:
            groups.setdefault(frame.place, []).append(frame)
        for place, members in groups.items():
            parts.append(f"\n{place}")
            parts += [indent(frame.text(seen)) for frame in members]
        if self.left_alone:
            parts.append("\nleft to Python without a look inside")
            parts += [f"  {count:>4} × {which}  {REASONS[which].title.partition('{')[0].strip()}"
                      for which, count in self.left_alone.most_common()]
        return "\n".join(parts)

    __repr__ = summary


@contextlib.contextmanager
def collecting() -> Iterator[Explanation]:
    """An Explanation of all that is compiled inside the ``with`` block."""
    found = Explanation()
    before = Counter(counters["skips"])

    def read(report: Report) -> None:
        found.frames.append(FrameReport.of(report))

    READERS.append(read)
    try:
        yield found
    finally:
        READERS.remove(read)
        told = Counter(stop.id for stop in found.skips)
        told.update(frame.stop.id for frame in found.frames if frame.stop is not None and frame.exit == "return")
        found.left_alone = Counter(counters["skips"]) - before - told


def explain(optimize: Callable[..., Any], fn: Callable[..., Any], settings: dict[str, Any]) -> Callable[..., Explanation]:
    """A function that compiles `fn` afresh, runs it once, and says what was done.

    Entries that exist are neither used nor touched: each call has a backend object of its own.
    """
    inner, _ = resolve(settings.pop("backend", "eager"), settings.pop("mode", None), settings.pop("options", None))

    def run(*args: Any, **kwargs: Any) -> Explanation:
        def backend(gm: Any, example_inputs: list[Any]) -> Any:
            return inner(gm, example_inputs)
        compiled = optimize(fn, backend=backend, **settings)
        with collecting() as found:
            found.result = compiled(*args, **kwargs)
        return found

    return run
