"""Functions run before and after a round trip, with equal results."""
from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minidynamo.code import assemble, decode


def again(code: types.CodeType) -> types.CodeType:
    """Decoded and assembled, nested code too."""
    made = assemble(decode(code))
    return made.replace(co_consts=tuple(
        again(const) if isinstance(const, types.CodeType) else const for const in made.co_consts))


def plain(code: types.CodeType) -> types.CodeType:
    return code


def outcome(call: Callable[[], object]) -> tuple:
    """Result or exception, with the lines of its traceback."""
    try:
        return "returned", repr(call())
    except Exception as error:
        lines, tb = [], error.__traceback__
        while tb is not None:
            positions = list(tb.tb_frame.f_code.co_positions())[tb.tb_lasti // 2]
            lines.append((tb.tb_lineno, positions))
            tb = tb.tb_next
        return "raised", type(error).__name__, str(error), lines[1:]


# Each snippet sets ``out``; it stands for its syntax form, with the paths through it.
SNIPPETS = {
    "arithmetic": "def f(a, b): return a+b, a-b, a*b, a/b, a//b, a%b, a**b, a<<b, a>>b, a&b, a|b, a^b, -a, +a, ~a, not a\nout = f(7, 2)",
    "in place": "def f(a, b):\n a+=b; a-=1; a*=b; a//=2; a%=50; a**=2; a<<=1; a>>=1; a&=255; a|=1; a^=3; a/=2\n return a\nout = f(7, 3)",
    "matmul": "class M:\n def __matmul__(s, o): return 'm', o\n def __imatmul__(s, o): return 'i', o\ndef f(m):\n x = m @ 1\n m @= 2\n return x, m\nout = f(M())",
    "compare": "def f(a, b): return a<b, a<=b, a==b, a!=b, a>b, a>=b, a is b, a is not b, a in [b], a not in [b], 1<a<b<9, 3>a>b\nout = [f(a, b) for a in (1, 2.5) for b in (2, 2.5)]",
    "boolean": "def f(a, b, c): return a and b or c, (a or b) and c, not (a and b), a if b else c\nout = [f(a, b, c) for a in (0, 1, []) for b in ('', 'x') for c in (None, 5)]",
    "if chain": "def f(x):\n if x is None: return 'n'\n elif x is not None and x > 3: return 'big'\n elif not x: return 'zero'\n else: return 's'\nout = list(map(f, (None, 5, 0, 2)))",
    "while else": "def f(n):\n out = []\n while n:\n  n -= 1\n  if n == 7: continue\n  if n == 3: break\n  out.append(n)\n else:\n  out.append('else')\n return out\nout = f(10), f(3), f(0)",
    "for else": "def f(xs):\n for x in xs:\n  for y in range(x):\n   if y == 3: break\n  else: continue\n  break\n else: return 'all'\n return x, y\nout = f([1, 2]), f([1, 5, 2]), f([])",
    "while true first": "def f():\n while True:\n  try:\n   return next(it)\n  except ValueError: pass\nit = iter([1])\nout = f()",
    "unpack": "def f(x):\n a, (b, *c), d = x\n *e, g = c\n [h, i] = a, d\n return a, b, c, d, e, g, h, i\nout = f((1, (2, 3, 4), 5))",
    "unpack error": "def f(x):\n a, b = x\n return a\ndef out(): return f([1, 2, 3])",
    "swap": "def f(a, b, c, d):\n a, b = b, a\n a, b, c = c, a, b\n a, b, c, d = d, c, b, a\n return a, b, c, d\nout = f(1, 2, 3, 4)",
    "displays": "def f(a, b): return [a, *b, a], (a, *b), {a, *b}, {'k': a, **{'z': b}, 'k': 2}, [1, 2, 3, 4], {1, 2, 3}, {'a': 1, 'b': 2, 'c': a}\nout = f(1, (2, 3))",
    "slices": "def f(x):\n y = list(x)\n y[1:3] = 'ab'\n del y[0]\n y[::2] = [0] * len(y[::2])\n z = y[:2], y[1:], y[:], y[-1], y[1:4:2]\n del y[1:2]\n y[0] += 5\n return y, z\nout = f(range(8))",
    "attributes": "class A: pass\ndef f(a):\n a.x = 1\n a.x += 2\n a.y = a.x\n del a.x\n return hasattr(a, 'x'), a.y\nout = f(A())",
    "formats": "def f(a, b): return f'{a}{b!r:>8}{a!s}{b!a:^{a}}{a:05d}{a=}', '%s-%r' % (a, b), f'{b:{\"<\"}6}|'\nout = f(7, 'é')",
    "calls": "def g(*a, **k): return a, sorted(k.items())\ndef f(x): return g(), g(1), g(1, x), g(1, k=x), g(*x), g(1, *x, 2, *x), g(**{'a': 1}), g(1, *x, k=2, **{'z': 3}), g(k=1, j=2)\nout = f((8, 9))",
    "double keyword": "def g(**k): return k\ndef f(x): return g(a=1, **x)\ndef out(): return f({'a': 2})",
    "signatures": "def f(a, /, b=2, *c, d, e=5, **g): return a, b, c, d, e, g\nout = f(1, d=4), f(1, 3, 9, 8, d=0, z=1, e=6)",
    "defaults": "def f(x):\n def g(a, b=x, *, c=x + 1) -> int: return a, b, c\n return g(1), g.__defaults__, g.__kwdefaults__, g.__annotations__, g.__doc__\nout = f(3)",
    "lambdas": "def f(x): return (lambda: x)(), (lambda y, z=x: y + z + x)(1), sorted([3, 1, 2], key=lambda v: -v)\nout = f(4)",
    "closures": "def f():\n n = 0\n def up():\n  nonlocal n\n  n += 1\n  return n\n def clear():\n  nonlocal n\n  del n\n up(); r = up(), n\n clear()\n try: n\n except NameError as e: return r, str(e)\nout = f()",
    "argument cells": "def f(a, *b, c=1, **d):\n def g(): return a, b, c, d\n a += 1\n c = b\n return g()\nout = f(1, 2, c=3, z=4)",
    "globals": "G = 1\ndef f():\n global G, H\n G += 1\n H = G\n del H\n return G, 'H' in globals()\nout = f()",
    "unbound": "def f(x):\n if x: y = 1\n return y\nout = f(1)\ndef late(): return f(0)\ndef out2(): return late()",
    "unbound raises": "def f(x):\n if x: y = 1\n return y\ndef out(): return f(0)",
    "del": "def f(x):\n y = x\n del y\n try: y\n except UnboundLocalError as e: return str(e)\nout = f(1)",
    "del twice": "def f(x):\n del x\n del x\ndef out(): return f(1)",
    "comprehensions": "def f(n):\n x = 'kept'\n r = [x for x in range(n)], {x: y for x in range(n) for y in range(x) if y % 2}, {x % 2 for x in range(n)}, list(x + 1 for x in range(n) if x), [[y for y in range(x)] for x in range(n)]\n return x, r\nout = f(4)",
    "comprehension unbound": "def f():\n [x for x in 'ab']\n return x\nx = 'global'\ndef g():\n r = [x for x in 'ab']\n if not r: x = 1\n return x\ntry: out = f(), g()\nexcept NameError as e: out = type(e)",
    "comprehension closure": "def f(n):\n fs = [lambda: (x, n) for x in range(n)]\n y = [(lambda: i)() for i in range(n)]\n return [g() for g in fs], y\nout = f(3)",
    "comprehension raises": "def f(n):\n x = 5\n try: return [1 // x for x in (1, 0)]\n except ZeroDivisionError: return x\nout = f(3)",
    "walrus": "def f(xs): return [y for x in xs if (y := x * 2) > 2], y, (z := 5), z\nout = f([1, 2, 3])",
    "try": "def f(x):\n log = []\n try:\n  log.append(1 // x)\n except ZeroDivisionError as e:\n  log.append(str(e))\n except (TypeError, ValueError): log.append('t')\n else: log.append('else')\n finally: log.append('fin')\n return log\nout = f(1), f(0), f('a')",
    "finally paths": "def f(how):\n for i in range(3):\n  try:\n   if how == 'break': break\n   if how == 'continue': continue\n   if how == 'return': return i\n   if how == 'raise': raise KeyError(i)\n  finally: log.append((how, i))\n return 'end'\nlog = []\ndef g(h):\n try: return f(h)\n except KeyError as e: return repr(e)\nout = [g(h) for h in ('break', 'continue', 'return', 'raise', '')], log",
    "finally overrides": "def f():\n try: raise ValueError\n finally: return 1\nout = f()",
    "nested try": "def f(x):\n try:\n  try: raise x\n  except KeyError: raise ValueError('inner')\n  finally: log.append(1)\n except ValueError as e: return str(e), type(e.__context__).__name__\nlog = []\nout = f(KeyError('k')), f(ValueError('v')), log",
    "raise from": "def f(x):\n try: raise ValueError(1) from x\n except ValueError as e: return repr(e.__cause__), e.__suppress_context__\nout = f(None), f(KeyError('c'))",
    "reraise": "def f():\n try:\n  1 / 0\n except ZeroDivisionError:\n  raise\ndef out(): return f()",
    "raise in handler": "def f(x):\n try:\n  x.a.b\n except AttributeError as e:\n  e = x[\n   0]\ndef out(): return f({})",
    "groups": "def f(*es):\n log = []\n try:\n  raise ExceptionGroup('g', es)\n except* ValueError as g: log.append(repr(g))\n except* KeyError: log.append('key')\n return log\nout = f(ValueError(1)), f(ValueError(1), KeyError(2))\ntry: f(TypeError(), ValueError())\nexcept ExceptionGroup as e: out += (repr(e),)",
    "assert": "def f(x):\n assert x, f'no {x}'\n assert x\n return x\nout = f(1)\ntry: f(0)\nexcept AssertionError as e: out = out, str(e)",
    "with": "class C:\n def __init__(s, n, eat=False): s.n, s.eat = n, eat\n def __enter__(s): log.append(('in', s.n)); return s.n\n def __exit__(s, *a): log.append(('out', s.n, a[0])); return s.eat\nlog = []\ndef f(how):\n for i in range(2):\n  with C(1, how == 'eat') as a, C(2):\n   if how == 'return': return a\n   if how == 'break': break\n   if how == 'continue': continue\n   if how == 'eat': raise ValueError\n   a += 1\n return 'end'\nout = [f(h) for h in ('', 'return', 'break', 'continue', 'eat')], log",
    "with raises": "class C:\n def __enter__(s): pass\n def __exit__(s, *a): pass\ndef f(x):\n with C():\n  return x.y\ndef out(): return f(1)",
    "generator": "def g(n):\n try:\n  for i in range(n):\n   got = yield i\n   if got: yield ('got', got)\n finally: log.append('closed')\n return 'ret'\nlog = []\ndef f():\n it = g(5)\n r = [next(it), it.send('x'), next(it)]\n it.close()\n def y(): r.append((yield from g(2)))\n r += list(y())\n return r\nout = f(), log",
    "generator throw": "def g():\n while True:\n  try: x = yield 1\n  except ValueError as e: yield str(e)\ndef d(): yield from g()\ndef f():\n it = d(); r = [next(it), it.throw(ValueError('in')), next(it)]\n try: it.throw(KeyError('out'))\n except KeyError as e: r.append(repr(e))\n return r\nout = f()",
    "generator close": "def g():\n try: yield 1\n except GeneratorExit: log.append('exit'); raise\ndef d():\n try: yield from g()\n finally: log.append('outer')\nlog = []\nfor mk in (g, d):\n it = mk(); next(it); it.close()\nit = d(); next(it); w = it.gi_yieldfrom is not None\nit.close()\nout = log, w",
    "generator stop": "def g():\n yield 1\n raise StopIteration('inner')\ndef f():\n try: list(g())\n except RuntimeError as e: return str(e), repr(e.__cause__)\nout = f()",
    "generator expression": "def f(xs): return sum(x * y for x in xs for y in xs if x != y), list(zip((x for x in xs), (y for y in xs)))\nout = f([1, 2, 3])",
    "async": "import asyncio\nclass C:\n async def __aenter__(s): log.append('in'); return 5\n async def __aexit__(s, *a): log.append(a[0]); return True\nasync def agen(n):\n for i in range(n):\n  await asyncio.sleep(0)\n  yield i\nlog = []\nasync def main():\n r = [x async for x in agen(3)]\n async for x in agen(4):\n  if x == 1: continue\n  if x == 3: break\n  r.append(x)\n else: r.append('no')\n async with C() as c: raise ValueError\n async with C() as c: r.append(c)\n r.append(await asyncio.gather(one(1), one(2)))\n r += [await one(i) for i in range(2)]\n try: await bad()\n except KeyError as e: r.append(repr(e))\n return r\nasync def one(x):\n await asyncio.sleep(0)\n return x\nasync def bad(): raise KeyError('bad')\nout = asyncio.run(main()), log",
    "async close": "import asyncio\nasync def agen():\n try:\n  yield 1\n  yield 2\n finally: log.append('closed')\nlog = []\nasync def main():\n a = agen()\n r = [await a.__anext__()]\n await a.aclose()\n b = agen(); await b.asend(None)\n try: await b.athrow(ValueError)\n except ValueError: r.append('v')\n t = asyncio.ensure_future(asyncio.sleep(9)); await asyncio.sleep(0); t.cancel()\n try: await t\n except asyncio.CancelledError: r.append('c')\n return r\nout = asyncio.run(main()), log",
    "match": "class P:\n __match_args__ = ('x', 'y')\n def __init__(s, x, y): s.x, s.y = x, y\ndef f(v):\n match v:\n  case 0 | 1: return 'small'\n  case int(n) if n > 9: return 'big', n\n  case None | True: return 'single'\n  case 'a' | b'b': return 'text'\n  case []: return 'empty'\n  case [x]: return 'one', x\n  case [x, *rest, 5]: return 'star', x, rest\n  case (x, y): return 'two', x, y\n  case {'k': k, 'j': {'i': i}, **rest}: return 'map', k, i, rest\n  case {'k': k}: return 'k', k\n  case P(1, y=y): return 'P1', y\n  case P(x, [y]) as p: return 'P', x, y, p.x\n  case str() | float(): return 'type'\n  case _: return 'other'\nout = [f(v) for v in (0, 1, 10, 5, None, True, 'a', b'b', [], [4], [1, 2, 5], (1, 2), [1, 2, 3], {'k': 1}, {'k': 1, 'j': {'i': 2}, 'z': 3}, {}, P(1, 2), P(2, [3]), P(2, 3), 'q', 1.5)]",
    "class": "class M(type):\n def __new__(m, n, b, d, **k): return super().__new__(m, n, b, {**d, 'k': k})\ndef deco(t): return lambda c: setattr(c, 'tag', t) or c\n@deco('t')\nclass A(metaclass=M, opt=3):\n 'doc'\n x: int = 1\n y: 'str'\n for i in range(3): x += i\n def m(self): return __class__.__name__, self.x\n @property\n def p(self): return self.m()\n @classmethod\n def c(cls): return cls.__name__\nclass B(A):\n def m(self): return 'B', super().m(), super(B, self).m(), super().x\nout = A.k, A.tag, A.__doc__, A.__annotations__, A.x, A().p, B().p, B.c()",
    "class in function": "def f(v):\n class A:\n  w = v\n  u = 2\n  l = [v for _ in range(2)]\n  def g(self): return v, self.w\n return A.w, A.u, A.l, A().g()\nout = f(7)",
    "class __class__ twice": "class A:\n def f(self):\n  class B:\n   x = __class__\n   def g(self): return __class__.__name__\n  return B.x.__name__, B().g()\nout = A().f()",
    "imports": "def f():\n import os.path as p, sys\n from collections import OrderedDict as O, deque\n import xml.dom\n return p.__name__, sys.__name__, O.__name__, deque.__name__, xml.dom.__name__\nout = f()",
    "star import": "exec('from math import *\\nout = floor(2.5)')",
    "import missing": "def f():\n from math import nothing\ndef out(): return f()",
    "annotations": "def f(a: int, *b: str, c: 'x' = 1) -> list:\n v: int = a\n return v\nout = f(1), f.__annotations__",
    "decorators": "def d(n):\n def w(f): return lambda *a: (n, f(*a))\n return w\n@d(1)\n@d(2)\ndef f(x): return x\nout = f(3)",
    "recursion": "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nout = f(12)",
    "constants": "def f(): return 0.0, -0.0, 1, True, 1.0, 1j, -0j, (1, (2.0, True)), 'a', b'a', None, ..., 10**30\nout = f()",
    "long lines": "def f(x):\n return (x +\n   x.imag +\n   1 /\n   0)\ndef out(): return f(1)",
    "ternary store": "def f(a):\n b = 1 if a else None\n c = a or b\n return b, c, b is None, c is not None\nout = f(0), f(3)",
    "locals": "def f(a):\n b = 2\n def g(): return b\n return sorted(locals())\nout = f(1)",
    "star subscripts": "class S:\n def __getitem__(s, k): return k\ndef f(x): return S()[1, *x, 2], S()[1:2, ::3]\nout = f((7, 8))",
    "del items": "def f():\n d = {1: 2, 3: 4}; l = [1, 2, 3]\n del d[1], l[0], l[:1]\n return d, l\nout = f()",
    "print": "import io, contextlib\ndef f():\n s = io.StringIO()\n with contextlib.redirect_stdout(s): print('a', 1, sep='-')\n return s.getvalue()\nout = f()",
    "deep stack": "def f(a): return [a, [a, [a, [a, (a, {a: [a, a, (a, a, [a, f'{a}{a}'])]})]]]]\nout = f(1)",
    "many arguments": "def g(*a, **k): return len(a), len(k)\nexec('def f(): return g(' + ','.join(map(str, range(300))) + ',' + ','.join(f'k{i}={i}' for i in range(300)) + ')')\nout = f()",
}
NEW_SNIPPETS = {
    "type parameters": "def f[T: int, *Ts, **P](x: T) -> T: return x\nclass A[T: (int, str)]:\n def m[U](self, x: U) -> T: return x\ntype L[T] = list[T]\nout = f(1), A().m(2), L.__name__, L.__type_params__, str(L[int]), f.__type_params__, A.__type_params__[0].__constraints__",
    "comprehension over a type parameter": "type A[T: [lambda: T for T in (T, [1])[1]]] = [lambda: T for T in T.__name__]\nout = A.__value__[0](), A.__type_params__[0].__bound__[0]()",
    "nested f-strings": "def f(x): return f'{f'{x!r:{'>'}8}'}{'a' 'b'}'\nout = f('q')",
}
DEFAULT_SNIPPETS = {
    "type parameter defaults": "def f[T = int](x: T) -> T: return x\nout = f(1), f.__type_params__[0].__default__",
}
if sys.version_info >= (3, 12):
    SNIPPETS.update(NEW_SNIPPETS)
if sys.version_info >= (3, 13):
    SNIPPETS.update(DEFAULT_SNIPPETS)


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    found = []
    for change in (plain, again):
        scope: dict = {"__name__": "snippet"}
        exec(change(compile(SNIPPETS[name], "<snippet>", "exec", dont_inherit=True)), scope)
        out = scope["out"]
        found.append(outcome(out) if isinstance(out, types.FunctionType) else repr(out))
    assert found[0] == found[1]


# ---- pure functions of the standard library: module, expressions
TEXT = "The quick brown fox jumps over the lazy dog, again and again, until it is quite tired."
STDLIB: dict[str, list[str]] = {
    "textwrap": [f"fill({TEXT!r}, 20)", f"shorten({TEXT!r}, 30)", "dedent('  a\\n   b\\n  c')",
                 "indent('a\\nb', '> ')", f"wrap({TEXT!r}, 11, initial_indent='* ')"],
    "statistics": ["mean([1, 2.5, 4])", "median([3, 1, 2, 9])", "stdev([1, 2, 4, 8])", "mode('aab')",
                   "quantiles(range(20), n=4)", "harmonic_mean([2, 3])", "multimode('aabb')",
                   "correlation([1, 2, 3], [1, 5, 6])", "linear_regression([1, 2, 3], [2, 4, 7])",
                   "NormalDist(1, 2).cdf(2)", "fmean([1, 2], [3, 4])", "geometric_mean([1, 9])"],
    "difflib": ["list(unified_diff('abcd', 'acde', lineterm=''))", "get_close_matches('appel', ['ape', 'apple', 'peach'])",
                "SequenceMatcher(None, 'private', 'privet').ratio()", "list(ndiff(['one\\n', 'two\\n'], ['ore\\n', 'tree\\n']))",
                "HtmlDiff().make_table(['a', 'b'], ['a', 'c'])", "list(context_diff('abc', 'abd'))"],
    "json.encoder": ["JSONEncoder(indent=2, sort_keys=True).encode({'b': [1, 2.5, None, True], 'a': {'é': 'x\\n'}})",
                     "list(JSONEncoder().iterencode([{}, [], '', 1e300]))", "py_encode_basestring_ascii('é\\u20ac😀')"],
    "json.decoder": ["JSONDecoder().decode('{\"a\": [1, 2.5e3, null, true, \"\\\\u00e9\"]}')", "JSONDecoder().decode('[1,')",
                     "py_scanstring('a\\\\n\\\\ud83d\\\\ude00\"', 0)"],
    "calendar": ["TextCalendar().formatmonth(2024, 2)", "monthrange(2023, 2)", "HTMLCalendar().formatmonth(2024, 5)",
                 "list(Calendar(6).itermonthdays2(2024, 1))", "leapdays(1900, 2024)", "TextCalendar().formatyear(2024)"],
    "fractions": ["Fraction('3/4') + Fraction(1, 3)", "Fraction(0.125)", "Fraction('1e-3').limit_denominator(10)",
                  "Fraction(7, 3) // Fraction(1, 2), Fraction(7, 3) % 1, divmod(Fraction(9, 2), 2)",
                  "round(Fraction(7, 3), 2), hash(Fraction(1, 3)), float(Fraction(1, 3)), Fraction(1, 2) ** 3",
                  "Fraction(1, 2) < 1.5, Fraction(3, 2) == 1.5, Fraction(1, 0)"],
    "_pydecimal": ["Decimal('1.10') + Decimal('2.2')", "Decimal(2).sqrt()", "Decimal('1e5').normalize()",
                   "Decimal('123.456').quantize(Decimal('.01'))", "Decimal(1) / Decimal(7)", "Decimal(2).exp()",
                   "Decimal(10).ln()", "format(Decimal('1234567.891'), ',.2f')", "Decimal('x')"],
    "bisect": ["bisect([1, 3, 5], 3), bisect_left([1, 3, 5], 3)"],
    "heapq": ["list(merge([1, 4], [2, 3]))", "nlargest(2, [3, 1, 4, 1, 5]), nsmallest(2, 'hello')"],
    "colorsys": ["rgb_to_hsv(.2, .4, .6), hsv_to_rgb(.6, .7, .8), rgb_to_hls(.1, .2, .3), hls_to_rgb(.1, .5, .9), rgb_to_yiq(1, .5, 0)"],
    "string": ["Template('$a ${b} $$').substitute(a=1, b=2)", "Formatter().format('{0:>5}{x!r}{y[0]}', 1, x='q', y=[2])", "capwords('a bc d')"],
    "shlex": ["split('a \"b c\" d\\\\ e')", "quote('it is')", "join(['a', 'b c'])", "split('\"open')"],
    "fnmatch": ["fnmatch('a.py', '*.p[xy]'), translate('a?[!b]*')", "filter(['a.c', 'b.h'], '*.c')"],
    "pprint": ["pformat({'a': list(range(30)), 'b': {'c': 'x' * 90}}, width=40)", "pformat({1, 2}, depth=1)"],
    "reprlib": ["repr(list(range(100))), repr('x' * 100), repr({i: i for i in range(9)})"],
    "graphlib": ["list(TopologicalSorter({1: [2, 3], 2: [3]}).static_order())", "TopologicalSorter({1: [2], 2: [1]}).prepare()"],
    "html.parser": ["(lambda p: (p.feed('<a x=1>t</a><!-- c --><br/>'), p.rawdata))(HTMLParser())"],
    "urllib.parse": ["urlparse('http://u@h:8/p;q?a=1#f')", "urljoin('http://a/b/c', '../d')", "parse_qs('a=1&b=2&a=3')",
                     "urlencode({'a': 'x y', 'b': [1, 2]}, doseq=True)", "quote('é /'), unquote('%C3%A9')"],
    "ipaddress": ["list(ip_network('10.0.0.0/30').hosts())", "ip_address('::1').exploded", "ip_network('10.0.0.1/8')",
                  "list(summarize_address_range(ip_address('1.0.0.0'), ip_address('1.0.0.9')))"],
    "base64": ["b85encode(b'hello'), b32encode(b'hi'), a85encode(b'hello', foldspaces=True)", "b64decode(b'aGk=')"],
    "quopri": ["encodestring(b'a=\\xe9'), decodestring(b'a=3D')"],
    "copy": ["deepcopy([1, {'a': (2, [3])}]), copy({1: 2})"],
    "random": ["(lambda r: (r.sample(range(50), 5), r.gauss(0, 1), r.choices('abc', k=4), r.betavariate(1, 2), r.shuffle([1, 2])))(Random(3))"],
    "argparse": ["(lambda p: (p.add_argument('--x', type=int, default=3), p.add_argument('y', nargs='*'), p.parse_args(['--x', '5', 'a', 'b']), p.format_usage()))(ArgumentParser(prog='p'))"],
    "configparser": ["(lambda c: (c.read_string('[a]\\nx = 1\\ny = %(x)s2\\n'), c['a']['y'], c.getint('a', 'x')))(ConfigParser())"],
    "csv": ["Sniffer().sniff('a;b\\nc;d\\n').delimiter", "Sniffer().has_header('n,v\\na,1\\nb,2\\n')"],
    "ast": ["unparse(parse('def f(a, *b, c=1):\\n return [x for x in b if x] or {**c}'))", "dump(parse('x = 1'))", "literal_eval('[1, (2,)]')"],
    "tokenize": ["[t.string for t in generate_tokens(iter(['x = (1 +\\n', ' 2)\\n']).__next__)]"],
    "functools": ["reduce(lambda a, b: a + b, [1, 2, 3])", "cmp_to_key(lambda a, b: b - a)(1) < cmp_to_key(lambda a, b: b - a)(2)",
                  "(lambda f: (f(1), f(1), f.cache_info()))(lru_cache(2)(lambda x: x))",
                  "(lambda d: d(1))(singledispatch(lambda x: type(x)))"],
    "collections": ["Counter('abca').most_common(1), ChainMap({1: 2}, {3: 4})[3]", "namedtuple('P', 'x y')(1, y=2)",
                    "UserList([1, 2]) + [3], UserDict(a=1), UserString('a') * 2"],
    "datetime" if sys.version_info < (3, 12) else "_pydatetime": [
        "date(2024, 2, 29) + timedelta(days=366)", "datetime(2020, 1, 2, 3).isoformat()", "timedelta(hours=25, microseconds=3)"],
    "dataclasses": ["(lambda C: (C(1), C(1) == C(1), replace(C(1), x=2), asdict(C(3))))(make_dataclass('C', [('x', int), ('y', list, field(default_factory=list))]))"],
    "contextlib": ["(lambda c: c.__enter__())(contextmanager(lambda: iter([7]))())", "(lambda s: (s.callback(len, 'a'), s.close()))(ExitStack())"],
    "types": ["SimpleNamespace(a=1), new_class('N', (), {}).__name__"],
    "keyword": ["iskeyword('for')"],
    "numbers": ["Integral.__abstractmethods__ >= Real.__abstractmethods__"],
    "email.utils": ["parseaddr('A B <a@b.c>'), formataddr(('é', 'a@b.c')), parsedate('Mon, 01 Jan 2024 10:00:00 +0000')"],
    "mimetypes": ["guess_type('a.tar.gz')"],
    "zipapp": [], "plistlib": ["dumps({'a': [1, 2.5, b'x', True]})", "loads(dumps({'k': 'v'}, fmt=FMT_BINARY))"],
    "posixpath": ["normpath('/a/../b//c/.'), relpath('/a/b', '/a/c'), commonpath(['/a/b', '/a/c']), splitext('a.b.c')"],
    "gettext": ["c2py('n%10==1 && n%100!=11 ? 0 : 1')(21)"],
    "locale": ["normalize('en_us.utf8'), format_string('%d', 1234)"],
    "re._parser": ["parse('(a|b)*?[^c-f]{2,3}(?P<n>x)(?=y)').dump.__name__, parse('(')"],
}


def load(name: str, change: Callable) -> types.ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    path = importlib.import_module(name).__file__       # frozen modules have one too
    assert path is not None
    module = types.ModuleType(name)
    module.__file__, module.__package__ = path, spec.parent
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(change(code), module.__dict__)
    return module


def run_all(name: str, change: Callable, ran: set[str]) -> Iterator[Any]:
    module = load(name, change)
    assert module.__file__ is not None

    def note(frame: types.FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename == module.__file__:
            ran.add(f"{name}.{frame.f_code.co_qualname}:{frame.f_code.co_firstlineno}")
    for text in STDLIB[name]:
        call = compile(text, "<call>", "eval")
        old = sys.getprofile()
        sys.setprofile(note)
        try:
            yield text, outcome(lambda: eval(call, module.__dict__))    # noqa: B023
        finally:
            sys.setprofile(old)


def without_addresses(item: Any) -> Any:
    return re.sub(r"0x[0-9a-f]+", "0x", repr(item))


def test_stdlib_functions() -> None:
    ran: dict[Callable, set[str]] = {plain: set(), again: set()}
    for name in STDLIB:
        pairs = [list(run_all(name, change, ran[change])) for change in (plain, again)]
        for one, other in zip(*pairs):
            assert without_addresses(one) == without_addresses(other), name
    assert ran[plain] == ran[again]
    assert len(ran[again]) > 500
