"""Guards on one value: its type, identity, literal value, attributes."""
from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from minidynamo.base.text import name_of
from minidynamo.guards.guard import Guard, Names, Tree, guard_kind, hint_of
from minidynamo.guards.hold import hold, held_key, holds_object, is_heap_type
from minidynamo.guards.literals import is_immutable, is_literal, is_simple, is_singleton, literal_key, short
from minidynamo.sources import Source
from minidynamo.sources.source import instance_dict

_FIXED_TYPE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType, type)


@guard_kind()
class TypeIs(Guard):
    """The exact type. A class is held weakly: its instances cannot outlive it."""

    __slots__ = ("held", "name")

    def __init__(self, source: Source, type: type) -> None:
        self.held, self.name = hold(type), name_of(type)
        super().__init__(source, held_key(self.held))

    def expression(self, names: Names) -> str:
        return names.is_object(f"type({names.source(self.source)})", self.held, self.name)

    def holds(self, value: Any) -> bool:
        return type(value) is self.held()

    def attach(self, tree: Tree) -> None:
        tree.manager(self.source).add_type_match_guard(tree.watch(self.held), self.parts(), None)

    def implies(self) -> Iterable[Guard]:
        return () if self.held() is types.NoneType else (IsNone(self.source, False),)

    def rests_on(self, pinned: type | None) -> str | None:
        kind = self.held()
        lasting = kind is not None and not is_heap_type(kind) and kind is not types.ModuleType
        return "identity" if lasting else None          # object_set_class: others may be given another __class__

    def pins_type(self) -> type | None:
        return self.held()

    def expected(self) -> str:
        return f"type {self.name}"

    def seen(self, value: Any) -> str:
        return f"type {name_of(type(value))}"


@guard_kind()
class SameObject(Guard):
    """The very object, for as long as it lives."""

    __slots__ = ("held", "hint")

    def __init__(self, source: Source, obj: Any) -> None:
        self.held = hold(obj)
        self.hint = hint_of(self.held)
        super().__init__(source, held_key(self.held))

    def expression(self, names: Names) -> str:
        return names.is_object(names.source(self.source), self.held, self.hint)

    def holds(self, value: Any) -> bool:
        return holds_object(self.held, value)

    def attach(self, tree: Tree) -> None:
        tree.manager(self.source).add_id_match_guard(tree.watch(self.held), self.parts(), None)

    def implies(self) -> Iterable[Guard]:
        obj = self.held()
        if obj is None:
            return ()
        facts: list[Guard] = [IsNone(self.source, False)]
        if self.pins_type() is not None:
            facts.append(TypeIs(self.source, type(obj)))     # others may be given another __class__
        return facts

    def rests_on(self, pinned: type | None) -> str | None:
        return "identity"

    def pins_type(self) -> type | None:
        obj = self.held()
        fixed = is_literal(obj) or any(type(obj) is kind for kind in _FIXED_TYPE)
        return type(obj) if fixed and holds_object(self.held, obj) else None

    def expected(self) -> str:
        return self.hint


@guard_kind(cost=2)
class Equal(Guard):
    """The exact type and value of a literal, nested ones included."""

    __slots__ = ("value",)

    def __init__(self, source: Source, value: Any) -> None:
        self.value = value
        super().__init__(source, literal_key(value))

    def expression(self, names: Names) -> str:
        read = names.source(self.source)
        if is_singleton(self.value):
            return f"{read} is {names.const(self.value, short(self.value))}"
        if is_simple(self.value):
            kind = names.const(type(self.value), name_of(type(self.value)))
            return f"type({read}) is {kind} and {read} == {names.const(self.value, short(self.value))}"
        if names.readable:
            return f"{read} == {short(self.value)}"
        return f"{names.const(self.holds, 'is_literal')}({read})"

    def holds(self, value: Any) -> bool:
        return type(value) is type(self.value) and literal_key(value) == self.key

    def attach(self, tree: Tree) -> None:
        manager = tree.manager(self.source)
        if is_singleton(self.value):
            manager.add_id_match_guard(tree.keep(self.value), self.parts(), None)
        elif is_simple(self.value):
            manager.add_equals_match_guard(self.value, self.parts(), None)
        else:
            manager.add_lambda_guard(self.holds, self.parts(), None)

    def implies(self) -> Iterable[Guard]:
        yield TypeIs(self.source, type(self.value))
        if self.value is not None:
            yield IsNone(self.source, False)
        else:
            yield IsNone(self.source, True)

    def rests_on(self, pinned: type | None) -> str | None:
        return "identity" if is_immutable(self.value) else None

    def pins_type(self) -> type | None:
        return type(self.value)

    def expected(self) -> str:
        return short(self.value)


@guard_kind()
class IsNone(Guard):
    """Whether the value is None."""

    __slots__ = ("is_none",)

    def __init__(self, source: Source, is_none: bool) -> None:
        self.is_none = is_none
        super().__init__(source, is_none)

    def expression(self, names: Names) -> str:
        return f"{names.source(self.source)} is {'' if self.is_none else 'not '}None"

    def holds(self, value: Any) -> bool:
        return (value is None) is self.is_none

    def attach(self, tree: Tree) -> None:
        manager = tree.manager(self.source)
        if self.is_none:
            manager.add_none_match_guard(self.parts(), None)
        else:
            manager.add_not_none_guard(self.parts(), None)

    def rests_on(self, pinned: type | None) -> str | None:
        return "identity"

    def expected(self) -> str:
        return "None" if self.is_none else "not None"


@guard_kind(cost=3)
class HasAttr(Guard):
    """Whether ``getattr`` finds a name, where asking is known to run no user code."""

    __slots__ = ("name", "present")

    def __init__(self, source: Source, name: str, present: bool) -> None:
        self.name, self.present = name, present
        super().__init__(source, (name, present))

    def expression(self, names: Names) -> str:
        return f"{'' if self.present else 'not '}hasattr({names.source(self.source)}, {self.name!r})"

    def holds(self, value: Any) -> bool:
        return hasattr(value, self.name) is self.present

    def attach(self, tree: Tree) -> None:
        if self.present:
            tree.manager(self.source).add_lambda_guard(self.holds, self.parts(), None)
        else:
            tree.manager(self.source).add_no_hasattr_guard(self.name, self.parts(), None)

    def seen(self, value: Any) -> str:
        return f"{short(value)} {'without' if self.present else 'with'} .{self.name}"


@guard_kind(cost=2)
class InInstanceDict(Guard):
    """Whether an object's own ``__dict__`` has a name."""

    __slots__ = ("name", "present")

    def __init__(self, source: Source, name: str, present: bool) -> None:
        self.name, self.present = name, present
        super().__init__(source, (name, present))

    def expression(self, names: Names) -> str:
        owned = names.const(instance_dict, "instance_dict")
        return f"{self.name!r} {'' if self.present else 'not '}in {owned}({names.source(self.source)})"

    def holds(self, value: Any) -> bool:
        return (self.name in instance_dict(value)) is self.present

    def attach(self, tree: Tree) -> None:
        tree.instance_dict_manager(self.source).add_dict_contains_guard(
            self.present, self.name, self.parts(), None)

    def rests_on(self, pinned: type | None) -> str | None:
        return "attributes"

    def seen(self, value: Any) -> str:
        return f"{short(value)} {'without' if self.present else 'with'} {self.name!r} in its __dict__"


@guard_kind()
class CodeIs(Guard):
    """A plain function with this very code."""

    __slots__ = ("held", "hint")

    def __init__(self, source: Source, code: types.CodeType) -> None:
        self.held = hold(code)
        self.hint = f"<code {code.co_qualname}, line {code.co_firstlineno}>"
        super().__init__(source, held_key(self.held))

    def expression(self, names: Names) -> str:
        read = names.source(self.source)
        if not names.readable:      # of a plain function only: the holder's own check of the type
            return f"{names.const(self.holds, 'has_code')}({read})"
        return names.is_object(f"{read}.__code__", self.held, self.hint)

    def holds(self, value: Any) -> bool:
        return type(value) is types.FunctionType and holds_object(self.held, value.__code__)

    def attach(self, tree: Tree) -> None:
        tree.code_manager(self.source).add_id_match_guard(tree.watch(self.held), self.parts(), None)

    def implies(self) -> Iterable[Guard]:
        return TypeIs(self.source, types.FunctionType), IsNone(self.source, False)

    def pins_type(self) -> type | None:
        return types.FunctionType

    def expected(self) -> str:
        return self.hint

    def seen(self, value: Any) -> str:
        code = getattr(value, "__code__", None) if type(value) is types.FunctionType else None
        return f"<code {code.co_qualname}, line {code.co_firstlineno}>" if code else short(value)


@guard_kind(cost=3)
class WeakrefAlive(Guard):
    """Whether a weak reference still has its object."""

    __slots__ = ("alive",)

    def __init__(self, source: Source, alive: bool) -> None:
        self.alive = alive
        super().__init__(source, alive)

    def expression(self, names: Names) -> str:
        read = names.source(self.source)
        if not names.readable:
            return f"{names.const(self.holds, 'weakref_alive' if self.alive else 'weakref_dead')}({read})"
        return f"{read}() is {'not ' if self.alive else ''}None"

    def holds(self, value: Any) -> bool:
        return issubclass(type(value), weakref.ref) and \
            (weakref.ref.__call__(value) is not None) is self.alive

    def seen(self, value: Any) -> str:
        return "dead" if self.alive else "alive"


@guard_kind(cost=5)
class Predicate(Guard):
    """A pure Python function of our own, true of the value."""

    __slots__ = ("function", "words")

    def __init__(self, source: Source, function: Callable[[Any], bool], text: str) -> None:
        """`text` names the function to the reader: ``text(source)``."""
        self.function, self.words = function, text
        super().__init__(source, (id(function), text))

    def expression(self, names: Names) -> str:
        return f"{names.const(self.function, self.words)}({names.source(self.source)})"

    def holds(self, value: Any) -> bool:
        return bool(self.function(value))

    def expected(self) -> str:
        return self.words
