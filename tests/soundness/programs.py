"""A writer of programs: functions over numbers, texts, tensors, containers and objects, with everything Python has.

`write(choose)` asks ``choose(n)`` for numbers below n and nothing else, so hypothesis can shrink what it draws
and a plain random generator can drive a long run.  A program need not make sense: what it raises is compared like
what it returns.  It always ends, because loops count.
"""
from __future__ import annotations

from collections.abc import Callable

PRELUDE = '''
import minidynamo
import torch
LOG = []
G = [1, 2]
N = 3
D = {"a": 1}
T = torch.arange(3.0)

class Failed(ValueError):
    pass

class P:
    k = 2
    def __init__(self, x=0, y=None):
        self.x = x
        self.y = y
    def __repr__(self):
        return f"P({self.x!r})"
    def __eq__(self, other):
        LOG.append("eq")
        return isinstance(other, P) and self.x == other.x
    def __hash__(self):
        return 7
    def __add__(self, other):
        return P(self.x + (other.x if isinstance(other, P) else other))
    def __len__(self):
        return 2
    def __getitem__(self, i):
        if i > 2:
            raise IndexError(i)
        return self.x
    @property
    def p(self):
        return self.x
    @p.setter
    def p(self, v):
        self.x = v
    def m(self, v=1, *rest, **more):
        self.x = v
        return self

class Q(P):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name
    def m(self, v=5, *rest, **more):
        LOG.append(len(rest))
        return super().m(v)

class L(list):
    def append(self, v):
        LOG.append("append")
        super().append(v)

class M:
    def __init__(self, swallow):
        self.swallow = swallow
    def __enter__(self):
        LOG.append("in")
        return self
    def __exit__(self, kind, value, tb):
        LOG.append(kind.__name__ if kind else None)
        return self.swallow

def brk():
    minidynamo.graph_break()

def boom(v):
    LOG.append("boom")
    raise Failed(v)

def call(fn, *args):
    return fn(*args)
'''

# Names by the kind of value they usually hold; `w` and `z` hold anything.
NAMES = {"n": ("n", "m", "N"), "s": ("x",), "l": ("l", "G", "c"), "d": ("d", "D", "u"), "t": ("t", "v"),
         "o": ("o", "q"), "a": ("w", "z")}
KINDS = "nnnslldttooa"
EXCEPTIONS = ("Failed", "TypeError", "Exception", "(KeyError, IndexError)", "ZeroDivisionError", "AttributeError",
              "RuntimeError", "UnboundLocalError")

# Expressions by the kind they make; {n} {s} … stand for an expression of that kind, {_} for one of any kind.
FORMS: dict[str, tuple[str, ...]] = {
    "n": ("a", "b", "n", "m", "N", "0", "1", "2", "-1", "2.5", "True", "len({l})", "len({d})", "({n} + {n})",
          "({n} * {n})", "({n} - {n})", "({n} // 2)", "({n} % 3)", "({n} < {n})", "abs({n})", "sum({l})", "{o}.x",
          "{o}.p", "len({o})", "{l}[0]", "{l}[-1]", "{d}['a']", "{d}.get('k', {n})", "max({n}, {n})", "int({n})",
          "({n} if {n} else {n})", "({_} is {_})", "({_} == {_})", "isinstance({_}, P)", "bool({_})", "(n := {n})",
          "t.shape[0]", "t.dim()", "float(t.sum())", "int(t[0])", "round({n})", "sum(i for i in {l})",
          "(lambda i: i + m)({n})", "getattr({o}, 'y', 5)", "({n} in {l})", "any({l})", "{o}.k", "({n} or {n})"),
    "s": ("'text'", "''", "x", "str({_})", "f'{{{n}}}-{{{_}}}'", "({s} + {s})", "{s}.upper()", "repr({o})",
          "','.join(map(str, {l}))", "f'{{{n}:>4}}'", "type({_}).__name__", "{s}[1:]", "'%s' % ({_},)"),
    "l": ("l", "G", "[]", "[{n}]", "[{n}, {n}]", "[{_}, {_}]", "list({l})", "({l} + {l})", "{l}[1:]", "sorted({l}, key=str)",
          "[i for i in {l}]", "[i for i in {l} if i]", "list(range(3))", "list({d})", "list({d}.items())", "[*{l}, {_}]",
          "list(zip({l}, {l}))", "list(map(str, {l}))", "L({l})", "({l} * 2)", "list({o})", "{l}.copy()", "t.tolist()",
          "list(reversed({l}))", "[(i, j) for i in {l} for j in 'ab']", "list({{{n}, {n}}})"),
    "d": ("d", "D", "u", "{{}}", "{{'a': {_}}}", "{{'a': {n}, 'k': {_}}}", "dict(a={_})", "{{**{d}, 'r': {_}}}",
          "{{i: 1 for i in range(2)}}", "dict({d})", "({d} | {d})", "dict(zip('ab', {l}))", "vars(P({n}))"),
    "t": ("t", "T", "v", "(t + {n})", "(t * {n})", "(t - t.mean())", "torch.relu({t})", "t.clone()", "torch.stack([t, t])",
          "t.view(-1)", "torch.zeros_like({t})", "{t}.sum()", "(t > {n})", "torch.rand(2)", "torch.as_tensor({n})",
          "({t} * {t})", "torch.cat([t, t])", "t[1:]", "t.max()", "torch.tensor({l})", "t.detach()", "torch.ones({n})"),
    "o": ("o", "q", "P({n})", "P({n}, {_})", "Q({n})", "{o}.m({n})", "({o} + {n})", "({o} + {o})", "{o}.m({n}, 1, key=2)"),
    "a": ("w", "z", "None", "()", "({_}, {_})", "({_} if {n} else {_})", "({_} or {_})", "{n}", "{s}", "{l}", "{d}", "{t}",
          "{o}", "{l}[{n}]", "(lambda i=1: (i, w))", "{{{n}, {n}}}", "range(3)", "iter({l})", "frozenset({l})",
          "{o}.other", "slice(1, {n})", "(w := {_})"),
}


class Program:
    """One program being written."""

    def __init__(self, choose: Callable[[int], int], size: int) -> None:
        self.choose = choose
        self.left = size                    # statements that may still be written
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0
        self.inner = 0                      # functions around this point
        self.counter = 0

    # ---- help
    def pick(self, options: tuple[str, ...] | list[str]) -> str:
        return options[self.choose(len(options))]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, kind: str = "") -> str:
        return self.pick(NAMES[kind or self.kind()])

    def kind(self) -> str:
        return self.pick(KINDS)

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    # ---- expressions
    def value(self, kind: str, deep: int = 2) -> str:
        """An expression that usually makes a value of this kind; now and then it is one of any."""
        if kind == "_" or self.choose(25) == 0:
            kind = self.kind()
        forms = FORMS[kind]
        if deep <= 0:
            forms = tuple(form for form in forms if "{" not in form)
        return self.fill(self.pick(forms), deep - 1)

    def fill(self, form: str, deep: int = 1) -> str:
        """`form` with each {kind} replaced; ``@kind`` stands for a name."""
        found = ""
        at = 0
        while at < len(form):
            if form[at] == "@":
                found += self.name(form[at + 1])
                at += 2
            elif form.startswith(("{{", "}}"), at):
                found += form[at]
                at += 2
            elif form[at] == "{":
                found += self.value(form[at + 1], deep)
                at += 3
            else:
                found += form[at]
                at += 1
        return found

    def number(self) -> str:
        return self.value("n", 1)

    def condition(self) -> str:
        return self.pick((self.number(), self.value("_", 1), f"not {self.number()}", f"{self.number()} > {self.number()}",
                          f"isinstance({self.value('_', 0)}, {self.pick(('int', 'P', 'list', 'torch.Tensor', '(str, dict)'))})",
                          f"{self.value('a', 0)} is None", "t.sum() > 1", f"hasattr({self.value('o', 0)}, 'y')"))

    # ---- statements
    def block(self, least: int = 1) -> None:
        self.depth += 1
        for _ in range(least + self.choose(3)):
            self.statement()
        self.depth -= 1

    def statement(self) -> None:
        self.left -= 1
        if self.left < 0 or self.depth > 5:
            self.simple()
            return
        kind = self.choose(len(STATEMENTS))
        STATEMENTS[kind](self)

    def simple(self) -> None:
        if self.choose(3) == 0:
            kind = self.kind()
            self.line(f"{self.name(kind)} = {self.value(kind)}")
        else:
            self.line(self.fill(self.pick(SIMPLE)))

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.block()
        if self.choose(2):
            self.line("else:")
            self.block()

    def for_loop(self) -> None:
        over = self.pick(("range(3)", "enumerate(G)", "[1, 2]", "list(x)", "zip(G, 'ab')", "D", "sorted(d)", "o",
                          "iter([3, 4])", "reversed(l)", "t", "map(str, G)", "d.items()", "range(a)", "G", "c"))
        self.line(f"for {self.name()} in {over}:")
        self.loops += 1
        self.depth += 1
        turn = self.fresh("turn")
        self.line(f"{turn} = LOG.append(1)" if self.choose(2) else f"{turn} = 0")
        self.line("if len(LOG) > 60:")
        self.line("    break")
        self.depth -= 1
        self.block()
        self.depth += 1
        self.jump()
        self.depth -= 1
        self.loops -= 1
        if self.choose(3) == 0:
            self.line("else:")
            self.block()

    def while_loop(self) -> None:
        count = self.fresh("n")
        self.line(f"{count} = 0")
        self.line(f"while {count} < {2 + self.choose(3)} and len(LOG) < 60:")
        self.loops += 1
        self.depth += 1
        self.line(f"{count} += 1")
        self.depth -= 1
        self.block()
        self.depth += 1
        self.jump()
        self.depth -= 1
        self.loops -= 1

    def jump(self) -> None:
        if self.choose(3) == 0:
            self.line(f"if {self.condition()}:")
            self.line("    " + self.pick(("break", "continue")))

    def try_block(self) -> None:
        self.line("try:")
        self.block()
        form = self.choose(4)
        if form != 3:
            named = self.choose(2)
            self.line(f"except {self.pick(EXCEPTIONS)}{' as error' if named else ''}:")
            self.depth += 1
            if named:
                self.line(self.pick(("x = str(error)", "LOG.append(type(error).__name__)", "w = error.args",
                                     "n = error.__context__ is None", "raise Failed('again') from error", "pass",
                                     "z = error")))
            elif self.choose(3) == 0:
                self.line("raise")
            self.depth -= 1
            self.block()
        if form == 1:
            self.line("else:")
            self.block()
        if form >= 2:
            self.line("finally:")
            self.block()

    def with_block(self) -> None:
        manager = self.pick(("M(False)", "M(True)", "torch.no_grad()", "M(True) as z, M(False)", "M(False) as w"))
        self.line(f"with {manager}:")
        self.block()

    def match_block(self) -> None:
        self.line(f"match {self.value('_', 1)}:")
        cases = ("case 1 | 2:", "case [x1, *r1]:", "case {'a': x1}:", "case P(x=x1):", "case str():", "case None:",
                 "case int(x1) if x1 > 1:", "case (x1, y1):")
        for _ in range(1 + self.choose(2)):
            self.depth += 1
            self.line(self.pick(cases))
            self.block()
            self.depth -= 1
        self.depth += 1
        self.line("case _:")
        self.block()
        self.depth -= 1

    def function(self) -> None:
        if self.inner >= 2:
            self.simple()
            return
        name = self.fresh("fn")
        generator = self.choose(3) == 0
        self.line(f"def {name}(p={self.number()}, *args, key=1):")
        self.depth += 1
        self.inner += 1
        outer, self.loops = self.loops, 0
        self.line("global G, N, D, T")
        if self.choose(4):
            self.line("nonlocal w, z, n, m, x, l, d, v, o, q")
        self.depth -= 1
        self.block()
        self.depth += 1
        if generator:
            self.line(f"yield {self.value('_', 1)}")
            self.line("got = yield p")
            self.line(f"yield (got, {self.value('_', 1)})")
        self.line(f"return {self.value('_', 1)}")
        self.inner -= 1
        self.loops = outer
        self.depth -= 1
        if generator:
            use = self.pick((f"w = list({name}())", f"z = next({name}())", f"for m in {name}(2): LOG.append(0)",
                             f"z = {name}()", f"g1 = {name}(); w = next(g1), g1.send(4)"))
        else:
            use = self.pick((f"w = {name}()", f"z = {name}({self.number()}, 1, key={self.value('_', 0)})",
                             f"z = {name}", f"w = call({name}, {self.value('_', 0)})", f"w = [{name}(i) for i in range(2)]",
                             f"G.append({name}())"))
        self.line(use)

    def leave(self) -> None:
        if self.choose(4) == 0:
            self.line(f"if {self.condition()}:")
            self.line(f"    return {self.value('_')}")
        else:
            self.simple()


SIMPLE = ("@a = {_}", "@l, @l = @l, @l", "@n, @n = {n}, {n}", "@n += {n}", "@n -= {n}", "@n *= 2", "@l.append({_})",
          "@l += {l}", "G.append({_})", "D['k'] = {_}", "@d[{s}] = {_}", "@l[0] = {_}", "w = {l}; z = w", "@l.extend({l})",
          "u['n'] = {_}", "@o.x = {n}", "@o.y = {_}", "@o.p = {n}", "o = q; o.x = {n}", "del w", "del @l[0]", "@n = {n}",
          "@d.pop('a', {_})", "@d.update({d})", "t += {n}", "t.add_(1)", "t[0] = {n}", "v = {t}", "print({_})",
          "print('here', t)", "brk()", "brk()", "LOG.append({n})", "boom({n})", "raise Failed({_})", "assert {_}, 'no'",
          "q.m({n}, 1, 2)", "w, *z = {l}", "(n, w), z = {l}, {n}", "torch.manual_seed(1); v = torch.rand(2)",
          "v = torch.rand(2)", "@l.clear()", "LOG.append(t.requires_grad)", "z = torch.is_grad_enabled()", "w = ({_},)",
          "@l.sort(key=str)", "w = lambda: {_}", "z = w()", "G.append(G)", "D['self'] = D", "w = (G, G, {_})",
          "@l.insert(0, {_})", "n = @l.pop()", "@d.setdefault('a', []).append({_})", "call(@l.append, {n})", "w = {o}; w.y = w",
          "del @o.y", "z = [i for i in {l} if i is not w]", "t = {t}", "n, m = m, n", "pass", "w = sorted({l}, key=lambda i: str(i))",
          "z = dict(w=w, n=n)", "@n = @o.x = {n}", "l = G", "d = D", "c = l", "u = d")

STATEMENTS: tuple[Callable[[Program], None], ...] = (
    *[Program.simple] * 10, Program.branch, Program.branch, Program.for_loop, Program.while_loop, Program.try_block,
    Program.try_block, Program.with_block, Program.match_block, Program.function, Program.function, Program.leave)


def write(choose: Callable[[int], int], size: int = 14) -> str:
    """The source of a module whose ``f(a, b, c, t, u)`` is the program."""
    program = Program(choose, size)
    program.line("global G, N, D, T")
    program.line("w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)")
    for _ in range(3 + choose(4)):
        program.statement()
    program.line("return " + program.pick(("w, z, n, l", "w, v, t", "o, q, u, w", "d, c, z", "[w, z, n, m, x, l, d, v, o, q, t, u, c]")))
    text = "\n".join(program.lines)
    return f"{PRELUDE}\ndef f(a, b, c, t, u):\n{text}\n"
