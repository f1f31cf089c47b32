"""Regular expressions over literals: patterns are compiled and matched while tracing (Modules/_sre)."""
from __future__ import annotations

import itertools
import re
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.guards.kinds import SameObject
from minidynamo.model.tables import builds, meaning, wraps
from minidynamo.model.variable import NotConstant, VariableTracker, defines, real
from minidynamo.protocol.attrs import attribute_error
from minidynamo.variables.bases import HashedByIdentity
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.iterators import IteratorVariable, advanced
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable, inner


class PatternVariable(HashedByIdentity):
    """A compiled pattern; immutable, and kept by ``re``'s own cache."""

    __slots__ = ("value",)
    kind = "pattern"

    def __init__(self, value: re.Pattern, source: Any = None) -> None:
        self.value, self.source = value, source

    def py_type(self) -> type:
        return re.Pattern

    def as_object(self) -> Any:
        return self.value

    def identity(self) -> object:
        return self.value

    def rebuild(self, out: Any) -> None:
        out.load_object_unchecked(self.value)

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("pattern", "flags", "groups"):
            return tx.wrap(getattr(self.value, name))
        return method_of(tx, self, re.Pattern, name)

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        if not isinstance(other, PatternVariable) or symbol not in ("==", "!="):
            return NotImplemented
        return ConstantVariable((self.value == other.value) is (symbol == "=="))

    def key(self, tx: Any) -> Any:
        return self.value

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(repr(self.value))


class MatchVariable(HashedByIdentity):
    """The result of matching a literal; made again by matching again."""

    __slots__ = ("value", "how")
    kind = "match"

    def __init__(self, value: re.Match, how: tuple[Any, list[VariableTracker]]) -> None:
        self.value, self.how, self.source = value, how, None

    def py_type(self) -> type:
        return re.Match

    def children(self) -> list[VariableTracker]:
        return self.how[1]

    def rebuild(self, out: Any) -> None:
        out.call_function(self.how[0], *self.how[1])

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        return None

    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if name in ("string", "pos", "endpos", "lastindex", "lastgroup"):
            return tx.wrap(getattr(self.value, name))
        if name == "re":
            return real(tx, self.how[1][0])
        return method_of(tx, self, re.Match, name)

    def mp_subscript(self, tx: Any, key: VariableTracker) -> VariableTracker:
        return fold_method(re.Match.group)(tx, self, key)

    def tp_repr(self, tx: Any) -> VariableTracker:
        return ConstantVariable(repr(self.value))


def method_of(tx: Any, value: VariableTracker, cls: type, name: str) -> VariableTracker:
    raw = vars(cls).get(name)
    if name == "__class__":
        return tx.class_of(cls)
    if raw is None and not hasattr(cls, name):
        attribute_error(tx, value, name)
    return tx.unsupported(value, f".{name}") if raw is None else tx.bound_c_method(value, raw)


def plain(value: VariableTracker) -> Any:
    """An argument as a literal."""
    if isinstance(value, (PatternVariable, MatchVariable)):
        return value.value
    part = inner(value)
    kind = value.py_type()
    if part.__class__ is not ConstantVariable or kind not in (str, bytes, type(None)) and not issubclass(kind, int):
        raise NotConstant(value)
    return part.value


def value_of(tx: Any, result: Any) -> VariableTracker:
    if isinstance(result, (list, tuple)):
        items = [value_of(tx, item) for item in result]
        return ListVariable(items) if isinstance(result, list) else TupleVariable(items)
    if isinstance(result, dict):
        return DictVariable.from_names(tx, {k: value_of(tx, v) for k, v in result.items()})
    return tx.wrap(result)


def fold_method(raw: Any) -> Any:
    """A method of patterns and matches, on literals."""
    def call(tx, self, *args, **kwargs):
        values = [plain(a) for a in args]
        names = {k: plain(v) for k, v in kwargs.items()}
        try:
            result = raw(self.value, *values, **names)
        except re.error as error:
            raise_error(tx, error)
        except Exception as error:
            tx.raise_real(error)
        if isinstance(result, re.Match):
            if kwargs:
                tx.stop(reasons.UNSUPPORTED_CALL, call=raw.__name__, kind="keyword arguments")
            return MatchVariable(result, (raw, [self, *args]))
        return value_of(tx, result)
    return call


for owner_, names_ in ((re.Pattern, ("search", "match", "fullmatch", "findall", "split")),
                       (re.Match, ("group", "groups", "start", "end", "span", "groupdict", "expand", "__getitem__"))):
    for name_ in names_:
        meaning(vars(owner_)[name_])(fold_method(vars(owner_)[name_]))


def substitute(tx: Any, self: Any, function: VariableTracker, string: VariableTracker, limit: Any) -> tuple[Any, int]:
    """pattern_subx with a function: each match as ``finditer`` gives it is replaced by what the function returns."""
    text, most = plain(string), 0 if limit is None else plain(limit)
    found, pieces, done = matches(tx, self, string), [], 0
    replaced = found[:max(most, 0)] if most else found
    for match in replaced:
        value = tx.call(function, [match])
        if match.value.start() > done:
            pieces.append(ConstantVariable(text[done:match.value.start()]))
        if value.py_type() is not type(None):
            pieces.append(value)
        done = match.value.end()
    for place, piece in enumerate(pieces):                   # only now, in the final join
        if not issubclass(piece.py_type(), type(text)):
            tx.raise_(TypeError, f"sequence item {place}: expected {type(text).__name__} instance, "
                                 f"{tp_name(piece.py_type())} found")
    pieces.append(ConstantVariable(text[done:]))
    if type(text) is bytes:
        return ConstantVariable(b"".join([inner(p).as_constant() for p in pieces])), len(replaced)
    return tx.join_text(pieces), len(replaced)


def nth_match(pattern: re.Pattern, text: Any, index: int, *bounds: int) -> re.Match:
    return next(itertools.islice(pattern.finditer(text, *bounds), index, None))


def by_function(raw: Any, counted: bool) -> Any:
    literal = fold_method(raw)

    def call(tx, self, repl, string, count=None):
        if issubclass(repl.py_type(), (str, bytes)):
            return literal(tx, self, repl, string, *([] if count is None else [count]))
        if not defines(repl.py_type(), "__call__"):
            return literal(tx, self, repl, string)          # refused in C's words
        text, done = substitute(tx, self, repl, string, count)
        return TupleVariable([text, ConstantVariable(done)]) if counted else text
    return call


meaning(re.Pattern.sub)(by_function(re.Pattern.sub, False))
meaning(re.Pattern.subn)(by_function(re.Pattern.subn, True))


def matches(tx: Any, pattern: PatternVariable, string: VariableTracker, *bounds: VariableTracker) -> list[MatchVariable]:
    """All matches from left to right; each can be found again by its place."""
    where = [plain(b) for b in bounds]
    try:
        found = list(pattern.value.finditer(plain(string), *where))
    except TypeError as error:
        tx.raise_real(error)
    return [MatchVariable(match, (nth_match, [pattern, string, tx.wrap(at), *bounds])) for at, match in enumerate(found)]


class MatchIterator(IteratorVariable):
    """``pattern.finditer(text)``, a callable_iterator over a scanner."""

    __slots__ = ("found", "args", "index")
    cls = type(iter(int, 1))

    def __init__(self, found: list[VariableTracker], args: list[VariableTracker]) -> None:
        self.found, self.args, self.index, self.source = found, args, 0, None

    def children(self) -> list[VariableTracker]:
        return self.args

    def tp_iternext(self, tx: Any) -> VariableTracker | None:
        if self.index >= len(self.found):
            return None
        self.advance(tx, index=self.index + 1)
        return self.found[self.index - 1]

    def rebuild(self, out: Any) -> None:
        out.call_function(match_iterator_at, self.index, *self.args)


def match_iterator_at(index: int, pattern: re.Pattern, *args: Any) -> Any:
    return advanced(pattern.finditer(*args), index)


@meaning(vars(re.Pattern)["finditer"])
def find_all(tx, self, /, string, pos=None, endpos=None):
    bounds = [b for b in (pos if pos is not None or endpos is None else tx.wrap(0), endpos) if b is not None]
    return MatchIterator(matches(tx, self, string, *bounds), [self, string, *bounds])


def raise_error(tx: Any, error: re.error) -> None:
    """The pattern or the template was refused; ``re.error`` is a Python class."""
    args = [error.msg, *([error.pattern, error.pos] if error.pattern is not None else [])]
    tx.raise_value(tx.call(tx.class_of(re.error), [tx.wrap(a) for a in args]))


@meaning(re._compile)                    # type: ignore[attr-defined]
def compile_pattern(tx, pattern, flags, /):
    """``re._compile`` of a literal."""
    bits = inner(flags).as_constant()
    if isinstance(pattern, PatternVariable):
        if bits:
            tx.raise_(ValueError, "cannot process flags argument with a compiled pattern")
        return pattern
    text = plain(pattern)
    try:
        return PatternVariable(re.compile(text, bits))
    except TypeError as error:
        tx.raise_real(error)
    except re.error as error:
        raise_error(tx, error)


@builds(re.Pattern)
def build_pattern(tx: Any, obj: re.Pattern, source: Any) -> VariableTracker:
    tx.guard(SameObject(source, obj))
    return PatternVariable(obj, source)


@wraps(re.Pattern)
def wrap_pattern(tx: Any, obj: re.Pattern) -> VariableTracker:
    return PatternVariable(obj)
