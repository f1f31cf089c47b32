"""The writer, constants, and every neutral op on this Python."""
from __future__ import annotations

import dataclasses
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidynamo.code import (
    Op, Program, StackError, UnsafeConstant, Writer, assemble, decode, is_safe_constant,
    stack_depths)
from minidynamo.code.ops import JUMP_EFFECT, NO_FALL_THROUGH, ROWS, pops


def like(*argnames: str, cellvars: tuple[str, ...] = ()) -> Program:
    return Program([], "written", "written", "<written>", 1, len(argnames), 0, 0, 3,
                   argnames, cellvars, ())


def run(w: Writer, *args: object, scope: dict | None = None, **more: Any) -> Any:
    program = w.finish(like(*[f"a{i}" for i in range(len(args))], **more))
    code = assemble(program)
    return types.FunctionType(code, scope or {})(*args)


# ---- constants
def test_distinct_objects_are_kept_apart() -> None:
    class Hostile:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        def __hash__(self) -> int:
            raise AssertionError("hashed")

    class Buffer(bytearray):
        pass
    lists: list[Any] = [[1], [1], Hostile(), Hostile(), bytearray(b"a"), b"a", Buffer(b"a"), {}, {},
                        (1, []), (1, []), 0.0, -0.0, True, 1, 1.0, 1 + 0j, complex(1, -0.0), (0.0,),
                        (-0.0,), (True,), (1,), "a", float("nan"), frozenset({1}), frozenset({True})]
    w = Writer()
    for value in lists:
        w.load_object_unchecked(value)
    w.op("BUILD_LIST", len(lists))
    w.op("RETURN")
    for one, other in zip(lists, run(w)):
        assert one is other


def test_equal_literals_share() -> None:
    w = Writer()
    for value in ("ab", "".join(["a", "b"]), 1000, int("1000"), (1, "x"), tuple([1, "x"])):
        w.load_const(value)
    w.op("BUILD_TUPLE", 6)
    w.op("RETURN")
    assert len(assemble(w.finish(like())).co_consts) == 4     # and the docstring's place


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text()
    | st.binary() | st.just(...),
    lambda inner: st.lists(inner, max_size=4).map(tuple)
    | st.frozensets(inner.filter(lambda v: v == v), max_size=4))


def canonical(value: object) -> object:
    """Types and values through and through; CPython may rebuild a frozenset constant."""
    if isinstance(value, tuple):
        return tuple, tuple(map(canonical, value))
    if isinstance(value, frozenset):
        return frozenset, frozenset(map(canonical, value))
    return type(value), repr(value)


class Text(str):
    pass


class Whole(int):
    pass


class Row(tuple):
    __slots__ = ()


UNSAFE = st.one_of(
    st.builds(list), st.builds(dict), st.builds(set), st.builds(object), st.builds(Text),
    st.builds(Whole), st.builds(Row), st.builds(bytearray), st.just(int), st.just(len),
    st.just(lambda: 1), st.just(types), st.just(NotImplemented), st.just(range(3)),
    st.just(slice(1)), st.just((lambda: 1).__code__))


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@settings(deadline=None, max_examples=200)
@given(LITERALS)
def test_literals_are_accepted_and_come_back(value: object) -> None:
    w = Writer()
    w.load_const(value)
    w.op("RETURN")
    made = run(w)
    assert canonical(made) == canonical(value)


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@settings(deadline=None, max_examples=200)
@given(UNSAFE, st.lists(LITERALS, max_size=3), st.integers(0, 3))
def test_unsafe_is_never_accepted(bad: object, good: list, depth: int) -> None:
    value: object = bad
    for _ in range(depth):
        value = (*good, value)
    assert not is_safe_constant(value)
    with pytest.raises(UnsafeConstant):
        Writer().load_const(value)


# ---- writing
def test_calls_hide_where_null_stands() -> None:
    def f(*args: object, **kwargs: object) -> object:
        return args, kwargs
    w = Writer()
    w.begin_call()
    w.load_object_unchecked(f)
    w.callable_done()
    w.op("LOAD_LOCAL", "a0")
    w.load_const(2)
    w.call(2, ("k",))
    w.op("RETURN")
    assert run(w, 1) == ((1,), {"k": 2})


def test_protected_region() -> None:
    w = Writer()
    caught = w.label()
    w.load_const("below")
    with w.protected(caught, 1):
        w.op("LOAD_LOCAL", "a0")
        w.op("LOAD_LOCAL", "a1")
        w.op("BINARY", "/")
        w.op("BUILD_TUPLE", 2)
        w.op("RETURN")
    w.mark(caught)
    w.op("POP")
    w.load_const("caught")
    w.op("BUILD_TUPLE", 2)
    w.op("RETURN")
    assert run(w, 6, 3) == ("below", 2.0)
    assert run(w, 6, 0) == ("below", "caught")


def test_include_resumes_in_the_middle() -> None:
    def f(n: int) -> list:
        total = []
        for i in range(n):
            try:
                total.append(10 // (i - 1))
            except ZeroDivisionError:
                total.append(None)
        return total
    program = decode(f.__code__)
    head = next(at for at, op in enumerate(program.ops) if op.name == "FOR_ITER")
    w = Writer()
    w.op("LOAD_LOCAL", "iterator")
    entry = w.label()
    w.op("JUMP", target=entry)
    labels = w.include(program.ops)
    entry.index = labels[head].index
    resumed = w.finish(program, name="resume", argnames=("iterator", "total"))
    function = types.FunctionType(assemble(resumed), f.__globals__)
    assert function(iter([0, 1, 2]), ["x"]) == ["x", -10, None, 10]
    assert function.__code__.co_varnames[:2] == ("iterator", "total")


def test_mistakes_are_named() -> None:
    w = Writer()
    with pytest.raises(ValueError, match="no neutral op"):
        w.op("POP_TOP")
    with pytest.raises(ValueError, match="needs a target"):
        w.op("JUMP")
    with pytest.raises(ValueError, match="load_const"):
        w.op("LOAD_CONST", 1)
    w.op("JUMP", target=w.label())
    with pytest.raises(ValueError, match="not marked"):
        w.finish(like())
    for names in (["POP"], ["NOP"]):
        w = Writer()
        for name in names:
            w.op(name)
        with pytest.raises(StackError):
            assemble(w.finish(like()))


# ---- totality: each neutral op assembles here, and those of other Pythons run
SAMPLES: dict[str, Any] = {
    "COPY": 1, "SWAP": 2, "BUILD_SLICE": 2, "LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 1,
    "LIST_EXTEND": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1, "DICT_MERGE": 1, "UNPACK_EX": (1, 1),
    "FORMAT_VALUE": ("r", True), "CONVERT_VALUE": "a", "CALL": (1, ("k",)), "CALL_FUNCTION_EX": True,
    "MAKE_FUNCTION": 15, "UNARY": "truth", "BINARY": "@=",
    "COMPARE": ("<", True), "IS_OP": True, "CONTAINS_OP": False, "JUMP_IF": "not_none", "RAISE": 2,
    "RERAISE": 1, "LOAD_SUPER_ATTR": ("name", True, True), "INTRINSIC_1": "STOPITERATION_ERROR",
    "INTRINSIC_2": "PREP_RERAISE_STAR", "GET_AWAITABLE": 1, "YIELD": 1, "MATCH_CLASS": 1,
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP",
                     "BUILD_STRING", "UNPACK_SEQUENCE"), 2),
    **dict.fromkeys(("LOAD_CELL", "MAKE_CELL", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF",
                     "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"), "cell"),
    **dict.fromkeys(("LOAD_LOCAL", "LOAD_LOCAL_CLEAR", "STORE_LOCAL", "DELETE_LOCAL", "LOAD_ATTR",
                     "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_GLOBAL", "STORE_GLOBAL",
                     "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME", "IMPORT_NAME",
                     "IMPORT_FROM", "LOAD_FROM_DICT_OR_GLOBALS"), "name"),
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_op_assembles(name: str) -> None:
    arg = SAMPLES.get(name)
    for forward in (True, False):
        w = Writer()
        away, begin = w.label(), w.label()
        w.op("JUMP", target=begin)
        if not forward:
            w.mark(away)
            w.op("RAISE", 0)
        w.mark(begin)
        for _ in range(pops(name, arg) + 3):
            w.load_const(None)
        if name == "LOAD_CONST":
            w.load_const(1)
        else:
            w.op(name, arg, away if name in JUMP_EFFECT else None)
        if name not in NO_FALL_THROUGH:
            w.op("RAISE", 0)
        if forward:
            w.mark(away)
            w.op("RAISE", 0)
        program = w.finish(like(cellvars=("cell",)))
        assert stack_depths(decode(assemble(program)))


@pytest.mark.parametrize("arg", sorted(
    {"INTRINSIC_PRINT", "LIST_TO_TUPLE", "IMPORT_STAR", "STOPITERATION_ERROR", "ASYNC_GEN_WRAP",
     "TYPEVAR", "PARAMSPEC", "TYPEVARTUPLE", "SUBSCRIPT_GENERIC", "TYPEALIAS"}))
def test_every_intrinsic_assembles(arg: str) -> None:
    w = Writer()
    w.op("LOAD_LOCAL", "a0")
    w.op("INTRINSIC_1", arg)
    w.op("RETURN")
    w.op("NOP")
    program = w.finish(like("a0"))
    assemble(program)
    if arg == "STOPITERATION_ERROR":
        error = ValueError()
        assert run(w, error) is error
        assert type(run(w, StopIteration())) is RuntimeError


@pytest.mark.parametrize("bound", [True, False])
def test_load_local_clear(bound: bool) -> None:
    """Maybe unbound: the NULL goes into another local, and reading it raises."""
    w = Writer()
    skip = w.label()
    w.op("LOAD_LOCAL", "a0")
    w.op("JUMP_IF", "false", skip)
    w.load_const("value")
    w.op("STORE_LOCAL", "x")
    w.mark(skip)
    w.load_const("below")
    w.op("LOAD_LOCAL_CLEAR", "x")
    w.op("STORE_LOCAL", "y")
    w.op("LOAD_LOCAL", "y")
    w.op("BUILD_TUPLE", 2)
    w.op("RETURN")
    if bound:
        assert run(w, [1]) == ("below", "value")
    else:
        with pytest.raises(UnboundLocalError):
            run(w, [])


def test_stored_null_unbinds() -> None:
    w = Writer()
    w.op("PUSH_NULL")
    w.op("STORE_LOCAL", "a0")
    w.op("LOAD_LOCAL", "a0")
    w.op("RETURN")
    with pytest.raises(UnboundLocalError):
        run(w, 1)


def test_jump_if_takes_any_value_in_both_directions() -> None:
    w = Writer()
    begin = w.label()
    again, done = w.label(), w.label()
    w.op("JUMP", target=begin)
    w.mark(again)
    w.op("LOAD_LOCAL", "a0")
    w.load_const(-1)
    w.op("BINARY", "+")
    w.op("STORE_LOCAL", "a0")
    w.mark(begin)
    w.op("LOAD_LOCAL", "a0")
    w.op("JUMP_IF", "true", again)
    w.op("LOAD_LOCAL", "a0")
    w.op("UNARY", "not")
    w.op("JUMP_IF", "true", done)
    w.load_const("no")
    w.op("RETURN")
    w.mark(done)
    w.op("LOAD_LOCAL", "a0")
    w.op("UNARY", "truth")
    w.op("RETURN")
    assert run(w, 5) is False


@pytest.mark.parametrize("way", ["backward", "falls in"])
def test_for_iter_to_odd_places(way: str) -> None:
    w = Writer()
    done, begin, head = w.label(), w.label(), w.label()
    w.op("JUMP", target=begin)
    if way == "backward":
        w.mark(done)
        w.op("LOAD_LOCAL", "x")
        w.op("RETURN")
    w.mark(begin)
    w.load_const(0)
    w.op("STORE_LOCAL", "x")
    w.op("LOAD_LOCAL", "a0")
    w.op("GET_ITER")
    w.mark(head)
    w.op("FOR_ITER", target=done)
    w.op("LOAD_LOCAL", "x")
    w.op("BINARY", "+")
    w.op("STORE_LOCAL", "x")
    w.op("LOAD_LOCAL", "x")
    w.load_const(100)
    w.op("COMPARE", ("<", True))
    w.op("JUMP_IF", "true", head)
    w.op("POP")
    if way == "backward":
        w.op("JUMP", target=done)
    else:
        w.mark(done)
        w.op("LOAD_LOCAL", "x")
        w.op("RETURN")
    assert run(w, [1, 2]) == 3
    assert run(w, [99, 2, 5]) == 101
    assert run(w, (i for i in (1, 2, 3))) == 6


@pytest.mark.parametrize("bit, value, name", [
    (1, (5,), "__defaults__"), (2, {"k": 5}, "__kwdefaults__"), (4, ("x", int), "__annotations__"),
    (8, (types.CellType(7),), "__closure__")])
def test_function_attributes(bit: int, value: Any, name: str) -> None:
    seven = 7
    inner = (lambda x: seven).__code__ if bit == 8 else (lambda x, *, k=1: x).__code__
    w = Writer()
    w.op("LOAD_LOCAL", "a0")
    w.load_object_unchecked(inner)
    w.op("MAKE_FUNCTION", bit)
    w.op("RETURN")
    made = run(w, value, scope={"__name__": "m"})
    assert getattr(made, name) == ({"x": int} if bit == 4 else value)
    if bit == 8:
        assert made(0) == 7


@pytest.mark.parametrize("method", [True, False])
def test_super_attribute(method: bool) -> None:
    class A:
        def who(self) -> str:
            return "A"

    class B(A):
        def who(self) -> str:
            return "B"
    w = Writer()
    if not method:
        w.begin_call()
    w.load_object_unchecked(super)
    w.load_object_unchecked(B)
    w.op("LOAD_LOCAL", "a0")
    w.op("LOAD_SUPER_ATTR", ("who", method, True))
    if not method:
        w.callable_done()
    w.call(0)
    w.op("RETURN")
    assert run(w, B()) == "A"


@pytest.mark.parametrize("conversion", ["", "s", "r", "a"])
@pytest.mark.parametrize("spec", [None, ">6"])
def test_formats(conversion: str, spec: str | None) -> None:
    w = Writer()
    w.op("LOAD_LOCAL", "a0")
    if spec is not None:
        w.load_const(spec)
    w.op("FORMAT_VALUE", (conversion, spec is not None))
    if conversion:
        w.op("LOAD_LOCAL", "a0")
        w.op("CONVERT_VALUE", conversion)
        w.op("BUILD_STRING", 2)
    w.op("RETURN")
    value = {"": str, "s": str, "r": repr, "a": ascii}[conversion]("é")
    assert run(w, "é") == format(value, spec or "") + (value if conversion else "")


@pytest.mark.parametrize("name", ["LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF"])
def test_dict_first(name: str) -> None:
    w = Writer()
    w.load_const("outer")
    w.op("STORE_DEREF", "v")
    w.op("LOAD_LOCAL", "a0")
    w.op(name, "v")
    w.op("RETURN")
    assert run(w, {"v": 1}, scope={"v": "outer"}, cellvars=("v",)) == 1
    assert run(w, {}, scope={"v": "outer"}, cellvars=("v",)) == "outer"


def test_locals_added_when_missing() -> None:
    def f(a: int) -> int:
        return a
    program = decode(f.__code__)
    w = Writer()
    w.op("LOAD_LOCAL", "a")
    w.op("STORE_LOCAL", "fresh")
    w.op("LOAD_LOCAL", "fresh")
    w.op("RETURN")
    code = assemble(w.finish(program))
    assert code.co_varnames == ("a", "fresh") and code.co_argcount == 1


def test_programs_are_plain_data() -> None:
    program = dataclasses.replace(like(), ops=[Op("LOAD_CONST", None), Op("RETURN")])
    assert types.FunctionType(assemble(program), {})() is None
