"""Guard kinds: each holds for what it was made from, and fails when its fact changes, in all forms."""
from __future__ import annotations

import collections
import contextlib
import enum
import pathlib
import types
import typing
import weakref
from typing import Any

import pytest
import torch
from minidynamo.guards import kinds
from minidynamo.guards.guard import KINDS
from minidynamo.guards.kinds import (
    Aliased, CodeIs, DefaultDevice, DictKeys, Equal, GlobalState, Guard, HasAttr, HasKey, InInstanceDict,
    IsNone, Length, ListIteratorAt, ModeStack, NoBuiltinShadow, NotAliased, Predicate, RangeIteratorAt,
    SameObject, SetItems, ShapeExpr, SizeOf, StorageOffset, StrideOf, TensorMatch, TensorsNotAliased,
    TupleIteratorAt, TupleIteratorLen, TypeIs, WeakrefAlive, iterator_items, iterator_position,
)
from minidynamo.guards.lower_python import lower_python
from minidynamo.guards.manager import build_guards
from minidynamo.sources import (
    Attr, Builtin, CellContents, ClassDict, DictItem, DictKey, DictRoot, DictValue, Fetch, Global, Imported,
    InstanceAttr, Item, Local,
)

X, Y = Local("x"), Local("y")


class Forms:
    """One guard list in every form; each call asserts that they agree."""

    def __init__(self, *guards: Guard, G: dict[str, Any] | None = None) -> None:
        self.G = {} if G is None else G
        self.guards = list(guards)
        self.tree = build_guards(self.guards, {}, self.G, None)
        self.python, self.text = lower_python(self.guards)

    def __call__(self, **L: Any) -> bool:
        failing = next((guard for guard in self.guards if not guard.check(L, self.G)), None)
        by_check = failing is None
        assert self.tree.root.check(L) == by_check, (L, self.guards)
        assert self.python(L, self.G) == by_check, (L, self.text)
        for guard in [failing] if failing else self.guards:      # below a failing one, reads may be unsafe
            expected, got = guard.describe(L, self.G)
            assert "AssertionError" not in got, "user code ran"
            assert isinstance(expected, str) and isinstance(got, str) and guard.text()
        return by_check


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Plain:
    def __init__(self, **attrs: Any) -> None:
        self.__dict__.update(attrs)


class HostileMeta(type):
    def _no(cls, *args: Any) -> Any:
        raise AssertionError("user code ran")

    __eq__ = __hash__ = __instancecheck__ = __subclasscheck__ = __call__ = _no    # type: ignore[assignment]


class Hostile(metaclass=HostileMeta):
    """Raises from everything that a careless guard would run."""

    def _no(self, *args: Any) -> Any:
        raise AssertionError("user code ran")

    __eq__ = __hash__ = __len__ = __bool__ = __getattr__ = __iter__ = __call__ = __contains__ = _no  # type: ignore
    __getitem__ = __getattribute__ = _no                                                             # type: ignore


HOSTILE = object.__new__(Hostile)


class LyingList(list):
    def __len__(self) -> int:
        return 99

    def __getitem__(self, index: Any) -> Any:
        return "lie"


class LyingDict(dict):
    def __getitem__(self, key: Any) -> Any:
        return "lie"

    def __contains__(self, key: object) -> bool:
        return True

    def __len__(self) -> int:
        return 99


class Text(str):
    pass


def f() -> None: ...
def g() -> None: ...


def moved(iterator: Any, steps: int) -> Any:
    for _ in range(steps):
        next(iterator, None)
    return iterator


NAN = float("nan")
LITERALS = [
    0, 1, True, False, 0.0, -0.0, 1.0, NAN, -NAN, float("inf"), 0j, complex(0.0, -0.0), 1 + 0j, None, ..., "a",
    b"a", "", (), (1,), (True,), (1.0,), (0.0,), (-0.0,), (NAN,), ((1,),), ((True,),), ("a", 1), frozenset(),
    frozenset({1}), frozenset({True}), frozenset({(1, -0.0)}), frozenset({(1, 0.0)}), slice(1), slice(True),
    slice(None, 1), range(3), range(0, 3, 2), range(0, 4, 2), torch.float32, torch.float64,
    torch.device("cpu"), torch.device("meta"), torch.Size([2, 3]), (2, 3), torch.Size([3, 2]), torch.strided,
    torch.sparse_coo, torch.contiguous_format, torch.channels_last, Colour.RED, Colour.BLUE, 1 << 80, "1",
    list[int], list[str], typing.Optional[int], typing.Literal[1], typing.Literal[True], int | None, int | str,
    typing.Callable[[int], str], typing.Callable[[int], int], typing.List[int], Text("a"), 10 ** 5000,
]


@pytest.mark.parametrize("number", range(len(LITERALS)))
def test_equal_tells_all_literals_apart(number: int) -> None:
    forms = Forms(Equal(X, LITERALS[number]))
    for other, value in enumerate(LITERALS):
        if other != number and value == value and LITERALS[number] == value \
                and type(value) is type(LITERALS[number]) and repr(value) == repr(LITERALS[number]):
            continue            # one value written twice
        assert forms(x=value) is (other == number), (LITERALS[number], value)


def test_equal_of_a_value_made_anew() -> None:
    assert Forms(Equal(X, (1, ("a", -0.0, frozenset({2})))))(x=(1, ("a", -0.0, frozenset({2}))))
    assert Forms(Equal(X, NAN))(x=float("nan"))
    assert Forms(Equal(X, torch.Size([2])))(x=torch.ones(2).shape)
    assert Forms(Equal(X, typing.List[int]))(x=typing.List[int])
    assert Forms(Equal(X, list[int]))(x=list[int])


TENSOR = torch.arange(12.0).reshape(3, 4)
CASES: list[tuple[Guard, list[Any], list[Any]]] = [
    (TypeIs(X, list), [[], [1]], [(), LyingList(), None, HOSTILE]),
    (TypeIs(X, Plain), [Plain()], [Plain, HOSTILE]),
    (TypeIs(X, type(None)), [None], [0]),
    (SameObject(X, f), [f], [g, None, HOSTILE]),
    (SameObject(X, Plain), [Plain], [Plain(), list]),
    (SameObject(X, torch), [torch], [torch.nn]),
    (SameObject(X, None), [None], [0]),
    (SameObject(X, len), [len], [max]),
    (IsNone(X, True), [None], [0, HOSTILE]),
    (IsNone(X, False), [0, [], HOSTILE], [None]),
    (Length(X, 2, list), [[1, 2], LyingList([1, 2])], [[1], (1, 2), 3, LyingList(), HOSTILE]),
    (Length(X, 2, tuple), [(1, 2)], [(1,), [1, 2]]),
    (Length(X, 1, dict), [{1: 2}, LyingDict({1: 2}), collections.OrderedDict(a=1)], [{}, [1], LyingDict()]),
    (Length(X, 1, str), ["a"], ["", [1]]),
    (Length(X, 1, set), [{1}], [set(), frozenset({1})]),
    (Length(X, 1, collections.deque), [collections.deque([1])], [collections.deque(), [1]]),
    (DictKeys(X, ("a", 1)), [{"a": 0, 1: 0}, LyingDict({"a": 3, 1: 1})],
     [{1: 0, "a": 0}, {"a": 0}, {"a": 0, True: 0}, {Text("a"): 0, 1: 0}, {"a": 0, 1: 0, 2: 0}, [("a", 1)]]),
    (DictKeys(X, ()), [{}], [{1: 1}, []]),
    (DictKeys(X, ((1, 0.0),)), [{(1, 0.0): 1}], [{(1, -0.0): 1}, {(True, 0.0): 1}]),
    (HasKey(X, "a", True), [{"a": 1}], [{}, LyingDict(), [], "a"]),
    (HasKey(X, "a", False), [{}, LyingDict()], [{"a": 1}, [], 3, HOSTILE]),
    (SetItems(X, frozenset({1, "a"})), [{1, "a"}, frozenset({1, "a"})], [{1}, {True, "a"}, {1, Text("a")}, [1]]),
    (SetItems(X, frozenset()), [set()], [{1}, []]),
    (InInstanceDict(X, "a", True), [Plain(a=1)], [Plain(), 3]),
    (InInstanceDict(X, "a", False), [Plain()], [Plain(a=1), 3]),
    (HasAttr(X, "real", True), [3, 1.0], ["s"]),
    (HasAttr(X, "real", False), ["s"], [3]),
    (RangeIteratorAt(X, 1, 3, 1), [iter(range(1, 3)), moved(iter(range(3)), 1)],
     [iter(range(3)), moved(iter(range(1, 3)), 1), iter([1, 2]), 3]),
    (RangeIteratorAt(X, 0, 1 << 70, 1), [iter(range(1 << 70))], [iter(range(1 << 71))]),
    (TupleIteratorLen(X, 1), [iter((1,)), moved(iter((1, 2)), 1)], [iter((1, 2)), iter([1]), iter(())]),
    (TupleIteratorAt(X, 1), [moved(iter((1, 2)), 1)], [iter((1, 2)), moved(iter((1, 2)), 5)]),
    (ListIteratorAt(X, 1), [moved(iter([1, 2, 3]), 1)], [iter([1, 2]), moved(iter([1]), 2), iter((1,))]),
    (ListIteratorAt(X, -1), [moved(iter([]), 1)], [iter([])]),
    (CodeIs(X, f.__code__), [f, types.FunctionType(f.__code__, {})], [g, 3, HOSTILE]),
    (WeakrefAlive(X, True), [weakref.ref(f)], [weakref.ref(Plain()), f, HOSTILE]),
    (WeakrefAlive(X, False), [weakref.ref(Plain())], [weakref.ref(f)]),
    (Predicate(X, lambda value: value > 2, "above_two"), [3], [2, "a"]),
    (ShapeExpr("n % 2 == 1 and s == 4", (("n", X, SizeOf(0)), ("s", X, StrideOf(0)))),
     [TENSOR], [TENSOR[:2], TENSOR.t().contiguous(), 3]),
    (ShapeExpr("o == 0", (("o", X, StorageOffset()),)), [TENSOR], [TENSOR[1:]]),
    (ShapeExpr("n > 2", (("n", X, None),)), [3], [2, "a"]),
    (TensorMatch(X, TENSOR), [torch.ones(3, 4)],
     [torch.ones(4, 4), torch.ones(4, 3).t(), torch.ones(3, 4, dtype=torch.float64), torch.ones(3, 4).to("meta"),
      torch.ones(3, 4, requires_grad=True), torch.nn.Parameter(TENSOR), torch.ones(3), TENSOR.to_sparse(), 3]),
    (TensorMatch(X, TENSOR, [0]), [torch.ones(3, 4), torch.ones(5, 4)], [torch.ones(3, 5), torch.ones(4, 3).t()]),
    (TensorMatch(X, TENSOR, [1]), [torch.ones(3, 4), torch.ones(3, 5)], [torch.ones(2, 4)]),
    (TensorMatch(X, TENSOR, skip_sizes=True), [torch.ones(4, 3).t(), torch.ones(1, 1)], [torch.ones(3)]),
    (TensorMatch(X, torch.ones(2, dtype=torch.complex64)), [torch.ones(2, dtype=torch.complex64)],
     [torch.ones(2, dtype=torch.complex64).conj()]),
    (TensorMatch(X, TENSOR.to_sparse()), [TENSOR.to_sparse()], [TENSOR]),
    (TensorMatch(X, torch.nn.Parameter(TENSOR)), [torch.nn.Parameter(TENSOR)], [TENSOR]),
    (NoBuiltinShadow("len"), [1], []),
]


@pytest.mark.parametrize("guard,good,bad", CASES, ids=[f"{type(c[0]).__name__}-{n}" for n, c in enumerate(CASES)])
def test_kind_holds_and_fails(guard: Guard, good: list[Any], bad: list[Any]) -> None:
    forms = Forms(guard)
    assert all(forms(x=value) for value in good)
    assert not any(forms(x=value) for value in bad)
    assert not forms() or isinstance(guard, NoBuiltinShadow)
    # Any type known beforehand must not change the meaning.
    for value in good:
        known = Forms(TypeIs(X, type(value)), guard)
        assert known(x=value) and not any(known(x=other) for other in bad)


def test_every_kind_is_tested() -> None:
    text = pathlib.Path(__file__).read_text()
    assert all(text.count(kind.__name__) > 1 for kind in KINDS)    # type: ignore[attr-defined]
    assert all(kind.__name__ in kinds.__all__ for kind in KINDS)   # type: ignore[attr-defined]


def test_relations() -> None:
    a, b = torch.ones(1), torch.ones(1)
    assert Forms(Aliased(X, Y))(x=a, y=a) and not Forms(Aliased(X, Y))(x=a, y=b)
    assert Forms(Aliased(X, X))(x=a)
    for kind in (NotAliased, TensorsNotAliased):
        forms = Forms(kind((X, Y, Local("z"))))
        assert forms(x=a, y=b, z=torch.ones(1))
        assert not forms(x=a, y=b, z=a) and not forms(x=a, y=b)
        assert forms(x=a, y=b, z=torch.ones(1)), "the tree is not reset after a failure"
        assert not Forms(kind((X, X)))(x=a)
    assert Forms(NotAliased((X, Y)))(x=[], y=None)
    shared: list[int] = []
    assert not Forms(NotAliased((X, Y)))(x=shared, y=shared)
    sizes = Forms(ShapeExpr("a == b * 2", (("a", X, SizeOf(0)), ("b", Y, None))))
    assert sizes(x=torch.ones(4), y=2) and not sizes(x=torch.ones(4), y=3) and not sizes(x=torch.ones(4))


SWITCHES = [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu"), lambda: torch.device("meta")]


def test_global_state() -> None:
    forms = Forms(GlobalState(), ModeStack([]), DefaultDevice(None))
    assert forms()
    for switch in SWITCHES:
        with switch():
            assert not forms()
    old = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert not forms()
    finally:
        torch.set_default_dtype(old)
    assert forms()
    with torch.no_grad():
        inside = Forms(GlobalState())
        assert inside()
    assert not inside()
    with torch.inference_mode():
        made = GlobalState()
    assert not Forms(made)(), "lowered outside of the state that it was made in"
    with torch.inference_mode():
        assert Forms(made)()


@contextlib.contextmanager
def default_device(name: str) -> typing.Iterator[None]:
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


def test_modes_and_devices() -> None:
    with default_device("meta"):
        meta = [ModeStack(kinds.mode_stack()), DefaultDevice(torch.device("meta"))]
        assert Forms(*meta)()
    assert not any(Forms(guard)() for guard in meta)
    with default_device("meta"):
        assert Forms(*meta)()
    for other in (default_device("cpu"), torch.device("cpu")):
        with other:
            assert not any(Forms(guard)() for guard in meta)
    with torch.device("meta"):
        assert Forms(ModeStack(kinds.mode_stack()))()

    class Mode(torch.overrides.TorchFunctionMode):
        pass

    mode = Mode()
    with mode:
        same, by_type = ModeStack([mode]), ModeStack([mode], by_type=True)
        assert Forms(same)() and Forms(by_type)()
    with Mode():
        assert not Forms(same)() and Forms(by_type)()
    assert not Forms(by_type)()


def test_globals_and_builtins() -> None:
    G: dict[str, Any] = {"f": f}
    scope: dict[str, Any] = {"__name__": "other", "g": g}
    forms = Forms(SameObject(Global("f"), f), NoBuiltinShadow("len"), NoBuiltinShadow("max", scope, "other"),
                  SameObject(Builtin("len"), len), SameObject(Imported("torch"), torch),
                  SameObject(DictItem(DictRoot(scope, "other"), "g"), g),
                  HasKey(DictRoot(scope, "other"), "h", False), G=G)
    assert forms()
    for mapping, name in ((G, "len"), (scope, "max"), (scope, "h")):
        mapping[name] = 3
        assert not forms()
        del mapping[name]
        assert forms()
    G["f"] = g
    assert not forms()
    G["f"], scope["g"] = f, f
    assert not forms()


def test_sources_reach_their_values_without_user_code() -> None:
    cell = types.CellType(3)
    base = type("Base", (), {"attr": 5})
    obj = Plain(a=[1, {"k": (2, "v")}])
    a = InstanceAttr(X, "a")
    forms = Forms(
        TypeIs(Local("c"), types.CellType), TypeIs(Local("b"), type), TypeIs(Local("t"), int), TypeIs(Local("l"), list),
        Equal(Item(a, 0, list), 1), Equal(Item(DictItem(Item(a, 1, list), "k"), 1, tuple), "v"),
        Equal(Item(DictItem(Item(a, -1, list), "k"), -1, tuple), "v"),
        Equal(DictKey(Item(a, 1, list), 0), "k"), Equal(Item(DictValue(Item(a, 1, list), 0), 0, tuple), 2),
        Equal(CellContents(Local("c")), 3), Equal(DictItem(ClassDict(base, "base"), "attr"), 5),
        Equal(Attr(Local("t"), "real"), 1),
        Equal(Fetch(Local("l"), list.__len__, "list.__len__"), 2))
    good = dict(x=obj, c=cell, b=base, t=1, l=[1, 2])
    assert forms(**good)
    bad = dict(x=Plain(a=[1]), c=types.CellType(4), b=1, t=2, l=[1])
    for name, value in bad.items():
        assert not forms(**{**good, name: value})
        assert not forms(**{**good, name: HOSTILE})
    base.attr = 6
    assert not forms(**good)
    lying = Forms(Equal(Item(X, 0, list), 1), Equal(DictItem(Y, "a"), 1))
    assert lying(x=LyingList([1]), y=LyingDict(a=1))
    assert not lying(x=LyingList([2]), y=LyingDict(a=1)) and not lying(x=LyingList([1]), y=LyingDict(a="lie"))


def test_items_of_iterators() -> None:
    items = Fetch(X, iterator_items, "iterator_items")
    forms = Forms(ListIteratorAt(X, 1), Length(items, 3, list), Equal(Item(items, 1, list), 7))
    it = moved(iter([5, 7, 9]), 1)
    assert forms(x=it) and iterator_position(it) == 1 and next(it) == 7, "guards do not consume"
    assert not forms(x=it) and not forms(x=moved(iter([5, 8, 9]), 1)) and not forms(x=moved(iter([5, 7]), 1))


def test_tensor_guards_run_no_torch_function() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any) -> Any:
            raise AssertionError("user code ran")

    loud = torch.ones(3, 4).as_subclass(Loud)
    with torch._C.DisableTorchFunction():
        other = torch.ones(2, 4).as_subclass(Loud)
    match = Forms(TensorMatch(X, loud), ShapeExpr("n == 3", (("n", X, SizeOf(0)),)))
    assert match(x=loud) and not match(x=other) and not match(x=torch.ones(3, 4))


def test_equality_and_text() -> None:
    assert TypeIs(X, int) == TypeIs(Local("x"), int) != TypeIs(Y, int)
    assert Equal(X, 1) != Equal(X, True) and Equal(X, 0.0) != Equal(X, -0.0)
    assert len({SameObject(X, f), SameObject(X, f), SameObject(X, g)}) == 2
    assert len({GlobalState(), GlobalState()}) == 1
    first, second = TensorMatch(X, torch.ones(2)), TensorMatch(X, torch.ones(2))
    assert first == second != TensorMatch(X, torch.ones(3))
    second.user_frame = object()
    assert first == second
    assert "bits" in Equal(X, 10 ** 5000).text()
    assert eval(TypeIs(X, int).text(), {"L": {"x": 1}})
    assert eval(ShapeExpr("n > 2", (("n", X, SizeOf(0)),)).text(), {"L": {"x": TENSOR}})
