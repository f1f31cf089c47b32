"""Python semantics, once: CPython's generic algorithms over slots."""
