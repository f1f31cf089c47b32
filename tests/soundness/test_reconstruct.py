"""Whatever is built while tracing and leaves, by a break or by return, is rebuilt: type, value, identity graph, mutability.

2,000 examples with MINIDYNAMO_FULL=1.
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.soundness.compare import TooLong, mismatch
from tests.soundness.programs import PRELUDE, START, Program

FULL = bool(os.environ.get("MINIDYNAMO_FULL"))

# Used after the break: what was rebuilt changes, runs on and is shared like what it stands for.
TOUCH = '''
def touch(obj):
    if isinstance(obj, (list, collections.deque)):
        obj.append("touched")
    elif isinstance(obj, dict):
        obj["touched"] = len(obj)
    elif isinstance(obj, set):
        obj.add("touched")
    elif isinstance(obj, torch.Tensor):
        if obj.is_floating_point() and not obj.requires_grad:
            obj.add_(1)
    elif type(obj) in (P, Q, R):
        obj.fresh = [obj]
    elif hasattr(obj, "__next__"):
        return next(obj, "end")
    elif type(obj).__name__ == "function" and obj.__code__.co_argcount == 0:
        return obj()
'''
MORE = ("frozenset([t, {n}])", "frozenset({{({n}, {s})}})", "list[int]", "dict[str, list[int]]", "int | None", "slice({n}, {_})", "range({n}, 9)",
        "(lambda: {@})", "(lambda p={@}: (p, w))", "functools.partial(call, {@})", "[{@}, {@}]", "({@}, {@})", "{{'a': {@}, 'b': {@}}}",
        "P({@}, {@})", "R({n})", "W({n}, [{@}])", "NT({@}, {@})", "L([{@}])", "DD(a={@})", "S({{{n}}})", "collections.deque([{@}], 4)",
        "collections.OrderedDict(a={@})", "collections.defaultdict(list, a={@})", "zip([{@}], {l})", "map(str, [{n}, {n}])", "iter([{@}, {n}])",
        "enumerate([{@}], {n})", "reversed([{@}, 1])", "t[1:]", "t.view(-1)", "t.unsqueeze(0)", "[{@}].append", "{{'a': {@}}}.items()",
        "types_of({@})", "bytearray(b'ab')", "itertools.chain([{@}], {l})", "numbers({n})", "(i for i in [{@}])", "Failed({@}, {n})", "super(Q, q)")
LINKS = ("{@}.append({@})", "l.append({@})", "d['link'] = {@}", "o.y = {@}", "q.x = {@}", "G.append({@})", "D['link'] = {@}", "l[0] = l",
         "o.y = o", "d['self'] = d", "w = next(it)", "it = iter([{@}, {@}]); next(it)", "e.add({n})", "r.y = [r, {@}]", "del d['a']",
         "z = {@}", "v = t[1:]; v.add_(1)", "u['link'] = {@}", "c = {@}")


def graph(choose: Callable[[int], int]) -> str:
    """A program that builds a graph of values, lets it leave, and uses it."""
    program = Program(choose, 0)
    program.line("global G, N, D, T")
    for text in START:
        program.line(text)
    names = ["l", "d", "o", "t", "u", "c"]
    for at in range(2 + choose(6)):
        forms = MORE if choose(3) else LINKS
        form = forms[choose(len(forms))]
        while "{@}" in form:
            form = form.replace("{@}", names[choose(len(names))], 1)
        if forms is MORE:
            names.append(f"v{at}")
            program.line(f"v{at} = {program.fill(form, 1)}")
        else:
            program.line("try:")
            program.line(f"    {program.fill(form, 1)}")
            program.line("except (AttributeError, TypeError, KeyError, IndexError, StopIteration): pass")
    everything = ", ".join(dict.fromkeys((*names, "q", "r", "e", "h", "it", "w", "z")))
    if choose(2):
        program.line("brk()")
        program.line(f"z = [touch(i) for i in ({everything})]")
    program.line(f"return {everything}")
    text = "\n".join(program.lines)
    return f"{PRELUDE}{TOUCH}\ntypes_of = type\n\ndef f(a, b, c, t, u):\n{text}\n"


@settings(max_examples=2000 if FULL else 60, deadline=None, derandomize=not FULL, suppress_health_check=list(HealthCheck),
          phases=(Phase.explicit, Phase.generate, Phase.shrink) if FULL else (Phase.explicit, Phase.generate))
@given(st.data(), st.sampled_from([{}, {}, {"force_break_every": 9}]))
def test_reconstructed(data: st.DataObject, options: dict[str, int]) -> None:
    numbers = st.integers(0, 1 << 16)
    source = graph(lambda n: data.draw(numbers) % n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = mismatch(source, calls=2, **options)
        except (SyntaxError, TooLong):
            return
    assert found is None, f"{found}\n{source[source.index('def f('):]}"
