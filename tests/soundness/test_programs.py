"""Written programs: compiled is eager, whatever the program, the arguments, and the breaks in between."""
from __future__ import annotations

import ast
import pathlib
import warnings

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.soundness import fuzz
from tests.soundness.compare import TooLong, mismatch
from tests.soundness.programs import PRELUDE, write

BREAKS = st.sampled_from([{}, {}, {"force_break_at": 5}, {"force_break_at": 25}, {"force_break_every": 1},
                          {"force_break_every": 6}])


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck),
          phases=(Phase.explicit, Phase.generate, Phase.shrink))
@given(st.data(), BREAKS)
def test_written_program(data: st.DataObject, options: dict[str, int]) -> None:
    """Hypothesis chooses every part of the program, so that what fails is made small."""
    numbers = st.integers(0, 1 << 16)
    source = write(lambda n: data.draw(numbers) % n, size=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = mismatch(source, calls=3, **options)
        except (SyntaxError, TooLong):
            return
    assert found is None, f"{found}\n{source[source.index('def f('):]}"


# One seed is one program: the same as `make fuzz` runs, which goes on where this ends.
CHUNK = 25


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_seeds(first: int) -> None:
    found = {seed: fuzz.result(seed) for seed in range(first, first + CHUNK)}
    assert not {seed: text for seed, text in found.items() if text and text is not fuzz.NONE}
    assert sum(text is fuzz.NONE for text in found.values()) < CHUNK / 5


# Programs that were compiled wrongly once; the settings are their first line.
FOUND = sorted(pathlib.Path(__file__).with_name("found").glob("*.py"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_found_before(path: pathlib.Path) -> None:
    source = path.read_text(encoding="utf-8")
    options = ast.literal_eval(source.partition("\n")[0].removeprefix("# options: "))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert mismatch(f"{PRELUDE}\n{source}", **options) is None
