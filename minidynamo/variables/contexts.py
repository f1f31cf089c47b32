"""Torch state rules: what reads it, what the graph may switch, and what must break.

Python's own context managers (``no_grad``, ``autocast`` …) are inlined; they come down to the few C
functions declared here.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.utils import _device

from minidynamo import reasons
from minidynamo.graph import ambient
from minidynamo.guards.kinds import Predicate
from minidynamo.model.tables import torch_rule
from minidynamo.model.variable import NotConstant
from minidynamo.sources import DictRoot
from minidynamo.variables.constants import ConstantVariable


# ---------------------------------------------------------------- switches the graph carries
def switch(tx: Any, setter: Any, args: list[Any]) -> ConstantVariable:
    """A switch is a node of the graph where it changes anything; the tape makes it for real."""
    try:
        values = tuple([a.as_constant() for a in args])
    except NotConstant:
        tx.stop(reasons.TORCH_STATE_CHANGE, name=setter.__name__)
    row = ambient.AMBIENT[setter]
    if len(values) - 1 != len(row.heads[0]) or values[:-1] not in row.heads:
        tx.stop(reasons.TORCH_STATE_CHANGE, name=setter.__name__)
    if ambient.current(setter, values) != values:
        tx.emit_node(setter, values, {})
    return ConstantVariable(None)


def declare_switch(setter: Any) -> None:
    torch_rule(setter)(lambda tx, *args: switch(tx, setter, list(args)))


for setter_ in ambient.AMBIENT:
    declare_switch(setter_)


def nest(tx: Any, steps: int) -> None:
    """Autocast regions are counted for real; the exit makes up the difference."""
    ambient.nesting_by(steps)
    tx.journal.did(ambient.nesting_by, -steps)
    tx.journal.set(tx, "nesting", tx.nesting + steps)


@torch_rule(torch.autocast_increment_nesting)
def increment_nesting(tx):
    nest(tx, 1)
    return ConstantVariable(peek_nesting())


@torch_rule(torch.autocast_decrement_nesting)
def decrement_nesting(tx):
    nest(tx, -1)
    return ConstantVariable(peek_nesting())


def peek_nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


@torch_rule(torch.clear_autocast_cache)
def clear_autocast_cache(tx):
    tx.emit_node(torch.clear_autocast_cache, (), {})
    return ConstantVariable(None)


# ---------------------------------------------------------------- what is read: guarded by GlobalState and its like
READS = (
    torch.is_grad_enabled, torch.get_default_dtype, torch.is_autocast_enabled, torch.get_autocast_dtype,
    torch.is_autocast_cache_enabled, torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype,
    torch.get_autocast_gpu_dtype, torch.is_inference_mode_enabled, torch.are_deterministic_algorithms_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled, torch._C._get_deterministic_algorithms,
    torch._C._get_deterministic_algorithms_warn_only, torch.get_num_threads, torch.get_default_device,
    torch.get_deterministic_debug_mode)
# Facts of the process or of the build.
FIXED = (
    torch._C._get_privateuse1_backend_name, torch._C._is_autocast_available, torch.amp.is_autocast_available,
    torch.cuda.is_available, torch.backends.mps.is_available, torch.backends.mkldnn.is_available,
    torch.backends.mkl.is_available, torch.backends.openmp.is_available, torch.backends.cudnn.is_available,
    torch.backends.cuda.is_built, torch.distributed.is_available, torch._C._get_cpu_capability)


def declare_read(fn: Any) -> None:
    def read(tx: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return tx.fold(fn, list(args), kwargs)
        except NotConstant:
            tx.stop(reasons.UNSUPPORTED_ARGUMENTS, call=f"{fn.__name__}()", why="an argument is not a literal")
    torch_rule(fn)(read)


for fn_ in (*READS, *FIXED):
    declare_read(fn_)


# ---------------------------------------------------------------- what must run in Python
STATE_SETTERS = (
    torch.set_default_dtype, torch.set_default_tensor_type, torch.set_default_device, torch.set_num_threads,
    torch.set_num_interop_threads, torch.set_float32_matmul_precision, torch.set_flush_denormal,
    torch.set_warn_always, torch.set_printoptions, torch.use_deterministic_algorithms,
    torch.set_deterministic_debug_mode, torch.set_anomaly_enabled, torch._C._set_deterministic_algorithms,
    torch.set_autocast_cpu_enabled, torch.set_autocast_cpu_dtype, torch.set_autocast_gpu_dtype,
    torch._C._set_multithreading_enabled, torch._C._set_default_dtype, torch._C._set_warnAlways,
    torch._C._set_float32_matmul_precision, torch._C._set_deterministic_fill_uninitialized_memory)
RNG_FUNCTIONS = (
    torch.random.manual_seed, torch.random.seed, torch.random.initial_seed, torch.random.get_rng_state,
    torch.random.set_rng_state, torch.cuda.manual_seed, torch.cuda.manual_seed_all, torch.cuda.get_rng_state,
    torch.cuda.set_rng_state, torch.cuda.seed, torch.cuda.seed_all, torch.cuda.initial_seed)


def declare_stop(fn: Any, reason: Any, field: str) -> None:
    name = f"{fn.__module__}.{fn.__name__}" if fn.__module__ else fn.__name__

    def stop(tx: Any, *args: Any, **kwargs: Any) -> Any:
        tx.stop(reason, **{field: name})
    torch_rule(fn)(stop)


for fn_ in STATE_SETTERS:
    declare_stop(fn_, reasons.TORCH_STATE_CHANGE, "name")
for fn_ in RNG_FUNCTIONS:
    declare_stop(fn_, reasons.RNG_STATE, "call")
for fn_ in (torch.autograd.backward, torch.autograd.grad):
    declare_stop(fn_, reasons.AUTOGRAD_CALL, "call")


# ---------------------------------------------------------------- modes that see every torch function
def foreign_mode() -> str | None:
    """The name of an active mode that runs user code for each torch call, fakes included."""
    for at in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(at)
        if type(mode) is not _device.DeviceContext:
            return type(mode).__name__
    if torch._C._len_torch_dispatch_stack():
        return type(torch._C._get_dispatch_stack_at(0)).__name__
    for key in (torch._C._TorchDispatchModeKey.FAKE, torch._C._TorchDispatchModeKey.PROXY,
                torch._C._TorchDispatchModeKey.FUNCTIONAL):
        mode = torch._C._get_dispatch_mode(key)
        if mode is not None:
            return type(mode).__name__
    return "torch.jit.trace" if torch._C._get_tracing_state() is not None else None


def why_not_here() -> tuple[Any, dict[str, str]] | None:
    """A reason, with its fields, why no frame can be traced in this thread now."""
    mode = foreign_mode()
    if mode is not None:
        return reasons.TORCH_FUNCTION_MODE, {"name": mode}
    interpreter = torch._C._functorch.peek_interpreter_stack()
    if interpreter is not None:
        return reasons.FUNCTORCH_ACTIVE, {"name": interpreter.key().name.lower()}
    return None


# ---------------------------------------------------------------- the profiler
def _not_profiling(_: Any) -> bool:
    return not torch.autograd._profiler_enabled()


AUTOGRAD = DictRoot(vars(torch.autograd), "torch.autograd")


def without_profiler(tx: Any) -> None:
    """Marking a region means nothing while no profiler runs; that is guarded."""
    if torch.autograd._profiler_enabled():
        tx.stop(reasons.SKIPPED_FUNCTION, name="torch.profiler.record_function")
    tx.guard(Predicate(AUTOGRAD, _not_profiling, "no profiler is running"))


@torch_rule(torch.autograd.profiler.record_function.__init__)
def record_function_init(tx, self, name, args=None):
    if self.obj is not None:
        return None
    without_profiler(tx)
    none = ConstantVariable(None)
    # What ``__exit__`` reads: nothing is running, so a real ``__exit__`` after a break does nothing.
    for field, value in (("name", name), ("args", args or none), ("run_callbacks_on_exit", ConstantVariable(False)),
                         ("record", none), ("_cupti_monitor_external_id", none)):
        self.instance_set(tx, field, value)
    return none


@torch_rule(torch.autograd.profiler.record_function.__enter__)
def record_function_enter(tx, self):
    return self if self.obj is None else None


@torch_rule(torch.autograd.profiler.record_function.__exit__)
def record_function_exit(tx, self, kind, value, traceback):
    """Also after a break, when the object is real: it then has nothing to end."""
    if all(self.tp_getattro(tx, field).identity() in (None, False)
           for field in ("run_callbacks_on_exit", "_cupti_monitor_external_id")):
        return ConstantVariable(None)
    return None
