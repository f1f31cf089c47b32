"""The catalogue: every reason minidynamo can give, one declaration each.

Ids are grouped by hundreds and never reused (``retired.txt`` keeps the dead ones): 00 the user
asked, 01 calls, 02 data-dependent, 03 language, 04 torch, 05 whole frames, 06 nonstrict_trace,
07 writing the new code, 08 limits, 09 bugs and backends.
"""
from __future__ import annotations

from minidynamo.reasons.reason import Reason

# ---- hints that several reasons share
MOVE_OUT = "move it out of the compiled function"
LOG_LATER = "minidynamo.opaque(print, when=\"later\") runs it after the graph"
ALLOW = "if it is a pure function of tensors, minidynamo.allow_in_graph puts it into the graph as one node"
NONSTRICT = "minidynamo.nonstrict_trace lets it be traced by the backend without looking inside"
OPAQUE = "minidynamo.opaque(fn, when=\"now\" or \"later\") says how the call may behave"
REPORT = "please report it, with the message below and a small program"
USE_WHERE = "torch.where or torch.cond expresses both sides inside one graph"
SCALARS = "config.capture_scalar_outputs = True keeps the number symbolic"
SIZES = "config.capture_dynamic_output_shape_ops = True does so for sizes that come from data (nonzero, masks)"
PASS_IN = "pass the value in as an argument"
EAGER_FRAME = "the frame runs as plain Python; functions it calls are still compiled"

# ---- 00: the user asked
GRAPH_BREAK_ASKED = Reason(
    "MD0001", "graph_break() was called",
    "`minidynamo.graph_break({msg!r})` asks for the graph to end here.",
    hints=("remove the call once it has served its purpose",), fields=("msg",), category="user asked")
DISABLED_FUNCTION = Reason(
    "MD0002", "call of a disabled function",
    "`{name}` is marked with a disable (minidynamo's or torch.compiler's), so Python runs it between two graphs.",
    hints=("remove the mark, or move the call to the edge of the compiled function",),
    fields=("name",), category="user asked")
OPAQUE_NOW = Reason(
    "MD0003", "opaque call set to break",
    "`{name}` is declared with minidynamo.opaque(..., when=\"break\").",
    hints=("when=\"later\" runs it after the graph, when=\"now\" while tracing",),
    fields=("name",), category="user asked")
DISABLED_FRAME = Reason(
    "MD0004", "function is disabled",
    "`{name}` is marked with a disable (minidynamo's or torch.compiler's), so its frames run as plain Python.",
    no_hint="this is what the mark asks for", fields=("name",), category="user asked")
FORCED_BREAK = Reason(
    "MD0006", "break asked for by a test",
    "config.force_break_at or config.force_break_every ends the trace after {count} instructions.",
    hints=("leave both at 0",), fields=("count",), category="user asked")

DEFERRED_ARGUMENT = Reason(
    "MD0007", "argument of a deferred call changes",
    "A {kind} was given to a function declared opaque(..., when=\"later\"), and changes here: the call comes first.",
    hints=("give the function a copy",), fields=("kind",), category="user asked")

# ---- 01: calls
PRINT_NOW = Reason(
    "MD0101", "print() must run now",
    "`{call}` writes to the terminal while the graph is still being built.",
    hints=(MOVE_OUT, LOG_LATER), fields=("call",))
UNSUPPORTED_CALL = Reason(
    "MD0102", "call of a function that cannot be traced",
    "`{call}` calls {kind}, whose body is not Python and whose meaning is not declared.",
    hints=(ALLOW, OPAQUE, MOVE_OUT), fields=("call", "kind"))
SKIPPED_FUNCTION = Reason(
    "MD0103", "call of a function that must run as it is",
    "`{name}` belongs to the insides of Python or torch, where tracing would change what it does.",
    hints=(NONSTRICT, MOVE_OUT), fields=("name",))
UNSUPPORTED_ARGUMENTS = Reason(
    "MD0105", "arguments that are not modelled",
    "`{call}` is known, but not with these arguments: {why}",
    hints=("write the call in its plainest form", MOVE_OUT), fields=("call", "why"))
EXEC_EVAL = Reason(
    "MD0106", "{name}() builds code from text",
    "`{name}` runs code that does not exist until it runs.",
    hints=("call it once outside, and use the function it makes",), fields=("name",))
LOCALS_CALL = Reason(
    "MD0107", "{name}() reads the frame's namespace",
    "`{name}()` returns the variables of the running frame, which the compiled frame does not keep.",
    hints=("name the variables you need",), fields=("name",))
ID_OF_VALUE = Reason(
    "MD0109", "id() of a value made here",
    "`{call}` asks for the address of an object that exists only once the graph has run.",
    hints=("compare objects with `is`",), fields=("call",))
HASH_OF_TENSOR = Reason(
    "MD0110", "hash of a {kind}",
    "A {kind} is hashed by its address, and this one exists only once the graph has run.",
    hints=("use an index or a name as the key",), fields=("kind",))
NUMPY_CALL = Reason(
    "MD0111", "numpy function without a counterpart",
    "`{name}` is numpy code that has no equal in torch._numpy.",
    hints=("write it with torch functions", MOVE_OUT), fields=("name",))
RNG_STATE = Reason(
    "MD0112", "random generator state",
    "`{call}` reads or sets the state of a random generator in the middle of a graph.",
    hints=("seed before the compiled function is called",), fields=("call",))
IMPORT_UNKNOWN = Reason(
    "MD0114", "import with effects",
    "`import {name}` would run that module for the first time while tracing.",
    hints=("import it at the top of the file",), fields=("name",))
WARNING_CALL = Reason(
    "MD0116", "a warning must be issued now",
    "`{call}` issues a warning while the graph is still being built.",
    hints=(MOVE_OUT,), fields=("call",))

# ---- 02: data-dependent
DATA_DEPENDENT_BRANCH = Reason(
    "MD0201", "branch on the value of a tensor",
    "`{text}` decides where the program goes on, and its value is known only when the graph runs.",
    hints=(USE_WHERE, "assert and logging conditions can be moved out of the compiled function"),
    fields=("text",), category="data-dependent")
DATA_DEPENDENT_VALUE = Reason(
    "MD0202", "Python number from a tensor",
    "`{op}` makes a Python value from data that is known only when the graph runs.",
    hints=("keep the value as a tensor", SCALARS, SIZES), fields=("op",), category="data-dependent")
DATA_DEPENDENT_SHAPE_TEST = Reason(
    "MD0204", "size from data decides",
    "`{text}` asks about a size or number that came from data: {guard}",
    hints=("torch._check(...) states what is known about it",), fields=("text", "guard"), category="data-dependent")
TENSOR_AS_INDEX = Reason(
    "MD0205", "tensor used as a Python index",
    "`{text}` needs a Python integer, and the tensor's value is known only when the graph runs.",
    hints=("index with torch.index_select or gather", SCALARS), fields=("text",), category="data-dependent")
ITERATE_TENSOR_VALUES = Reason(
    "MD0206", "Python list from a tensor",
    "`{op}` copies data into Python objects, known only when the graph runs.",
    hints=("keep the data as a tensor",), fields=("op",), category="data-dependent")
FORMAT_TENSOR = Reason(
    "MD0207", "text from the value of a tensor",
    "`{text}` turns data into text, known only when the graph runs.",
    hints=(MOVE_OUT,), fields=("text",), category="data-dependent")

RANDOM_NUMBER = Reason(
    "MD0208", "random number that is not known",
    "`{call}` depends on the state of a random generator, which is another one on each call.",
    hints=("seed the generator inside the compiled function", MOVE_OUT), fields=("call",), category="data-dependent")

# ---- 03: language
UNSUPPORTED_OP = Reason(
    "MD0301", "bytecode {opcode} is not handled",
    "The instruction {opcode} has no symbolic meaning here yet.",
    hints=(REPORT, MOVE_OUT), fields=("opcode",))
OPAQUE_VALUE = Reason(
    "MD0302", "operation on a value that is not modelled",
    "`{text}` uses a {kind}, which is carried along but whose behaviour is not known.",
    hints=(MOVE_OUT, ALLOW), fields=("text", "kind"))
LOOP_HEAD = Reason(
    "MD0303", "loop goes on turn by turn",
    "The loop contains a graph break, so its body is compiled by itself and Python runs the loop.",
    hints=("remove the break inside the loop, then the loop is unrolled into one graph",))
GENERATOR_ESCAPES = Reason(
    "MD0304", "generator leaves the compiled function",
    "The running generator `{name}` is needed as a real object: {why}",
    hints=("make a list of it first",), fields=("name", "why"))
UNCAUGHT_EXCEPTION = Reason(
    "MD0305", "the frame raises {type}",
    "Tracing ends in an exception nobody catches here ({type}: {message}), so Python raises it itself.",
    hints=("if it is unexpected, call the function without minidynamo: it raises the same",),
    fields=("type", "message"))
RAISE_EXISTING = Reason(
    "MD0320", "an exception object that exists already is raised",
    "Raising the {type} object again adds to its traceback, which only Python can do.",
    hints=("raise a new exception object",), fields=("type",))
DUNDER_TRACEBACK = Reason(
    "MD0307", "traceback is read",
    "`{text}` reads the traceback of an exception, and inlined frames leave none.",
    hints=(MOVE_OUT,), fields=("text",))
RECURSION_DEPTH = Reason(
    "MD0310", "calls are nested too deeply",
    "{depth} calls are inlined within one another; the next one is left to Python.",
    hints=("config.max_inline_depth sets the limit",), fields=("depth",), category="limit")
TRACE_TOO_LONG = Reason(
    "MD0311", "trace grows too long",
    "More than {count} {what} would be traced into one frame.",
    hints=("compile the body of the loop as a function of its own",
           "config.max_trace_ops and config.max_loop_unroll set the limits"),
    fields=("count", "what"), category="limit")
ASYNC_CODE = Reason(
    "MD0312", "await",
    "`{text}` gives control to an event loop.",
    hints=("compile the synchronous function that does the tensor work",), fields=("text",))
CLASS_BODY = Reason(
    "MD0313", "class statement",
    "Making the class `{name}` runs a metaclass and keeps the real namespace of its body.",
    hints=("define the class at module level",), fields=("name",))
METACLASS_CALL = Reason(
    "MD0314", "class with its own way of making instances",
    "`{name}` makes instances through {why}, which is not modelled.",
    hints=("make the object outside and pass it in",), fields=("name", "why"))
MUTATED_WHILE_ITERATED = Reason(
    "MD0316", "container changed behind its iterator",
    "`{text}` changes a container that an iterator still walks over in a way that is not modelled.",
    hints=("iterate over a copy",), fields=("text",))
EXCEPTION_GROUP = Reason(
    "MD0317", "except*",
    "Splitting an exception group is left to Python.",
    hints=(MOVE_OUT,))
DIES_IN_A_CALL = Reason(
    "MD0323", "call makes an object that runs code when it dies",
    "`{name}` runs code when its last reference goes, a moment that only Python knows; so the call is left to it.",
    hints=("close a generator, or run it to its end", MOVE_OUT), fields=("name",))

# ---- 04: torch
FAKE_UNSUPPORTED = Reason(
    "MD0401", "operator without metadata rule",
    "`{op}` cannot be run on tensors without data: {error}",
    hints=("torch.library.register_fake gives a custom operator its rule",), fields=("op", "error"))
OP_RAISED = Reason(
    "MD0402", "operator refuses its inputs",
    "`{op}` raises on these inputs: {error}",
    hints=("call the function without minidynamo: it should raise the same",), fields=("op", "error"))
TENSOR_SUBCLASS = Reason(
    "MD0403", "tensor subclass",
    "A {type} has its own meaning for operators, which is not modelled.",
    hints=("a subclass with __tensor_flatten__ can be traced by the backend", NONSTRICT), fields=("type",))
TORCH_FUNCTION_MODE = Reason(
    "MD0404", "a torch function mode is active",
    "`{name}` intercepts every torch function, also those in the graph.",
    hints=("leave the mode before calling the compiled function",), fields=("name",))
METADATA_MUTATION = Reason(
    "MD0405", "tensor changes its own metadata",
    "`{op}` changes size, storage or kind of a tensor that exists already.",
    hints=("make a new tensor instead",), fields=("op",))
HOOK_REGISTRATION = Reason(
    "MD0406", "hook on a tensor or module",
    "`{text}` registers a hook that autograd calls outside the graph.",
    hints=("register it outside the compiled function",), fields=("text",))
TORCH_STATE_CHANGE = Reason(
    "MD0408", "global state of torch changes",
    "`{name}` changes a setting of torch that the graph would not notice.",
    hints=("set it before the compiled function is called",), fields=("name",))
AUTOGRAD_CALL = Reason(
    "MD0409", "backward pass inside the function",
    "`{call}` runs the autograd engine, which executes outside the graph.",
    hints=("call backward() outside; gradients flow through the graph",), fields=("call",))
AUTOGRAD_FUNCTION = Reason(
    "MD0410", "autograd.Function that cannot be traced",
    "`{name}` uses {why}, which is not modelled.",
    hints=(NONSTRICT,), fields=("name", "why"))
HIGHER_ORDER_BODY = Reason(
    "MD0411", "body of {op} does more than compute",
    "The function given to `{op}` cannot become a subgraph: {why}",
    hints=("keep mutation and printing out of it",), fields=("op", "why"))
UNSUPPORTED_TENSOR = Reason(
    "MD0412", "tensor of a kind that has no metadata copy",
    "A {kind} tensor cannot be traced.",
    hints=("convert it outside the compiled function",), fields=("kind",))
TENSOR_DATA_ACCESS = Reason(
    "MD0413", "memory of a tensor is reached",
    "`{text}` reaches the memory of a tensor, known only when the graph runs.",
    hints=(MOVE_OUT,), fields=("text",))
FUNCTORCH_ACTIVE = Reason(
    "MD0415", "a functorch transform is active",
    "The frame runs inside {name}, whose wrapped tensors have no metadata copy here.",
    hints=("apply the transform inside the compiled function",), fields=("name",))
DEEPCOPY_TENSOR = Reason(
    "MD0417", "object is copied or pickled",
    "`{call}` walks over an object through its reduce protocol, which is not modelled.",
    hints=("copy it outside", "x.clone() copies a tensor"), fields=("call",))

# ---- 05: whole frames
NO_TENSOR_IN_FRAME = Reason(
    "MD0501", "nothing to compile",
    "`{name}` performs no tensor operation, so its frame is left as it is.",
    hints=("config.rewrite_frames_without_graph = True rewrites it all the same",),
    fields=("name",), category="nothing to do")
GENERATOR_FRAME = Reason(
    "MD0502", "frame of a generator or coroutine",
    "`{name}` is suspended and resumed by Python; such frames are never rewritten.",
    hints=("tensor work in functions it calls is still compiled",), fields=("name",))
SKIP_FILE = Reason(
    "MD0503", "frame of the insides of Python or torch",
    "`{name}` is defined in {module}, which is left as it is.",
    no_hint=EAGER_FRAME, fields=("name", "module"), category="nothing to do")
MODULE_FRAME = Reason(
    "MD0505", "module or class body",
    "`{name}` is the body of a module or class, which runs once.",
    no_hint=EAGER_FRAME, fields=("name",), category="nothing to do")
UNBREAKABLE_FRAME = Reason(
    "MD0507", "frame that cannot be split",
    "Tracing ended early ({title}), and the rest of `{name}` cannot be made a function of its own: {why}.",
    hints=(MOVE_OUT, "remove the break, then the whole function is one graph"), fields=("title", "name", "why"))
TRACE_LEFT = Reason(
    "MD0508", "rest of a frame that grew too long",
    "The trace of `{name}` grew too long without one tensor operation, so Python runs the rest.",
    hints=(EAGER_FRAME,), fields=("name",), category="nothing to do")
RUNS_WHEN_DROPPED = Reason(
    "MD0509", "frame with an object that runs code when it dies",
    "`{name}` runs code when its last reference goes, a moment that only Python knows; so the frame is left to it.",
    hints=("close a generator, or run it to its end", "make the object outside the compiled function"), fields=("name",))
WATCHED_DEATH = Reason(
    "MD0510", "frame with a weak reference to an object of its own",
    "`{name}` refers weakly to an object that the frame makes, and only Python knows when that dies; so the frame is left "
    "to it.",
    hints=("make the object outside the compiled function",), fields=("name",))
TRACE_FUNCTION = Reason(
    "MD0511", "frame that sets a trace function",
    "`{name}()` lets a function see what runs from here on, which is to be the program's own lines: the frame, and what it "
    "calls, are left to Python.",
    hints=("set it outside the compiled function",), fields=("name",))

# ---- 06: nonstrict_trace
NONSTRICT_UNREGISTERED = Reason(
    "MD0601", "argument class is not registered",
    "`{type}` at {path} is an argument of the nonstrict function `{name}`, and pytree does not know it.",
    hints=("torch.utils._pytree.register_pytree_node, register_dataclass or register_constant",),
    fields=("type", "path", "name"))
NONSTRICT_OPAQUE_LEAF = Reason(
    "MD0602", "argument leaf that a graph cannot hold",
    "{path} of the nonstrict function `{name}` is a {type}; leaves are tensors and numbers, strings and None.",
    hints=("register its class as a constant with pytree",), fields=("path", "name", "type"))
NONSTRICT_CONTEXT = Reason(
    "MD0603", "flatten context that a graph cannot hold",
    "Flattening {path} for the nonstrict function `{name}` gives a context with a {type} in it.",
    hints=("the context returned by flatten must be made of constants",), fields=("path", "name", "type"))
NONSTRICT_OUTPUT = Reason(
    "MD0604", "result that a graph cannot return",
    "The nonstrict function `{name}` returned {type}, which pytree cannot flatten to tensors.",
    hints=("return tensors, or a registered container of them",), fields=("name", "type"))
NONSTRICT_NOT_CALLABLE = Reason(
    "MD0605", "nonstrict_trace of something that cannot be called",
    "`{name}` is a {type}, and nonstrict_trace needs a function.",
    hints=("pass the function itself",), fields=("name", "type"))
NONSTRICT_INSIDE = Reason(
    "MD0606", "function marked inside the compiled region",
    "`{name}` is applied to a function that is made while tracing.",
    hints=("mark the function where it is defined, at module level",), fields=("name",))
NONSTRICT_RAISED = Reason(
    "MD0607", "nonstrict function raises",
    "The nonstrict function `{name}` raised {error} on tensors without data.",
    hints=("it must run on fake tensors: no .item(), no branch on data",), fields=("name", "error"))

NONSTRICT_NO_PATH = Reason(
    "MD0608", "tensor inside a nonstrict function has no path",
    "The nonstrict function `{name}` reads a tensor of shape {shape} that cannot be found from its variables.",
    hints=("pass the tensor as an argument",), fields=("name", "shape"))
NONSTRICT_PENDING = Reason(
    "MD0609", "nonstrict function would see an old state",
    "The nonstrict function `{name}` may read {what}, which was changed earlier in the region.",
    hints=("pass the new value as an argument",), fields=("name", "what"))
NONSTRICT_IMPURE = Reason(
    "MD0610", "nonstrict function does more than compute",
    "The nonstrict function `{name}` cannot be put into a graph: {what}.",
    hints=("return what it changes", MOVE_OUT), fields=("name", "what"))

# ---- 07: writing the new code
CANNOT_REBUILD = Reason(
    "MD0701", "value cannot be rebuilt",
    "A {kind} is needed after the graph, and there is no code that makes it again: {why}",
    hints=("make the object outside the compiled function", PASS_IN), fields=("kind", "why"))
SIDE_EFFECT_POLICY = Reason(
    "MD0704", "effect is not allowed",
    "{kind} is visible outside the function, and config.side_effects_policy is \"error\".",
    hints=("return the new value instead",), fields=("kind",), category="user asked")

# ---- 08: limits
RECOMPILE_LIMIT = Reason(
    "MD0801", "compiled too often",
    "`{name}` has {count} compiled versions (config.recompile_limit = {limit}). Last miss: {why}",
    hints=("minidynamo.mark_dynamic or optimize(dynamic=True) for sizes that change",
           "MINIDYNAMO_LOGS=recompiles prints each miss"),
    fields=("name", "count", "limit", "why"), category="limit")
ACCUMULATED_LIMIT = Reason(
    "MD0802", "compiled too often in all",
    "`{name}` was compiled {count} times (config.accumulated_recompile_limit = {limit}). Last miss: {why}",
    hints=("functions made anew on each call share their code; make them once",),
    fields=("name", "count", "limit", "why"), category="limit")

MARK_LOST = Reason(
    "MD0803", "dimension marked dynamic is fixed after all",
    "`{name}` holds only for {dims}, which minidynamo.mark_dynamic asked to keep open.",
    hints=("MINIDYNAMO_LOGS=guards shows what fixes it",), fields=("name", "dims"), category="limit")

# ---- 09: bugs and backends
INTERNAL_ERROR = Reason(
    "MD0901", "minidynamo failed",
    "A bug in minidynamo: {error}. The frame runs as plain Python.",
    hints=(REPORT, "config.error_on_internal = True raises it here"), fields=("error",), category="our bug")
BACKEND_FAILED = Reason(
    "MD0902", "backend failed",
    "The backend {backend} raised {error}.",
    hints=("optimize(backend=\"eager\") tells whether the graph is right",
           "config.suppress_errors = True runs such frames as plain Python"),
    fields=("backend", "error"), category="our bug")
BACKEND_NOT_CALLABLE = Reason(
    "MD0903", "backend returned nothing that can be called",
    "The backend {backend} returned a {type}; it must return a function that runs the graph.",
    hints=("return gm.forward, or a function with the same arguments",), fields=("backend", "type"),
    category="our bug")
