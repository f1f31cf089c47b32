"""Logs: which artefacts are printed. ``MINIDYNAMO_LOGS=graph,guards`` or ``set_logs(graph=True)``."""
from __future__ import annotations

import logging
import sys
import warnings
from typing import TextIO
from collections.abc import Callable

from minidynamo.base.config import config

ROOT = logging.getLogger("minidynamo")

ARTEFACTS: dict[str, str] = {
    "graph": "each captured graph, as Python",
    "guards": "the guards of each entry, as Python",
    "bytecode": "old and new bytecode",
    "graph_breaks": "each break with its reason, the user's line and hints",
    "recompiles": "which guard of which entry failed",
    "side_effects": "what is replayed after the graph",
    "skips": "frames that were left as they are, and why",
    "times": "a line per compile",
    "instructions": "each instruction that is interpreted",
}
_ENABLED: dict[str, bool] = dict.fromkeys(ARTEFACTS, False)


class UnknownArtefact(ValueError):
    """A name in MINIDYNAMO_LOGS or set_logs that nothing prints."""


def set_logs(**artefacts: bool) -> None:
    """Switch artefacts on or off by name; ``set_logs(all=True)`` switches all.  Raises UnknownArtefact for other names."""
    everything = artefacts.pop("all", None)
    if everything is not None:
        artefacts = {**dict.fromkeys(ARTEFACTS, everything), **artefacts}
    _ENABLED.update((name, on) for name, on in artefacts.items() if name in ARTEFACTS)
    if any(_ENABLED.values()):
        _ensure_handler()
    unknown = ", ".join(sorted(set(artefacts) - set(ARTEFACTS)))
    if unknown:
        raise UnknownArtefact(f"there is no log artefact {unknown}; there are {', '.join(ARTEFACTS)}")


def wants(artefact: str) -> bool:
    """Whether anyone reads this artefact; ask before formatting it."""
    return _ENABLED[artefact]


def say(artefact: str, text: str | Callable[[], str]) -> None:
    """Print one artefact if it is wanted."""
    if _ENABLED[artefact]:
        logging.getLogger(f"minidynamo.{artefact}").info("%s", text() if callable(text) else text)


def warn(text: str) -> None:
    """Something the user should know although nothing is wrong with the result."""
    ROOT.warning("%s", text)


class _Stderr(logging.StreamHandler):
    """Writes to whatever ``sys.stderr`` is when the record comes, as pytest's capture needs."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stderr


def _ensure_handler() -> None:
    if not any(isinstance(h, _Stderr) for h in ROOT.handlers):
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        ROOT.addHandler(handler)
    ROOT.setLevel(logging.INFO)


def _from_config() -> None:
    """What ``MINIDYNAMO_LOGS`` names; a program is not stopped by a name that is not there."""
    names = [name.strip() for name in config.logs.split(",") if name.strip()]
    try:
        set_logs(**dict.fromkeys(names, True))
    except UnknownArtefact as error:
        warnings.warn(f"MINIDYNAMO_LOGS: {error}", RuntimeWarning)
