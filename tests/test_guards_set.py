"""GuardSet: each guard once, marks and rewinding, implied guards, order; misses as a table."""
from __future__ import annotations

import random

import torch
from minidynamo.guards.diff import explain_miss, table
from minidynamo.guards.kinds import (
    CodeIs, DictKeys, Equal, HasKey, IsNone, Length, SameObject, TensorMatch, TypeIs,
)
from minidynamo.guards.lower_python import lower_python
from minidynamo.guards.manager import build_guards
from minidynamo.guards.set import GuardSet
from minidynamo.sources import Attr, Item, Local, TypeOf

X, Y = Local("x"), Local("y")


def of(*guards) -> GuardSet:
    made = GuardSet()
    for guard in guards:
        made.add(guard)
    return made


def test_add_mark_rewind() -> None:
    guards = GuardSet()
    assert guards.add(TypeIs(X, int)) and not guards.add(TypeIs(X, int)) and len(guards) == 1
    mark = guards.mark()
    assert guards.add(TypeIs(Y, int)) and TypeIs(Y, int) in guards
    guards.rewind(mark)
    assert TypeIs(Y, int) not in guards and list(guards) == [TypeIs(X, int)]
    assert guards.add(TypeIs(Y, int)), "a rewound guard can be added again"


def test_random_rewinds_agree_with_a_list() -> None:
    rng, guards, model = random.Random(0), GuardSet(), []
    for _ in range(3000):
        if rng.random() < 0.9:
            guard = Equal(Local(rng.choice("abc")), rng.randrange(20))
            assert guards.add(guard) is (guard not in model)
            if guard not in model:
                model.append(guard)
        else:
            mark = rng.randint(0, len(model))
            guards.rewind(mark)
            del model[mark:]
        assert len(guards) == len(model) == guards.mark()
    assert list(guards) == model


def test_implied_guards_are_dropped() -> None:
    def f() -> None: ...

    tensor = torch.ones(2)
    assert of(TypeIs(X, int), Equal(X, 3)).final() == [Equal(X, 3)]
    assert of(Equal(X, 3), IsNone(X, False), TypeIs(X, int)).final() == [Equal(X, 3)]
    assert of(TypeIs(X, torch.Tensor), TensorMatch(X, tensor)).final() == [TensorMatch(X, tensor)]
    assert of(TypeIs(X, type(f)), CodeIs(X, f.__code__)).final() == [CodeIs(X, f.__code__)]
    assert of(TypeIs(X, type(f)), SameObject(X, f)).final() == [SameObject(X, f)]
    keys = DictKeys(X, ("a",))
    assert of(HasKey(X, "a", True), Length(X, 1, dict), keys).final() == [keys]
    assert of(TypeIs(X, dict), keys).final() == [TypeIs(X, dict), keys], "a subclass has keys too"
    both = of(TypeIs(Y, int), Equal(X, 3)).final()
    assert len(both) == 2, "another source's"


def test_an_object_may_change_its_class() -> None:
    class A: ...
    class B: ...
    obj = A()
    final = of(TypeIs(X, A), SameObject(X, obj)).final()
    assert len(final) == 2
    entry = build_guards(final, {}, {}, None)
    assert entry.check({"x": obj})
    obj.__class__ = B
    assert not entry.check({"x": obj})


def test_order_keeps_reads_safe() -> None:
    guards = of(TypeIs(X, torch.Tensor), Equal(Attr(X, "ndim"), 1), TensorMatch(X, torch.ones(2)))
    assert guards.final() == [TensorMatch(X, torch.ones(2)), Equal(Attr(X, "ndim"), 1)]
    _, text = lower_python(guards.final())
    assert text.index("is_tensor") < text.index(".ndim")


def test_identity_of_a_class_is_the_type() -> None:
    assert of(SameObject(TypeOf(X), dict), Length(X, 1, dict)).final()[0] == TypeIs(X, dict)
    assert len(of(SameObject(TypeOf(X), dict), TypeIs(X, dict)).final()) == 1


def test_misses_are_explained() -> None:
    first = build_guards(of(TensorMatch(X, torch.ones(2, 3))), {}, {}, None)
    second = build_guards(of(TypeIs(Y, list), Length(Y, 2, list), Equal(Item(Y, 0, list), 5)), {}, {}, None)
    L = {"x": torch.ones(2, 4), "y": [6, 7]}
    misses = explain_miss([first, second], L, {})
    assert [(miss.entry_index, miss.expected, miss.got) for miss in misses] == [
        (0, "shape [2, 3]", "shape [2, 4]"), (1, "5", "6")]
    assert explain_miss([second], {"y": [5, 7]}, {}) == []
    (unreadable,) = explain_miss([second], {}, {})
    assert unreadable.got == "cannot be read: KeyError"
    lines = table(misses).splitlines()
    assert lines[0].split() == ["entry", "failing", "guard", "expected", "got"] and "shape [2, 4]" in lines[1]


def test_python_text_shares_reads() -> None:
    z = Item(Item(X, 0, list), 0, list)
    function, text = lower_python([TypeIs(Item(X, 0, list), list), TypeIs(z, int), Equal(z, 3)])
    assert text.count("L['x']") == 1 and text.count("list_getitem(x, 0)") == 1, text
    assert function({"x": [[3]]}, {}) and not function({"x": [[4]]}, {}) and not function({}, {})
    assert "# " in lower_python([TensorMatch(X, torch.ones(1))])[1], "opaque lines carry a comment"
