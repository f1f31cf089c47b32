"""Frames that break inside a user's ``__getattribute__``: rebuilding its values must not call it again."""
from __future__ import annotations

import torch

import minidynamo
from minidynamo.testing import check


READ: list[str] = []


class Noting:
    def __getattribute__(self, key):
        READ.append(key)
        return super().__getattribute__(key)


def test_reads_are_counted():
    def f(m, x):
        READ.clear()
        minidynamo.graph_break()
        try:
            m.nothing
        except AttributeError:
            return x + 1, list(READ)
    check(f, Noting(), torch.ones(1), min_graphs=1, cached=False)
    with minidynamo.config.patch(rewrite_frames_without_graph=True):
        compiled = minidynamo.optimize(Noting.__getattribute__)
        m = Noting()
        READ.clear()
        try:
            compiled(m, "nothing")
        except AttributeError:
            assert READ == ["nothing"]


class Mapped:
    attribute_map = {"a": "b"}

    def __init__(self):
        self.b = 1

    def __getattribute__(self, key):
        if super().__getattribute__("__dict__").get("nothing") is not None:
            return None
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        return super().__getattribute__(key)


def test_a_missing_attribute_read_by_a_frame_of_its_own():
    def f(m, x):
        minidynamo.graph_break()
        return x + m.a, hasattr(m, "nothing"), getattr(m, "__deepcopy__", None)
    check(f, Mapped(), torch.ones(1), min_graphs=1)
    check(Mapped.__getattribute__, Mapped(), "nothing")
