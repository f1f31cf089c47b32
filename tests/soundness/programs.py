"""A writer of programs: functions over numbers, texts, tensors, containers and objects, with everything Python has.

`write(choose)` asks ``choose(n)`` for numbers below n and nothing else, so hypothesis can shrink what it draws
and a plain random generator can drive a long run.  A program need not make sense: what it raises is compared like
what it returns.  It always ends, because loops count.
"""
from __future__ import annotations

import pathlib
from collections.abc import Callable

PRELUDE = pathlib.Path(__file__).with_name("prelude.py").read_text(encoding="utf-8")

# Names by the kind of value they usually hold; `w` and `z` hold anything.
NAMES = {"n": ("n", "m", "N"), "s": ("x",), "l": ("l", "G", "c"), "d": ("d", "D", "u"), "t": ("t", "v"),
         "o": ("o", "q", "r"), "e": ("e", "h"), "i": ("it", "gen"), "a": ("w", "z")}
KINDS = "nnnslllddtttoooeiaa"
EXCEPTIONS = ("Failed", "TypeError", "Exception", "(KeyError, IndexError)", "ZeroDivisionError", "AttributeError",
              "RuntimeError", "UnboundLocalError", "StopIteration", "(ValueError, NameError)", "LookupError")

# Expressions by the kind they make; {n} {s} … stand for an expression of that kind, {_} for one of any kind.
FORMS: dict[str, tuple[str, ...]] = {
    "n": ("a", "b", "n", "m", "N", "0", "1", "2", "-1", "2.5", "True", "len({l})", "len({d})", "({n} + {n})",
          "({n} * {n})", "({n} - {n})", "({n} // 2)", "({n} % 3)", "({n} < {n})", "abs({n})", "sum({l})", "{o}.x",
          "{o}.p", "len({o})", "{l}[0]", "{l}[-1]", "{d}['a']", "{d}.get('k', {n})", "max({n}, {n})", "int({n})",
          "({n} if {n} else {n})", "({_} is {_})", "({_} == {_})", "isinstance({_}, P)", "bool({_})", "(n := {n})",
          "t.shape[0]", "t.dim()", "float(t.sum())", "int(t[0])", "round({n})", "sum(i for i in {l})",
          "(lambda i: i + m)({n})", "getattr({o}, 'y', 5)", "({n} in {l})", "any({l})", "{o}.k", "({n} or {n})",
          "(0 < {n} <= m != {n})", "({n} / {n})", "({n} ** 2)", "({n} & 3)", "({n} | {n})", "(1 << {n})", "divmod({n}, 2)[1]",
          "(5).bit_length()", "(2.5).is_integer()", "float({n})", "pow(2, {n}, 5)", "min({l}, default=0)", "len({e})",
          "({n} in {e})", "{e}.issubset({e})", "{s}.find('a')", "{s}.count('t')", "len({s})", "{l}.index({n})", "{l}.count({n})",
          "next({i}, {n})", "sum({i}, start=1) if {n} else 0", "R.count", "C.RED.value", "(C(1) is C.RED)", "W({n}).x", "NT(1, {n}).g",
          "call(lambda *s: len(s), *{l})", "all(i for i in {l})", "({o} < {o})", "(m in {o})", "hash({n})", "hash({s})",
          "functools.reduce(lambda i, j: i + j, {l}, 0)", "t.numel()", "t.stride(0)", "t._is_view()",
          "t.is_contiguous()", "(t is v)", "(~{n})", "(-{n})", "(not {_})", "callable({_})", "brk({n})", "call(brk, {n})",
          "ord('a')", "len([*{l}, *{l}])", "(w is z)", "({_} != {_})", "({l} < {l})", "torch.is_grad_enabled()",
          "(yes := {n} > 1)", "boom({n})"),
    "s": ("'text'", "''", "x", "str({_})", 'f"{{{n}}}-{{{_}}}"', "({s} + {s})", "{s}.upper()", "repr({o})",
          "','.join(map(str, {l}))", 'f"{{{n}:>4}}"', "type({_}).__name__", "{s}[1:]", "'%s' % ({_},)", "{s}.replace('t', 'a')",
          "{s}.strip()", "{s}.title()", "'{{}}:{{}}'.format({n}, {_})", 'f"{{{n}!r:>{{m}}}}"', 'f"{{{o}:x}}"', "{s} * 2", "{s}[::-1]",
          "'-'.join({s})", "{s}.center(7, '*')", "{s}.rjust(5)", "repr({l})", "repr({_})", "chr(97)", "format({n}, '05')",
          'f"{{{n}=}}"', "'%d|%5s' % (1, {s})", "str({n}).zfill(3)", "('y' if {n} else {s})", "C.BLUE.name", "repr(W({n}))",
          "{s}.encode().decode()", "min({s}, 'b')", "brk({s})"),
    "l": ("l", "G", "[]", "[{n}]", "[{n}, {n}]", "[{_}, {_}]", "list({l})", "({l} + {l})", "{l}[1:]", "sorted({l}, key=str)",
          "[i for i in {l}]", "[i for i in {l} if i]", "list(range(3))", "list({d})", "list({d}.items())", "[*{l}, {_}]",
          "list(zip({l}, {l}))", "list(map(str, {l}))", "L({l})", "({l} * 2)", "list({o})", "{l}.copy()", "t.tolist()",
          "list(reversed({l}))", "[(i, j) for i in {l} for j in 'ab']", "list({{{n}, {n}}})", "{l}[::-1]", "{l}[:{n}]",
          "[[i, j] for i, j in enumerate({l})]", "[w := i for i in {l}]", "[(lambda: i) for i in {l}][:1]", "{s}.split('e')",
          "list(filter(None, {l}))", "list(itertools.chain({l}, {l}))", "list(itertools.islice({i}, 2))", "list({i})", "[*{i}]",
          "list(through({i}))", "list({d}.values())", "list(dict.fromkeys({l}))", "[{t}, {t}]", "[{l}] * 2", "W(1).y", "r.y",
          "list(itertools.accumulate({l}))", "sorted([3, 1, {n}], reverse=True)", "list(t)", "list(t.unbind())", "list(t.split(2))",
          "list(I(2))", "list(C)", "sorted({e})", "[*range({n})]", "list(enumerate({s}))",
          "[k for k, _ in {d}.items()]", "[j for i in ([1], {l}) for j in i]", "collections.deque({l}, 3)", "brk({l})",
          "list(zip(*{d}.items()))", "(lambda *s, **k: [s, k])(1, *{l}, **{d})", "[i for i in {i} if i != {n}]"),
    "d": ("d", "D", "u", "{{}}", "{{'a': {_}}}", "{{'a': {n}, 'k': {_}}}", "dict(a={_})", "{{**{d}, 'r': {_}}}",
          "{{i: 1 for i in range(2)}}", "dict({d})", "({d} | {d})", "dict(zip('ab', {l}))", "vars(P({n}))", "DD({d})", "DD(a={n})",
          "collections.OrderedDict({d})", "collections.defaultdict(list, {d})", "collections.Counter({l})", "{d}.copy()",
          "{{{n}: {_}, {s}: {_}}}", "{{k: i for i, k in enumerate({s})}}", "dict.fromkeys({l}, {_})", "{{'t': {t}, **{d}}}",
          "call(dict, **{d})", "{{v: k for k, v in {d}.items()}}", "dataclasses.asdict(W({n}))", "NT({n}, 1)._asdict()",
          "brk({d})", "{{{o}: {n}}}"),
    "t": ("t", "T", "v", "(t + {n})", "(t * {n})", "(t - t.mean())", "torch.relu({t})", "t.clone()", "torch.stack([t, t])",
          "t.view(-1)", "torch.zeros_like({t})", "{t}.sum()", "(t > {n})", "torch.rand(2)", "torch.as_tensor({n})",
          "({t} * {t})", "torch.cat([t, t])", "t[1:]", "t.max()", "torch.tensor({l})", "t.detach()", "torch.ones({n})",
          "t.to(torch.float64)", "t.double()", "t.int()", "t.to(v.dtype)", "t.reshape(1, -1)", "t.unsqueeze(0)", "t[None]", "t[t > 1]",
          "t[::2]", "t.expand(2, -1)", "t.T", "torch.where(t > 1, t, v)", "torch.full((2,), {n})", "torch.arange({n})", "t.view_as(v)",
          "(-t)", "(1 / t)", "t.matmul(t)", "(t == {t})", "t.half()", "(t.sum() * {n})", "sum([t, t])", "max(t, t, key=lambda i: 1)",
          "functools.reduce(torch.add, [t, t])", "torch.ones(3, requires_grad=True)", "({t}).requires_grad_()", "t.flip(0)",
          "t.clamp(min={n})", "torch.empty(0)", "torch.nn.functional.relu(t)", "t.new_zeros(2)", "brk({t})", "t.cumsum(0)",
          "t.sort().values", "t.narrow(0, 0, 1)", "torch.cat({l})", "t.bool()", "t.float()", "(t % 2)", "t.fill_({n})", "t[...]",
          "t.mul_(2)", "{{'a': t}}['a']", "(t if {n} else v)"),
    "o": ("o", "q", "r", "P({n})", "P({n}, {_})", "Q({n})", "{o}.m({n})", "({o} + {n})", "({o} + {o})", "{o}.m({n}, 1, key=2)",
          "R({n})", "W({n}, {l})", "NT({n}, {_})", "max({o}, {o})", "dataclasses.replace(W(), x={n})", "brk({o})", "P.m({o}, {n})",
          "type({o})({n})", "functools.partial(P, {n})()", "C.RED", "object.__new__(P)", "{o}.m(*{l})", "(o or q)",
          "NT(*{l})"),
    "e": ("e", "h", "set()", "{{{n}, {n}}}", "set({l})", "frozenset({l})", "({e} | {e})", "({e} & {e})", "({e} - {e})", "({e} ^ {e})",
          "{{i for i in {l}}}", "{d}.keys()", "{d}.items()", "({d}.keys() & {e})", "S({e})", "e.copy()", "frozenset({{{n}, {s}}})",
          "e.union({l})", "set({s})", "frozenset([t])", "frozenset({{o}})", "{{(n, {n})}}", "brk({e})"),
    "i": ("it", "gen", "iter({l})", "zip({l}, {l})", "map(str, {l})", "(i for i in {l})", "enumerate({l}, {n})", "reversed([1, 2, {n}])",
          "iter({d})", "iter(range({n}))", "filter(None, {l})", "numbers({n})", "numbers()", "through(numbers(2))", "I(2)", "I({n})",
          "itertools.chain({l}, {l})", "iter({s})", "iter({d}.items())", "iter({o})",
          "map(lambda i, j: (i, j), {l}, {l})", "itertools.islice({l}, 1, 3)", "(j for i in {l} for j in (i, 1))", "iter(t)",
          "itertools.product({l}, 'ab')", "itertools.zip_longest({l}, 'a')", "iter({l}.pop, {n})", "brk({i})", "itertools.repeat({n}, 2)"),
    "a": ("w", "z", "None", "()", "({_}, {_})", "({_} if {n} else {_})", "({_} or {_})", "{n}", "{s}", "{l}", "{d}", "{t}",
          "{o}", "{l}[{n}]", "(lambda i=1: (i, w))", "{{{n}, {n}}}", "range(3)", "iter({l})", "frozenset({l})",
          "{o}.other", "slice(1, {n})", "(w := {_})", "{e}", "{i}", "{d}.values()", "range({n})", "{o}.m", "{l}.append", "P", "int",
          "list[int]", "dict[str, int]", "functools.partial({o}.m, {n})", "...", "{n} and {_}", "brk({_})", "call(brk, {_})",
          "(*{l}, {_})", "type({_})", "{d}.pop('a', {_})", "lambda: n", "t.dtype", "t.shape", "b'ab'",
          "complex({n}, 1)", "{o}()", "{o}[{n}]", "getattr({o}, 'm')", "vars({o})", "next({i})", "1 + 2j", "w, z",
          "logged(brk)({_})", "contextlib.suppress(Failed)", "Failed({n})", "[i for i in 'ab'] and {_}", "C.BLUE", "W", "NT(1, 2)"),
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
        over = self.pick(("range(3)", "enumerate(G)", "[1, 2]", "list(x)", "zip(G, 'ab')", "D", "sorted(d)", "o", "it", "gen", "e",
                          "iter([3, 4])", "reversed(l)", "t", "map(str, G)", "d.items()", "range(a)", "G", "c", "I(3)", "numbers()",
                          "d.keys()", "(i for i in l)", "itertools.chain(l, G)", "through(it)", "{l}", "{i}"))
        target = self.pick(("@a", "@a", "@n", "@n", "@t", "m, w", "(n, *z)", "l[0]", "o.x", "d['k']", "i1"))
        turn = self.fresh("turn")
        self.line(f"{turn} = 0")
        self.line(self.fill(f"for {target} in {over}:"))
        self.loop_body(turn)
        if self.choose(3) == 0:
            self.line("else:")
            self.block()

    def while_loop(self) -> None:
        turn = self.fresh("turn")
        self.line(f"{turn} = 0")
        self.line(self.pick(("while True:", f"while {self.condition()}:", "while n < 3:", "while l:")))
        self.loop_body(turn)
        if self.choose(4) == 0:
            self.line("else:")
            self.block()

    def loop_body(self, turn: str) -> None:
        """Every loop counts its turns, so every program ends."""
        self.loops += 1
        self.depth += 1
        self.line(f"{turn} += 1")
        self.line(f"if {turn} > {2 + self.choose(3)} or many():")
        self.line("    break")
        self.depth -= 1
        self.block()
        self.depth += 1
        self.jump()
        self.depth -= 1
        self.loops -= 1

    def jump(self) -> None:
        if self.choose(3) == 0:
            self.line(f"if {self.condition()}:")
            self.line("    " + self.pick(("break", "continue", f"return {self.value('_', 1)}")))

    def try_block(self) -> None:
        self.line("try:")
        self.block()
        form = self.choose(6)
        if form != 3:
            for _ in range(1 + (self.choose(3) == 0)):
                self.handler(star=form == 5)
        if form == 1:
            self.line("else:")
            self.block()
        if form in (2, 3, 4):
            self.line("finally:")
            self.block()
            if self.loops and self.choose(6) == 0:
                self.line("    " + self.pick(("break", "continue")))

    def handler(self, star: bool) -> None:
        named = self.choose(2)
        self.line(f"except{'*' if star else ''} {self.pick(EXCEPTIONS)}{' as error' if named else ''}:")
        self.depth += 1
        if named:
            self.line(self.pick(("x = str(error)", "LOG.append(type(error).__name__)", "w = error.args",
                                 "n = error.__context__ is None", "raise Failed('again') from error", "pass", "z = error",
                                 "raise error", "G.append(error)", "w = error.__cause__", "w = repr(error)",
                                 "error.add_note('note')", "raise TypeError from None")))
        elif self.choose(3) == 0:
            self.line("raise")
        self.depth -= 1
        self.block()

    def with_block(self) -> None:
        manager = self.pick(("M(False)", "M(True)", "torch.no_grad()", "M(True) as z, M(False)", "M(False) as w", "managed({n}) as m",
                             "managed(1)", "contextlib.suppress({error})", "torch.enable_grad(), M(False)", "torch.inference_mode()",
                             "contextlib.ExitStack() as w", "contextlib.nullcontext({_}) as z", "torch.set_grad_enabled(bool({n}))",
                             "{o}"))
        manager = self.fill(manager.replace("{error}", self.pick(EXCEPTIONS)))
        self.line(f"with {manager}:")
        self.block()

    def match_block(self) -> None:
        self.line(f"match {self.value('_', 1)}:")
        cases = ("case 1 | 2:", "case [x1, *r1]:", "case {'a': x1}:", "case P(x=x1):", "case str():", "case None:",
                 "case int(x1) if x1 > 1:", "case (x1, y1):", "case C.RED | C.BLUE:", "case W(x1, y1):", "case NT(f=x1):",
                 "case float() | bool():", "case {'a': 1 | 2 as x1, **r1}:", "case [P(), *_] | (_, _, _):", "case torch.Tensor():",
                 "case (1, x1) | [x1, 2]:", "case R(x=1) as x1:", "case 'text' | 'ab':")
        for _ in range(1 + self.choose(3)):
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
        if self.choose(6) == 0:
            self.line(self.pick(("@logged", "@functools.lru_cache", "@(lambda fn: fn)")))
        self.line(f"def {name}({self.pick(('p', 'p: int'))}={self.number()}, *args, key={self.pick(('1', 'w', 'l'))}):")
        self.scope()
        if generator:
            self.line(f"    yield {self.value('_', 1)}")
            self.line("    got = yield p")
            self.line(self.pick((f"    yield (got, {self.value('_', 1)})", f"    w = yield from {self.value('i', 1)}",
                                 "    yield from (got, key)", "    yield got, args")))
        self.line(f"    return {self.pick((self.value('_', 1), 'args', 'p, key'))}")
        if generator:
            use = self.pick((f"w = list({name}())", f"z = next({name}())", f"for m in {name}(2): LOG.append(0)",
                             f"z = {name}()", f"gen = {name}(); w = next(gen), gen.send(4)", f"w = [*through({name}())]",
                             f"gen = {name}(1); next(gen); gen.throw(Failed(2))", f"gen = {name}(); next(gen); gen.close()",
                             f"it = {name}(l); z = next(it)", f"w, *z = {name}()"))
        else:
            use = self.pick((f"w = {name}()", f"z = {name}({self.number()}, 1, key={self.value('_', 0)})",
                             f"z = {name}", f"w = call({name}, {self.value('_', 0)})", f"w = [{name}(i) for i in range(2)]",
                             f"G.append({name}())", f"w = {name}(*{self.value('l', 0)})", f"w = list(map({name}, {self.value('l', 0)}))",
                             f"z = functools.partial({name}, {self.number()})()", f"o.y = {name}; o.y(1)", f"w = logged({name})(1)",
                             f"l.sort(key={name})", f"w = {name}(**{{'p': {self.number()}, 'key': w}})"))
        self.line(use)

    def scope(self) -> None:
        """The body of a function, whose names are its own or those around it."""
        self.depth += 1
        self.inner += 1
        outer, self.loops = self.loops, 0
        self.line("global G, N, D, T")
        if self.choose(4):
            self.line("nonlocal w, z, n, m, x, l, d, v, o, q, r, e, h, it, gen")
        self.depth -= 1
        self.block()
        self.inner -= 1
        self.loops = outer

    def class_block(self) -> None:
        """A class made while the program runs."""
        if self.inner >= 2:
            self.simple()
            return
        name = self.fresh("K")
        self.line(f"class {name}{self.pick(('', '(P)', '(Q)', '(L)', '(R)', '(Failed)', '(DD)'))}:")
        self.line(f"    kind = {self.value('_', 1)}")
        if self.choose(2):
            self.line("    @" + self.pick(("property", "staticmethod", "classmethod", "functools.cached_property")))
            self.line("    def p(self=2):")
        else:
            self.line(f"    def {self.pick(('m', '__call__', '__eq__', '__str__', '__iter__', '__getattr__'))}(self, other=1, *rest):")
        self.depth += 1
        self.scope()
        self.line(f"    return {self.pick(('self', self.value('_', 1)))}")
        self.depth -= 1
        self.line(self.pick((f"o = {name}()", f"w = {name}.kind", f"z = {name}().p", f"q = {name}(1); w = q.m(2)", f"w = {name}(); z = w.kind",
                             f"w = isinstance({name}(), P), {name}.__mro__[1:]", f"z = {name}", f"w = str({name}())")))

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
          "z = dict(w=w, n=n)", "@n = @o.x = {n}", "l = G", "d = D", "c = l", "u = d", "@e = {e}", "@e.add({n})", "e |= {e}",
          "@e.discard({n})", "e -= {e}", "h = frozenset(e)", "@i = {i}", "@i = {i}", "w = next(@i)", "n = next(@i, {n})",
          "w = gen.send({n})", "gen.throw(Failed({n}))", "gen.close()", "w = list(@i)", "z = it; w = next(it, 0)", "gen = numbers({n})",
          "gen = numbers(); next(gen)", "@l[1:] = {l}", "@l[::2] = {l}", "del @l[1:]", "@l.remove({n})", "@l.reverse()", "@l *= 2",
          "@d |= {d}", "del @d['a']", "@d.popitem()", "@d.clear()", "w = @d.items(); @d['fresh'] = {n}", "z = @d.keys(); w = list(z)",
          "d = DD(d); w = d['gone']", "l = L(l); l.append({n})", "l = L(l); l.tag = {_}", "setattr(o, 'y', {_})", "delattr(q, 'x')",
          "o.__dict__['x'] = {_}", "o.__dict__.update(new={n})", "o.__class__ = Q", "P.k = {n}", "R.count += 1", "del G[0]", "N += 1",
          "T = {t}", "G = {l}", "D = {d}", "global_name = globals()['N']", "w = locals()['n']", "r += {n}", "w = {n} + r", "r[{n}] = {_}",
          "w = r({_}, key={_})", "w = {l} + [r]", "x += {s}", "x = {s}", "w = f\"{{{n}}}{{r}}\"", "t = t + v", "t = v = {t}", "v = t.view(-1); v += 1",
          "v = t[1:]; v.mul_(2)", "t[1:] = {n}", "t = t.clone(); t.zero_()", "t.copy_({t})", "T.add_(1)", "t = t.to(torch.float64)",
          "G.append(t)", "w = [t, {_}, t]; w[0] += 1", "D['t'] = t", "o.y = t; t = o.y * 2", "torch.set_grad_enabled(False)",
          "torch.set_grad_enabled(True)", "v = torch.ones(2, requires_grad=True); w = (v * 2).sum(); w.backward(); w = v.grad",
          "v = t.detach(); v.requires_grad_()", "w = t.grad_fn is None", "1 / 0", "{_}[{_}]", "{o}.gone", "int('x')", "next(iter(()))",
          "raise KeyError", "raise {o}", "raise StopIteration({n})", "w = call(lambda: boom({n}))", "w = call(call, brk, {n})",
          "w = [brk(i) for i in {l}]", "w = {{i: brk(i) for i in 'ab'}}", "z = [boom(i) if i else 1 for i in {l}]", "print({_}, end='')",
          "(w := {_})", "print(f\"{{{_}}}\")", "a = b = {n}", "a, *w, b = {n}, *{l}, {n}", "[w, [z, *n]] = {n}, {l}", "for w in {l}: pass",
          "t = t if {n} else v", "w = {t}, {t}", "l[0], l[-1] = l[-1], l[0]", "del x", "del n", "del d", "x: int = {n}", "import math; n = math.floor({n})",
          "w = Failed({_}); z = w.args", "LOG.append(({n}, {s}))", "c.append(c)", "u['u'] = u", "w = [[]] * 2; w[0].append({_})",
          "w = W({n}); w.y.append({_}); z = w", "w = type('K', (P,), {{'k': {n}}})()", "o = R({n})", "q = o", "w = id(o) == id(q)",
          "w = super(Q, q).m({n})", "torch.manual_seed(2)", "w = torch.randn(2) + {n}", "LOG.clear()")

STATEMENTS: tuple[Callable[[Program], None], ...] = (
    *[Program.simple] * 11, Program.branch, Program.branch, Program.for_loop, Program.while_loop, Program.try_block,
    Program.try_block, Program.with_block, Program.match_block, Program.function, Program.function, Program.class_block,
    Program.leave)

START = ("w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o); r = R(2)",
         "e = {1, 2}; h = frozenset({3}); it = iter([5, 6, 7]); gen = numbers()")
END = ("w, z, n, l", "w, v, t", "o, q, u, w", "d, c, z", "e, h, it, gen", "it, w, gen, z", "r, w, z",
       "[w, z, n, m, x, l, d, v, o, q, t, u, c, e, h, it, r]")

def write(choose: Callable[[int], int], size: int = 14) -> str:
    """The source of a module whose ``f(a, b, c, t, u)`` is the program."""
    program = Program(choose, size)
    program.line("global G, N, D, T")
    for text in START:
        program.line(text)
    for _ in range(3 + choose(4)):
        program.statement()
    program.line("return " + program.pick(END))
    text = "\n".join(program.lines)
    return f"{PRELUDE}\ndef f(a, b, c, t, u):\n{text}\n"
