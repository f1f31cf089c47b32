"""The long run: ``python -m tests.soundness.fuzz 20000 [first seed]`` writes and compares programs, one a seed."""
from __future__ import annotations

import random
import sys
import time
import warnings

from tests.soundness.compare import TooLong, mismatch
from tests.soundness.programs import write

NONE = "no program"             # not Python (`nonlocal` of a parameter and the like), or one that takes too long


def choice(seed: int) -> tuple[str, dict[str, int]]:
    """The program of a seed and the settings it is run under."""
    numbers = random.Random(seed)
    source = write(numbers.randrange, size=4 + numbers.randrange(16))
    options = {}
    if seed % 3 == 1:
        options["force_break_at"] = 1 + numbers.randrange(60)
    elif seed % 3 == 2:
        options["force_break_every"] = 1 + numbers.randrange(12)
    return source, options


def result(seed: int) -> str | None:
    """Where the seed's program parts from plain Python."""
    source, options = choice(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return mismatch(source, calls=2 + seed % 5, **options)
        except (SyntaxError, TooLong):
            return NONE


def main(count: int, first: int = 0) -> int:
    bad, none, start = [], 0, time.monotonic()
    for seed in range(first, first + count):
        found = result(seed)
        if found is NONE:
            none += 1
        elif found is not None:
            bad.append(seed)
            print(f"seed {seed}: {found[:400]}", flush=True)
        if seed % 100 == 99:
            print(f"{seed + 1 - first - none} programs to seed {seed}, {len(bad)} mismatches", flush=True)
    seconds = time.monotonic() - start
    print(f"{count - none} programs from seed {first} to {first + count - 1} in {seconds:.0f} s, {len(bad)} mismatches: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
