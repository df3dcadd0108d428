"""What the devices of a line make in an iteration of a loop that may be a pipeline, of what is handed to them.

A device may make several turns of a logical loop in one of its own. What it makes on its way has names there, too: the
values of an iteration that are this on every device, of every microbatch, are noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.counting import Shape, counter_at, iterate
from hlo_verify.ops.induction import Loop, book_of, kind_of_numbers
from hlo_verify.ops.lines import Guess, Line, Passed, Piped, Way, as_type, stays_beside
from hlo_verify.ops.running import Closing
from hlo_verify.ops.turns_compared import is_made, is_one
from hlo_verify.ops.values import Context, Value, positions
from hlo_verify.program.ir import Op, TensorType, captured
from hlo_verify.program.op_families import communicates_itself
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.term import ZERO, Poly, tensor


@dataclass(slots=True, eq=False)
class Iteration:
    """An iteration of a loop that may be a pipeline, in a way in which it may make turns of a logical loop."""

    op: Op
    args: list[Value]
    context: Context
    shape: Shape
    loop: Loop
    way: Way
    t: Var
    before: dict[str, dict[int, Value]]
    """What is known of other components before turn t, whatever is handed on: it is the same for all loops and ways."""
    line: Line = field(init=False)
    passed: Sequence[Passed] = field(init=False)
    written: dict[int, Value] = field(default_factory=dict)
    """What is written to in part as it is before turn t, in gradients, as each turn clears what it reads; or turned."""
    is_turned: bool = False
    """Whether something goes round a ring, of which the first device may take microbatches."""
    on_the_way: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    """Which values of an iteration are what a component is on its way through a device, after so many turns of the
    logical loop, wherever this was looked at."""

    def __post_init__(self) -> None:
        self.line, self.passed = self.way.line, self.way.own
        if any(self.args[each.component].term is ZERO for each in self.passed) and book_of(self.context).piped:
            self.written = self._before("written", Closing.written_before)
        if len(self.passed) > 1:
            turned = self._before("turned", Closing.turned_before)
            self.passed = [each for each in self.passed if each.component not in turned]
            self.written = self.written | turned
            self.is_turned = bool(turned)

    def _before(self, name: str, of: Callable[[Closing], dict[int, Value]]) -> dict[int, Value]:
        if name in self.before:
            return self.before[name]
        turn = expr.of_var(self.t)
        known = {k: Value(self.op.types[k], self.args[k].term) for k in self.shape.invariant}
        known |= {k: counter_at(self.shape, k, turn, self.op.types[k]) for k in self.shape.counters}
        pure = replace(self.context, observe=None, unsupported={})

        def iterated(values: list[Value]) -> list[Value]:
            return iterate(self.op, values, pure, turn)

        effort = book_of(self.context).piping
        found = of(Closing(self.t, self.line.device, self.args, known, iterated, effort=effort))
        self.before[name] = {} if pure.unsupported else found
        return self.before[name]

    def _left(self, place: Index, n: int) -> list[Value]:
        """What the logical loop's turns for a place leave, after so many others of them."""
        turn = expr.shift(self.way.turn(place), n)
        if turn is expr.constant(0):
            return list(self.loop.first())
        return [self._at(value, turn) for value in self.loop.after]

    def _at(self, value: Value, turn: Index) -> Value:
        return Value(value.type, algebra.substitute(value.term, {self.loop.t: turn}))

    def _is(self, made: Poly, expected: Poly, guesses: Mapping[int, Guess]) -> bool:
        return is_made(made, expected, book_of(self.context), self._piped(guesses))

    def _piped(self, guesses: Mapping[int, Guess]) -> list[Piped]:
        return [Piped(self.loop, each.component, each.is_gradient, self.way) for each in guesses.values()]

    def _made(
        self, place: Index, turn: Index, received: Mapping[int, Value]
    ) -> tuple[dict[int, Value], Mapping[int, Value]]:
        """What the device at a place makes in a turn of what it received, and all that an iteration makes for that."""
        there = {self.line.device: self.way.device_at(place)}

        def local(value: Value) -> Value:
            return Value(value.type, algebra.substitute(value.term, there))

        given = {
            id(each.op): as_type(received[each.component], each.op.types[0])
            for each in self.passed
            if each.component in received and not each.is_received
        }

        def seen(op: Op, values: list[Value]) -> list[Value]:
            if id(op) in given:
                return [given[id(op)]]
            if communicates_itself(op) and not stays_beside(op, self.line, self.context):
                return [self._anything(value.type) for value in values]
            return [local(value) for value in values]

        state = []
        for k, type_ in enumerate(self.op.types):
            if k in self.shape.invariant:
                state.append(local(Value(type_, self.args[k].term)))
            elif k in self.shape.counters:
                state.append(counter_at(self.shape, k, turn, type_))
            elif k in received and self._is_received(k):
                state.append(received[k])
            elif k in self.written and k not in received:
                state.append(local(self._at_turn(self.written[k], turn)))
            else:
                state.append(self._anything(type_))
        around = {v: local(self.context.environment[v]) for v in captured(self.op)}
        pure = replace(self.context, observe=None, instead=seen, unsupported={}, environment=around, kept=None)
        iterate(self.op, state, pure, turn)
        made = {
            each.component: as_type(around[each.made], self.op.types[each.component])
            for each in self.passed
            if each.component in received
        }
        return made, around

    def _at_turn(self, value: Value, turn: Index) -> Value:
        return Value(value.type, algebra.substitute(value.term, {self.t: turn}))

    def _follow(self, place: Index, batch: Index, guesses: Mapping[int, Guess], received: Mapping[int, Value]) -> None:
        """Note what a device at a place makes on its way of a microbatch."""
        for key, (own, name) in sorted(self._name(place, batch, guesses).items()):
            self._note(key, own, name, self._made(place, expr.add(place, batch), received)[1])

    def _follow_back(self, guesses: Mapping[int, Guess]) -> None:
        """Note what the last device of a line makes on its way in gradients, which it does not hand on: 0 in turns in
        which it works on no microbatch, as others."""
        some = {k: guess for k, guess in guesses.items() if guess.is_gradient}
        if not some or not any(self.on_the_way.values()):
            return
        place, batches = expr.constant(self.way.places - 1), next(iter(some.values())).batches
        batch = expr.of_var(expr.fresh("f", batches))
        received = {k: self._anything(self.op.types[k]) for k in guesses}
        for k, guess in some.items():
            type_, carried = self.op.types[k], self._at(self.loop.state[guess.component], self.way.turn(place))
            received[k] = Value(type_, guess.microbatch(carried, batch, type_.shape))
        self._follow(place, batch, some, received)
        received |= {k: Value(self.op.types[k], ZERO) for k in some}
        for turn, idle in self._idle_turns(place, batches):
            self._keep_zeros(some, idle, self._made(place, turn, received)[1])

    def _idle_turns(self, place: Index, batches: int) -> Iterator[tuple[Index, Poly]]:
        """The turns in which a device works on no microbatch: an arbitrary one, and whether it is one of them. Where
        microbatches go round several times, those of no round, and those of microbatches that there are none of."""
        me, line = expr.modulo(place, self.line.count), self.line.count
        turn = expr.of_var(expr.fresh("t", self.shape.trips))
        if self.way.rounds == 1:
            yield turn, algebra.logical_not(guards.interval(expr.subtract(turn, me), 0, batches - 1))
            return
        _, at = self.way.batch_and_place(turn, me)
        yield turn, algebra.logical_not(guards.interval(at, 0, self.way.places - 1))
        if batches < line:
            start = expr.shift(expr.add(me, expr.of_var(expr.fresh("f", line - batches))), batches)
            first, end = -(start.hi // line), (self.shape.trips - 1 - start.lo) // line + 1
            n = expr.shift(expr.of_var(expr.fresh("f", end - first)), first)
            turn = expr.add(start, expr.scale(n, line))
            yield turn, guards.interval(turn, 0, self.shape.trips - 1)

    def _keep_zeros(self, some: Mapping[int, Guess], idle: Poly, made: Mapping[int, Value]) -> None:
        """Keep, of what is made on the way in gradients, what is 0 under a condition."""
        for (k, n), values in self.on_the_way.items():
            if k in some:
                is_zero = {v for v in values if self._is(algebra.multiply(idle, made[v].term), ZERO, some)}
                self.on_the_way[k, n] = is_zero

    def _note(self, key: tuple[int, int], own: Poly, name: Poly, made: Mapping[int, Value]) -> None:
        """Note which values of an iteration have a name that the logical loop has for a component on its way, or are
        what that is in the ranges of what they read definitions at: these have it from now on."""
        book, type_ = book_of(self.context), self.op.types[key[0]]
        values = [v for v in self._values(type_) if v in made]
        found = {v for v in values if made[v].term is name}
        if not found:
            found = set(islice((v for v in values if is_one(made[v].term, own)), 1))
            for v in found:
                book.named[kind_of_numbers(type_), made[v].term] = name
        self.on_the_way[key] = self.on_the_way.get(key, found) & found

    def _values(self, type_: TensorType) -> Iterator[int]:
        for inner in self.op.regions[1].ops:
            for v, its in zip(inner.results, inner.types, strict=True):
                if its.shape == type_.shape and kind_of_numbers(its) == kind_of_numbers(type_):
                    yield v

    def _name(
        self, place: Index, batch: Index, guesses: Mapping[int, Guess]
    ) -> dict[tuple[int, int], tuple[Poly, Poly]]:
        """Note the names of what a device makes on the way, where it makes several logical turns at once: of each
        component, after each turn."""
        book = book_of(self.context)
        names: dict[tuple[int, int], tuple[Poly, Poly]] = {}
        for n in range(self.way.at_once - 1):
            left = self._left(place, n)
            turn = expr.shift(self.way.turn(place), n + 1)
            for k, guess in guesses.items():
                type_, j = self.op.types[k], guess.component
                own, name = (
                    guess.microbatch(v, batch, type_.shape) for v in (left[j], self._at(self.loop.state[j], turn))
                )
                for known in (own, at_constants(own)):
                    book.named[kind_of_numbers(type_), known] = name
                names[k, n] = own, name
        return names

    def _is_received(self, k: int) -> bool:
        return any(each.is_received for each in self.passed if each.component == k)

    def _anything(self, type_: TensorType, is_number: bool = False) -> Value:
        """A value of which nothing is known, or no more than that it is numbers, in one execution of an operation: on
        each device another."""
        unknown = tensor("opaque", "anything", type_.dtype, type_.shape, location=self.op.location)
        unknown.doubt = 0 if is_number else None
        return Value(type_, algebra.read(unknown, (expr.of_var(self.line.device), *positions(type_.shape))))
