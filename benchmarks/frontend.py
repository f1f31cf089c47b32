"""What the frontend costs beside torch.compile's: a cached call, and tracing.  Both engines in turn, in one process.

    python benchmarks/frontend.py [--only WORD] [--repeat N]

call    time of a cached call over its floor: the captured graph alone on the same inputs
trace   time from an empty cache to the end of the first call

The backend is "eager" for both, so that no compiler behind the frontend is timed.  What carries over from
machine to machine is the last column, minidynamo / torch.compile, and the geometric mean below it.
"""
from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from programs import CALLS, TRACES, Program

import minidynamo

Engine = tuple[Callable[..., Any], Callable[[], None]]
ENGINES: dict[str, Engine] = {
    "minidynamo": (minidynamo.optimize, minidynamo.reset),
    "torch.compile": (torch.compile, torch.compiler.reset),
}


class KeepInputs:
    """A backend that remembers what its graph was called with, for the floor."""

    def __init__(self) -> None:
        self.calls: dict[Any, tuple[Any, ...]] = {}

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            self.calls[gm] = inputs
            return gm.forward(*inputs)
        return run


def seconds(call: Callable[[], Any], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def measure_call(program: Program, repeat: int) -> dict[str, float]:
    """Microseconds over the floor, the least of `repeat` rounds in which all take turns; 0.1 at the least."""
    fn, args = program()
    keep = KeepInputs()
    minidynamo.reset()
    torch.compiler.reset()
    torch.compile(fn, backend=keep)(*args)
    torch.compiler.reset()
    (gm, inputs), = keep.calls.items()
    graph = gm.forward          # torch writes it on the first call
    ways: dict[str, Callable[[], Any]] = {"floor": lambda: graph(*inputs)}
    for name, (optimize, _) in ENGINES.items():
        compiled = optimize(fn, backend="eager")
        for _ in range(3):
            compiled(*args)
        ways[name] = lambda compiled=compiled: compiled(*args)
    number = max(5, int(0.002 / seconds(ways["torch.compile"], 20)))        # short rounds: some escape the machine's other work
    best = dict.fromkeys(ways, math.inf)
    for _ in range(repeat * 10):
        for name, way in ways.items():
            best[name] = min(best[name], seconds(way, number))
    return {name: max(best[name] - best["floor"], 1e-7) * 1e6 for name in ENGINES}


def measure_trace(program: Program, repeat: int) -> dict[str, float]:
    """Milliseconds of the first call, the median of `repeat` rounds after one to warm up."""
    found: dict[str, list[float]] = {name: [] for name in ENGINES}
    for turn in range(repeat + 1):
        for name, (optimize, reset) in ENGINES.items():
            fn, args = program()
            reset()
            compiled = optimize(fn, backend="eager")
            took = seconds(lambda compiled=compiled, args=args: compiled(*args), 1) * 1e3
            if turn:
                found[name].append(took)
    return {name: statistics.median(times) for name, times in found.items()}


def table(title: str, unit: str, programs: dict[str, Program], measure: Callable[[Program, int], dict[str, float]],
          repeat: int) -> None:
    print(f"\n{title:<26}{'minidynamo':>14}{'torch.compile':>16}{'ratio':>9}")
    ratios = []
    for name, program in programs.items():
        with torch.no_grad():
            found = measure(program, repeat)
        ratios.append(found["minidynamo"] / found["torch.compile"])
        print(f"{name:<26}{found['minidynamo']:>11.2f} {unit}{found['torch.compile']:>13.2f} {unit}{ratios[-1]:>9.3f}",
              flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{'geometric mean':<26}{'':>30}{mean:>9.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="programs whose name has this word")
    parser.add_argument("--repeat", type=int, default=9)
    found = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [{name: program for name, program in programs.items() if found.only in name} for programs in (CALLS, TRACES)]
    table("a cached call", "µs", chosen[0], measure_call, found.repeat)
    table("tracing", "ms", chosen[1], measure_trace, found.repeat)


if __name__ == "__main__":
    main()
