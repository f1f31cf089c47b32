"""Which sizes are symbolic, and what a call must satisfy for the graph to hold.

Static first: a size becomes a symbol when the user marks it or asks for ``dynamic=True``, or
when an earlier compile of the same code saw another value there.  `Shapes.facts` answers
everything the trace (and the backend: ask after it ran) assumed about the symbols, as plain
data; sizes that never were symbols belong to the tensor guards, see `Shapes.pattern`.
"""
from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import sympy                               # type: ignore[import-untyped]
import torch
from torch._guards import GuardSource
from torch._guards import Source as TorchSource
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP, DimDynamic
from torch.utils._sympy.printers import PythonPrinter

from minidynamo.base.config import config
from minidynamo.graph.fake import Faked, FakeEnv, ShapeSource
from minidynamo.sources import Attr, Source

if TYPE_CHECKING:
    from minidynamo.sources import Source

Accessor = tuple  # ("size", dim) | ("stride", dim) | ("storage_offset",) | ("int",) | ("float",)


@dataclasses.dataclass(frozen=True, slots=True)
class ShapeFact:
    """A Python expression over `names` that must be true; each name is a number read off a source."""

    text: str
    names: tuple[tuple[str, Source, Accessor], ...]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """`values` maps each name to its number."""
        return bool(eval(self.text, {**FACT_GLOBALS, **values}))

    def __str__(self) -> str:
        named = {name: number_text(source, accessor) for name, source, accessor in self.names}
        return re.sub(r"\bn\d+\b", lambda m: named.get(m.group(), m.group()), self.text)


@dataclasses.dataclass(frozen=True, slots=True)
class Formula:
    """A number as a function of numbers read off sources."""

    function: Callable[..., Any]
    reads: tuple[tuple[Source, Accessor], ...]


FACT_GLOBALS: dict[str, Any] = dict(SYMPY_INTERP)  # what a fact's text may call: math, torch, min, max …


def number_text(source: Source, accessor: Accessor) -> str:
    kind = accessor[0]
    if kind in ("int", "float"):
        return source.text()
    return f"{source.text()}.{kind}({', '.join(map(str, accessor[1:]))})"


@dataclasses.dataclass(frozen=True, eq=False)
class _NumberSource(TorchSource):
    """One number of one source, as torch's guard printer wants it."""

    source: Source
    accessor: Accessor

    @property
    def name(self) -> str:
        return number_text(self.source, self.accessor)

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def __eq__(self, other: object) -> bool:
        return (type(other) is _NumberSource and other.accessor == self.accessor
                and other.source == self.source)

    def __hash__(self) -> int:
        return hash((self.source, self.accessor))


class ShapeHistory:
    """Sizes and ints seen at earlier compiles of one code object; what varied stays dynamic."""

    __slots__ = ("sizes", "numbers", "values", "settled")

    def __init__(self) -> None:
        self.sizes: dict[str, list[int | None]] = {}  # by source text; None where it varied
        self.numbers: dict[str, tuple[int | float, int]] = {}    # the last one, and how often it was another
        self.values: dict[str, tuple[Any, int]] = {}        # of what is no size: the last one, how often it was another
        self.settled: set[str] = set()                      # numbers that a program needed the value of all the same

    def varied_dims(self, text: str, shape: tuple[int, ...]) -> list[int]:
        """Take note of a shape; answers the dims seen to vary so far."""
        known = self.sizes.get(text)
        if known is None or len(known) != len(shape):
            self.sizes[text] = list(shape)  # another rank is another program
            return []
        for dim, size in enumerate(shape):
            if known[dim] != size:
                known[dim] = None
        return [dim for dim, size in enumerate(known) if size is None]

    def varied_number(self, text: str, value: int | float) -> int:
        """Take note of a number; how often has it changed so far?"""
        last, changes = self.numbers.get(text, (value, 0))
        self.numbers[text] = value, changes + (last != value)
        return self.numbers[text][1]

    def is_restless(self, text: str, value: Any) -> bool:
        """Take note of a value; was it another than the time before, FEW times over?"""
        last, changes = self.values.get(text, (value, 0))
        changes += last != value
        self.values[text] = (value, changes)
        return changes >= FEW


FEW = 4


class Shapes:
    """Policy before, facts after; one per compile.

    `dynamic` is the user's flag: True makes every size symbolic, False none that is not
    marked, None lets the history decide.
    """

    def __init__(self, env: FakeEnv, *, dynamic: bool | None = None, history: ShapeHistory | None = None) -> None:
        self.env, self.dynamic = env, dynamic
        if dynamic is None and not config.assume_static_by_default:
            self.dynamic = True
        self.history = history if history is not None else ShapeHistory()
        self._marked: list[tuple[Faked, int]] = []

    # ---- before
    def dynamic_dims(self, tensor: torch.Tensor, source: Source) -> dict[int, DimDynamic]:
        """The dims to make symbolic.  Sizes 0 and 1 are special and stay static."""
        varied = self.history.varied_dims(source.text(), tuple(tensor.shape))
        marked, static = marks(tensor)
        dims: dict[int, DimDynamic] = {}
        for dim, size in enumerate(tensor.shape):
            if size in (0, 1) or dim in static:
                continue
            if dim in marked:
                dims[dim] = DimDynamic.DYNAMIC
            elif isinstance(tensor, torch.nn.Parameter):
                continue  # a parameter's size is the model's
            elif self.dynamic or (self.dynamic is None and dim in varied and config.automatic_dynamic_shapes):
                dims[dim] = DimDynamic.DUCK
        return dims

    def is_dynamic_number(self, value: int | float, source: Source, patience: int = 1) -> bool:
        """Should an input number be symbolic?  0 and 1 are special until something else was seen."""
        varied = self.history.varied_number(source.text(), value) >= patience
        if self.dynamic is None or self.dynamic and patience > 1:
            return varied and config.automatic_dynamic_shapes
        return self.dynamic and (varied or value not in (0, 1))

    def fakify(self, tensor: torch.Tensor, source: Source) -> torch.Tensor:
        """`FakeEnv.fakify` under this policy."""
        known = self.env.record_of(tensor)
        if known is not None:
            return known.fake
        fake = self.env.fakify(tensor, source, self.dynamic_dims(tensor, source))
        record = self.env.record_of(tensor)
        assert record is not None
        self._marked += [(record, dim) for dim in marks(tensor)[0]]
        for dim, limits in getattr(tensor, "_minidynamo_dynamic_range", {}).items():
            for limit, holds in zip(limits, (operator.ge, operator.le)):
                if limit is not None:
                    bool(holds(fake.shape[dim], limit))          # torch notes it as a fact of this trace
        return fake

    # ---- after
    def pattern(self, tensor: torch.Tensor) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        """Sizes and strides a tensor guard must compare; None where `facts` speak."""
        record = self.env.record_of(tensor)
        symbolic = {accessor for accessor, _ in record.numbers} if record is not None else set()
        sizes = tuple(None if ("size", i) in symbolic else n for i, n in enumerate(tensor.shape))
        strides = tuple(None if ("stride", i) in symbolic else n for i, n in enumerate(tensor.stride()))
        return sizes, strides

    def facts(self) -> list[ShapeFact]:
        """All that was assumed about symbols: equalities, ranges, branches taken, constants.

        To be tested in this order: the ranges before the divisions they make safe.
        """
        numbers = [(_NumberSource(f.source, accessor), n) for f in self.env.faked for accessor, n in f.numbers]
        if not numbers:
            return []
        names: dict[str, _NumberSource] = {}
        back: dict[_NumberSource, str] = {}

        def name_of(source: TorchSource) -> str:
            number = _ours(source)
            if number not in back:
                back[number] = f"n{len(back)}"
                names[back[number]] = number
            return back[number]

        self.history.settled.update(source.source.text() for source, n in numbers
                                    if source.accessor[0] in ("int", "float") and is_known(n))
        helpers = self.env.shape_env.produce_guards_verbose(
            [n for _, n in numbers], [s for s, _ in numbers], source_ref=name_of,
            input_contexts=[None] * len(numbers),    # type: ignore[list-item]
            ignore_static=False, langs=("python",))
        facts = []
        for text in sorted(dict.fromkeys(helpers[0].exprs), key=_divides):
            used = [names[n] for n in dict.fromkeys(re.findall(r"\bn\d+\b", text))]
            facts.append(ShapeFact(text, tuple([(back[s], s.source, s.accessor) for s in used])))
        return facts

    def formula(self, expr: sympy.Basic) -> Formula | None:
        """How to compute an expression from the inputs; None when a symbol in it came from data."""
        symbols = sorted(expr.free_symbols, key=str)
        known = self.env.shape_env.var_to_sources
        if not all(known.get(symbol) for symbol in symbols):
            return None
        names = ", ".join(map(str, symbols))
        text = compile(f"lambda {names}: {PythonPrinter().doprint(expr)}", __file__, "eval")   # a file the hook lets pass
        function = eval(text, dict(FACT_GLOBALS))
        reads = [_ours(known[symbol][0]) for symbol in symbols]
        return Formula(function, tuple([(read.source, read.accessor) for read in reads]))

    def specialised_marks(self) -> list[str]:
        """Dims the user marked dynamic that the program fixed, as text for a message."""
        lost = []
        for record, dim in self._marked:
            number = dict(record.numbers).get(("size", dim))
            if number is None or is_known(number):
                lost.append(f"{record.source.text()}.size({dim}) == {record.real.shape[dim]}")
        return lost


def is_known(number: Any) -> bool:
    """Whether the program has fixed a symbolic number."""
    return not number.node.is_symbolic() or bool(number.node.expr.is_number)


def _divides(text: str) -> bool:
    return "/" in text or "%" in text or "**" in text


def _ours(source: Any) -> _NumberSource:
    """Torch wraps our ShapeSource in a property source of its own; read it structurally."""
    if type(source) is _NumberSource:
        return source
    if type(source) is ShapeSource:
        return _NumberSource(source.ours, ("int",))
    name = source.prop.method_name()
    return _NumberSource(_whose(source.base), (name,) if source.idx is None else (name, source.idx))


def _whose(source: Any) -> Source:
    """The tensor that a size is of: an input, or what an input is a view of (torch names it ``x._base``)."""
    return source.ours if type(source) is ShapeSource else Attr(_whose(source.base), source.member)


def marks(tensor: torch.Tensor) -> tuple[set[int], set[int]]:
    """(dynamic, static) dims the user marked, with our functions or torch's."""
    attributes = vars(tensor)
    if not attributes:
        return set(), set()
    return (set(attributes.get("_dynamo_dynamic_indices", ())) | set(attributes.get("_minidynamo_dynamic_dims", ())),
            set(attributes.get("_dynamo_static_indices", ())) | set(attributes.get("_minidynamo_static_dims", ())))
