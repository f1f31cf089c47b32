"""Tools for people: explain, tables, bytecode dumps; the only package besides api.py that may import late."""
