"""random.Random: the state of a generator is read, guarded and written back as one value (Modules/_randommodule.c).

A state that the trace knows gives known numbers: that of a generator seeded here, and that of the caller's on the
first call.  One that was different on an earlier call will be so on the next; then Python draws the numbers.
"""
from __future__ import annotations

import _random
import struct
from typing import Any, NoReturn

from minidynamo import reasons
from minidynamo.guards.kinds import Equal, TypeIs
from minidynamo.model.tables import Methods, builds_when
from minidynamo.model.variable import NotConstant, VariableTracker
from minidynamo.sources import Fetch
from minidynamo.variables.constants import NONE
from minidynamo.variables.objects import INSTANCE_KINDS, ObjectVariable
from minidynamo.variables.sequences import inner

Twister = _random.Random
LAYOUT = struct.Struct("625I")


def random_state(generator: Twister) -> bytes:
    return LAYOUT.pack(*Twister.getstate(generator))


def set_random_state(generator: Twister, state: bytes) -> None:
    Twister.setstate(generator, LAYOUT.unpack(state))


class RandomVariable(ObjectVariable):
    """An instance of random.Random; ``state`` is None until something asks for it."""

    __slots__ = ("state", "before")
    kind = "random generator"

    def __init__(self, cls: type, obj: Any = None, source: Any = None, inner: VariableTracker | None = None) -> None:
        super().__init__(cls, obj, source, inner)
        self.state: bytes | None = None
        self.before: bytes | None = None              # what the caller's object has

    @classmethod
    def new(cls, tx: Any, made: type) -> RandomVariable:
        """PyType_GenericNew: ``__init__`` seeds."""
        instance = cls(made)
        instance.made_at = tx.root_step
        return instance

    def as_object(self) -> Any:
        if self.state != self.before:
            raise NotConstant(self)
        return super().as_object()

    # ---- the state
    def twin(self, tx: Any, call: str) -> Twister:
        """A generator of ours in the same state."""
        if self.state is None:
            if self.source is None:
                unknown(tx, call)
            state = random_state(self.obj)
            if tx.shapes.history.varied_number(f"random_state({self.source.text()})", hash(state)):
                unknown(tx, call)
            tx.guard(Equal(Fetch(self.source, random_state, "random_state"), state))
            tx.journal.set(self, "before", state)
            tx.journal.set(self, "state", state)
        twin = Twister()
        set_random_state(twin, self.state)            # type: ignore[arg-type]
        return twin

    def moved_to(self, tx: Any, twin: Twister) -> None:
        tx.journal.set(self, "state", random_state(twin))
        tx.modified(self)

    def perform(self, tx: Any, name: str, *values: Any) -> VariableTracker:
        """A method of the C class on the twin; then this one is where the twin is."""
        twin = self.twin(tx, f"Random.{name}()")
        try:
            result = getattr(twin, name)(*values)
        except Exception as error:
            tx.raise_real(error)
        self.moved_to(tx, twin)
        return tx.wrap(result)

    # ---- making it again
    def create(self, out: Any) -> None:
        out.call_function(Twister.__new__, out.tx.class_of(self.cls))

    def rebuild(self, out: Any) -> None:
        self.create(out)
        out.keep(self)
        self.fill(out)

    def fill(self, out: Any) -> None:
        super().fill(out)
        self.write_state(out)

    def replay(self, out: Any) -> None:
        super().replay(out)
        self.write_state(out)

    def write_state(self, out: Any) -> None:
        if self.state != self.before:
            out.call_function(set_random_state, self, self.state)
            out.op("POP")


def unknown(tx: Any, call: str) -> NoReturn:
    tx.stop(reasons.RANDOM_NUMBER, call=call)


class TwisterMethods(Methods, of=Twister):
    """The methods that `random.Random` leaves to C."""

    def random(tx, self, /):
        return self.perform(tx, "random")

    def getrandbits(tx, self, k, /):
        return self.perform(tx, "getrandbits", inner(k).as_constant())

    def getstate(tx, self, /):
        return tx.wrap(self.twin(tx, "Random.getstate()").getstate())

    def setstate(tx, self, state, /):
        twin = Twister()
        try:
            twin.setstate(inner(state).as_constant())
        except Exception as error:
            tx.raise_real(error)
        self.moved_to(tx, twin)
        return NONE

    def seed(tx, self, n=NONE, /):
        """random_seed: an int by its magnitude, another object by its hash, None from the system."""
        number = inner(n)
        if number.py_type() is type(None):
            unknown(tx, "Random.seed()")
        if not issubclass(n.py_type(), int):
            number = tx.wrap(n.tp_hash(tx).as_constant() % (1 << 64))
        twin = Twister()
        twin.seed(number.as_constant())
        self.moved_to(tx, twin)
        return NONE


INSTANCE_KINDS[Twister] = RandomVariable


@builds_when("random generator", lambda obj: issubclass(type(obj), Twister) and type(obj) is not Twister, before=("user object",))
def build_random(tx: Any, obj: Any, source: Any) -> VariableTracker:
    tx.guard(TypeIs(source, type(obj)))
    return RandomVariable(type(obj), obj, source)
