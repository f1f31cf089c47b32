"""C functions of collections, heapq and bisect as Python to inline."""
from __future__ import annotations

import _bisect
import _collections                             # type: ignore[import-not-found]
import _heapq
import _operator
from typing import Any

from minidynamo.model.tables import polyfill


@polyfill(_collections._count_elements)
def count_elements(mapping: Any, iterable: Any) -> None:
    """_collections__count_elements_impl."""
    get = mapping.get
    for item in iterable:
        mapping[item] = get(item, 0) + 1


# ---------------------------------------------------------------- heapq (Modules/_heapqmodule.c)
def smaller(heap: Any, a: int, b: int) -> Any:
    """The order of a min-heap; C has each function twice, once for each order."""
    return list_get(heap, a) < list_get(heap, b)


def larger(heap: Any, a: int, b: int) -> Any:
    """The order of a max-heap, by ``<`` too."""
    return list_get(heap, b) < list_get(heap, a)


def sift_down(heap: Any, start: int, at: int, before: Any) -> None:
    """siftdown: towards the root; a list that changes size while comparing is an error."""
    size = len(heap)
    if at >= size:
        raise IndexError("index out of range")
    while at > start:
        parent_at = (at - 1) >> 1
        moves = before(heap, at, parent_at)
        if len(heap) != size:
            raise RuntimeError("list changed size during iteration")
        if not moves:
            break
        swap(heap, at, parent_at)
        at = parent_at


def sift_up(heap: Any, at: int, before: Any) -> None:
    """siftup: down to a leaf, then up again."""
    end = len(heap)
    start = at
    if at >= end:
        raise IndexError("index out of range")
    limit = end >> 1
    while at < limit:
        child = 2 * at + 1
        if child + 1 < end:
            first = before(heap, child, child + 1)
            if len(heap) != end:
                raise RuntimeError("list changed size during iteration")
            if not first:
                child += 1
        swap(heap, at, child)
        at = child
    sift_down(heap, start, at, before)


def swap(heap: Any, a: int, b: int) -> None:
    first, second = list_get(heap, a), list_get(heap, b)
    list_set(heap, a, second)
    list_set(heap, b, first)


list_get, list_set, list_pop, list_append = list.__getitem__, list.__setitem__, list.pop, list.append


@polyfill(_heapq.heappush)
def heappush(heap: Any, item: Any, /) -> None:
    list_append(heap, item)
    sift_down(heap, 0, len(heap) - 1, smaller)


def pop_with(heap: Any, before: Any) -> Any:
    """heappop_internal."""
    if not len(heap):
        raise IndexError("index out of range")
    last = list_pop(heap)
    if not len(heap):
        return last
    first = list_get(heap, 0)
    list_set(heap, 0, last)
    sift_up(heap, 0, before)
    return first


@polyfill(_heapq.heappop)
def heappop(heap: Any, /) -> Any:
    return pop_with(heap, smaller)


@polyfill(_heapq._heappop_max)  # type: ignore[attr-defined]
def heappop_max(heap: Any, /) -> Any:
    return pop_with(heap, larger)


def replace_with(heap: Any, item: Any, before: Any) -> Any:
    """heapreplace_internal."""
    if not len(heap):
        raise IndexError("index out of range")
    first = list_get(heap, 0)
    list_set(heap, 0, item)
    sift_up(heap, 0, before)
    return first


@polyfill(_heapq.heapreplace)
def heapreplace(heap: Any, item: Any, /) -> Any:
    return replace_with(heap, item, smaller)


@polyfill(_heapq._heapreplace_max)  # type: ignore[attr-defined]
def heapreplace_max(heap: Any, item: Any, /) -> Any:
    return replace_with(heap, item, larger)


@polyfill(_heapq.heappushpop)
def heappushpop(heap: Any, item: Any, /) -> Any:
    if not len(heap):
        return item
    first = list_get(heap, 0)
    if not first < item:
        return item
    return replace_with(heap, item, smaller)


@polyfill(_heapq.heapify)
def heapify(heap: Any, /) -> None:
    """heapify_internal, in the order for lists that fit the cache."""
    for at in range((len(heap) >> 1) - 1, -1, -1):
        sift_up(heap, at, smaller)


@polyfill(_heapq._heapify_max)  # type: ignore[attr-defined]
def heapify_max(heap: Any, /) -> None:
    for at in range((len(heap) >> 1) - 1, -1, -1):
        sift_up(heap, at, larger)


@polyfill(str.translate)
def translate(self: Any, table: Any, /) -> str:
    """_PyUnicode_TranslateCharmap."""
    out = []
    for char in str.__str__(self):
        try:
            found = table[ord(char)]
        except LookupError:
            out.append(char)
            continue
        if isinstance(found, int):
            if not 0 <= found <= 0x10ffff:
                raise ValueError("character mapping must be in range(0x110000)")
            out.append(chr(found))
        elif isinstance(found, str):
            out.append(found)
        elif found is not None:
            raise TypeError("character mapping must return integer, None or str")
    return "".join(out)


@polyfill(_operator.countOf)
def count_of(a: Any, b: Any, /) -> int:
    """_PySequence_IterSearch, PY_ITERSEARCH_COUNT."""
    total = 0
    for item in searched(a):
        if item is b or item == b:
            total += 1
    return total


@polyfill(_operator.indexOf)
def index_of(a: Any, b: Any, /) -> int:
    """_PySequence_IterSearch, PY_ITERSEARCH_INDEX."""
    at = 0
    for item in searched(a):
        if item is b or item == b:
            return at
        at += 1  # noqa: SIM113
    raise ValueError("sequence.index(x): x not in sequence")


def searched(a: Any) -> Any:
    try:
        return iter(a)
    except TypeError:
        pass
    raise TypeError(f"argument of type '{type(a).__name__}' is not iterable")


# ---------------------------------------------------------------- bisect (Modules/_bisectmodule.c)
@polyfill(_bisect.bisect_right)
def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle]
        if x < (item if key is None else key(item)):
            hi = middle
        else:
            lo = middle + 1
    return lo


@polyfill(_bisect.bisect_left)
def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle]
        if (item if key is None else key(item)) < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


@polyfill(_bisect.insort_right)
def insort_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


@polyfill(_bisect.insort_left)
def insort_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)
