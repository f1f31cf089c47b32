"""The symbolic machine: frame state, step loop, handlers by opcode family, inlining, unwinding."""
from minidynamo.interp import build, calls, class_bodies, generators, jumps, names, operators, stack_ops, unwind  # noqa: F401  (handlers)
from minidynamo.polyfills import collections_ as _collections  # noqa: F401  (declarations)
from minidynamo.polyfills import copying as _copying  # noqa: F401  (declarations)
from minidynamo.polyfills import functools_ as _functools  # noqa: F401  (declarations)
from minidynamo.polyfills import library as _library  # noqa: F401  (declarations)
from minidynamo.polyfills import inspect_ as _inspect  # noqa: F401  (declarations)
from minidynamo.variables import (  # noqa: F401  (families nobody asks for by name)
    autograd,
    buffers,
    c_values,
    caches,
    class_assignment,
    collections_,
    contexts,
    contextvars_,
    descriptors,
    getters,
    growing,
    heaps,
    hops,
    input_iterators,
    instance_checks,
    iterator_builtins,
    iterator_state,
    itertools_groups,
    library,
    locks,
    made_caches,
    modules,
    nn,
    number_calls,
    numpy_,
    optimizers,
    partials,
    pickles,
    proxies,
    randomness,
    regex,
    streams,
    subclasses,
    torch_objects,
    torch_rules,
    weak_keys,
    weakrefs,
)
from minidynamo.interp.trace import Break, Return, Skip, Trace, trace

__all__ = ["Break", "Return", "Skip", "Trace", "trace"]
