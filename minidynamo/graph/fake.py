"""Fake values: one FakeTensorMode and ShapeEnv per compile, and ops run under them.

Torch's own fake exceptions are sorted into four of ours, because the tracer answers each in
its own way: a value the op needs (`DataDependent`), an operator fakes cannot run
(`UnsupportedByFake`), a tensor that cannot be faked (`CannotFake`), and everything else
(`OpError`), which is most likely what eager would raise too; the tracer lets eager raise it.
"""
from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import GuardSource, TracingContext
from torch._guards import Source as TorchSource
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedMutationAliasingException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    StatefulSymbolicContext,
    free_unbacked_symbols,
)
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from minidynamo.graph.fast_fake import Inside, hasten, plain_fake, slow_down

if TYPE_CHECKING:
    from minidynamo.sources import Source


class FakeError(Exception):
    """Base of all ways in which an op or tensor has no fake counterpart."""


class CannotFake(FakeError):
    """This tensor has no fake; `reason` is a phrase for the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _OpFailed(FakeError):
    def __init__(self, target: Any, original: BaseException) -> None:
        super().__init__(f"{target_text(target)}: {original}")
        self.target, self.original = target, original

    @property
    def op(self) -> str:
        """The operator torch blames, else the traced function."""
        return str(getattr(self.original, "func", None) or target_text(self.target))


class DataDependent(_OpFailed):
    """The result, or its shape, depends on data (``item``, ``nonzero``, a branch on either)."""


class UnsupportedByFake(_OpFailed):
    """The operator has no fake (meta) implementation."""


class OpError(_OpFailed):
    """The op itself raised.  Type mostly equals eager's, text often differs (see the tests)."""


def target_text(target: Any) -> str:
    """A function's or method's name for messages."""
    if isinstance(target, str):
        return f"Tensor.{target}"
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or str(target)
    module = getattr(target, "__module__", None)
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else str(name)


@dataclasses.dataclass(frozen=True, eq=False)
class ShapeSource(TorchSource):
    """Our Source as torch's shape code wants it: a name, equality and a hash."""

    ours: Source

    @property
    def name(self) -> str:
        return self.ours.text()

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def __eq__(self, other: object) -> bool:
        return type(other) is ShapeSource and other.ours == self.ours

    def __hash__(self) -> int:
        return hash(self.ours)


@dataclasses.dataclass(slots=True)
class Faked:
    """One user value that has a fake: what the shape facts and the backend need to know."""

    real: Any
    source: Source
    fake: Any
    context: StatefulSymbolicContext | None
    state: tuple  # see `tensor_state`
    numbers: tuple[tuple[tuple, Any], ...] = ()  # (accessor, SymInt) on entry, symbolic ones only


def tensor_state(t: torch.Tensor) -> tuple:
    """What an op can change on a fake in place: version, autograd and layout."""
    return (0 if t.is_inference() else t._version, t.requires_grad, t.is_leaf, *layout(t))


def layout(t: torch.Tensor) -> tuple:
    """Shape, strides and offset; compared by expression, so symbolic sizes add no guard."""
    if t.layout is not torch.strided:
        return (t.layout, _plain(t.shape))
    return (t.dtype, _plain(t.shape), _plain(t.stride()), *_plain((t.storage_offset(),)))


def _plain(sizes: Sequence[Any]) -> tuple:
    return tuple([s if type(s) is int else s.node.expr for s in sizes])


class _Quiet(threading.local, logging.Filter):
    """Torch logs every meta function that raises as an error; to us it is an answer."""

    running = False

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.running


@contextlib.contextmanager
def warnings_once() -> Iterator[None]:
    """While a trace runs: what torch's Python warns of on fakes is left for the graph to say.

    Warnings of traced code, and of other threads, are given as ever.  Compiles hold a lock, so contexts nest.
    """
    given = warnings.warn

    def warn(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
        if not _quiet.running:
            given(message, category, stacklevel + 1, *args, **kwargs)

    warnings.warn = warn
    try:
        yield
    finally:
        warnings.warn = given


_quiet = _Quiet()
logging.getLogger("torch._subclasses.fake_tensor").addFilter(_quiet)

# What C++ says of sizes that are symbols where it wants numbers: a limit of fakes, not the program's error.
_SYMBOLIC_ONLY = ("SymIntArrayRef expected to contain only concrete", "with symbolic sizes/strides")
_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
_UNSUPPORTED = (UnsupportedOperatorException, UnsupportedFakeTensorException,
                UnsupportedMutationAliasingException)
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


class FakeEnv:
    """The fake mode and shape environment of one compile."""

    def __init__(self, *, duck_shape: bool | None = None, capture_scalar_outputs: bool = False,
                 capture_dynamic_output_shape_ops: bool = False) -> None:
        # An op may read a scalar for itself (``alpha=tensor``); `run` refuses results that show one.
        self.shape_env = ShapeEnv(allow_scalar_outputs=True, duck_shape=duck_shape,
                                  allow_dynamic_output_shape_ops=capture_dynamic_output_shape_ops)
        self.captures_data = capture_scalar_outputs or capture_dynamic_output_shape_ops
        # A fallback runs the real kernel on made-up data: its effects are real and its shape
        # a guess.  While tracing that is unsound, so an op without a fake breaks instead.
        self.mode = FakeTensorMode(shape_env=self.shape_env, allow_fallback_kernels=False)
        hasten(self.mode)
        self.inside = Inside(self.mode)
        # Otherwise ``data_ptr`` of a fake is 0 and a warning.
        self.mode._allow_unsafe_data_ptr_access = False
        self.faked: list[Faked] = []
        self._by_real: dict[int, Faked] = {}  # by id; Faked.real keeps the id alive

    def fakify(self, tensor: torch.Tensor, source: Source,
               dynamic_dims: Mapping[int, DimDynamic] | None = None) -> FakeTensor:
        """The fake of a user's tensor; the same one every time.  Dims not named are static."""
        known = self._by_real.get(id(tensor))
        if known is not None:
            return known.fake
        reason = _why_not(tensor)
        if reason is not None:
            raise CannotFake(reason)
        context = None
        if dynamic_dims:
            dims = [dynamic_dims.get(i, DimDynamic.STATIC) for i in range(tensor.dim())]
            context = StatefulSymbolicContext(dynamic_sizes=dims, tensor_source=ShapeSource(source))
        try:
            fake = plain_fake(self.mode, tensor) if context is None else None
            with contextlib.nullcontext() if tensor.is_leaf else _no_warnings():
                if fake is None:
                    fake = self.mode.from_tensor(tensor, source=ShapeSource(source), static_shapes=context is None,
                                                 symbolic_context=context, trace=False)
        except (UnsupportedFakeTensorException, NotImplementedError) as e:
            raise CannotFake(str(e)) from e
        record = Faked(tensor, source, fake, context, tensor_state(fake))
        if context is not None:
            record.numbers = _symbolic_numbers(fake)
        self.faked.append(record)
        self._by_real[id(tensor)] = record
        return fake

    def record_of(self, tensor: torch.Tensor) -> Faked | None:
        """What is known of a user's tensor already faked."""
        return self._by_real.get(id(tensor))

    def symint(self, value: int, source: Source) -> torch.SymInt:
        """A symbolic input int; not assumed positive, 0 and 1 not special."""
        ours = ShapeSource(source)
        fake = self.shape_env.create_unspecified_symint_and_symbol(value, ours, DimDynamic.DYNAMIC)
        assert isinstance(fake, torch.SymInt)      # torch answers a plain int for static dims only
        self.faked.append(Faked(value, source, fake, None, (), ((("int",), fake),)))
        return fake

    def symfloat(self, value: float, source: Source) -> tuple[torch.Tensor, FakeTensor, torch.SymFloat]:
        """A symbolic input float (nan and inf must be specialised by the caller).

        Backends take no SymFloat inputs, so the graph gets a float64 scalar tensor and reads it
        with ``item``: answers the example tensor, its fake, and the number that ``item`` gives.
        """
        ours = ShapeSource(source)
        symbol = self.shape_env.create_unspecified_symbol(value, ours, DimDynamic.DYNAMIC)
        number = self.shape_env.create_symfloatnode(symbol, hint=value, source=ours)
        assert isinstance(number, torch.SymFloat)
        tensor = torch.tensor(value, dtype=torch.float64, device="cpu")
        fake = _float_fake(self.mode, tensor, number)
        record = Faked(tensor, source, fake, None, tensor_state(fake), ((("float",), number),))
        self.faked.append(record)
        self._by_real[id(tensor)] = record
        return tensor, fake, number

    def run(self, target: Callable[..., Any] | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call `target` (a method of ``args[0]`` if a string) on fake values."""
        outer, _quiet.running = _quiet.running, True
        try:
            # Some C++ kernels read sizes as ints; torch's Python ones keep them symbolic, at a price.
            with self.inside, enable_python_dispatcher() if self.shape_env.var_to_range else contextlib.nullcontext():
                if type(target) is str:
                    result = getattr(args[0], target)(*args[1:], **kwargs)
                else:
                    result = target(*args, **kwargs)  # type: ignore[operator]
            if self.shape_env.pending_fresh_unbacked_symbols and not self.captures_data:
                self._refuse_unbacked(result)
            return result
        except _DATA_DEPENDENT as e:
            raise DataDependent(target, e) from e
        except _UNSUPPORTED as e:
            raise UnsupportedByFake(target, e) from e
        except Exception as e:
            if any(text in str(e) for text in _SYMBOLIC_ONLY):
                raise UnsupportedByFake(target, e) from e
            raise OpError(target, e) from e
        finally:
            _quiet.running = outer
            self.shape_env.pending_fresh_unbacked_symbols.clear()      # the tape knows which node made them

    def _refuse_unbacked(self, result: Any) -> None:
        """A number read from data may stay inside an op, but not show in what it returns."""
        fresh = set(self.shape_env.pending_fresh_unbacked_symbols)
        if fresh & set(free_unbacked_symbols(_numbers_of(result))):
            raise DataDependentOutputException("a number read from a tensor")  # type: ignore[arg-type]

    def forget_inputs(self) -> None:
        """Nothing more is asked about the users' tensors."""
        self.faked.clear()
        self._by_real.clear()

    def inputs_changed(self) -> bool:
        """Did the trace leave any input fake other than it was made?"""
        return any(f.state and tensor_state(f.fake) != f.state for f in self.faked)

    def tracing_context(self) -> TracingContext:
        """What AOT backends read: a mode whose fakes are as on entry, with the same symbols.

        The trace's own mode serves, through its memo, unless the program changed an input;
        then inputs are faked afresh, by contexts that hand out the symbols of the first time.
        """
        mode = self.mode
        slow_down(mode)
        if self.inputs_changed():
            mode = FakeTensorMode(shape_env=self.shape_env)
        mode.allow_fallback_kernels = True  # backward formulas are the backend's business
        context = TracingContext(mode)
        for record in self.faked:
            if mode is not self.mode and record.numbers and record.numbers[0][0] == ("float",):
                _float_fake(mode, record.real, record.numbers[0][1])
            if record.context is not None:
                context.tensor_to_context[record.real] = record.context
        return context


def _float_fake(mode: FakeTensorMode, tensor: torch.Tensor, number: torch.SymFloat) -> FakeTensor:
    """A fake scalar that remembers what its ``item`` is; torch's memo keeps it by `tensor`."""
    fake = mode.from_tensor(tensor, static_shapes=True, trace=False)
    fake.item_memo = number
    return fake


def _symbolic_numbers(fake: torch.Tensor) -> tuple[tuple[tuple, Any], ...]:
    numbers: list[tuple[tuple, Any]] = [(("size", i), n) for i, n in enumerate(fake.shape)]
    numbers += [(("stride", i), n) for i, n in enumerate(fake.stride())]
    numbers.append((("storage_offset",), fake.storage_offset()))
    return tuple([(accessor, n) for accessor, n in numbers if type(n) is not int])


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """torch reads ``.grad`` of a result while faking it, and warns the user, who may have made warnings errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _numbers_of(tree: Any) -> list[Any]:
    """Every number, and every number in a tensor's layout, that a result shows."""
    if isinstance(tree, torch.Tensor):
        if tree.layout is not torch.strided:
            return list(tree.shape)
        return [*tree.shape, *tree.stride(), tree.storage_offset()]
    if isinstance(tree, (tuple, list)):
        return [n for item in tree for n in _numbers_of(item)]
    return [tree] if isinstance(tree, (torch.SymInt, torch.SymFloat, torch.SymBool)) else []


def _why_not(tensor: torch.Tensor) -> str | None:
    """Why there is no fake of `tensor`, or None."""
    if type(tensor) not in _PLAIN_TYPES:
        if isinstance(tensor, FakeTensor):
            return "it is a fake tensor already"
        kind = "wrapper subclass" if is_traceable_wrapper_subclass(tensor) else "Tensor subclass"
        return f"{type(tensor).__name__} is a {kind}"
    if tensor.layout is not torch.strided:
        return f"its layout is {tensor.layout}"
    if tensor.is_quantized:
        return "it is quantized"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "it is inside a torch.func transform"
    return None
