"""explain, the command line, the logs: what they say is what happened."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import torch

import minidynamo
from minidynamo.base.table import Table
from minidynamo.code import listing
from minidynamo.compiler.report import READERS
from minidynamo.observe import ARTEFACTS
from minidynamo.tools.explain import collecting
from minidynamo.tools.tables import page

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEN: list = []


@pytest.fixture(autouse=True)
def clean():
    minidynamo.reset()
    yield
    minidynamo.set_logs(all=False)
    minidynamo.reset()


def broken(x, d):
    x = torch.sin(x)
    SEEN.append(1)
    print("hi")
    d["a"] = x
    return x + 1


def test_explain_says_what_was_done(capsys):
    d: dict = {}
    x = torch.randn(3)
    found = minidynamo.explain(broken)(x, d)
    assert torch.equal(found.result, torch.sin(x) + 1) and capsys.readouterr().out == "hi\n"
    first, second = found.frames
    assert (first.exit, first.ops, second.exit, second.ops) == ("break", ["sin"], "return", ["add"])
    assert [stop.id for stop in found.breaks] == ["MD0101"] and found.skips == []
    assert [str(effect.text()).partition(" ")[0] for effect in found.effects] == ["list", "dict"]
    assert found.effects[1].where.line().strip() == 'd["a"] = x'
    assert second.resumed_at == broken.__code__.co_firstlineno + 3
    assert len(found.graphs) == 2 and all(isinstance(g, torch.fx.GraphModule) for g in found.graphs)
    assert found.timings["compile"] >= found.timings["trace"] > 0 and found.recompiles == {}
    assert READERS == []


def test_guards_are_python_that_can_be_read_and_run():
    found = minidynamo.explain(lambda x, n: x * n)(torch.ones(2), 3)
    frame, = found.frames
    assert "L['n'] == 3" in " ".join(frame.guards) and "L['x']" in " ".join(frame.guards)
    compile(found.guards[frame.compile_id], "guards", "exec")


def test_the_report_can_be_read():
    text = str(minidynamo.explain(broken)(torch.randn(3), {}))
    for part in ("2 compiles, 2 graphs with 2 operations, 1 break, 0 recompiles", "MD0101", 'print("hi")', "^^^^",
                 "hint: move it out", "broken  ", "graph    sin", "type(L['d']) is dict", "effects"):
        assert part in text, text


def test_recompiles_say_which_guard_failed():
    compiled = minidynamo.optimize(lambda x: x * 2)
    with collecting() as found:
        for size in (2, 3):
            compiled(torch.ones(size))
    (compile_id, why), = found.recompiles.items()
    assert compile_id == "0/1" and "L['x']" in why and "shape [2]" in why and "shape [3]" in why
    assert "compiled again" in str(found)


def test_explain_is_fresh_each_time_and_takes_settings():
    def f(x):
        return x + 1
    minidynamo.optimize(f)(torch.ones(2))
    for _ in range(2):
        assert len(minidynamo.explain(f)(torch.ones(2)).graphs) == 1
    with pytest.raises(minidynamo.exc.Unsupported, match="MD0101"):
        minidynamo.explain(broken, fullgraph=True)(torch.ones(2), {})
    assert READERS == []


def test_explain_of_something_optimized_asks_with_its_settings():
    @minidynamo.optimize(dynamic=True)
    def f(x, n):
        return x * n
    report = minidynamo.explain(f)(torch.ones(2), 3)
    assert "L['n'] == 3" not in str(report) and len(report.graphs) == 1
    assert "L['n'] == 3" in str(minidynamo.explain(f, dynamic=False)(torch.ones(2), 3))
    with pytest.raises(minidynamo.exc.Unsupported, match="MD0101"):
        minidynamo.explain(minidynamo.optimize(broken, fullgraph=True))(torch.ones(2), {})


def test_the_report_on_a_module_has_its_name():
    report = minidynamo.explain(minidynamo.optimize(torch.nn.Sequential(torch.nn.ReLU())))(torch.ones(2))
    assert "\nSequential  " in str(report) and "relu" in str(report)


def test_frames_left_to_python_are_counted():
    def f(x):
        return list(i for i in range(3)), x
    found = minidynamo.explain(f)(1)
    assert found.graphs == [] and "nothing to compile" in str(found)


def test_bytecode_lists_old_and_new_without_running_reprs():
    class Loud:
        def __repr__(self):
            raise AssertionError("a report ran user code")
    loud = Loud()

    def f(x):
        return x + 1, loud
    frame, = minidynamo.explain(f)(torch.ones(2)).frames
    old, new = frame.bytecode().removeprefix("old\n").split("\nnew\n")
    assert "BINARY_OP" in old and "BINARY_OP" not in new and "UNPACK_SEQUENCE" in new
    assert listing(f.__code__) == old


def text_of_log(artefact, fn, *args, caplog):
    caplog.clear()
    minidynamo.reset()
    minidynamo.set_logs(**{artefact: True})
    minidynamo.optimize(fn)(*args)
    minidynamo.set_logs(**{artefact: False})
    return "\n".join(record.getMessage() for record in caplog.records if record.name == f"minidynamo.{artefact}")


@pytest.mark.parametrize("artefact, parts", [
    ("graph", ["torch.sin", "def forward"]),
    ("guards", ["def guard(L, G):", "tensor_match(L['x']"]),
    ("bytecode", ["old", "new", "UNPACK_SEQUENCE", "0/0 broken"]),
    ("graph_breaks", ["MD0101", "^^^^", "hint"]),
    ("side_effects", ["list G['SEEN']", "dict L['d']"]),
    ("times", ["'trace':", "break"]),
    ("instructions", ["broken:", "STORE_LOCAL 'x'", "CALL"]),
])
def test_each_log_says_what_it_promises(artefact, parts, caplog):
    text = text_of_log(artefact, broken, torch.randn(3), {}, caplog=caplog)
    for part in parts:
        assert part in text, text


def test_the_log_of_recompiles_and_skips(caplog):
    def twice(x):
        return x + 1
    minidynamo.set_logs(recompiles=True, skips=True)
    f = minidynamo.optimize(twice)
    f(torch.ones(2)), f(torch.ones(2, dtype=torch.float64))
    assert "float64" in caplog.text
    minidynamo.optimize(lambda: 1)()
    assert "MD0501" in caplog.text


def test_every_artefact_is_printed_by_something():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "minidynamo").rglob("*.py"))
    for artefact in ARTEFACTS:
        assert f'say("{artefact}"' in source, artefact


@pytest.mark.parametrize("policy", ["allow", "warn", "error"])
def test_policy_of_effects(policy, caplog):
    def f(x):
        SEEN.append(2)
        return x + 1
    with minidynamo.config.patch(side_effects_policy=policy):
        if policy == "error":
            with pytest.raises(minidynamo.exc.Unsupported, match=r"MD0704(.|\n)*list G\['SEEN'\]"):
                minidynamo.optimize(f)(torch.ones(2))
        else:
            minidynamo.optimize(f)(torch.ones(2))
            assert ("list G['SEEN']" in caplog.text) == (policy == "warn")


# ------------------------------------------------------------------ the command line
def command(*args, cwd=None):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "minidynamo", *args], capture_output=True, text=True, env=env, cwd=cwd,
                          timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(textwrap.dedent("""
        import sys
        import torch, minidynamo

        def step(x):
            print("step")
            return x * 2

        def alone():
            return torch.ones(2) + 1

        def needs(x):
            return x

        if __name__ == "__main__":
            minidynamo.optimize(step)(torch.ones(int(sys.argv[1])))
            if len(sys.argv) > 2:
                raise SystemExit(3)
    """))
    return path


def test_explain_a_script(script):
    status, out, err = command("explain", str(script), "3")
    assert status == 0, err
    assert out.startswith("step\n") and "MD0101" in out and "step  " in out and "train.py" in out
    status, out, _ = command("explain", f"{script}:alone", "3")
    assert status == 0 and "alone  " in out and "MD0101" not in out
    status, _, err = command("explain", f"{script}:needs", "3")
    assert status == 2 and "cannot be called without x" in err
    assert command("explain", str(script), "3", "leave")[0] == 3
    assert command("explain", "no_such_file.py")[0] == 2


def test_tables_prints_the_registries():
    status, out, err = command("tables")
    assert status == 0, err
    for name in (*Table.all, "predicates", "handlers", "reasons"):
        assert f"\n{name} (" in out, name
    assert page("handlers").strip().startswith("handlers (")
    assert "variables.sequences.build_tuple" in out


def test_the_page_of_reasons_is_in_step():
    status, out, err = command("reasons")
    assert status == 0, err
    assert out == (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8"), \
        "run `python -m minidynamo reasons > docs/reasons.md`"
