"""Calls: the order of meanings of a C callable, and binding of arguments to a Python signature."""
from __future__ import annotations

import re
import sys
import types
from typing import Any, NoReturn

from minidynamo import reasons
from minidynamo.model.tables import adopt, CALLS, FOLD, FOLD_OTHERWISE, POLYFILLS, TORCH_RULES
from minidynamo.model.variable import NotConstant, VariableTracker


def call_c(tx: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """A C function, method descriptor or class by its declared meaning; None if none is declared.

    The order is builtin, polyfill, torch rule, fold; a graph op, an opaque declaration and the
    break are the caller's.
    """
    fn = registered(fn)
    if fn.__class__ is type:
        adopt(fn)
    meaning = CALLS.get(fn) or TORCH_RULES.get(fn)
    if meaning is not None:
        return call_meaning(tx, meaning, fn, args, kwargs)
    python = POLYFILLS.get(fn)
    if python is not None:
        if not fits(python, args, kwargs):
            wrong_arguments(tx, fn, args, kwargs, TypeError("another number of arguments, or other names"))
        return tx.call_polyfill(python, args, kwargs)
    if FOLD.get(fn):
        if fn.__class__ is types.MethodDescriptorType:      # a C method reads the builtin part of a subclass's instance
            args = [tx.builtin_part(a) for a in args]
        try:
            return tx.fold(fn, args, kwargs)
        except NotConstant:
            meaning = FOLD_OTHERWISE.get(fn)
        try:
            return None if meaning is None else call_meaning(tx, meaning, fn, args, kwargs)
        except NotConstant:
            return None
    return None


def fits(python: Any, args: list, kwargs: dict) -> bool:
    """Whether a call binds to the signature of a polyfill."""
    code = python.__code__
    names, first = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount], code.co_posonlyargcount
    if len(args) > code.co_argcount and not code.co_flags & 0x04:
        return False
    given = set(names[:min(len(args), code.co_argcount)])
    if not code.co_flags & 0x08 and not all(name in names[first:] and name not in given for name in kwargs):
        return False
    optional = {*names[code.co_argcount - len(python.__defaults__ or ()):code.co_argcount], *(python.__kwdefaults__ or ())}
    return given | set(kwargs) | optional >= set(names)


def registered(fn: Any) -> Any:
    """The function as the tables know it: a C module that was imported afresh has new objects for the same code."""
    if fn.__class__ is types.BuiltinFunctionType and type(fn.__self__) is types.ModuleType:
        known = sys.modules.get(fn.__self__.__name__)
        if known is not None and known is not fn.__self__ and known.__spec__ is not None \
                and getattr(known.__spec__, "origin", 0) == getattr(fn.__self__.__spec__, "origin", 1):
            return vars(known).get(fn.__name__, fn)
    return fn


def call_meaning(tx: Any, meaning: Any, fn: Any, args: list, kwargs: dict) -> VariableTracker | None:
    """Run a meaning; arguments that do not fit its signature raise what the C function raises."""
    try:
        return meaning(tx, *args, **kwargs)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:      # raised inside, so a fault of ours
            raise
        return wrong_arguments(tx, fn, args, kwargs, error)


def wrong_arguments(tx: Any, fn: Any, args: list, kwargs: dict, error: TypeError) -> NoReturn:
    """The call cannot be bound.  The C function itself says why, called with inert stand-ins: it counts
    arguments and names before it looks at any."""
    name = getattr(fn, "__qualname__", repr(fn))
    said = complaint(fn, args, kwargs)
    if said is not None:
        raise tx.raise_(TypeError, said)
    raise tx.stop(reasons.UNSUPPORTED_CALL, call=name, kind=f"these arguments ({error})")


class StandIn:
    """An argument that no C function does anything with."""


COUNTED = re.compile(r"argument|expected|missing|takes")
ABOUT_STAND_IN = re.compile(r"StandIn")
PURE_MODULES = frozenset({"builtins", "_operator", "operator", "itertools", "math", "cmath", "_functools", "functools",
                          "_collections", "collections", "_heapq", "_bisect"})
IMPURE = frozenset({"print", "input", "exec", "eval", "open", "breakpoint", "__import__", "__build_class__"})


def complaint(fn: Any, args: list, kwargs: dict) -> str | None:
    """The TypeError text of a C callable for this number of arguments and these names; None if that cannot be had."""
    owner = getattr(fn, "__objclass__", None)
    module = (owner or fn).__module__ if hasattr(owner or fn, "__module__") else None
    if module not in PURE_MODULES or getattr(fn, "__name__", "") in IMPURE:
        return None
    values: list[Any] = [StandIn() for _ in args]
    if owner is not None and args:
        try:
            values[0] = owner()
        except TypeError:
            return None
    try:
        fn(*values, **{name: StandIn() for name in kwargs})
    except TypeError as error:
        said = str(error)
        if COUNTED.search(said) and not ABOUT_STAND_IN.search(said):
            return said
    except Exception:       # it did look at a stand-in, so its words are not about the count
        return None
    return None


def bind(tx: Any, fn: Any, args: list, kwargs: dict) -> dict[str, VariableTracker]:
    """Arguments to locals as CPython's initialize_locals does, with its TypeErrors.

    `fn` is a FunctionVariable: ``code``, ``name``, ``defaults(tx)``, ``kwdefaults(tx)``.
    """
    code = fn.code
    count, posonly, kwonly = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    names = code.co_varnames
    local: dict[str, VariableTracker] = dict(zip(names, args[:count]))
    extra = args[count:]
    star = count + kwonly
    if code.co_flags & 0x04:
        local[names[star]] = tx.wrap_tuple(extra)
        star += 1
    over: dict[str, VariableTracker] = {}
    keywords = names[posonly:count + kwonly]
    for name, value in kwargs.items():
        if name in keywords:
            if name in local and names.index(name) < count + kwonly and name in names[:count + kwonly] and name in local:
                tx.raise_(TypeError, f"{fn.qualname}() got multiple values for argument '{name}'")
            local[name] = value
        elif code.co_flags & 0x08:
            over[name] = value
        else:
            unexpected(tx, fn, name, kwargs)
    if extra and not code.co_flags & 0x04:
        too_many(tx, fn, len(args), local)
    if code.co_flags & 0x08:
        local[names[star]] = tx.wrap_kwargs(over)
    fill_defaults(tx, fn, local)
    return local


def unexpected(tx: Any, fn: Any, name: str, kwargs: dict) -> None:
    code = fn.code
    posonly = [n for n in code.co_varnames[:code.co_posonlyargcount] if n in kwargs]
    if posonly:
        tx.raise_(TypeError, f"{fn.qualname}() got some positional-only arguments passed as keyword "
                             f"arguments: '{', '.join(posonly)}'")
    tx.raise_(TypeError, f"{fn.qualname}() got an unexpected keyword argument '{name}'")


def fill_defaults(tx: Any, fn: Any, local: dict[str, VariableTracker]) -> None:
    code = fn.code
    count, names = code.co_argcount, code.co_varnames
    missing = [i for i in range(count) if names[i] not in local]
    if missing:
        defaults = fn.defaults(tx)
        first = count - len(defaults)
        lost = [names[i] for i in missing if i < first]
        if lost:
            missing_error(tx, fn, "positional", lost)
        for i in missing:
            local[names[i]] = defaults[i - first]
    wanted = [n for n in names[count:count + code.co_kwonlyargcount] if n not in local]
    if wanted:
        kwdefaults = fn.kwdefaults(tx)
        lost = [n for n in wanted if n not in kwdefaults]
        if lost:
            missing_error(tx, fn, "keyword-only", lost)
        for n in wanted:
            local[n] = kwdefaults[n]


def missing_error(tx: Any, fn: Any, kind: str, names: list[str]) -> None:
    quoted = [repr(n) for n in names]
    if len(quoted) > 2:
        listed = ", ".join(quoted[:-1]) + f", and {quoted[-1]}"
    else:
        listed = " and ".join(quoted)
    plural = "" if len(names) == 1 else "s"
    tx.raise_(TypeError, f"{fn.qualname}() missing {len(names)} required {kind} argument{plural}: {listed}")


def too_many(tx: Any, fn: Any, given: int, local: dict[str, VariableTracker]) -> None:
    code = fn.code
    count = code.co_argcount
    defaults = len(fn.defaults(tx))
    plural = count != 1
    text = str(count)
    if defaults:
        text, plural = f"from {count - defaults} to {count}", True
    kwonly = [n for n in code.co_varnames[count:count + code.co_kwonlyargcount] if n in local]
    extra = ""
    if kwonly:
        extra = (f" positional argument{'s' if given != 1 else ''} (and {len(kwonly)} keyword-only "
                 f"argument{'s' if len(kwonly) != 1 else ''})")
    verb = "was" if given == 1 and not kwonly else "were"
    tx.raise_(TypeError, f"{fn.qualname}() takes {text} positional argument{'s' if plural else ''} "
                         f"but {given}{extra} {verb} given")
