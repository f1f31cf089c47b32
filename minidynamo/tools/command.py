"""The command line: ``python -m minidynamo explain | tables | bytecode | reasons``."""
from __future__ import annotations

import argparse
import functools
import inspect
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from typing import Any

from minidynamo.reasons import docs
from minidynamo.tools.explain import Explanation, collecting
from minidynamo.tools.tables import page, tables

Explain = Callable[[Callable[..., Any]], Callable[..., Explanation]]


def main(argv: list[str], explain: Explain) -> int:
    """Run one subcommand; the exit status is 1 where the script raised, 2 where the call was wrong.

    `explain` is the public one, which lives above this package.
    """
    parser = argparse.ArgumentParser(prog="python -m minidynamo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about, text in (("explain", "run a script and report on all that was compiled in it", str),
                             ("bytecode", "the same, with old and new instructions only", _bytecode)):
        sub = commands.add_parser(name, help=about)
        sub.add_argument("target", metavar="FILE.py[:function]",
                         help="with a function: only what concerns it; one without arguments is called, compiled")
        sub.add_argument("arguments", nargs=argparse.REMAINDER, help="given to the script as sys.argv[1:]")
        sub.set_defaults(run=functools.partial(_report, text))
    sub = commands.add_parser("tables", help="print the registries and the order in which they are asked")
    sub.add_argument("name", nargs="?", choices=[name for name, _, _ in tables()], metavar="NAME")
    sub.set_defaults(run=lambda found, _: print(page(found.name)) or 0)
    sub = commands.add_parser("reasons", help="print docs/reasons.md")
    sub.set_defaults(run=lambda found, _: print(docs.page(), end="") or 0)
    found = parser.parse_args(argv)
    try:
        return int(found.run(found, explain))
    except BrokenPipeError:         # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _bytecode(explanation: Explanation) -> str:
    return "\n\n".join(f"{frame.compile_id}  {frame.place}\n{frame.bytecode()}" for frame in explanation.frames)


def _report(text: Callable[[Explanation], str], found: argparse.Namespace, explain: Explain) -> int:
    path, colon, function = found.target.rpartition(":")
    if not colon or not os.path.exists(path):
        path, function = found.target, ""
    if not os.path.exists(path):
        print(f"no file {path}", file=sys.stderr)
        return 2
    explanation, status, space = _run_script(path, found.arguments)
    if function and not status:
        explanation, status = _of_function(space, function, explanation, explain)
    print(text(explanation))
    return status


def _run_script(path: str, arguments: list[str]) -> tuple[Explanation, int, dict[str, Any]]:
    """The script as ``python FILE.py`` would run it; what it compiled, its status, its globals."""
    sys.argv[:] = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    status, space = 0, {}
    with collecting() as explanation:
        try:
            space = runpy.run_path(path, run_name="__main__")
        except SystemExit as leave:
            status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        except Exception:
            traceback.print_exc()
            status = 1
    return explanation, status, space


def _of_function(space: dict[str, Any], name: str, whole: Explanation, explain: Explain) -> tuple[Explanation, int]:
    """What concerns one function of the script; where the script did not run it compiled, it is called here."""
    fn = space.get(name)
    part = whole.only(name)
    if part.frames:
        return part, 0
    if not callable(fn):
        print(f"the script has no function {name}", file=sys.stderr)
        return part, 2
    wanted = [parameter.name for parameter in inspect.signature(fn).parameters.values()
              if parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
    if wanted:
        print(f"{name} was not compiled while the script ran, and cannot be called without {', '.join(wanted)}; "
              "call it in the script", file=sys.stderr)
        return part, 2
    return explain(fn)(), 0
