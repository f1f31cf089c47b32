"""What a compile starts from: the frame, the user's options, what is known about the code object."""
from __future__ import annotations

import dataclasses
import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from types import CellType, CodeType
from typing import Any, NamedTuple

from minidynamo.graph.shapes import ShapeHistory
from minidynamo.reasons import Reason


class Frame(NamedTuple):
    """A frame about to run its first instruction."""

    code: CodeType
    locals: dict[str, Any]          # arguments, and the contents of cells that have one
    globals: dict[str, Any]
    builtins: dict[str, Any]
    closure: tuple[CellType, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Options:
    """The arguments of ``optimize``, checked; `backend` is called with a graph and its inputs."""

    backend: Callable[..., Any]
    backend_name: str
    fullgraph: bool = False
    dynamic: bool | None = None
    disable: bool = False


class CodeState:
    """All we remember about one code object; lives exactly as long as the C hook's own state.

    `history` belongs to automatic dynamic shapes: what each input looked like on earlier compiles.
    """

    __slots__ = ("frame_id", "compiles", "skips", "plain", "history", "warned", "code", "__weakref__")

    def __init__(self, code: CodeType) -> None:
        self.frame_id = next(_FRAME_IDS)
        self.compiles = 0                           # attempts, also failed ones
        self.skips: Counter[str] = Counter()        # by reason id
        self.plain = 0                              # entries that run the code as it is
        self.history = ShapeHistory()
        self.warned: set[str] = set()
        self.code = weakref.ref(code)


_FRAME_IDS = itertools.count()
_STATES: weakref.WeakSet[CodeState] = weakref.WeakSet()
_KEY = "minidynamo"


def state_of(frame_state: dict[str, Any], code: CodeType) -> CodeState:
    """The state of `code`, kept in the dict that the C hook gives to each code object."""
    state = frame_state.get(_KEY)
    if state is None:
        state = frame_state[_KEY] = CodeState(code)
        _STATES.add(state)
    return state


def known_states() -> list[CodeState]:
    """Every code object that came by and still lives."""
    return [state for state in _STATES if state.code() is not None]


def forget_states() -> None:
    """Numbers start again."""
    global _FRAME_IDS
    _FRAME_IDS = itertools.count()
    _STATES.clear()


class Skipped(NamedTuple):
    """The frame runs as plain Python, and why.  `forever`: for every later call too."""

    reason: Reason
    fields: Mapping[str, Any]
    forever: bool


class Compiled(NamedTuple):
    """What the hook installs."""

    code: CodeType
    guards: Any                     # the wrapper that the C hook asks for `.root`
    compile_id: tuple[int, int]
    annotation: str                 # name of the region in a profile
    unhooked: tuple[CodeType, ...]  # code of the graph, which the hook must let pass
