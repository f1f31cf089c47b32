"""Decode, assemble, decode again: the same program, for the standard library and torch.

``MINIDYNAMO_FULL=1`` takes every file; by default every 20th or so.
"""
from __future__ import annotations

import dataclasses
import dis
import importlib
import importlib.util
import os
import pathlib
import sysconfig
import types
import warnings
from collections.abc import Iterator

import pytest

from minidynamo.code import DecodeError, Program, assemble, decode, stack_depths
from minidynamo.code.assemble import RULES
from minidynamo.code.ops import JUMP_EFFECT, NO_FALL_THROUGH, ROWS
from minidynamo.code.readers import DROP, FIXED, JUMP, READ
from minidynamo.code.version import version

FULL = os.environ.get("MINIDYNAMO_FULL") == "1"
STDLIB = pathlib.Path(sysconfig.get_path("stdlib"))
# not valid source of this Python, or text that is meant to be broken
NOT_SOURCE = ("lib2to3/tests/data", "test/bad", "tokenizedata/bad", "bad_coding", "badsyntax")
SAME = ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount",
        "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_varnames", "co_cellvars",
        "co_freevars")


def sources(root: pathlib.Path, step: int) -> list[pathlib.Path]:
    files = sorted(path for path in root.rglob("*.py")
                   if "site-packages" not in path.relative_to(root).parts
                   and not any(part in path.as_posix() for part in NOT_SOURCE))
    return files if FULL else files[::step]


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def same_constant(one: object, other: object) -> bool:
    """Identity, or literals of one type and value."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        assert isinstance(other, tuple)
        return len(one) == len(other) and all(map(same_constant, one, other))
    return repr(one) == repr(other)


def shape(program: Program) -> list[tuple]:
    """What must survive: reachable ops, with targets and handlers renumbered."""
    reachable = [at for at, depth in enumerate(stack_depths(program)) if depth is not None]
    new = {old: at for at, old in enumerate(reachable)}
    found = []
    for old in reachable:
        op = program.ops[old]
        handler = op.handler and (new[op.handler.target], op.handler.depth, op.handler.push_lasti)
        found.append((op.name, new.get(op.target), handler, op.pos, op.arg))
    return found


def check(code: types.CodeType) -> None:
    program = decode(code)
    made = assemble(program)
    before, after = shape(program), shape(decode(made))
    assert len(before) == len(after)
    for one, other in zip(before, after):
        assert one[:4] == other[:4] and same_constant(one[4], other[4])
    for name in SAME:
        assert getattr(code, name) == getattr(made, name), name


def sweep(root: pathlib.Path, step: int) -> int:
    count = 0
    for path in sources(root, step):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except SyntaxError:
            continue            # written for another Python
        for code in codes(module):
            count += 1
            try:
                check(code)
            except Exception as error:
                raise AssertionError(f"{path.name}:{code.co_firstlineno} {code.co_qualname}") from error
    return count


def test_stdlib() -> None:
    assert sweep(STDLIB, 20) > 1000


def test_torch() -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    assert sweep(pathlib.Path(spec.origin).parent, 60) > 500


# ---- the tables are total
def real_opcodes() -> set[str]:
    return {name for name, number in dis.opmap.items()
            if number < 256 and not name.startswith("INSTRUMENTED_")}


def test_every_real_opcode_is_read_or_named_absent() -> None:
    assert set(version.READ) | version.ABSENT == real_opcodes()
    assert not set(version.READ) & version.ABSENT


def test_every_neutral_op_has_a_rule() -> None:
    assert set(RULES) == set(ROWS)


def test_reading_answers_only_neutral_ops() -> None:
    for row in version.READ.values():
        if row.kind in (FIXED, JUMP):
            for name, _ in row.ops + row.after:
                assert name in ROWS
        if row.kind == JUMP:
            assert row.jump[0] in JUMP_EFFECT and row.sign in (1, -1)
        assert (row.read is not None) == (row.kind == READ)
        assert row.kind != DROP or not row.ops
    assert set(JUMP_EFFECT) | NO_FALL_THROUGH <= set(ROWS)


def test_unknown_opcode_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("minidynamo.code.decode")
    rows = list(module._ROWS)
    rows[dis.opmap["LOAD_NAME"]] = None
    monkeypatch.setattr(module, "_ROWS", rows)
    with pytest.raises(DecodeError, match="unknown opcode LOAD_NAME"):
        decode(compile("unheard_of", "x", "eval"))


# ---- memo
def test_decode_is_memoised_by_identity() -> None:
    one = compile("a + 1", "x", "eval")
    twin = one.replace()
    assert one == twin and one is not twin
    assert decode(one) is decode(one)
    assert decode(one) is not decode(twin)
    assert decode(twin).code is twin


def test_replace_does_not_copy_answers() -> None:
    program = decode(compile("a + 1", "x", "eval"))
    stack_depths(program)
    assert dataclasses.replace(program, name="other").memo == {}


# ---- layout
def test_long_jumps_and_many_names() -> None:
    body = "".join(f"    if x: v{i} = {i} + x.a{i}\n" for i in range(400))
    text = f"def f(x, n):\n  for k in range(n):\n{body}    if not x: continue\n  return v399\n"
    scope: dict = {}
    exec(text, scope)
    f = scope["f"]

    class Any:
        def __getattr__(self, name: str) -> int:
            return int(name[1:])
    before = f(Any(), 2)
    check(f.__code__)
    f.__code__ = assemble(decode(f.__code__))
    assert f(Any(), 2) == before == 798


def test_docstring_stays() -> None:
    def f() -> int:
        """words"""
        return 3

    def g() -> str:
        return "not words"
    for function in (f, g):
        made = assemble(decode(function.__code__))
        assert types.FunctionType(made, {}).__doc__ == function.__doc__
