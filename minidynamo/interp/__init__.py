"""The symbolic machine: frame state, step loop, handlers by opcode family, inlining, unwinding."""
from minidynamo.interp import build, calls, class_bodies, generators, jumps, names, operators, stack_ops, unwind  # noqa: F401  (handlers)
from minidynamo.variables import descriptors, modules, nn, numpy_, subclasses, torch_rules  # noqa: F401  (families nobody asks for by name)
from minidynamo.interp.trace import Break, Return, Skip, Trace, trace

__all__ = ["Break", "Return", "Skip", "Trace", "trace"]
