"""Every program of the corpus, with a break forced at each of its steps, ends as in plain CPython."""
from __future__ import annotations

import pytest

import minidynamo
from minidynamo import reasons
from tests.soundness.forced import corpus_code, namespace, part, run

CODE = corpus_code()
NAMES = [name for name in namespace(CODE) if name.startswith("p_")]


@pytest.mark.parametrize("name", NAMES)
def test_break_at_each_step(name: str) -> None:
    eager = run(namespace(CODE), name)
    problems = []
    for step in (*range(1, 60), *range(60, 2000, 5)):
        minidynamo.reset()
        minidynamo.counters.clear()
        ours = run(namespace(CODE), name, force_break_at=step)
        where = part(eager, ours)
        if where is not None:
            problems.append(f"step {step}: {where}")
        if not minidynamo.counters["graph_break"][reasons.FORCED_BREAK.id]:
            break
    assert step > 2, "nothing was traced"
    assert not problems, f"{len(problems)} of {step} steps: " + "\n".join(problems[:3])[:1500]


@pytest.mark.parametrize("every", [1, 2, 3, 7])
@pytest.mark.parametrize("name", NAMES)
def test_break_over_and_over(name: str, every: int) -> None:
    eager = run(namespace(CODE), name)
    minidynamo.reset()
    minidynamo.counters.clear()
    space = namespace(CODE)
    where = part(eager, run(space, name, force_break_every=every))
    assert where is None
    assert minidynamo.counters["graph_break"][reasons.FORCED_BREAK.id]
