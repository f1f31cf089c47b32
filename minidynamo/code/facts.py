"""Facts: what the supported Pythons do differently outside their bytecode, each by name; nobody else asks for a version."""
from __future__ import annotations

import sys

_version = sys.version_info[:2]

# ---- since 3.12
FUNCTIONS_HAVE_TYPE_PARAMS = _version >= (3, 12)            # PEP 695
ORDERED_DICT_SHOWS_DICT = _version >= (3, 12)               # OrderedDict({...}) where it was OrderedDict([(...)])
EXTREMES_SAY_ITERABLE = _version >= (3, 12)                 # the words of max() and min() of nothing
ABSTRACT_METHODS_ARE_QUOTED = _version >= (3, 12)           # the words of an abstract class that is called
SET_NAME_ERRORS_GET_NOTES = _version >= (3, 12)             # they were wrapped in a RuntimeError
ITERTOOLS_STATE_WARNS = _version >= (3, 12)                 # __reduce__ and __setstate__ of itertools are deprecated

# ---- since 3.13
CLOSE_RETURNS = _version >= (3, 13)                         # generator.close() gives what the generator returned
LOCALS_ARE_SNAPSHOTS = _version >= (3, 13)                  # PEP 667: locals() is new each time, frame.f_locals writes through
UNSTARTED_FRAME_MOVES = _version >= (3, 13)                 # a generator that never ran, and what it was thrown
MISSING_DICT_IS_TOLD = _version >= (3, 13)                  # the words of an AttributeError on setting
SUPER_NAMES_TYPES = _version >= (3, 13)                     # the words of super() of an object of another class
PARTIAL_SHOWS_MODULE = _version >= (3, 13)                  # the repr of a subclass of partial
ENDED_LIST_ITERATOR_IS_SET = _version >= (3, 13)            # by __setstate__ below 0; and an exhausted reversed() reduces to one
NESTED_CLASSES_BY_NAME = _version >= (3, 13)                # how C's old pickle protocols take nested classes apart
