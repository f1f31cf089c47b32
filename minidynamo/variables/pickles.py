"""pickle.dumps and pickle.loads, by inlining a pickler written in Python; errors are left to the C code, which words them."""
from __future__ import annotations

import _pickle
import codecs
import types
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from minidynamo import reasons
from minidynamo.guards.kinds import Predicate
from minidynamo.model.tables import meaning
from minidynamo.model.tracer import Raised
from minidynamo.model.variable import CannotRebuild, LazyVariable, VariableTracker
from minidynamo.protocol import calls
from minidynamo.variables.c_functions import CFunctionVariable
from minidynamo.variables.constants import NONE, ConstantVariable
from minidynamo.variables.sequences import TupleVariable, inner


PLAIN_CODECS = frozenset({"latin1", "latin-1", "ascii", "utf-8"})


def codec(function: Any) -> Any:
    def call(tx, obj, encoding, /):
        known = inner(encoding).as_constant() in PLAIN_CODECS
        return tx.fold(function, [inner(obj), inner(encoding)]) if known else None
    return call


for function_ in (codecs.encode, codecs.decode):
    meaning(function_)(codec(function_))


def by_python(fn: Any) -> Any:
    def call(tx: Any, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        python = tx.pickler(fn.__name__)
        if not calls.fits(python, list(args), kwargs):
            return tx.call_unknown_c(fn, list(args), kwargs)        # type: ignore[no-any-return]
        if parts(args[:1]) > MANY:
            tx.stop(reasons.UNSUPPORTED_CALL, call=f"pickle.{fn.__name__}", kind="a pickler, with too much to look at each part")
        try:
            return tx.call_polyfill(python, list(args), kwargs)     # type: ignore[no-any-return]
        except Raised as raised:
            tx.stop(reasons.UNSUPPORTED_CALL, call=f"pickle.{fn.__name__}",
                    kind=f"a pickler that raises {raised.exc.py_type().__name__}")
    return call


MANY = 400                      # parts, or bytes to read


def parts(values: Iterable[VariableTracker]) -> int:
    """How much there is to pickle, as far as it has been looked at; no more than matters."""
    count, waiting = 0, list(values)
    while waiting and count <= MANY:
        value = waiting.pop()
        count += 1
        if value.__class__ is LazyVariable:
            value = value.built or value             # type: ignore[attr-defined]
        if value.__class__ is ConstantVariable:
            count += len(value.value) if type(value.value) is bytes else 0      # type: ignore[attr-defined]
        elif value.__class__ is LazyVariable:
            obj = value.obj                          # type: ignore[attr-defined]
            count += len(obj) if type(obj) in (list, tuple, dict, set, frozenset, bytes) else 0
        else:
            try:
                waiting += value.children()
            except CannotRebuild:
                pass
    return count


meaning(_pickle.dumps)(by_python(_pickle.dumps))
meaning(_pickle.loads)(by_python(_pickle.loads))


@meaning(types.BuiltinFunctionType.__reduce__)          # type: ignore[arg-type]
def call_builtin_reduce(tx, self, /):
    """meth_reduce."""
    name = self.tp_getattro(tx, "__name__")
    if isinstance(self, CFunctionVariable) and not isinstance(self.fn.__self__, type):
        return name
    return TupleVariable([tx.wrap(getattr), TupleVariable([self.tp_getattro(tx, "__self__"), name])])


@meaning(OrderedDict.__reduce__)
def call_ordered_dict_reduce(tx, self, /):
    """odict_reduce; one without attributes has no state."""
    if inner(self) is not self:
        return tx.call_polyfill(tx.pickler("ordered_dict_reduce"), [self], {})
    if self.source is not None:
        found = self.source.fetch(tx.entry_locals, tx.entry_globals)
        if not has_no_attributes(found):
            return None
        tx.guard(Predicate(self.source, has_no_attributes, "has no attributes"))
    items = tx.call(tx.bound_c_method(self, vars(OrderedDict)["items"]), []).tp_iter(tx)
    return TupleVariable([tx.class_of(OrderedDict), TupleVariable([]), NONE, NONE, items])


def has_no_attributes(obj: Any) -> bool:
    return not vars(obj)


@meaning(__import__)
def call_import(tx, name, globals=None, locals=None, fromlist=None, level=None):
    """builtin___import__ of a module that is loaded already."""
    known = inner(name).as_constant()
    if level is not None and level.as_constant():
        tx.stop(reasons.IMPORT_UNKNOWN, name=known)
    module = tx.loaded_module(known)
    if fromlist is None or isinstance(fromlist, ConstantVariable) or not fromlist.items:
        module = tx.loaded_module(known.partition(".")[0])
    return module
