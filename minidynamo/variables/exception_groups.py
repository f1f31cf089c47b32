"""Exception groups: making, splitting, except* (BaseExceptionGroup in Objects/exceptions.c, exception_group_match in ceval.c)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo import reasons
from minidynamo.model.tables import Methods
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import attrs, compare
from minidynamo.sources import Attr
from minidynamo.variables import exception_fields, exceptions
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.exceptions import ExceptionVariable
from minidynamo.variables.functions import FunctionVariable
from minidynamo.variables.sequences import ListVariable, TupleVariable

Test = Callable[[VariableTracker], bool]


class GroupVariable(ExceptionVariable):
    """An exception group made while tracing."""

    __slots__ = ("message", "members")
    kind = "exception group"

    def __init__(self, cls: type, args: list[VariableTracker], members: list[VariableTracker]) -> None:
        super().__init__(cls, args)
        self.message, self.members = args[0], TupleVariable(members)

    def children(self) -> list[VariableTracker]:
        return [self.message, self.members, *super().children()]

    def create(self, out: Any) -> None:
        """With the members as they were; ``args``, whose list may have changed since, are set afterwards."""
        out.call_function(BaseExceptionGroup.__new__, out.tx.class_of(self.cls), self.message, self.members)


def new_group(tx: Any, cls: type, args: list, kwargs: dict) -> VariableTracker:
    """BaseExceptionGroup_new."""
    if len(args) != 2:
        tx.raise_(TypeError, f"BaseExceptionGroup.__new__() takes exactly 2 arguments ({len(args)} given)")
    message, given = args
    if not issubclass(message.py_type(), str):
        tx.raise_(TypeError, f"BaseExceptionGroup.__new__() argument 1 must be str, not {message.py_type().__name__}")
    kind = given.py_type()
    if not hasattr(kind, "__getitem__") or issubclass(kind, dict):
        tx.raise_(TypeError, "second argument (exceptions) must be a sequence")
    members = [real(tx, m) for m in tx.collect(given)]
    if not members:
        tx.raise_(ValueError, "second argument (exceptions) must be a non-empty sequence")
    for at, member in enumerate(members):
        if not issubclass(member.py_type(), BaseException):
            tx.raise_(ValueError, f"Item {at} of second argument (exceptions) is not an exception")
    return GroupVariable(kind_of_group(tx, cls, members), args, members)


def kind_of_group(tx: Any, cls: type, members: list[VariableTracker]) -> type:
    """A BaseExceptionGroup of Exceptions is an ExceptionGroup; an ExceptionGroup holds nothing else."""
    plain = all(issubclass(m.py_type(), Exception) for m in members)
    if cls is BaseExceptionGroup:
        return ExceptionGroup if plain else cls
    if not plain and cls is ExceptionGroup:
        tx.raise_(TypeError, "Cannot nest BaseExceptions in an ExceptionGroup")
    if not plain and issubclass(cls, Exception):
        tx.raise_(TypeError, f"Cannot nest BaseExceptions in '{cls.__name__}'")
    return cls


def read_field(name: str) -> Any:
    def read(tx: Any, exc: ExceptionVariable) -> VariableTracker:
        if isinstance(exc, GroupVariable):
            return exc.members if name == "exceptions" else exc.message
        return tx.build(getattr(BaseExceptionGroup, name).__get__(exc.obj), Attr(exc.source, name))
    return read


exception_fields.READERS[BaseExceptionGroup, "exceptions"] = read_field("exceptions")
exception_fields.READERS[BaseExceptionGroup, "message"] = read_field("message")


# ---------------------------------------------------------------- splitting
def is_group(value: VariableTracker) -> bool:
    return issubclass(value.py_type(), BaseExceptionGroup)


def parts_of(tx: Any, group: VariableTracker) -> list[VariableTracker]:
    return [real(tx, m) for m in exception_fields.READERS[BaseExceptionGroup, "exceptions"](tx, group).items]


def split(tx: Any, exc: VariableTracker, test: Test, rest: bool = True) -> tuple[Any, Any]:
    """exceptiongroup_split_recursive: (what matches, what does not), None for nothing."""
    if test(exc):
        return exc, None
    if not is_group(exc):
        return None, exc if rest else None
    yes, no = [], []
    for member in parts_of(tx, exc):
        matching, other = split(tx, member, test, rest)
        yes += [] if matching is None else [matching]
        no += [] if other is None else [other]
    return subset(tx, exc, yes), subset(tx, exc, no) if rest else None


def subset(tx: Any, group: Any, members: list[VariableTracker]) -> VariableTracker | None:
    """exceptiongroup_subset: what ``derive`` makes, with traceback, context, cause and notes of the original."""
    if not members:
        return None
    made = tx.call(group.tp_getattro(tx, "derive"), [ListVariable(members)])
    if not isinstance(made, ExceptionVariable) or not is_group(made):
        tx.raise_(TypeError, "derive must return an instance of BaseExceptionGroup")
    for slot in ("context", "cause"):
        link = exceptions.read_link(tx, group, slot) if group.obj is not None else getattr(group, slot)
        tx.journal.set(made, slot, None if link is None or exceptions.is_none(link) else link)
    tx.journal.set(made, "suppress", True)                # PyException_SetCause
    exceptions.write_traceback(tx, made, exceptions.read_traceback(tx, group))
    notes = attrs.getattr_or_none(tx, group, "__notes__")
    if notes is not None and issubclass(notes.py_type(), (list, tuple)):
        made.tp_setattro(tx, "__notes__", ListVariable(tx.collect(notes)))
    return made


def test_of(tx: Any, condition: VariableTracker) -> Test:
    """get_matcher_type."""
    if isinstance(condition, FunctionVariable):
        return lambda exc: compare.truth(tx, tx.call(condition, [exc]))
    kinds = [real(tx, k) for k in condition.items] if isinstance(condition, TupleVariable) else [condition]
    if not all(isinstance(k, ClassVariable) and issubclass(k.cls, BaseException) for k in kinds):
        tx.raise_(TypeError, "expected a function, exception type or tuple of exception types")
    return lambda exc: exceptions.matches(tx, exc, condition)


class GroupMethods(Methods, of=BaseExceptionGroup):
    """derive, split, subgroup."""

    def derive(tx, self, excs, /):
        message = exception_fields.READERS[BaseExceptionGroup, "message"](tx, self)
        return tx.call(tx.class_of(BaseExceptionGroup), [message, excs])

    def split(tx, self, condition, /):
        return TupleVariable([NONE if part is None else part for part in split(tx, self, test_of(tx, condition))])

    def subgroup(tx, self, condition, /):
        return split(tx, self, test_of(tx, condition), rest=False)[0] or NONE


# ---------------------------------------------------------------- except*
def group_match(tx: Any, exc: VariableTracker, kind: VariableTracker) -> tuple[VariableTracker, VariableTracker]:
    """CHECK_EG_MATCH: (rest, match)."""
    kinds = [real(tx, k) for k in kind.items] if isinstance(kind, TupleVariable) else [kind]
    for one in kinds:
        if not isinstance(one, ClassVariable) or not issubclass(one.cls, BaseException):
            tx.raise_(TypeError, "catching classes that do not inherit from BaseException is not allowed")
        if issubclass(one.cls, BaseExceptionGroup):
            tx.raise_(TypeError, "catching ExceptionGroup with except* is not allowed. Use except instead.")
    if exceptions.is_none(exc):
        return exc, NONE
    if exceptions.matches(tx, exc, kind):
        return NONE, exc if is_group(exc) else wrap(tx, TupleVariable([exc]))
    if not is_group(exc):
        return exc, NONE
    pair = tx.call(exc.tp_getattro(tx, "split"), [kind])
    if not isinstance(pair, TupleVariable) or len(pair.items) < 2:
        tx.stop(reasons.EXCEPTION_GROUP)
    match, rest = real(tx, pair.items[0]), real(tx, pair.items[1])
    return (exc, NONE) if exceptions.is_none(match) else (rest, match)


def wrap(tx: Any, members: VariableTracker) -> VariableTracker:
    """_PyExc_CreateExceptionGroup; its ``args`` keep `members` as they are: a tuple of one, or a list of what was raised."""
    return tx.call(tx.class_of(BaseExceptionGroup), [ConstantVariable(""), members])


def prepare_reraise(tx: Any, original: Any, raised: list[VariableTracker]) -> VariableTracker:
    """_PyExc_PrepReraiseStar: what is left of the original, together with what the clauses raised."""
    if not raised:
        return NONE
    if not is_group(original):
        return raised[0]
    new, again = [], []
    for exc in raised:
        if not exceptions.is_none(exc):
            (again if same_origin(exc, original) else new).append(exc)
    kept = project(tx, original, again)
    if not new:
        return NONE if kept is None else kept
    if kept is not None:
        new.append(kept)
    return wrap(tx, ListVariable(new)) if len(new) > 1 else new[0]


def same_origin(exc: Any, original: Any) -> bool:
    """is_same_exception_metadata."""
    return is_group(exc) and all(getattr(exc, slot) is getattr(original, slot) for slot in ("trace", "context", "cause"))


def project(tx: Any, original: Any, keep: list[VariableTracker]) -> VariableTracker | None:
    """exception_group_projection: the original cut down to the leaves of `keep`."""
    leaves: set[int] = set()

    def collect(exc: VariableTracker) -> None:
        if not is_group(exc):
            leaves.add(id(exc.identity()))
            return
        for member in parts_of(tx, exc):
            collect(member)
    for exc in keep:
        collect(exc)
    if not leaves:
        return None
    return split(tx, original, lambda exc: not is_group(exc) and id(exc.identity()) in leaves, rest=False)[0]
