"""Handlers: class statements and bodies whose names live in a mapping (LOAD_NAME and its kin)."""
from __future__ import annotations

import builtins
import types
import warnings
from typing import Any

from minidynamo import reasons
from minidynamo.interp import loop
from minidynamo.interp.loop import handles
from minidynamo.interp.names import load_name_global
from minidynamo.interp.stack_ops import pop, unbound_cell
from minidynamo.interp.state import Frame
from minidynamo.model.tables import meaning
from minidynamo.model.variable import VariableTracker, defines, real
from minidynamo.protocol import attrs
from minidynamo.variables.cells import CellVariable
from minidynamo.variables.class_making import bases_of, most_derived
from minidynamo.variables.classes import ClassVariable
from minidynamo.variables.exception_fields import fields_of
from minidynamo.variables.exceptions import make_exception
from minidynamo.variables.functions import FunctionVariable
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.sequences import TupleVariable


# ---------------------------------------------------------------- names
def find_name(tx: Any, space: Any, name: str) -> VariableTracker | None:
    """PyDict_GetItem or, for other mappings, ``space[name]`` with KeyError for None."""
    key = tx.wrap(name)
    if isinstance(space, DictVariable):
        return space.find(tx, key)
    return tx.catching(KeyError, lambda: space.mp_subscript(tx, key))


def space_of(tx: Any, frame: Frame) -> VariableTracker:
    if frame.class_dict is None:
        tx.stop(reasons.CLASS_BODY, name=frame.program.name)
    return frame.class_dict


@handles("LOAD_NAME")
def load_name(tx: Any, frame: Frame, op: Any) -> None:
    value = find_name(tx, space_of(tx, frame), op.arg)
    frame.stack.append(load_name_global(tx, frame.scope, op.arg) if value is None else value)


@handles("STORE_NAME")
def store_name(tx: Any, frame: Frame, op: Any) -> None:
    space_of(tx, frame).mp_ass_subscript(tx, tx.wrap(op.arg), pop(tx, frame))


@handles("DELETE_NAME")
def delete_name(tx: Any, frame: Frame, op: Any) -> None:
    space, key = space_of(tx, frame), tx.wrap(op.arg)

    def delete() -> VariableTracker:
        space.mp_ass_subscript(tx, key, None)
        return key
    if tx.catching(KeyError, delete) is None:
        tx.raise_name_error(op.arg)


@handles("LOAD_LOCALS")
def load_locals(tx: Any, frame: Frame, op: Any) -> None:
    frame.stack.append(space_of(tx, frame))


@handles("LOAD_CLASSDEREF")
def load_classderef(tx: Any, frame: Frame, op: Any) -> None:
    load_from(tx, frame, space_of(tx, frame), op.arg)


@handles("LOAD_FROM_DICT_OR_DEREF")
def load_from_dict_or_deref(tx: Any, frame: Frame, op: Any) -> None:
    load_from(tx, frame, pop(tx, frame), op.arg)


def load_from(tx: Any, frame: Frame, space: Any, name: str) -> None:
    value = find_name(tx, space, name)
    if value is None:
        value = frame.cells[name].get(tx)
    if value is None:
        unbound_cell(tx, frame, name)
    frame.stack.append(value)


@handles("LOAD_FROM_DICT_OR_GLOBALS")
def load_from_dict_or_globals(tx: Any, frame: Frame, op: Any) -> None:
    value = find_name(tx, pop(tx, frame), op.arg)
    frame.stack.append(load_name_global(tx, frame.scope, op.arg) if value is None else value)


@handles("SETUP_ANNOTATIONS")
def setup_annotations(tx: Any, frame: Frame, op: Any) -> None:
    space = space_of(tx, frame)
    if find_name(tx, space, "__annotations__") is None:
        space.mp_ass_subscript(tx, tx.wrap("__annotations__"), DictVariable({}))


# ---------------------------------------------------------------- running a body
def run_body(tx: Any, function: FunctionVariable, space: VariableTracker) -> VariableTracker:
    """Inline a body of code whose locals are `space`."""
    frame = loop.make_frame(tx, function, [], {})
    frame.class_dict = space
    if frame.depth >= tx.config.max_inline_depth:
        tx.stop(reasons.RECURSION_DEPTH, depth=frame.depth)
    handled = tx.handled
    loop.run(tx, frame)
    tx.handled = handled
    return real(tx, frame.result)


@meaning(builtins.__build_class__)
def build_class(tx, body, name, /, *bases, metaclass=None, **kwargs):
    """builtin___build_class__."""
    if not isinstance(body, FunctionVariable) or body.fn is not None:
        tx.stop(reasons.CLASS_BODY, name=name.as_constant())
    entries, changed = bases_of(tx, list(bases))
    if metaclass is None:
        metaclass = tx.type_of(entries[0]) if entries else tx.class_of(type)
    if isinstance(metaclass, ClassVariable):
        metaclass = tx.class_of(most_derived(tx, metaclass.cls, entries))
    space = prepared(tx, metaclass, name, TupleVariable(list(entries)), kwargs)
    cell = run_body(tx, body, space)
    if changed:
        space.mp_ass_subscript(tx, tx.wrap("__orig_bases__"), TupleVariable(list(bases)))
    made = tx.call(metaclass, [name, TupleVariable(list(entries)), space], kwargs)
    if isinstance(made, ClassVariable) and isinstance(cell, CellVariable):
        check_class_cell(tx, cell, made, name.as_constant())
    return made


def check_class_cell(tx: Any, cell: CellVariable, made: ClassVariable, name: str) -> None:
    """The ``__class__`` cell must have reached ``type.__new__``."""
    found = cell.get(tx)
    if found is None:
        tx.raise_(RuntimeError, f"__class__ not set defining {name!r} as {made.cls!r}. Was __classcell__ propagated "
                                "to type.__new__?")
    if found is not made:
        tx.raise_(TypeError, f"__class__ set to {tx.text_of(found)} defining {name!r} as {made.cls!r}")


def prepared(tx: Any, metaclass: VariableTracker, name: VariableTracker, bases: VariableTracker, kwargs: dict) -> Any:
    """``metaclass.__prepare__(name, bases, **kwargs)``, or an empty dict."""
    if isinstance(metaclass, ClassVariable):
        found = attrs.type_lookup(tx, metaclass.cls, "__prepare__")
        if found is not None and found.owner is type:
            return DictVariable({})
    hook = attrs.getattr_or_none(tx, metaclass, "__prepare__")
    if hook is None:
        return DictVariable({})
    space = tx.call(hook, [name, bases], kwargs)
    if not hasattr(space.py_type(), "__getitem__"):
        shown = metaclass.cls.__name__ if isinstance(metaclass, ClassVariable) else "<metaclass>"
        tx.raise_(TypeError, f"{shown}.__prepare__() must return a mapping, not {space.py_type().__name__}")
    return space


# ---------------------------------------------------------------- exec and eval
@meaning(exec)
def call_exec(tx, source, space=None, local=None, /):
    run_text(tx, source, space, local, "exec")
    return tx.wrap(None)


@meaning(eval)
def call_eval(tx, source, space=None, local=None, /):
    return run_text(tx, source, space, local, "eval")


def run_text(tx: Any, source: VariableTracker, space: Any, local: Any, mode: str) -> VariableTracker:
    """builtin_exec_impl and builtin_eval_impl: code from a literal text, in namespaces that are values of this trace."""
    space, local = given(space), given(local)
    if local is not None and not defines(local.py_type(), "__getitem__"):
        tx.raise_(TypeError, "locals must be a mapping" if mode == "eval" else
                  f"locals must be a mapping or None, not {local.py_type().__name__}")
    if space is not None and not issubclass(space.py_type(), dict):
        tx.raise_(TypeError, f"exec() globals must be a dict, not {space.py_type().__name__}" if mode == "exec" else
                  "globals must be a real dict; try eval(expr, {}, mapping)"
                  if defines(space.py_type(), "__getitem__") else "globals must be a dict")
    scope = tx.frame.scope if space is None else tx.scope_of_namespace(space)
    if scope is None:
        tx.stop(reasons.EXEC_EVAL, name=f"{mode}()")
    if local is None:
        local = tx.local_namespace() if space is None else space
    if scope.value is not None and scope.value.find(tx, tx.wrap("__builtins__")) is None:
        scope.value.set_item(tx, tx.wrap("__builtins__"), tx.builtins_namespace())
    code = source.as_constant()
    if isinstance(code, str):
        code = compiled(tx, code.lstrip(" \t") if mode == "eval" else code, "<string>", mode,
                        tx.frame.program.flags & FUTURE_FLAGS)
    if not isinstance(code, types.CodeType) or code.co_freevars:
        tx.stop(reasons.EXEC_EVAL, name=f"{mode}()")
    return run_body(tx, FunctionVariable.made(tx, code, scope), local)


def given(value: VariableTracker | None) -> VariableTracker | None:
    return None if value is None or value.py_type() is type(None) else value


@meaning(compile)
def call_compile(tx, source, filename, mode, flags=None, dont_inherit=None, optimize=None):
    """builtin_compile_impl, of a literal text to a code object."""
    if optimize is not None or source.py_type() is not str or filename.py_type() is not str:
        tx.stop(reasons.EXEC_EVAL, name="compile()")
    bits = 0 if flags is None else flags.as_constant()
    if bits & ~FUTURE_FLAGS:
        tx.stop(reasons.EXEC_EVAL, name="compile()")
    if dont_inherit is None or not dont_inherit.as_constant():
        bits |= tx.frame.program.flags & FUTURE_FLAGS
    return tx.wrap(compiled(tx, source.as_constant(), filename.as_constant(), mode.as_constant(), bits))


def compiled(tx: Any, text: str, filename: str, mode: str, flags: int) -> types.CodeType:
    """The code of a text; one that warns is left to Python, one that is refused raises."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            code = compile(text, filename, mode, flags, True)
        except SyntaxError as error:
            refused = error
        except ValueError:
            tx.stop(reasons.EXEC_EVAL, name="compile()")
        else:
            refused = None
    if warned:
        tx.stop(reasons.EXEC_EVAL, name="compile()")
    if refused is not None:
        message, *details = refused.args
        exc = make_exception(tx, type(refused), [
            tx.wrap(message), *[tx.wrap_tuple([tx.wrap(part) for part in detail]) for detail in details]])
        if not details:                         # PyErr_SyntaxLocation sets the members alone
            exc.fields.update({name: tx.wrap(getattr(refused, name)) for name in fields_of(SyntaxError)})
        tx.raise_value(exc)
    return code


FUTURE_FLAGS = 0x1000000 | 0x800000 | 0x400000 | 0x200000 | 0x100000 | 0x80000 | 0x40000 | 0x20000
