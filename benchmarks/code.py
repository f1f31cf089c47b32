"""Decoding and assembling bytecode: time per instruction, beside the `bytecode` package and `dis` alone.

    python benchmarks/code.py [--files N]
"""
from __future__ import annotations

import argparse
import dis
import pathlib
import sysconfig
import time
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from bytecode import Bytecode

from minidynamo.code import assemble, decode, live_locals


def functions(code: CodeType) -> Iterator[CodeType]:
    """All code objects inside a module's."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from functions(const)


def collect(files: int) -> list[CodeType]:
    """Functions of the standard library's first files."""
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    found: list[CodeType] = []
    for path in sorted(root.glob("*.py"))[:files]:
        found += functions(compile(path.read_text(encoding="utf-8"), str(path), "exec"))
    return found


def per_op(work: Callable[[Any], Any], things: list[Any], ops: int) -> float:
    """Microseconds for one instruction."""
    start = time.perf_counter()
    for thing in things:
        work(thing)
    return (time.perf_counter() - start) / ops * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=25)
    codes = collect(parser.parse_args().files)
    ops = sum(len(list(dis.get_instructions(code))) for code in codes)
    print(f"{len(codes)} functions, {ops} instructions; microseconds for one instruction\n")
    decoding = per_op(decode, codes, ops)
    programs = [decode(code) for code in codes]
    peer = per_op(lambda code: Bytecode.from_code(code).to_code(), codes, ops)
    rows = {
        "dis.get_instructions": per_op(lambda code: list(dis.get_instructions(code)), codes, ops),
        "decode": decoding,
        "decode, known code object": per_op(decode, codes, ops),
        "liveness of locals": per_op(live_locals, programs, ops),
        "assemble": per_op(assemble, programs, ops),
        "bytecode: from_code and to_code": peer,
    }
    for name, took in rows.items():
        print(f"{name:<34}{took:>8.3f}{took / peer:>9.2f} of bytecode's round trip")


if __name__ == "__main__":
    main()
