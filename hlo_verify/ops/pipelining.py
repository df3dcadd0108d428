"""Loops in which a line of devices hands microbatches on: pipelines, by induction over turns and devices together.

In turn t the device at place s of the line makes of what it received what turn s of a logical loop makes of microbatch
t - s, and hands it to the device at place s + 1:

    made(t, s) = carried at turn s + 1 of the logical loop, microbatch t - s     where 0 <= t - s < microbatches

Where that is so for s - 1 in turn t - 1, it is so for s in turn t, if an iteration that has this from the device before
gives it; and for s = 0 if an iteration gives it there, whatever was received. Nothing is known of all other turns, in
which a device works on what is no microbatch.

Microbatches may go round a ring of n devices several times in one loop, if they are no more than devices: places are
counted on from round to round then, and the device at place s of the line is at places s, n + s, 2n + s, … It works on
one microbatch at a time, `(t - s) mod n` in turn t, as that determines the round. In gradients it hands on 0 in turns
of no round, and of no microbatch, and what is at the last place of all hands on 0 there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import limit_of
from hlo_verify.ops.counting import Shape, counter_at, iterate
from hlo_verify.ops.induction import Loop, book_of, kind_of_numbers
from hlo_verify.ops.iterations import Iteration
from hlo_verify.ops.lines import (
    Guess,
    Passed,
    as_type,
    beside,
    communicates_inside,
    guesses_at,
    handed_on,
    ways,
)
from hlo_verify.ops.running import Closing
from hlo_verify.ops.turns_before import TurnsBefore
from hlo_verify.ops.turns_compared import names_in
from hlo_verify.ops.values import Context, Value, positions
from hlo_verify.program.ir import Op, captured
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.in_ranges import in_ranges
from hlo_verify.terms.term import ONE, ZERO, Poly, Tensor, tensor


def piped_loop(op: Op, args: list[Value], context: Context, shape: Shape) -> list[Value] | None:
    """What a pipeline leaves; None of a loop that is not seen to be one."""
    device = context.device
    if device is None or shape.unbounded is not None or communicates_inside(op):
        return None
    if context.automatic is not None and len(set(context.automatic.tolist())) > 1:
        return None
    passed = list(handed_on(op, context))
    book = book_of(context)
    every = (each for loop in book.loops for each in (loop.everywhere or loop,))
    loops = [loop for loop in every if loop.test is None and not _depends_on(device, loop)]
    left, t = book.piping.left, expr.fresh("t", shape.trips)
    before: dict[str, dict[int, Value]] = {}
    for loop, way in ways(passed, loops, device, book.piped) if passed else ():
        found = _Pipeline(op, args, context, shape, loop, way, t, before).results()
        if found is not None:
            book.piping.left = left  # what is in vain counts
            return found
    return None


def _some(count: int, first: int, step: int = 1) -> list[Index]:
    """An arbitrary one of so many places, if there are any."""
    return [expr.shift(expr.scale(expr.of_var(expr.fresh("f", count)), step), first)] if count else []


def _depends_on(device: Var, loop: Loop) -> bool:
    return any(device in value.term.free for value in (*loop.initial, *loop.state, *loop.after, *loop.final))


def _multiple(p: Poly, unit: Poly, devices: int) -> int:
    """How many times another term one is, as far as it can be a number of devices that share rows: terms of several
    addends have contents that say nothing of it."""
    times = Fraction(algebra.content(p)) / algebra.content(unit) if p.items and unit.items else Fraction(1)
    return int(times) if times.denominator == 1 and times > 0 and devices % times == 0 else 1


class _Pipeline(Iteration):
    """The question whether a loop is that pipeline of a logical loop."""

    def results(self) -> list[Value] | None:
        """What the loop leaves, if the guesses of what it hands on hold for some: all are of gradients, or none."""
        first = any(each.loop is not self.loop for each in book_of(self.context).piped)
        return self._results(is_gradient=first) or self._results(is_gradient=not first)

    def _results(self, *, is_gradient: bool) -> list[Value] | None:
        zero = [each for each in self.passed if not is_gradient or self.args[each.component].term is ZERO]
        options = {each.component: self._options(each, is_gradient=is_gradient) for each in zero}
        guesses: dict[int, Guess] = {}
        for k, option in options.items():
            guess = next(option, None)
            if guess is not None:
                guesses[k] = guess
        for _ in range(limit_of("loop_relations")):
            if not guesses:
                break
            as_made = self._as_made(guesses) if is_gradient else guesses
            wrong = self._wrong(as_made)
            if not wrong:
                return self._closed(as_made)
            for k in wrong:
                guess = next(options[k], None)
                if guess is not None:
                    guesses[k] = guess
                    break
            else:
                for k in wrong:
                    del guesses[k]
        return None

    def _as_made(self, guesses: Mapping[int, Guess]) -> dict[int, Guess]:
        """The guesses with the multiples that the first device makes, as far as greatest common factors of coefficients
        tell: the induction shows whether it is these that all devices make. Gradients of means over a device's own rows
        are multiples of those over all rows."""
        place, batch = expr.constant(0), expr.of_var(expr.fresh("f", min(guess.batches for guess in guesses.values())))
        received = {k: Value(self.op.types[k], ZERO) for k in guesses}
        made, whole = self._made(place, batch, received)[0], self._left(place, self.way.at_once - 1)
        found = {}
        for k, guess in guesses.items():
            own, wanted = made[k].term, guess.microbatch(whole[guess.component], batch, made[k].shape)
            times = _multiple(in_ranges(own), in_ranges(wanted), self.line.device.size)
            found[k] = replace(guess, multiple=times)
        return found

    def _options(self, passed: Passed, *, is_gradient: bool) -> Iterator[Guess]:
        type_ = self.op.types[passed.component]
        loop = self.loop
        changed = [j for j, value in enumerate(loop.state) if value.term is not loop.after[j].term]
        changed = [j for j in changed if names_in(loop.after[j].term) <= self._within_reach()]
        around = (self.context.environment[v] for v in captured(self.op))
        digits = beside((value.term for value in (*self.args, *around)), self.line)
        for j, whole in ((j, loop.state[j]) for j in changed):
            for guess in guesses_at(j, whole.type, type_, digits):
                if self._is_long_enough(guess):
                    yield replace(guess, is_gradient=is_gradient)
                    if loop.outside and guess.dimension < loop.outside:
                        yield replace(guess, is_gradient=is_gradient, is_turned_over=True)
                    if self.is_turned:
                        yield replace(guess, is_gradient=is_gradient, turned=1 if self.line.is_down else -1)

    def _is_long_enough(self, guess: Guess) -> bool:
        """Whether the turns are enough for so many microbatches, and each device works on one of them at a time."""
        enough = guess.batches + self.way.places - 1 <= self.shape.trips
        return enough and (self.way.rounds == 1 or guess.batches <= self.line.count)

    def _within_reach(self) -> set[Tensor]:
        """The names of what loops carry and leave that an iteration may be made of: those of a logical loop that no
        device has a counterpart of are in none."""
        around = [self.context.environment[v] for v in captured(self.op)]
        given = {name for value in (*self.args, *around) for name in names_in(value.term)}
        given |= {name for value in self.loop.state for name in names_in(value.term)}
        before = TurnsBefore.of(book_of(self.context).piped)
        return given | before.carried.keys() | before.left.keys()

    def _state(self, guesses: Mapping[int, Guess]) -> list[Value]:
        """What is carried in an arbitrary turn: what is handed on as guessed, anything for what else changes."""
        now = expr.of_var(self.t)
        numbers = self._numbers(guesses)
        state = []
        passed = {each.component: each for each in self.passed}
        for k, type_ in enumerate(self.op.types):
            if k in self.shape.invariant:
                state.append(Value(type_, self.args[k].term))
                continue
            if k in self.shape.counters:
                state.append(counter_at(self.shape, k, now, type_))
                continue
            if k in self.written and k not in guesses:
                state.append(self.written[k])
                continue
            unknown = tensor("opaque", f"carried {k}", type_.dtype, type_.shape, location=self.op.location)
            unknown.doubt = 0 if k in numbers else None
            term = algebra.read(unknown, (*self.context.execution, now, *positions(type_.shape)))
            if k in guesses:
                before = expr.shift(now, -1)
                place = self.line.place
                if passed[k].is_received:
                    place = expr.shift(place, -1)
                term = self._known(guesses[k], place, before, term, type_.shape)
            state.append(Value(type_, term))
        return state

    def _numbers(self, guesses: Mapping[int, Guess]) -> list[int]:
        """The components that are numbers whatever a device works on: they start from numbers, the logical loop's are
        numbers, and of numbers that were received, or of anything on the first device, numbers are made."""
        some = [k for k, guess in guesses.items() if not self.args[k].term.doubt]
        some = [k for k in some if not any(p.doubt for p in self._carried(guesses[k].component))]
        turn = expr.of_var(expr.fresh("t", self.shape.trips))
        for place in (expr.constant(0), expr.shift(expr.of_var(expr.fresh("f", self.line.count - 1)), 1)):
            received = {k: self._anything(self.op.types[k]) for k in guesses}
            if place is not expr.constant(0) or self.way.rounds > 1:
                received |= {k: self._anything(self.op.types[k], is_number=True) for k in some}
            made, _ = self._made(place, turn, received)
            if any(made[k].term.doubt for k in some):
                return []
        return some

    def _carried(self, k: int) -> tuple[Poly, Poly]:
        return self.loop.state[k].term, self.loop.final[k].term

    def _known(
        self, guess: Guess, place: Index, turn: Index, other: Poly, shape: Sequence[int], n: int | None = None
    ) -> Poly:
        """What the device at a place makes in a turn, of a microbatch, or after its first turns of the logical loop;
        where it works on none, another term."""
        batch, place = self.way.batch_and_place(turn, place)
        after = expr.shift(place, 1)
        inside = algebra.multiply(
            guards.interval(batch, 0, guess.batches - 1), guards.interval(place, 0, self._hands_on(guess) - 1)
        )
        carried, final = self.loop.state[guess.component], self.loop.final[guess.component]
        if n is not None:
            inside = algebra.multiply(
                guards.interval(batch, 0, guess.batches - 1), guards.interval(place, 0, self.way.places - 1)
            )
            made = guess.microbatch(self._at(carried, expr.shift(self.way.turn(place), n + 1)), batch, shape)
            if guess.is_gradient:
                return algebra.multiply(inside, made)
            return algebra.add(algebra.multiply(inside, made), algebra.multiply(algebra.logical_not(inside), other))
        carried = self._at(carried, self.way.turn(after))
        if guess.is_gradient:
            return algebra.multiply(inside, guess.microbatch(carried, batch, shape))
        last = guards.interval(after, self.way.places, self.way.places) if self.way.end == self.loop.t.size else ZERO
        made = algebra.add(
            algebra.multiply(algebra.logical_not(last), guess.microbatch(carried, batch, shape)),
            algebra.multiply(last, guess.microbatch(final, batch, shape)),
        )
        return algebra.add(algebra.multiply(inside, made), algebra.multiply(algebra.logical_not(inside), other))

    def _hands_on(self, guess: Guess) -> int:
        """How many devices of a line hand on microbatches."""
        return self.way.places - guess.is_gradient

    def _wrong(self, guesses: Mapping[int, Guess]) -> list[int]:
        """The components that an iteration does not make so, on the first device or on another."""
        self.on_the_way.clear()
        batches, count = (min(guess.batches for guess in guesses.values()), min(map(self._hands_on, guesses.values())))
        wrong = [k for k, guess in guesses.items() if (guess.batches, self._hands_on(guess)) != (batches, count)]
        for place in () if wrong else self._places(count):
            wrong = self._made_otherwise(place, expr.of_var(expr.fresh("f", batches)), guesses)
            if wrong and batches <= limit_of("clamped_places"):  # bounds of so few are read one by one
                each = (self._made_otherwise(place, expr.constant(n), guesses) for n in range(batches))
                wrong = next((some for some in each if some), [])
            wrong = wrong or self._not_zero(place, batches, guesses)
            if wrong:
                return wrong
        last = expr.constant(self.way.places - 1)
        if not wrong:
            self._follow_back(guesses)
        return wrong or (self._not_zero(last, 0, guesses) if count < self.way.places else wrong)

    def _places(self, count: int) -> list[Index]:
        """The first so many places, or those of all rounds: the first one, and others of which it makes no difference
        which. The first device is not at the first place in later rounds, and the last one not at the last before."""
        line, rounds, first = self.line.count, self.way.rounds, expr.constant(0)
        if rounds == 1:
            return [first, *_some(count - 1, 1)]
        without_last = line - (count < self.way.places)
        inner = [
            expr.add(place, expr.scale(expr.of_var(expr.fresh("f", rounds)), line))
            for place in _some(without_last - 1, 1)
        ]
        at_ends = _some(rounds - 1, line - 1, line) if without_last < line else []
        return [first, *inner, *at_ends, *_some(rounds - 1, line, line)]

    def _made_otherwise(self, place: Index, batch: Index, guesses: Mapping[int, Guess]) -> list[int]:
        """The components that the device at a place does not make so of a microbatch, where it received this or, on the
        first one, anything; 0 in gradients."""
        received: dict[int, Value] = {}
        for k, guess in guesses.items():
            type_ = self.op.types[k]
            received[k] = Value(type_, ZERO) if guess.is_gradient else self._anything(type_)
            if place is not expr.constant(0):
                carried = self._at(self.loop.state[guess.component], self.way.turn(place))
                received[k] = Value(type_, guess.microbatch(carried, batch, type_.shape))
        turn = expr.add(place, batch)
        self._follow(place, batch, guesses, received)
        made, whole = self._made(place, turn, received)[0], self._left(place, self.way.at_once - 1)
        return [
            k
            for k, guess in guesses.items()
            if not self._is(made[k].term, guess.microbatch(whole[guess.component], batch, made[k].shape), guesses)
        ]

    def _not_zero(self, place: Index, batches: int, guesses: Mapping[int, Guess]) -> list[int]:
        """The components, in gradients, that the device at a place does not make 0 in turns in which it works on no
        microbatch, having received 0; of no microbatches at all, in any turn of its own, whatever it received."""
        some = {k: guess for k, guess in guesses.items() if guess.is_gradient}
        if not some:
            return []
        received = {
            k: Value(self.op.types[k], ZERO) if batches and k in some else self._anything(self.op.types[k])
            for k in guesses
        }
        wrong: list[int] = []
        for turn, idle in self._idle_turns(place, batches) if batches else [(self._own_turn(place, some), ONE)]:
            made, around = self._made(place, turn, received)
            if batches:
                self._keep_zeros(some, idle, around)
            found = {k: algebra.multiply(idle, made[k].term) for k in some}
            wrong = wrong or [k for k in some if not self._is(found[k], ZERO, guesses)]
        return wrong

    def _own_turn(self, place: Index, some: Mapping[int, Guess]) -> Index:
        """An arbitrary turn of a device, or, where it is at several places, one in which it is at this one."""
        if self.way.rounds == 1:
            return expr.of_var(expr.fresh("t", self.shape.trips))
        return expr.add(place, expr.of_var(expr.fresh("f", next(iter(some.values())).batches)))

    def _closed(self, guesses: Mapping[int, Guess]) -> list[Value] | None:
        book = book_of(self.context)
        turn = expr.of_var(self.t)
        state = self._state(guesses)
        pure = replace(self.context, observe=None, unsupported={})
        iterate(self.op, state, pure, turn)
        for (k, n), values in sorted(self.on_the_way.items()):
            if k in guesses and values:
                type_ = self.op.types[k]
                for v in values:
                    own = pure.environment[v].term
                    book.named[kind_of_numbers(type_), own] = self._known(
                        guesses[k], self.line.place, turn, own, type_.shape, n
                    )
                iterate(self.op, state, pure, turn)
        for each in self.passed:
            if each.component in guesses:
                made = pure.environment[each.made]
                type_ = self.op.types[each.component]
                other = as_type(made, type_).term
                known = self._known(guesses[each.component], self.line.place, turn, other, type_.shape)
                book.named[kind_of_numbers(type_), made.term] = as_type(Value(type_, known), made.type).term
        kept = {*guesses, *self.shape.invariant, *self.shape.counters, *self.written}
        known_values = {k: value for k, value in enumerate(state) if k in kept}
        late = next(iter(guesses.values())).batches

        def iterated(values: list[Value]) -> list[Value]:
            return iterate(self.op, values, pure, turn)

        def closed(known: Mapping[int, Value]) -> dict[int, Value]:
            closing = Closing(self.t, self.line.device, self.args, known, iterated, effort=book.piping, late=late)
            return closing.closed()

        ends = closed(known_values)
        if self.written:
            ends = closed({k: value for k, value in known_values.items() if k not in self.written}) | ends
        handed = {each.component for each in self.passed}
        if pure.unsupported or not set(range(len(self.args))) <= {*known_values, *ends, *handed}:
            return None
        book.piped += self._piped(guesses)
        results = []
        for k, type_ in enumerate(self.op.types):
            if k in self.shape.invariant:
                results.append(Value(type_, self.args[k].term))
            elif k in self.shape.counters:
                results.append(counter_at(self.shape, k, expr.constant(self.shape.trips), type_))
            elif k in ends:
                results.append(ends[k])
            else:
                end = tensor("opaque", f"loop result {k}", type_.dtype, type_.shape, location=self.op.location)
                results.append(Value(type_, algebra.read(end, (*self.context.execution, *positions(type_.shape)))))
        return results
