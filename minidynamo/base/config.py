"""Configuration: one typed object that is also the module ``minidynamo.config``.

An option is one annotated line of `Config` with the comment that explains it.  The environment
variable ``MINIDYNAMO_<NAME>`` sets it at import; ``patch`` sets it for a while::

    minidynamo.config.recompile_limit = 4
    with minidynamo.config.patch(recompile_limit=4): ...

    @minidynamo.config.patch("specialize_float", False)
    def test(): ...
"""
from __future__ import annotations

import contextlib
import os
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import Any

ENV_PREFIX = "MINIDYNAMO_"


class Config(types.ModuleType):
    """All options.  Reading is a plain attribute read; writing checks name and type."""

    # ---- what is rewritten
    rewrite_frames_without_graph: bool = False   # rewrite frames with no tensor operation too (tests of the Python side)
    disable: bool = False                        # `optimize` returns wrappers that just call
    suppress_errors: bool = False                # a failing backend is logged and the frame runs eagerly
    error_on_internal: bool = False              # a bug of ours raises InternalError instead of an eager run

    # ---- shapes and numbers
    specialize_float: bool = True                # a Python float is a constant of the trace, up to its third value at one place
    specialize_int: bool = False                 # an int argument is a constant for ever, never symbolic
    automatic_dynamic_shapes: bool = True        # a size or int that changed becomes symbolic (dynamic=None)
    assume_static_by_default: bool = True        # sizes are constants until they change or are marked
    capture_scalar_outputs: bool = False         # .item() becomes a symbol instead of a break
    capture_dynamic_output_shape_ops: bool = False   # nonzero() and such get symbolic sizes

    # ---- guards
    guards: str = "tree"                         # "tree" = torch's C++ tree, "python" = one function on its root

    # ---- limits
    recompile_limit: int = 8                     # entries for one code object
    accumulated_recompile_limit: int = 256       # entries made for one code object in its whole life
    fail_on_recompile_limit_hit: bool = False    # raise RecompileLimitExceeded instead of an eager run
    max_trace_ops: int = 500_000               # interpreted instructions in one frame
    max_loop_unroll: int = 50_000                # turns of one loop that are unrolled into the trace
    max_inline_depth: int = 200                  # calls inlined within one another
    force_break_at: int = 0                      # tests: a function breaks before its n-th instruction (0: never)
    force_break_every: int = 0                   # tests: every trace, resume functions' too, breaks before its n-th

    # ---- what is said
    logs: str = ""                               # comma list: graph,guards,bytecode,graph_breaks,recompiles,side_effects
    trace: str = ""                              # file that receives a chromium trace
    side_effects_policy: str = "allow"           # "allow", "warn" or "error"

    # ---- after a compile
    gc_after_compile: bool = False               # run the garbage collector after each compile
    gc_freeze_after_compile: bool = False        # freeze what a compile left behind

    # The names above, their types and their defaults; filled below the class.
    _types: typing.ClassVar[dict[str, Any]] = {}
    _defaults: typing.ClassVar[dict[str, Any]] = {}

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__"):                  # the import system's own marks
            super().__setattr__(name, value)
            return
        if name not in self._types:
            raise AttributeError(f"minidynamo.config has no option {name!r}")
        if not _fits(value, self._types[name]):
            raise TypeError(f"minidynamo.config.{name} is {self._types[name].__name__}, not {value!r}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Back to the default."""
        setattr(self, name, self._defaults[name])

    def patch(self, arg: str | Mapping[str, Any] | None = None, value: Any = None, /, **changes: Any) -> Patch:
        """Options set for a while: ``patch(name=v)``, ``patch("name", v)`` or ``patch({"name": v})``."""
        if isinstance(arg, str):
            changes = {arg: value, **changes}
        elif arg is not None:
            changes = {**arg, **changes}
        for name in changes:
            if name not in self._types:
                raise AttributeError(f"minidynamo.config has no option {name!r}")
        return Patch(self, changes)

    def to_dict(self) -> dict[str, Any]:
        """Every option with its present value."""
        return {name: getattr(self, name) for name in self._types}

    def reset(self) -> None:
        """All options as the defaults and the environment say."""
        for name, default in self._defaults.items():
            setattr(self, name, default)


class Patch(contextlib.ContextDecorator):
    """Options changed inside a ``with`` block or a decorated function; nests and re-enters."""

    def __init__(self, config: Config, changes: Mapping[str, Any]) -> None:
        self.config, self.changes = config, dict(changes)
        self.saved: list[dict[str, Any]] = []

    def __enter__(self) -> Config:
        old = {name: getattr(self.config, name) for name in self.changes}
        try:
            for name, value in self.changes.items():
                setattr(self.config, name, value)
        except BaseException:
            self._put(old)
            raise
        self.saved.append(old)
        return self.config

    def __exit__(self, *exc: object) -> None:
        self._put(self.saved.pop())

    def _put(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(self.config, name, value)


def _fits(value: object, kind: type) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)


def _read_bool(text: str) -> bool:
    low = text.strip().lower()
    if low in ("1", "true", "yes", "on"):
        return True
    if low in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)


READERS: dict[type, Callable[[str], Any]] = {bool: _read_bool, int: int, float: float, str: str}


def _load(environ: Mapping[str, str]) -> Config:
    """The one instance; a value in the environment that cannot be read is named, not ignored."""
    hints = typing.get_type_hints(Config)
    Config._types = {name: kind for name, kind in hints.items() if not name.startswith("_")}
    made = Config("minidynamo.config", __doc__)
    for name, kind in Config._types.items():
        default = getattr(Config, name)
        text = environ.get(ENV_PREFIX + name.upper())
        if text is not None:
            try:
                default = READERS[kind](text)
            except ValueError:
                warnings.warn(f"{ENV_PREFIX}{name.upper()}={text!r} is not {kind.__name__}; it stays {default!r}",
                              RuntimeWarning)
        Config._defaults[name] = default
        setattr(made, name, default)
    return made


config = _load(os.environ)
