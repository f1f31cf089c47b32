"""Locks made inside."""
from __future__ import annotations

import _thread
import sys

import torch

from minidynamo.testing import check

X = torch.ones(2)


def test_locks():
    def fn(x):
        r, plain, log = _thread.RLock(), _thread.allocate_lock(), []
        with r, r:
            log.append(plain.acquire())
        log.append(plain.locked())
        plain.release()
        for lock in (r, plain):
            try:
                lock.release()
            except RuntimeError as error:
                log.append(str(error))
        return log, x + 1, sys.intern("a" + "b")
    check(fn, X, graphs=1)


def test_held_lock_crosses_a_break():
    def fn(x):
        plain = _thread.allocate_lock()
        with plain:
            print("break")
            inside = plain.locked()
        return inside, plain.locked(), x + 1
    check(fn, X, min_graphs=1)
