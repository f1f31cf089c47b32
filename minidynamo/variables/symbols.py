"""Symbolic numbers: ints, floats and bools that differ from call to call.

`value` is torch's SymInt, SymFloat or SymBool; its expression answers branches, as guards.  What
the program did to get the number is kept beside it as a recipe, because expressions over floats
are simplified and then round differently: new code and graph repeat the program's own steps.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from minidynamo import reasons
from minidynamo.graph.symbols import UnknownSymbol
from minidynamo.guards.kinds import ShapeExpr, TypeIs
from minidynamo.model.services import service
from minidynamo.model.tables import FOLD_OTHERWISE, PROXIES, meaning
from minidynamo.model.variable import NotConstant, VariableTracker, real
from minidynamo.protocol import numbers
from minidynamo.protocol.compare import compare
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.symbol_text import shown

COMPARE = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge}
TYPES: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


class Recipe(NamedTuple):
    """``function(*operands)`` makes the number from Python's, ``symbolic`` from torch's."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]          # SymVariable, int, float or bool
    symbolic: Callable[..., Any]


class SymVariable(VariableTracker):
    """A number known only by its symbol."""

    __slots__ = ("value", "recipe")
    kind = "symbolic number"
    one_per_object = False
    TYPES = TYPES

    def __init__(self, value: Any, source: Any = None, recipe: Recipe | None = None) -> None:
        self.value, self.source, self.recipe = value, source, recipe

    def py_type(self) -> type:
        return TYPES[type(self.value)]

    def known(self) -> Any:
        """The number, where facts learnt meanwhile leave only one; else None."""
        node = self.value.node
        expr = node.expr if node.is_symbolic() else None
        if expr is None:
            return as_plain(self.value)
        if expr.is_number or expr in (sympy.true, sympy.false):
            return None if self.inexact() or expr.is_zero and self.py_type() is float else self.py_type()(expr)
        return None

    def inexact(self) -> bool:
        """Whether the expression may round otherwise than the program."""
        if self.py_type() is bool:
            symbols = [o for o in self.recipe.operands if isinstance(o, SymVariable)] if self.recipe is not None else []
            return any(o.inexact() for o in symbols) or len(symbols) > 1 and any(o.py_type() is float for o in symbols)
        if self.recipe is None or self.py_type() is int and self.recipe.function not in ROUNDING:
            return False
        if self.recipe.function in EXACT_FLOATS:
            return any(isinstance(o, SymVariable) and o.py_type() is float for o in self.recipe.operands)
        return True

    def as_constant(self) -> Any:
        """Specialise: torch's own guard makes the number a fact of this trace."""
        value = None if self.inexact() else as_plain(self.value)
        if value is None or value == 0 and self.py_type() is float and self.recipe is not None:    # sympy has no -0.0
            assert self.recipe is not None
            return self.recipe.function(*[as_plain(o) for o in self.recipe.operands])
        return value

    def identity(self) -> object:
        return self

    # ---- making it again
    def children(self) -> list[VariableTracker]:
        return [o for o in self.recipe.operands if isinstance(o, SymVariable)] if self.recipe is not None else []

    def rebuild(self, out: Any) -> None:
        known = self.known()
        if known is not None:
            out.load_const(known)
        elif self.recipe is not None:
            out.call_function(self.recipe.function, *self.recipe.operands)
        else:
            out.graph_number(self.value)

    def proxy(self, tx: Any) -> Any:
        """As a graph argument: by its expression where that is exact, else by the program's steps."""
        if not self.inexact():
            try:
                return tx.tape.symbols.operand(self.value)
            except UnknownSymbol:
                if self.recipe is None:
                    tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=tx.where().text(), why=f"no operation computes {self.value}")
        assert self.recipe is not None
        node = tx.sym_nodes.get(id(self))
        if node is None:
            operands = [o.proxy(tx) if isinstance(o, SymVariable) else o for o in self.recipe.operands]
            node = tx.tape.call(self.recipe.symbolic, operands, {}, tx.place())
            tx.keep.append(self)
            tx.journal.put(tx.sym_nodes, id(self), node)
        return node

    def key(self, tx: Any) -> Any:
        return self.as_constant()

    def tp_hash(self, tx: Any) -> VariableTracker:
        return ConstantVariable(hash(self.as_constant()))

    # ---- operators
    def constant(self) -> ConstantVariable:
        return ConstantVariable(self.as_constant())

    def nb_binary(self, tx: Any, symbol: str, other: VariableTracker, reflected: bool) -> Any:
        theirs = operand(other)
        if theirs is None:
            return NotImplemented
        left, right = (theirs, self) if reflected else (self, theirs)
        # what torch cannot express or Python raises, of the operands as they are: True & True is no int
        if not expressible(symbol, left, right) or symbol in ("/", "//", "%") and not truth(compute(operator.ne, right, 0)):
            mine, others = self.constant(), other.constant() if isinstance(other, SymVariable) else other
            return others.nb_binary(tx, symbol, mine, False) if reflected else mine.nb_binary(tx, symbol, others, False)
        return apply(tx, numbers.BINARY[symbol], left, right)

    def nb_unary(self, tx: Any, symbol: str) -> Any:
        kind = self.py_type()
        if symbol == "index" and kind is float:
            return NotImplemented
        if symbol in ("index", "int") and kind is int or symbol == "float" and kind is float:
            return self
        if symbol == "float" and kind is int:
            return apply(tx, float, self, symbolic=torch.sym_float)
        if symbol == "int" and is_rounded(tx, self):
            return apply(tx, int, self, symbolic=torch.sym_int)
        if symbol in ("-", "+", "abs") and kind is not bool:
            return self if symbol == "+" else apply(tx, numbers.UNARY[symbol], self)
        if symbol == "~" and kind is int:
            return apply(tx, numbers.UNARY["~"], self, symbolic=lambda n: -n - 1)
        return self.constant().nb_unary(tx, symbol)

    def nb_bool(self, tx: Any) -> VariableTracker | None:
        if self.py_type() is bool:
            return ConstantVariable(self.decided(tx))
        return ConstantVariable(bool(self.as_constant()) if self.inexact() else truth(self.value != 0))

    def tp_richcompare(self, tx: Any, symbol: str, other: VariableTracker) -> Any:
        theirs = operand(other)
        if theirs is None:
            return NotImplemented
        if not (bool in (type_of(self), type_of(theirs)) or
                isinstance(theirs, float) and (self.py_type() is int or not math.isfinite(theirs))):
            made = apply(tx, COMPARE[symbol], self, theirs)
            exact = not any(isinstance(o, SymVariable) and (o.inexact() or o.py_type() is float) for o in (self, theirs))
            if exact or isinstance(made, SymVariable):
                return made                     # else sympy has decided it, which knows neither rounding nor nan
        return compare(tx, symbol, self.constant(), other.constant() if isinstance(other, SymVariable) else other)

    def decided(self, tx: Any) -> bool:
        """Which way a comparison goes, as a fact: of the symbols, or of the program's own steps where those round."""
        if self.inexact():
            fact = by_steps(self)
            if fact is None:
                return bool(self.as_constant())
            text, args, scope, value = fact
            tx.guard(ShapeExpr(text if value else f"not {text}", args, scope))
            return bool(value)
        return truth(self.value)

    def logical_not(self, tx: Any) -> VariableTracker:
        if self.py_type() is bool and not self.inexact():
            return apply(tx, operator.not_, self, symbolic=torch.sym_not)
        return ConstantVariable(not (self.decided(tx) if self.py_type() is bool else self.as_constant()))

    # ---- everything else needs the number
    def tp_getattro(self, tx: Any, name: str) -> VariableTracker:
        if self.py_type() is int and name in ("real", "numerator"):
            return self
        if name == "__class__":
            return tx.wrap(self.py_type())
        return self.constant().tp_getattro(tx, name)

    def tp_setattro(self, tx: Any, name: str, value: VariableTracker | None) -> None:
        self.constant().tp_setattro(tx, name, value)

    def tp_repr(self, tx: Any) -> VariableTracker:
        return shown(repr, self)

    def tp_format(self, tx: Any, spec: str) -> VariableTracker:
        fixed = self.constant_format(tx, spec)
        return shown(format, self, spec) if fixed is None else fixed

    def constant_format(self, tx: Any, spec: str) -> VariableTracker | None:
        """None for plain field widths and digits, which fit every number; other specs are judged on the number."""
        return None if not spec.strip("0123456789.,+- ><^") or spec[-1:] in "dfegx" and not spec[:-1].strip("0123456789.,+-") \
            and (self.py_type() is int or spec[-1] in "feg") else self.constant().tp_format(tx, spec)


SYMBOL_LIMIT = 2 ** 62             # torch's symbols are 64 bits wide
ROUNDING = frozenset({math.floor, math.ceil, math.trunc, int, round})
EXACT_FLOATS = frozenset({operator.truediv, float})      # of ints: one rounding, the same in any form


def by_steps(value: SymVariable) -> tuple[str, tuple[Any, ...], dict[str, Any], Any] | None:
    """The program's steps to a number as a guard's text, its arguments and scope, and the number now.

    None where a step starts from what is no number of the inputs.
    """
    args: dict[str, Any] = {}
    scope: dict[str, Any] = {}

    def walk(part: Any) -> tuple[str, Any]:
        if not isinstance(part, SymVariable):
            return repr(part), part
        if part.recipe is None:
            name = f"n{list(args).index(part.source) if part.source in args else len(args)}"
            args[part.source] = name
            return name, part.py_type()(part.value.node.hint)
        steps = [walk(o) for o in part.recipe.operands]
        function = part.recipe.function
        name = f"{function.__name__}_{id(function)}"
        scope[name] = function
        return f"{name}({', '.join(text for text, _ in steps)})", function(*[now for _, now in steps])

    if not all(leaf.source is not None and leaf.value.node.has_hint() for leaf in leaves(value)):
        return None
    text, now = walk(value)
    return text, tuple([(name, source, None) for source, name in args.items()]), scope, now


def leaves(value: SymVariable) -> list[SymVariable]:
    if value.recipe is None:
        return [value]
    return [leaf for o in value.recipe.operands if isinstance(o, SymVariable) for leaf in leaves(o)]


def operand(value: VariableTracker) -> Any:
    """What stands beside a symbol in arithmetic, or None; sympy knows no arithmetic with truth values."""
    if isinstance(value, SymVariable):
        return value
    if isinstance(value, ConstantVariable) and type(value.value) in (int, float, bool):
        return int(value.value) if type(value.value) is bool else value.value
    return None


def as_plain(value: Any) -> Any:
    """The number behind a symbol, made a fact of the trace."""
    if isinstance(value, SymVariable):
        return value.as_constant()
    kind = TYPES.get(type(value))
    return value if kind is None else decided(kind, value)


def settled(tree: Any) -> Any:
    """Graph arguments with each symbolic number made a fact of the trace; the very same tree where there is none."""
    kind = type(tree)
    if kind in TYPES:
        return as_plain(tree)
    if kind is dict:
        made = {name: settled(value) for name, value in tree.items()}
        return made if any(made[name] is not tree[name] for name in tree) else tree
    if kind in (tuple, list):
        items = [settled(value) for value in tree]
        return kind(items) if any(new is not old for new, old in zip(items, tree, strict=True)) else tree
    if kind is slice:
        parts = [settled(part) for part in (tree.start, tree.stop, tree.step)]
        return slice(*parts) if any(p is not o for p, o in zip(parts, (tree.start, tree.stop, tree.step), strict=True)) \
            else tree
    return tree


def truth(value: Any) -> bool:
    return decided(bool, value)


def decided(kind: type, value: Any) -> Any:
    """A fact of the trace; a number that comes out of data has none."""
    try:
        return kind(value)
    except GuardOnDataDependentSymNode:
        raise NotConstant(SymVariable(value)) from None


def compute(function: Callable[..., Any], *values: Any) -> Any:
    return function(*[v.value if isinstance(v, SymVariable) else v for v in values])


def type_of(value: Any) -> type:
    return value.py_type() if isinstance(value, SymVariable) else type(value)


def expressible(symbol: str, left: Any, right: Any) -> bool:
    """Operators that torch's symbols compute as Python does, for every value."""
    kinds = {type_of(left), type_of(right)}
    if bool in kinds and not (isinstance(left, bool) or isinstance(right, bool)) or symbol not in SYMBOLIC:
        return False
    if symbol == "**":
        return kinds == {int} and isinstance(right, int) and 0 <= right <= 8
    if symbol in ("<<", ">>"):
        return kinds == {int} and isinstance(right, int) and 0 <= right < 32
    if symbol in ("//", "%"):
        return kinds <= {int, bool}
    if symbol == "/" and kinds <= {int, bool}:
        return all(not isinstance(v, int) or abs(v) < 2 ** 53 for v in (left, right))
    return not any(isinstance(v, float) and not math.isfinite(v) for v in (left, right))


SYMBOLIC = frozenset({"+", "-", "*", "/", "//", "%", "**", "<<", ">>"})
AS_SYMBOLS: dict[Any, Callable[[Any, Any], Any]] = {
    operator.lshift: lambda a, n: a * 2 ** n,
    operator.rshift: lambda a, n: a // 2 ** n,
}


def apply(tx: Any, function: Callable[..., Any], *operands: Any, symbolic: Callable[..., Any] | None = None) -> VariableTracker:
    """A new number and how it was made; a result without symbols is a constant."""
    symbolic = symbolic or AS_SYMBOLS.get(function, function)
    try:
        result = compute(symbolic, *operands)
    except Exception as error:
        tx.raise_real(error)
    recipe = Recipe(function, operands, symbolic)
    if type(result) not in TYPES:
        return tx.wrap(result)
    made = SymVariable(result, None, recipe)
    known = made.known()
    return made if known is None else ConstantVariable(known)


# ---------------------------------------------------------------- functions of numbers
def on_symbols(function: Any, symbolic: Callable[..., Any], accepts: Callable[[Any, SymVariable], bool]) -> None:
    """`function` of one symbolic number; anything else folds."""
    @meaning(function)
    def call(tx, x, /):
        if isinstance(x, SymVariable) and accepts(tx, x):
            return apply(tx, function, x, symbolic=symbolic)
        return folded(tx, function, x)


def is_int(x: SymVariable) -> bool:
    return x.py_type() is int


def is_rounded(tx: Any, x: SymVariable) -> bool:
    """Whether a whole number can be made of it: nan and the infinities raise, which a fact excludes where it must."""
    if x.py_type() is not float or x.recipe is not None and not x.inexact():
        return x.py_type() is not bool
    steps = by_steps(x)
    if steps is None or not abs(steps[3]) < SYMBOL_LIMIT:
        return False
    tx.guard(ShapeExpr(f"abs({steps[0]}) < {SYMBOL_LIMIT}", steps[1], {**steps[2], "abs": abs}))
    return True


for fn_, symbolic_, accepts_ in (
        (math.sqrt, torch._sym_sqrt, lambda tx, x: is_int(x) and truth(x.value >= 0)),
        (math.floor, lambda n: n if isinstance(n, torch.SymInt) else math.floor(n), is_rounded),
        (math.ceil, lambda n: n if isinstance(n, torch.SymInt) else math.ceil(n), is_rounded)):
    on_symbols(fn_, symbolic_, accepts_)


@meaning(divmod)
def call_divmod(tx, x, y, /):
    if isinstance(x, SymVariable) or isinstance(y, SymVariable):
        return tx.wrap_tuple([numbers.binary(tx, "//", x, y), numbers.binary(tx, "%", x, y)])
    return numbers.divide(tx, x, y)


def folded(tx: Any, function: Any, *values: VariableTracker) -> VariableTracker | None:
    """The function of literals, or what is declared otherwise; None for anything else, so that the call is looked up further."""
    for otherwise in (None, FOLD_OTHERWISE.get(function)):
        try:
            return tx.fold(function, list(values)) if otherwise is None else otherwise(tx, *values)
        except NotConstant:
            continue
    return None


# ---------------------------------------------------------------- as an index
def select_symbols(tx: Any, tensor: Any, dims: int, key: VariableTracker) -> tuple[Any, VariableTracker] | None:
    """(a view of `tensor` at the symbolic ints of `key`, the rest of the key); None without symbolic ints.

    Torch's indexing would fix an int that stands in a key; ``select`` keeps it open.
    """
    parts = list(key.items) if key.py_type() is tuple else [key]         # type: ignore[attr-defined]
    parts = [real(tx, p) for p in parts]
    if not any(is_symbolic_index(p) for p in parts):
        return None
    if not all(is_symbolic_index(p) or p.py_type() in (slice, int, type(None), type(Ellipsis)) for p in parts):
        return None
    consuming = [p.py_type() in (slice, int) for p in parts]
    dots = [i for i, p in enumerate(parts) if p.py_type() is type(Ellipsis)]
    for at in range(len(parts) - 1, -1, -1):
        if is_symbolic_index(parts[at]):
            after_dots = bool(dots) and at > dots[0]
            dim = dims - sum(consuming[at:]) if after_dots else sum(consuming[:at])
            tensor = tx.emit_node(torch.select, (tensor, dim, parts[at].proxy(tx)), {})      # type: ignore[attr-defined]
            dims -= 1
            del parts[at], consuming[at]
    return tensor, tx.wrap_tuple(parts)


def is_symbolic_index(value: VariableTracker) -> bool:
    return isinstance(value, SymVariable) and value.py_type() is int


# ---------------------------------------------------------------- inputs
@service
def symbolic_int(tx: Any, value: int, source: Any) -> VariableTracker | None:
    """A symbolic int where the policy asks for one."""
    if tx.config.specialize_int or not abs(value) < SYMBOL_LIMIT or not tx.shapes.is_dynamic_number(value, source):
        return None
    tx.guard(TypeIs(source, int))
    symbol = tx.env.symint(value, source)
    tx.tape.input(value, source, fake=symbol)
    return SymVariable(symbol, source)


@service
def symbolic_float(tx: Any, value: float, source: Any) -> VariableTracker | None:
    """A symbolic float.  A specialised one is given two chances to be a constant; what a resumed frame goes on with, one."""
    specialise = tx.config.specialize_float and not tx.resumes()
    dynamic = math.isfinite(value) and tx.shapes.is_dynamic_number(value, source, 2 if specialise else 1)
    if not dynamic or value == 0:           # a fact about a symbol would not tell 0.0 from -0.0
        return None
    tx.guard(TypeIs(source, float))
    node = tx.tape.input_float(value, source)
    return SymVariable(node.value, source)


PROXIES[SymVariable] = lambda tx, v: v.proxy(tx)
