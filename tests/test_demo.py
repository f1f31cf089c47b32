"""The demo does what it says: losses equal to eager's at every step, over a break and a change of shape."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_the_demo_trains():
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, str(ROOT / "demos" / "train_gpt.py"), "--steps", "6", "--only", "minidynamo"],
                          capture_output=True, encoding="utf-8", env=env, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert f"minidynamo    {'█' * 6}\n" in out
    row = next(line for line in out.splitlines() if line.startswith("minidynamo") and "to" in line)
    assert "equal at every step" in row
    assert "MD0101  print() must run now" in out and "compiled again" in out and "MD0409" in out
    assert done.stderr == ""
