"""The symbolic machine: frame state, step loop, handlers by opcode family, inlining, unwinding."""
from minidynamo.interp import build, calls, class_bodies, generators, jumps, names, operators, stack_ops, unwind  # noqa: F401  (handlers)
from minidynamo.variables import caches, descriptors, modules, nn, numpy_, torch_rules  # noqa: F401  (families nobody asks for by name)
from minidynamo.polyfills import collections_ as _collections  # noqa: F401  (declarations)
from minidynamo.variables import collections_, getters, input_iterators, subclasses  # noqa: F401  (containers)
from minidynamo.interp.trace import Break, Return, Skip, Trace, trace

__all__ = ["Break", "Return", "Skip", "Trace", "trace"]
