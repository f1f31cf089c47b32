"""Names of the special methods behind CPython's operator slots, by symbol (slotdefs in Objects/typeobject.c)."""
from __future__ import annotations

BINARY_DUNDER = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}
UNARY_DUNDER = {"-": "__neg__", "+": "__pos__", "~": "__invert__", "abs": "__abs__", "index": "__index__",
                "int": "__int__", "float": "__float__", "complex": "__complex__"}
COMPARE_DUNDER = {"<": "__lt__", "<=": "__le__", "==": "__eq__", "!=": "__ne__", ">": "__gt__", ">=": "__ge__"}
# The slots that a conversion tries one after the other.
CONVERSIONS = {"int": ("__int__", "__index__", "__trunc__"), "float": ("__float__", "__index__"),
               "complex": ("__complex__", "__float__", "__index__")}


def binary_name(symbol: str, reflected: bool) -> str:
    return f"__r{BINARY_DUNDER[symbol]}__" if reflected else f"__{BINARY_DUNDER[symbol]}__"
