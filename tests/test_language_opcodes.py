"""No opcode of the three versions is without a reader, and no neutral op without a handler or a declared refusal."""
from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo import reasons
from minidynamo.code import v311, v312, v313
from minidynamo.code.ops import ROWS
from minidynamo.code.readers import ATTRIBUTE, CALL, CALL_KW, END_FOR, FIXED, JUMP, KW_NAMES, MAKE_CELL, READ, View
from minidynamo.code.version import version
from minidynamo.interp.generators import async_op
from minidynamo.interp.loop import HANDLERS
from minidynamo.testing import check
from tests.test_code_roundtrip import real_opcodes

X = torch.arange(4.0)
ALL = """
BEFORE_ASYNC_WITH BEFORE_WITH BINARY_OP BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE
BUILD_STRING BUILD_TUPLE CACHE CALL CALL_FUNCTION_EX CHECK_EG_MATCH CHECK_EXC_MATCH COMPARE_OP CONTAINS_OP COPY
COPY_FREE_VARS DELETE_ATTR DELETE_DEREF DELETE_FAST DELETE_GLOBAL DELETE_NAME DELETE_SUBSCR DICT_MERGE DICT_UPDATE
END_ASYNC_FOR EXTENDED_ARG FOR_ITER GET_AITER GET_ANEXT GET_AWAITABLE GET_ITER GET_LEN GET_YIELD_FROM_ITER IMPORT_FROM
IMPORT_NAME IS_OP JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD LIST_APPEND LIST_EXTEND LOAD_ASSERTION_ERROR
LOAD_ATTR LOAD_BUILD_CLASS LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_GLOBAL LOAD_NAME MAKE_CELL MAKE_FUNCTION MAP_ADD
MATCH_CLASS MATCH_KEYS MATCH_MAPPING MATCH_SEQUENCE NOP POP_EXCEPT POP_TOP PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE
RESUME RETURN_GENERATOR RETURN_VALUE SEND SETUP_ANNOTATIONS SET_ADD SET_UPDATE STORE_ATTR STORE_DEREF STORE_FAST
STORE_GLOBAL STORE_NAME STORE_SUBSCR SWAP UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNPACK_EX UNPACK_SEQUENCE
WITH_EXCEPT_START YIELD_VALUE
"""
ONLY_311 = """
ASYNC_GEN_WRAP IMPORT_STAR JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP LIST_TO_TUPLE LOAD_CLASSDEREF LOAD_METHOD
POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE
POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE PRECALL
PREP_RERAISE_STAR PRINT_EXPR UNARY_POSITIVE
"""
UP_TO_312 = "FORMAT_VALUE KW_NAMES LOAD_CLOSURE"
SINCE_312 = """
BINARY_SLICE CALL_INTRINSIC_1 CALL_INTRINSIC_2 CLEANUP_THROW END_FOR END_SEND INTERPRETER_EXIT LOAD_FAST_AND_CLEAR
LOAD_FAST_CHECK LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS LOAD_SUPER_ATTR POP_JUMP_IF_FALSE
POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE RESERVED RETURN_CONST STORE_SLICE
"""
SINCE_313 = """
CALL_KW CONVERT_VALUE ENTER_EXECUTOR EXIT_INIT_CHECK FORMAT_SIMPLE FORMAT_WITH_SPEC LOAD_FAST_LOAD_FAST
SET_FUNCTION_ATTRIBUTE STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST TO_BOOL
"""
VERSIONS = [
    pytest.param(v311, ALL + ONLY_311 + UP_TO_312, id="3.11"),
    pytest.param(v312, ALL + UP_TO_312 + SINCE_312, id="3.12"),
    pytest.param(v313, ALL + SINCE_312 + SINCE_313, id="3.13"),
]
# what the kinds of rows stand for that decode writes itself
SPECIAL = {CALL: {"CALL"}, CALL_KW: {"CALL"}, KW_NAMES: set(), MAKE_CELL: {"MAKE_CELL", "NEW_CELL"}, END_FOR: set(),
           ATTRIBUTE: {"MAKE_FUNCTION"}}
VIEW = View(tuple(range(512)), tuple(f"name{at}" for at in range(512)), tuple(f"local{at}" for at in range(512)), frozenset({1}))


def written(row):
    """The neutral ops that one row can give, whatever the argument."""
    if row.kind == FIXED:
        return {name for name, _ in row.ops}
    if row.kind == JUMP:
        return {name for name, _ in (*row.ops, row.jump, *row.after)}
    if row.kind == READ:
        found = set()
        for arg in range(256):
            try:
                found.update(name for name, _ in row.read(VIEW, arg))
            except IndexError:          # a table of fewer entries
                break
        return found
    return SPECIAL.get(row.kind, set())


@pytest.mark.parametrize(("table", "names"), VERSIONS)
def test_every_opcode_has_a_reader(table, names):
    assert set(names.split()) == set(table.READ) | table.ABSENT
    assert not set(table.READ) & table.ABSENT


def test_the_list_is_this_pythons():
    names, = (param.values[1] for param in VERSIONS if param.values[0] is version)
    assert set(names.split()) == real_opcodes()


@pytest.mark.parametrize(("table", "names"), VERSIONS)
def test_what_readers_write_has_a_handler(table, names):
    given = set().union(*map(written, table.READ.values()))
    assert len(given) > 60
    assert given <= set(ROWS)
    assert given <= set(HANDLERS)


def test_ops_that_are_always_refused_are_those_of_async_code():
    """Their handler declares the reason; frames that hold them are never traced as a root either."""
    refused = {name for name in ROWS if HANDLERS[name] is async_op}
    assert refused == {"GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "END_ASYNC_FOR", "BEFORE_ASYNC_WITH"}


# ---------------------------------------------------------------- async code
async def add_one(x):
    return x + 1


async def ticks(n):
    for i in range(n):
        yield i


class Manager:
    async def __aenter__(self):
        return 1

    async def __aexit__(self, *error):
        return False


async def all_of_it(x):
    listed = [i async for i in ticks(3)]
    mapped = {i: await add_one(i) for i in listed}
    async with Manager() as m:
        pass
    async for i in ticks(2):
        m += i
    return listed, mapped, m, helper(x)


def helper(x):
    return x * 3


def drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def test_coroutines_are_refused_and_python_goes_on():
    def fn(x):
        y = x + 1
        return drive(all_of_it(y)), y * 2
    found = check(fn, X, min_graphs=2, cached=False)
    assert found.breaks[reasons.ASYNC_CODE.id]
    assert set(found.skips) <= {reasons.GENERATOR_FRAME.id, reasons.SKIP_FILE.id}


def test_a_coroutine_as_the_compiled_function():
    compiled = minidynamo.optimize(all_of_it)
    eager, ours = drive(all_of_it(X)), drive(compiled(X))
    assert eager[:3] == ours[:3]
    assert torch.equal(eager[3], ours[3])


def test_functions_that_only_make_them_are_captured():
    def fn(x):
        async def inner(a):
            return a + 1

        async def stream(a):
            yield a
        y = x + 1
        made = inner(1)
        shown = type(made).__name__, made.__name__
        made.close()
        return shown, type(stream(2)).__name__, inner.__name__, y * 2
    found = check(fn, X, min_graphs=2, cached=False)
    assert found.breaks[reasons.ASYNC_CODE.id]


def test_functions_that_only_define_them_are_one_graph():
    def fn(x):
        async def inner(a):
            return a + 1
        return inner.__name__, x + 1
    check(fn, X, graphs=1, fullgraph=True)
