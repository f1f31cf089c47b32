"""``%`` and ``str.format`` over tracked values (Objects/unicodeobject.c, Objects/stringlib/unicode_format.h)."""
from __future__ import annotations

import re
from _string import formatter_field_name_split, formatter_parser
from typing import Any

from minidynamo import reasons
from minidynamo.base.text import tp_name
from minidynamo.model.services import service
from minidynamo.model.variable import VariableTracker, real
from minidynamo.protocol import numbers, text
from minidynamo.variables.constants import ConstantVariable
from minidynamo.variables.sequences import TupleVariable, inner

DIRECTIVE = re.compile(r"%(?:\((?P<key>(?:[^()]|\([^()]*\))*)\))?(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?"
                       r"(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)", re.DOTALL)


def plain_text(tx: Any, value: VariableTracker) -> str:
    return inner(value).as_constant()


# ---------------------------------------------------------------- %
@service
def percent(tx: Any, text: ConstantVariable, values: VariableTracker) -> VariableTracker:
    """PyUnicode_Format with values that are not all literals: each directive is shown by its own conversion."""
    if text.py_type() is not str:
        tx.stop(reasons.UNSUPPORTED_CALL, call="%", kind="these values")
    pattern = text.value
    part = inner(values)
    is_tuple = isinstance(part, TupleVariable)
    given = list(part.items) if is_tuple else [values]
    cls = values.py_type()
    mapping = values if hasattr(cls, "__getitem__") and not is_tuple and not issubclass(cls, str) else None
    out: list[VariableTracker] = []
    at = used = 0
    while at < len(pattern):
        start = pattern.find("%", at)
        if start < 0:
            out.append(ConstantVariable(pattern[at:]))
            break
        out.append(ConstantVariable(pattern[at:start]))
        found = DIRECTIVE.match(pattern, start)
        if found is None:
            tx.raise_(ValueError, "incomplete format" if pattern.count("(", start) == pattern.count(")", start)
                      else "incomplete format key")
        at = found.end()
        if found["kind"] == "%":
            out.append(ConstantVariable("%"))
            continue
        parts: dict[str, Any] = {}
        source: Any = None
        if found["key"] is not None:
            if mapping is None:
                tx.raise_(TypeError, "format requires a mapping")
            source = [mapping.mp_subscript(tx, ConstantVariable(found["key"]))]
        for name in ("width", "precision"):
            parts[name] = found[name]
            if found[name] == "*":
                number, used = take(tx, given, used)
                if not issubclass(number.py_type(), int):
                    tx.raise_(TypeError, "* wants int")
                parts[name] = str(plain_text(tx, number))
        if source is None:
            value, used = take(tx, given, used)
        else:
            value = source[0]
            used = len(given)
        out.append(one(tx, found, parts, value, start))
    if used < len(given) and mapping is None:
        tx.raise_(TypeError, "not all arguments converted during string formatting")
    return tx.join_text(out)


def take(tx: Any, given: list[VariableTracker], used: int) -> tuple[VariableTracker, int]:
    if used >= len(given):
        tx.raise_(TypeError, "not enough arguments for format string")
    return real(tx, given[used]), used + 1


def one(tx: Any, found: re.Match, parts: dict[str, Any], value: VariableTracker, start: int) -> VariableTracker:
    """unicode_format_arg: one directive."""
    kind = found["kind"]
    precision = "" if parts["precision"] is None else f".{parts['precision']}"
    directive = f"%{found['flags']}{parts['width'] or ''}{precision}"
    if kind in "sra":
        shown = text.convert(tx, value, kind)
        return inner(shown) if directive == "%" else ConstantVariable((directive + "s") % plain_text(tx, shown))
    if kind in "diuoxXeEfFgG":
        number = number_for(tx, kind, value)
    elif kind == "c":
        number = inner(value).as_constant() if issubclass(value.py_type(), (int, str)) else numbers.index(tx, value)
    else:
        at = found.end() - 1
        tx.raise_(ValueError, f"unsupported format character '{kind if 31 < ord(kind) < 127 else '?'}' "
                              f"(0x{ord(kind):x}) at index {at}")
    try:
        return ConstantVariable((directive + kind) % number)
    except Exception as error:
        tx.raise_real(error)


def number_for(tx: Any, kind: str, value: VariableTracker) -> Any:
    """mainformatlong and formatfloat: the number behind a value that is not one itself."""
    part = inner(value)
    if isinstance(part, ConstantVariable) and type(part.value) in (int, float, bool):
        return part.value
    if kind in "eEfFgG":
        return numbers.unary(tx, "float", value).as_constant()
    symbol, wanted = ("index", "an integer") if kind in "oxX" else ("int", "a real number")
    result = value.nb_unary(tx, symbol) if not issubclass(value.py_type(), (str, bytes)) else NotImplemented
    if result is NotImplemented:
        tx.raise_(TypeError, f"%{kind} format: {wanted} is required, not {tp_name(value.py_type())}")
    return result.as_constant()


# ---------------------------------------------------------------- str.format
class Fields:
    """Where ``str.format`` finds its values, and how far automatic numbering has come."""

    def __init__(self, args: tuple, kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs       # kwargs: a dict of trackers, or the mapping of format_map
        self.auto: int | None = 0
        self.manual = False

    def first(self, tx: Any, name: str) -> VariableTracker:
        """get_field_object: the value of the first part of a field name."""
        first, _ = formatter_field_name_split(name)
        if first == "":
            if self.manual:
                tx.raise_(ValueError, "cannot switch from manual field specification to automatic field numbering")
            first, self.auto = self.auto or 0, (self.auto or 0) + 1
        elif isinstance(first, int):
            if self.auto:
                tx.raise_(ValueError, "cannot switch from automatic field numbering to manual field specification")
            self.manual = True
        if isinstance(first, int):
            if isinstance(self.kwargs, VariableTracker):
                tx.raise_(ValueError, "Format string contains positional fields")
            if first >= len(self.args):
                tx.raise_(IndexError, f"Replacement index {first} out of range for positional args tuple")
            return real(tx, self.args[first])
        if isinstance(self.kwargs, VariableTracker):
            return self.kwargs.mp_subscript(tx, ConstantVariable(first))
        if first not in self.kwargs:
            tx.raise_(KeyError, first)
        return real(tx, self.kwargs[first])

    def value(self, tx: Any, name: str) -> VariableTracker:
        value = self.first(tx, name)
        try:
            for is_attribute, key in formatter_field_name_split(name)[1]:
                value = real(tx, value.tp_getattro(tx, key) if is_attribute
                             else value.mp_subscript(tx, ConstantVariable(key)))
        except ValueError as error:
            tx.raise_real(error)
        return value


@service
def format_text(tx: Any, pattern: str, args: tuple, kwargs: Any) -> VariableTracker:
    """str.format and str.format_map over tracked values."""
    return formatted(tx, pattern, Fields(args, kwargs))


def formatted(tx: Any, pattern: str, fields: Fields, depth: int = 2) -> VariableTracker:
    """do_markup: literal text and fields in turn; a spec may hold fields one level down."""
    if depth == 0:
        tx.raise_(ValueError, "Max string recursion exceeded")
    out: list[VariableTracker] = []
    parts = iter(formatter_parser(pattern))
    while True:
        try:
            found = next(parts, None)
        except ValueError as error:
            tx.raise_real(error)
        if found is None:
            return tx.join_text(out)
        literal, name, spec, conversion = found
        out.append(ConstantVariable(literal))
        if name is None:
            continue
        value = fields.value(tx, name)
        if conversion is not None:
            if conversion not in "sra":
                tx.raise_(ValueError, f"Unknown conversion specifier {conversion}" if 32 < ord(conversion) < 127
                          else f"Unknown conversion specifier \\x{ord(conversion):x}")
            value = text.convert(tx, value, conversion)
        if "{" in spec or "}" in spec:
            spec = plain_text(tx, formatted(tx, spec, fields, depth - 1))
        out.append(inner(text.to_format(tx, value, spec)))
