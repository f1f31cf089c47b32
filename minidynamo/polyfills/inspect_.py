"""Parts of inspect as Python to inline that it keeps in a cache of weak references since 3.12."""
from __future__ import annotations

import inspect
import types
from typing import Any

from minidynamo.model.tables import polyfill

MRO, DICT = vars(type)["__mro__"].__get__, vars(type)["__dict__"].__get__
NOTHING: Any = inspect._sentinel        # type: ignore[attr-defined]


@polyfill(inspect._shadowed_dict)       # type: ignore[attr-defined]
def shadowed_dict(klass: Any) -> Any:
    """The ``__dict__`` attribute of a class that is not the one ``type`` makes."""
    for entry in MRO(klass):
        space = DICT(entry)
        if "__dict__" in space:
            found = space["__dict__"]
            if not (type(found) is types.GetSetDescriptorType and found.__name__ == "__dict__" and found.__objclass__ is entry):
                return found
    return NOTHING
