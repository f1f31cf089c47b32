"""Facts that compiled code depends on, as data; lowered to the C++ tree and to Python."""
