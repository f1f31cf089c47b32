"""The adapter: the only file that talks to torch's frame evaluation hook.

C calls ``callback(frame, entry, frame_state)`` when code has no entry whose guards hold, with
the hook switched off meanwhile, and reads the answer by attribute names.  Entries belong to the
callback that made them, so there is one callback per backend and options, kept alive by the
wrappers and the entries that use it.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from torch._C._dynamo import eval_frame as c_hook
from torch._C._dynamo.guards import RootGuardManager
from torch._guards import CompileId

from minidynamo.base.config import config
from minidynamo.compiler import frontend
from minidynamo.compiler.backends import SHIELD_CODE
from minidynamo.compiler.frame import Compiled, Frame, Options, forget_states, known_states, state_of
from minidynamo.compiler.pipeline import compile_frame, internal_error
from minidynamo.hook.module import OptimizedModule
from minidynamo.hook.skip import Skip, why_skip, why_skip_now
from minidynamo.model import marks
from minidynamo.observe import recorder, say, wants
from minidynamo.reasons import TRACE_FUNCTION, Stop, render
from minidynamo.reasons.errors import MiniDynamoError, Unsupported

Callback = Callable[..., Any]

# Entries live in the bucket of this region: torch.compile, which looks at every entry of its own
# region and expects them to be its own, never meets ours.  Its regions count up from 0.
REGION = 1_000_000_007

_ACTION, _STRATEGY = c_hook._FrameAction, c_hook._FrameExecStrategy
GO_ON = _STRATEGY(_ACTION.DEFAULT, _ACTION.DEFAULT)
SKIP_THIS = _STRATEGY(_ACTION.SKIP, _ACTION.DEFAULT)      # callees are still looked at
SKIP_ALL = _STRATEGY(_ACTION.SKIP, _ACTION.SKIP)          # the hook stays off until the frame returns


class Answer:
    """What C reads of a callback's result."""

    __slots__ = ("guarded_code", "frame_exec_strategy", "apply_to_code")

    def __init__(self, guarded_code: GuardedCode | None, strategy: Any, apply_to_code: bool) -> None:
        self.guarded_code, self.frame_exec_strategy, self.apply_to_code = guarded_code, strategy, apply_to_code


class GuardedCode:
    """What C keeps of an entry."""

    __slots__ = ("code", "guard_manager", "compile_id", "trace_annotation")

    def __init__(self, code: CodeType, guard_manager: Any, compile_id: CompileId, annotation: str) -> None:
        self.code, self.guard_manager, self.compile_id = code, guard_manager, compile_id
        self.trace_annotation = annotation


class NoGuards:
    """Guards of an entry that always fits."""

    alive = True

    def __init__(self) -> None:
        self.root = RootGuardManager()
        self.diff_guard_root: Any = None
        self.cache_entry: Any = None        # C sets these two
        self.extra_state: Any = None


class Dead:
    """Stands in for the guards of an entry that was let go."""

    alive = False
    root = diff_guard_root = cache_entry = extra_state = None


DEAD = Dead()
EAGER = Answer(None, SKIP_THIS, False)
EAGER_FOREVER = Answer(None, SKIP_THIS, True)


# ------------------------------------------------------------------ from C's call to the pipeline
def _look_at(options: Options, raw: Any, frame_state: dict[str, Any], callback: Callback) -> Answer:
    code = raw.f_code
    if config.disable:
        return EAGER
    state = state_of(frame_state, code)
    try:
        frame_locals = raw.f_locals
        skip = why_skip(code, frame_locals) or why_skip_now()
        if skip is not None:
            return _skipped(skip, options)
        frame = Frame(code, frame_locals, raw.f_globals, raw.f_builtins, raw.closure)
        entries = _live_entries(code, callback)
        result = compile_frame(frame, options, state, entries, frontend.FRONTEND)
        if isinstance(result, Compiled):
            return _install(result)
    except MiniDynamoError:
        raise
    except Exception as error:          # a bug around the pipeline; those inside it end there
        frame = Frame(code, {}, {}, {}, ())
        result = internal_error(frame, error, state)
    if result.reason is TRACE_FUNCTION:             # which would see the calls of our own functions
        return Answer(None, SKIP_ALL, result.forever)
    return EAGER_FOREVER if result.forever else EAGER


def _live_entries(code: CodeType, callback: Callback) -> list[Any]:
    """This callback's entries, newest first, without those whose guards name an object that died."""
    live = []
    for entry in entries_of(code):
        if entry.backend is callback:
            guards = entry.guard_manager
            if guards.alive:
                live.append(entry)
            elif guards.extra_state is not None:
                guards.extra_state.invalidate(entry, DEAD)      # lets go of the old code and its graph
    return live


def _install(made: Compiled) -> Answer:
    with recorder.span("install"):
        for code in made.unhooked:
            c_hook.set_code_exec_strategy(code, SKIP_ALL)
        guards = made.guards if made.guards is not None else NoGuards()
        compile_id = CompileId(frame_id=made.compile_id[0], frame_compile_id=made.compile_id[1])
        return Answer(GuardedCode(made.code, guards, compile_id, made.annotation), GO_ON, True)


def _skipped(skip: Skip, options: Options) -> Answer:
    recorder.count("skips", skip.reason.id)
    if options.fullgraph and skip.reason.category == "unsupported":
        raise Unsupported.of(Stop(skip.reason, dict(skip.fields)))
    if wants("skips"):
        say("skips", render(skip.reason, skip.fields, None))
    return EAGER_FOREVER if skip.forever else EAGER


_CALLBACKS: weakref.WeakValueDictionary[tuple[Any, ...], Callback] = weakref.WeakValueDictionary()


def callback_for(options: Options, key: tuple[Any, ...] = ()) -> Callback:
    """The callback of these options.  Equal `key`s (hashable, with `options.backend`'s id inside) share one."""
    known = _CALLBACKS.get(key) if key else None
    if known is not None:
        return known

    def callback(frame: Any, entry: Any, frame_state: dict[str, Any]) -> Answer:
        return _look_at(options, frame, frame_state, callback)

    if key:
        _CALLBACKS[key] = callback
    return callback


# ------------------------------------------------------------------ wrappers
def hooked(fn: Callable[..., Any], callback: Callback) -> Callable[..., Any]:
    """`fn`, called with the hook set.  Nothing else happens here: this is paid on every call."""
    set_eval_frame, set_region = c_hook.set_eval_frame, c_hook.set_eval_frame_isolate_recompiles_id

    def optimized(*args: Any, **kwargs: Any) -> Any:
        prior, region = set_eval_frame(callback), set_region(REGION)
        try:
            return fn(*args, **kwargs)
        finally:
            set_region(region)
            set_eval_frame(prior)

    return optimized


def options_of(fn: Any) -> Options | None:
    """What the wrapper or optimized module `fn` was made with by `optimize`; None for anything else."""
    wrapper: Any = type(fn).__call__ if isinstance(fn, OptimizedModule) else fn
    wrapped = marks.wrapped_by(wrapper)
    if wrapped is None or wrapped[0] != "optimized":
        return None
    found: Options = marks.free_variable(marks.free_variable(wrapper, "callback"), "options")
    return found


def unhooked(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, called with the hook off, and so everything it calls."""
    set_eval_frame = c_hook.set_eval_frame

    def disabled(*args: Any, **kwargs: Any) -> Any:
        prior = set_eval_frame(None)
        try:
            return fn(*args, **kwargs)
        finally:
            set_eval_frame(prior)

    return disabled


def skip_code(code: CodeType) -> None:
    """Never look at frames of `code`; what it calls is looked at."""
    marks.SKIPPED_CODE.add(code, True, replace=True)
    c_hook.set_code_exec_strategy(code, SKIP_THIS)


def keep_out(fn: Any) -> None:
    """Never look at frames of `fn`, nor at what they call."""
    code = getattr(fn, "__code__", None)
    if code is not None:
        c_hook.set_code_exec_strategy(code, SKIP_ALL)


def root_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function of its own around `fn`, so that the call itself is a frame that can be traced.

    Its code object is new each time: entries are not shared with other functions, and die with it.
    """
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    code, name = call.__code__, getattr(fn, "__name__", type(fn).__name__)
    call.__code__ = code.replace(co_filename="<minidynamo root>", co_name=name, co_qualname=name)
    return call


def active() -> bool:
    """Whether a callback is set in this thread."""
    return callable(c_hook.get_eval_frame_callback())


def reset() -> None:
    """Forget all entries and all that is remembered about code objects."""
    for state in known_states():
        code = state.code()
        if code is not None:
            c_hook.reset_code(code)
    forget_states()


def entries_of(code: CodeType) -> list[Any]:
    """C's entries of a code object, newest first."""
    return list(c_hook._get_cache_entries_for_region(code, REGION))


def raise_sigtrap() -> None:
    """Trap into a debugger attached to this process."""
    c_hook.raise_sigtrap()


# One code object serves all wrappers of each kind, so one mark for each is enough.
for _kind, _wrapper in (("optimized", hooked(len, len)), ("disabled", unhooked(len))):
    skip_code(_wrapper.__code__)
    marks.WRAPPERS.add(_wrapper.__code__, _kind)
c_hook.set_code_exec_strategy(SHIELD_CODE, SKIP_ALL)
