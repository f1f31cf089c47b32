"""nonstrict_trace: arguments flattened as pytrees while tracing, one ``flat_apply`` node, the result rebuilt.

The walk follows ``torch.utils._pytree.tree_flatten`` over trackers instead of objects, so that
what the region did to the arguments before is seen, and what was looked at is guarded.  User-registered
flatten and unflatten functions are inlined.
"""
from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

from minidynamo import reasons
from minidynamo.graph.fake import CannotFake, DataDependent, FakeError, OpError
from minidynamo.graph.nonstrict import Body, Impure, NotGraphable, flat_apply, func_to_graphable, is_graphable
from minidynamo.guards.hold import hold
from minidynamo.guards.kinds import Predicate, SameObject
from minidynamo.model.services import service
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import iters
from minidynamo.variables import tensors
from minidynamo.variables.functions import FunctionVariable, own_function
from minidynamo.variables.mappings import DictVariable
from minidynamo.variables.objects import ObjectVariable
from minidynamo.variables.reach import Reach
from minidynamo.variables.sequences import ListVariable, TupleVariable, inner

LEAF = pytree.treespec_leaf()


@service
def call_nonstrict(tx: Any, function: Any, args: list, kwargs: dict) -> VariableTracker:
    """A call of a function that ``nonstrict_trace`` returned (`function` is its tracker)."""
    wrapper, name = function.fn, function.fn.__qualname__
    if function.source is None:
        tx.stop(reasons.NONSTRICT_INSIDE, name=name)
    tx.guard(SameObject(function.source, wrapper))
    if any(id(cell) in tx.changed for cell in function.closure(tx)):
        tx.stop(reasons.NONSTRICT_PENDING, name=name, what="a variable of an enclosing function")
    fn = wrapper.__closure__[wrapper.__code__.co_freevars.index("fn")].cell_contents
    return call_body(tx, fn, name, [(wrapper, function.source)], args, kwargs)


def call_body(tx: Any, fn: Any, name: str, roots: list[tuple[Any, Any]], args: list, kwargs: dict) -> VariableTracker:
    """``fn(*args, **kwargs)`` as one node; `roots` are the functions whose text decides what it reads."""
    flat = Flat(tx, name)
    spec = flat.flatten_call(args, kwargs)
    reach = Reach(tx)
    for obj, source in (*roots, *flat.carried):
        reach.add(obj, source)
    reach.search()
    pending = reach.changed()
    if pending is not None:
        tx.stop(reasons.NONSTRICT_PENDING, name=name, what=pending)
    node, body = emit(tx, fn, name, spec, flat.leaves, reach)
    for fact in reach.facts:
        tx.guard(fact)
    return Unflat(tx, name, flat, node, body).result()


def emit(tx: Any, fn: Any, name: str, spec: Any, leaves: list, reach: Reach) -> tuple[Any, Body]:
    """The ``flat_apply`` node, its specs as constants of the graph."""
    body = Body(fn)
    captured: list[Any] = []

    def lift(tensor: torch.Tensor) -> torch.Tensor:
        source = reach.sources.get(id(tensor))
        known = tx.by_id.get(id(tensor))
        if source is None and known is None:
            tx.stop(reasons.NONSTRICT_NO_PATH, name=name, shape=str(tuple(tensor.shape)))
        value = known if source is None else tx.build(tensor, source)
        if not isinstance(value, tensors.TensorVariable):
            tx.stop(reasons.TENSOR_SUBCLASS, type=type(tensor).__name__)
        captured.append(value.node)
        return value.fake

    f_node = tx.tape.constant(func_to_graphable(body)[1], "f_spec")
    spec_node = tx.tape.constant(spec, "in_spec")
    try:
        with body.observe(lift):
            node = tx.tape.call(flat_apply, (f_node, spec_node, *leaves), {}, tx.place())
    except DataDependent as error:
        tx.stop(reasons.NONSTRICT_RAISED, name=name, error=f"a need for data ({error.op})")
    except OpError as error:
        failed(tx, name, error.original)
    except (FakeError, CannotFake) as error:
        tx.stop(reasons.NONSTRICT_RAISED, name=name, error=str(error))
    finally:
        written = reach.restore()
    if written is not None:
        tx.stop(reasons.NONSTRICT_IMPURE, name=name, what=f"it writes to {written} outside")
    if captured:
        tx.keep.append(spec)                         # the tape knows constants by id
        inputs = pytree.TreeSpec(tuple, None, [LEAF] * len(captured))
        positional, named = spec.children()
        spec_node.value = pytree.TreeSpec(tuple, None, [
            pytree.TreeSpec(tuple, None, [inputs, *positional.children()]), named])
        node.args = (f_node, spec_node, *captured, *node.args[2:])
    return node, body


def failed(tx: Any, name: str, error: BaseException) -> None:
    """What the run on fakes raised, as a reason."""
    if isinstance(error, reasons.Stop):
        raise error
    if isinstance(error, NotGraphable):
        tx.stop(reasons.NONSTRICT_OUTPUT, name=name, type=str(error))
    if isinstance(error, Impure):
        tx.stop(reasons.NONSTRICT_IMPURE, name=name, what=str(error))
    tx.stop(reasons.NONSTRICT_RAISED, name=name, error=f"{type(error).__name__}: {error}")


# ---------------------------------------------------------------- flattening
class Flat:
    """One flattening: leaves as graph arguments, and the trackers of all nodes in order."""

    def __init__(self, tx: Any, name: str) -> None:
        self.tx, self.name = tx, name
        self.leaves: list[Any] = []
        self.nodes: list[VariableTracker | None] = []
        self.carried: list[tuple[Any, Any]] = []      # objects that go through the spec, with their source

    def flatten_call(self, args: list, kwargs: dict) -> Any:
        self.nodes += [None, None]                   # the pair, and the arguments' tuple
        positional = [self.flatten(v, f"argument {at}") for at, v in enumerate(args)]
        self.nodes.append(None)
        named = [self.flatten(v, f"argument {k!r}") for k, v in kwargs.items()]
        return pytree.TreeSpec(tuple, None, [pytree.TreeSpec(tuple, None, positional),
                                             pytree.TreeSpec(dict, list(kwargs), named)])

    def flatten(self, value: VariableTracker, path: str) -> Any:
        value = real(self.tx, value)
        cls = value.py_type()
        kind = namedtuple if pytree.is_namedtuple_class(cls) else cls
        if kind not in pytree.SUPPORTED_NODES:
            return self.leaf(value, path)
        self.nodes.append(value)
        if pytree.is_constant_class(cls):
            return pytree.TreeSpec(cls, pytree.ConstantNode(self.constant(value, path)), [])
        own = FLATTEN.get(kind)
        children, context = own(self.tx, value) if own is not None else self.registered(kind, value, path)
        return pytree.TreeSpec(kind, context, [self.flatten(c, f"{path}, item {at}") for at, c in enumerate(children)])

    def registered(self, kind: Any, value: VariableTracker, path: str) -> tuple[list[VariableTracker], Any]:
        """A user's flatten function, inlined."""
        tx = self.tx
        pair = iters.collect(tx, call_own(tx, pytree.SUPPORTED_NODES[kind].flatten_fn, [value]))
        if len(pair) != 2:
            tx.stop(reasons.NONSTRICT_CONTEXT, path=path, name=self.name, type=f"{len(pair)} values")
        children, context = real(tx, pair[0]), real(tx, pair[1])
        return iters.collect(tx, children), self.context(context, path)

    def context(self, value: VariableTracker, path: str) -> Any:
        """The flatten context as a real object."""
        try:
            return as_real(self.tx, value)
        except NotConstant as error:
            tracker = error.args[0] if error.args and isinstance(error.args[0], VariableTracker) else value
            self.tx.stop(reasons.NONSTRICT_CONTEXT, path=path, name=self.name, type=tracker.py_type().__name__)

    def constant(self, value: VariableTracker, path: str) -> Any:
        """An instance of a ``register_constant`` class: the user's, guarded by equality, or a new one like it."""
        tx = self.tx
        if value.source is not None and value.obj is not None:
            obj = value.obj                          # type: ignore[attr-defined]
            if id(value) in tx.changed:
                tx.stop(reasons.NONSTRICT_PENDING, name=self.name, what=path)
            tx.guard(Predicate(value.source, EqualsConstant(obj), f"equals {type(obj).__name__} constant"))
            return obj
        try:
            return new_constant(tx, value)
        except NotConstant:
            tx.stop(reasons.NONSTRICT_OPAQUE_LEAF, path=path, name=self.name, type=value.py_type().__name__)

    def leaf(self, value: VariableTracker, path: str) -> Any:
        """A tensor or number becomes an argument of the node; a function or module goes through the spec."""
        tx = self.tx
        if isinstance(value, (tensors.TensorVariable, tensors.SymVariable)):
            self.leaves.append(tx.proxy(value))
            return LEAF
        if isinstance(value, tensors.SubclassVariable):
            tx.stop(reasons.TENSOR_SUBCLASS, type=value.py_type().__name__)
        try:
            literal = value.as_constant()
        except NotConstant:
            return self.carry(value, path)
        if literal is not None and not is_graphable(literal):
            return self.carry(value, path)
        self.leaves.append(literal)
        return LEAF

    def carry(self, value: VariableTracker, path: str) -> Any:
        """An object that the function gets as it is: guarded by identity, its tensors found by `Reach`."""
        tx = self.tx
        cls = value.py_type()
        if not issubclass(cls, CARRIED):
            tx.stop(reasons.NONSTRICT_UNREGISTERED, type=cls.__name__, path=path, name=self.name)
        try:
            obj = value.as_object()
        except NotConstant:
            tx.stop(reasons.NONSTRICT_OPAQUE_LEAF, path=path, name=self.name, type=cls.__name__)
        if value.source is not None:
            tx.guard(SameObject(value.source, obj))
            self.carried.append((obj, value.source))
        elif not isinstance(obj, (type, types.BuiltinFunctionType)):
            tx.stop(reasons.NONSTRICT_OPAQUE_LEAF, path=path, name=self.name, type=cls.__name__)
        return pytree.TreeSpec(Carried, Carried(obj), [])


CARRIED = (torch.nn.Module, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, type)


class Carried:
    """A pytree node without leaves that stands for an object, held weakly."""

    def __init__(self, obj: Any) -> None:
        self.held = hold(obj)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Carried) and other.held() is self.held()

    def __hash__(self) -> int:
        return id(self.held())

    def __repr__(self) -> str:
        return f"<{type(self.held()).__name__}>"


pytree.register_pytree_node(Carried, lambda carried: ([], carried), lambda _, carried: carried.held())


class EqualsConstant:
    """Predicate of a guard: the same class, and equal."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __call__(self, value: Any) -> bool:
        return value is self.obj or (type(value) is type(self.obj) and bool(value == self.obj))


def call_own(tx: Any, fn: Any, args: list) -> VariableTracker:
    """A function of the pytree registry: found by identity, so nothing about it needs a guard."""
    known = tx.by_id.get(id(fn))
    if known is None:
        known = own_function(fn) if isinstance(fn, types.FunctionType) else tx.object_value(fn)
    return tx.inline(known, args, {}) if isinstance(known, FunctionVariable) else tx.call(known, args)


def as_real(tx: Any, value: VariableTracker) -> Any:
    """A tracked value as a real object of plain containers; raises NotConstant."""
    value = real(tx, value)
    kind = value.py_type()
    if kind in (tuple, list, set, frozenset):
        return kind([as_real(tx, v) for v in iters.collect(tx, value)])
    if kind is dict:
        return {as_real(tx, k): as_real(tx, v) for k, v in inner(value).entries.values()}
    if isinstance(value, ObjectVariable) and value.obj is None and pytree.is_constant_class(value.cls):
        return new_constant(tx, value)
    return value.as_object()


def new_constant(tx: Any, value: VariableTracker) -> Any:
    """A real instance with the fields that the trace gave to a new object of plain layout."""
    if not isinstance(value, ObjectVariable) or value.obj is not None or value.inner is not None:
        raise NotConstant(value)
    obj = object.__new__(value.cls)
    for name, field in value.fields.items():
        if field is not None:
            object.__setattr__(obj, name, as_real(tx, field))
    return obj


def flatten_dict(tx: Any, value: VariableTracker) -> tuple[list, Any]:
    entries = list(inner(value).entries.values())
    return [v for _, v in entries], [as_real(tx, k) for k, _ in entries]


def flatten_defaultdict(tx: Any, value: VariableTracker) -> tuple[list, Any]:
    children, keys = flatten_dict(tx, value)
    factory = value.tp_getattro(tx, "default_factory")
    return children, [as_real(tx, factory), keys]


FLATTEN: dict[Any, Any] = {
    tuple: lambda tx, v: (iters.collect(tx, v), None),
    list: lambda tx, v: (iters.collect(tx, v), None),
    dict: flatten_dict,
    OrderedDict: flatten_dict,
    defaultdict: flatten_defaultdict,
    namedtuple: lambda tx, v: (iters.collect(tx, v), v.py_type()),
    deque: lambda tx, v: (iters.collect(tx, v), v.tp_getattro(tx, "maxlen").as_constant()),
}


# ---------------------------------------------------------------- the result
class Unflat:
    """The result of the node as values."""

    def __init__(self, tx: Any, name: str, flat: Flat, node: Any, body: Body) -> None:
        self.tx, self.name, self.flat, self.node, self.body = tx, name, flat, node, body

    def result(self) -> VariableTracker:
        return self.build(self.body.spec, iter(self.leaves()))

    def leaves(self) -> Iterator[VariableTracker]:
        tx, tape, body = self.tx, self.tx.tape, self.body
        computed = iter(enumerate(self.node.value))
        for at in range(body.spec.num_leaves):
            if at in body.same:
                known = self.flat.nodes[body.same[at]]
                yield tx.stop(reasons.NONSTRICT_OUTPUT, name=self.name, type="its arguments") if known is None else known
            elif at in body.literals:
                yield tx.wrap(body.literals[at])
            else:
                index, leaf = next(computed)
                is_tensor = isinstance(leaf, torch.Tensor)
                yield tensors.from_value(tx, leaf, tape.item(self.node, index, leaf) if is_tensor else None)

    def build(self, spec: Any, leaves: Iterator[VariableTracker]) -> VariableTracker:
        if spec.is_leaf():
            return next(leaves)
        tx = self.tx
        children = [self.build(child, leaves) for child in spec.children()]
        maker = UNFLATTEN.get(spec.type)
        if maker is not None:
            return maker(tx, children, spec.context)
        if isinstance(spec.context, pytree.ConstantNode):
            return self.like(spec.context.value)
        unflatten = pytree.SUPPORTED_NODES[spec.type].unflatten_fn
        return call_own(tx, unflatten, [ListVariable(children), self.like(spec.context)])

    def like(self, obj: Any) -> VariableTracker:
        """A value that stands for a new object as the function made it."""
        tx = self.tx
        if type(obj) in (list, tuple):
            items = [self.like(v) for v in obj]
            return ListVariable(items) if type(obj) is list else TupleVariable(items)
        if type(obj) is dict:
            return DictVariable.of_pairs(tx, [(self.like(k), self.like(v)) for k, v in obj.items()])
        if isinstance(obj, type):
            return tx.class_of(obj)
        known = tx.by_id.get(id(obj))
        if known is not None:
            return known
        if pytree.is_constant_class(type(obj)) and type(obj).__dictoffset__ and type(obj).__base__ is object:
            made = ObjectVariable(type(obj))
            made.fields.update({name: self.like(v) for name, v in vars(obj).items()})
            return made
        if isinstance(obj, (type(None), *LITERALS)):
            return tx.wrap(obj)
        return tx.stop(reasons.NONSTRICT_OUTPUT, name=self.name, type=type(obj).__name__)


LITERALS = (int, float, complex, bool, str, bytes, torch.dtype, torch.device, type(Ellipsis))

UNFLATTEN: dict[Any, Any] = {
    tuple: lambda tx, items, context: TupleVariable(items),
    list: lambda tx, items, context: ListVariable(items),
    dict: lambda tx, items, keys: DictVariable.of_pairs(tx, list(zip([tx.wrap(k) for k in keys], items))),
    namedtuple: lambda tx, items, cls: tx.call(tx.class_of(cls), items),
    OrderedDict: lambda tx, items, keys: tx.call(tx.class_of(OrderedDict), [
        ListVariable([TupleVariable([tx.wrap(k), v]) for k, v in zip(keys, items)])]),
    defaultdict: lambda tx, items, context: tx.call(tx.class_of(defaultdict), [
        tx.object_value(context[0]), UNFLATTEN[dict](tx, items, context[1])]),
    deque: lambda tx, items, maxlen: tx.call(tx.class_of(deque), [ListVariable(items), tx.wrap(maxlen)]),
}
