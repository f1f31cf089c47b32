"""Polyfills: pure-Python functions that are inlined in place of C ones; declared with `model.tables.polyfill`."""
