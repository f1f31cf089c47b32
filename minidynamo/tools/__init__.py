"""Tools for people: explain, tables, bytecode dumps, the command line."""
