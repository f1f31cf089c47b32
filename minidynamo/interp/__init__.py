"""The symbolic machine: frame state, step loop, handlers by opcode family, inlining, unwinding."""
import importlib
import pkgutil

from minidynamo import polyfills, variables
from minidynamo.interp import build, calls, class_bodies, generators, jumps, names, operators, stack_ops, unwind  # noqa: F401  (handlers)
from minidynamo.interp.trace import Break, Return, Skip, Trace, trace

__all__ = ["Break", "Return", "Skip", "Trace", "trace"]

# Every family declares what it knows when it is imported, so all of them are, whether or not somebody asks by name.
for _package in (variables, polyfills):
    for _module in pkgutil.iter_modules(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_module.name)
