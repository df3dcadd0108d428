"""Loops in closed form: what a loop carries as a function of its counter.

    next = device's value at rho(device)    after t turns the initial value at rho^t(device), for a rotation of an axis
    next = now + added(t)                   in the end initial + sum over t. added(t)
    next = device's value at rho(device) + added(t)
                                            in the end initial at rho^n(device) + sum over t. added(t) at rho^(n-1-t)
    next = what is written at t, else now   in the end sum over t. written(t), where all is written once (`filling`)
    next = the same at rho(device)          in the end that at rho^n(device), of what is written at t at rho^-(t+1)
    next = max(now, seen(t))                in the end max(initial, max over t. seen(t))
    next = now * exp(m - m') + added(t)     where m' is next to m, a maximum as above: in the end
                                            exp(-m) * (initial * exp(initial m) + sum over t. added(t) * exp(m'))

where what is added (times exp(m') in the last form) or seen is made of nothing that the loop carries but counters,
rotations and what never changes. The sums then close like any other: gradients accumulated over microbatches are the
gradient over the batch, and the online softmax of a ring is the softmax over all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_verify.equality import opening
from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops import filling
from hlo_verify.ops.rotating import rotation
from hlo_verify.ops.running_maxima import Maxima, RunningMaximum, Scaled, settled
from hlo_verify.ops.skipping import Compared, compared, seen_by
from hlo_verify.ops.values import ARBITRARY, Value, lighten, positions
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra, extrema, guards, rotations, sums
from hlo_verify.terms.doubts import INFINITE, NUMBER, UNDEFINED
from hlo_verify.terms.finite import if_unknown_may_be
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import what_is_added
from hlo_verify.terms.term import ZERO, Atom, Poly, Read, of_atom, reads, tensor

Iterate = Callable[[list[Value]], list[Value]]


@dataclass(slots=True)
class Closing:
    """A loop of iterations `t`, on every `device` if there are such, whose last values are looked for.

    `known` are the components whose value at iteration t is given; `iterate` gives the values after an iteration from
    those before it. It is run from arbitrary values for the others, which read a variable of their own (`before`): what
    is free of it depends on none of them.

    What another component reads of a running sum is the sum over the iterations before it, [s < t]. So a sum of running
    sums, and the list of them, have closed forms as well.
    """

    t: Var
    device: Var | None
    initial: Sequence[Value]
    known: Mapping[int, Value]
    iterate: Iterate
    effort: Effort | None = None
    """What may be done to see that a loop writes to no place twice, where it leaves some as they are."""
    late: int = 0
    """How many of the last turns write to all places, whatever the turns before wrote, if there are such."""
    maxima: Maxima | None = None
    """The running maxima by name, where other components may read them."""
    alone: bool = False
    """Whether a form may depend on other components, whatever these are."""
    numbers: Collection[int] = ()
    """The components that are taken for numbers before every iteration."""
    before: Var = field(default_factory=lambda: expr.fresh(ARBITRARY, 2))
    own: dict[int, Var] = field(default_factory=dict)
    """Of each component, what stands for `before` where forms may depend on the others."""
    seen: dict[int, Poly] = field(default_factory=dict)
    """What every iteration compares a running maximum with."""
    turns: dict[int, list[Compared]] = field(default_factory=dict)
    """The same, case by case."""
    sums: dict[int, Poly] = field(default_factory=dict)
    """What every iteration adds to a running sum."""
    scaled: dict[int, Scaled] = field(default_factory=dict)
    """Running sums in units of running maxima."""
    named: dict[int, RunningMaximum] = field(default_factory=dict)
    """The running maxima that others read."""
    now: dict[int, Value] = field(default_factory=dict)
    """Running sums at iteration t, of those that other components read."""

    def _at(self, k: int) -> tuple[Index, ...]:
        """What an arbitrary value is indexed by beside its position."""
        device = () if self.device is None else (expr.of_var(self.device),)
        return (expr.of_var(self._unknown(k)), *device, expr.of_var(self.t))

    def _unknown(self, k: int) -> Var:
        """The variable that a form of component k must not depend on."""
        return self.own.setdefault(k, expr.fresh(ARBITRARY, 2)) if self.alone else self.before

    def last_values(self) -> dict[int, Value] | None:
        """Of the components that are not known; None where some has no closed form."""
        ends = self.closed()
        return ends if len(ends) == len(self._open) else None

    def closed(self) -> dict[int, Value]:
        """The last values of those components that have a closed form."""
        state = [self.known.get(k) or self._arbitrary(k, value.type) for k, value in enumerate(self.initial)]
        after = self.iterate(state)
        turned = {k: self._turned(k, state[k], after[k]) for k in self._open}
        if self.maxima is not None:
            rest = [k for k, found in turned.items() if found is None and is_float(state[k].type.dtype)]
            numbers = {k: self._arbitrary(k, state[k].type, is_number=True) for k in rest}
            turned |= self.maxima.all_multiplied(self.t, self.before, self.initial, state, numbers)
        ends: dict[int, Value] = {}
        if any(turned.values()):
            for k, rotated in turned.items():
                if rotated is not None:
                    state[k], ends[k] = rotated
            after = self.iterate(state)
        largest: list[int] = []
        while True:
            largest += [k for k in self._open if k not in ends and self._closes(k, state[k], after[k], ends)]
            rescaled = [k for k in self._open if k not in ends]
            for k in rescaled:
                any(self._rescaled(k, m, state, after, ends) for m in largest)
            left = [after[k] for k in self._open if k not in ends]
            read = [k for k in self.sums if self._is_read(state[k], left)]
            if self.alone or not left:
                return ends
            if read:
                after = self._with_sums(state, {k: self.sums.pop(k) for k in read})
                continue
            read = [m for m in largest if m not in self.named and self._is_read(state[m], left)]
            if self.maxima is None:
                return ends
            if read:
                after = self._with_maxima(state, read, ends)
                continue
            found = next((k for k in self._open if k not in ends and self._is_settled(k, state)), None)
            if found is None:
                return ends
            after = self.maxima.without_zeros(self.t, state)
            last = algebra.substitute(after[found].term, {self.t: expr.constant(self.t.size - 1)})
            ends[found] = self._end(found, last)

    def _is_read(self, state: Value, after: Sequence[Value]) -> bool:
        """Whether values after an iteration are made of a component before it."""
        own = {read.tensor for read in reads(state.term)}
        return any(own & opening.ingredients(value.term) for value in after)

    def _with_sums(self, state: list[Value], added: Mapping[int, Poly]) -> list[Value]:
        """The components after an iteration where running sums stand in the place of arbitrary values: each by that
        form of the sums that makes less of it. `state` is changed likewise."""
        forms: list[list[Value]] = []
        for up_to_now in (False, True):
            for k, term in added.items():
                state[k] = self.now[k] = self._so_far(k, term, up_to_now)
            forms.append(self.iterate(state))
        return [min(each, key=lambda value: opening.opened(value.term).weight) for each in zip(*forms, strict=True)]

    def _so_far(self, k: int, added: Poly, up_to_now: bool) -> Value:
        """A running sum at iteration t: what was added in the iterations before. Or what is added up to t, less what t
        adds, where that is a number: what adds it again reads the sum up to t."""
        type_ = self.initial[k].type
        s = expr.fresh("f", self.t.size)
        up_to_now = up_to_now and not any(atom.doubt for mono, _ in added.items for atom, _ in mono)
        is_before = guards.interval(expr.subtract(expr.of_var(self.t), expr.of_var(s)), 0 if up_to_now else 1, None)
        then = algebra.substitute(added, {self.t: expr.of_var(s)})
        total = algebra.add(self.initial[k].term, sums.reduce_sum([s], algebra.multiply(is_before, then)))
        return Value(type_, algebra.difference(total, added) if up_to_now else lighten(total, type_.dtype))

    def _with_maxima(self, state: list[Value], read: Sequence[int], ends: Mapping[int, Value]) -> list[Value]:
        """The components after an iteration where maxima that others read have names, and sums in their units are made
        of these. `state` is changed likewise."""
        assert self.maxima is not None
        for m in read:
            first, end = self.initial[m].term, ends[m]
            starts = if_unknown_may_be().surely(first)
            doubt = UNDEFINED | INFINITE
            if self._units_are_numbers(m, end, ZERO):
                doubt = (first.doubt | end.term.doubt) & UNDEFINED
            self.named[m] = self.maxima.named(self.t, first, end, doubt, starts_from_number=starts)
            state[m] = self.named[m].at(expr.of_var(self.t))
        for k, scaled in self.scaled.items():
            greatest = self.named.get(scaled.maximum)
            starts = greatest is not None and (greatest.before is greatest.number or scaled.initial is ZERO)
            if scaled.maximum in read and starts and not scaled.added.doubt:
                unit = self.named[scaled.maximum].number_at(expr.of_var(self.t))
                total = self.maxima.total(self.t, self.initial[k].type, scaled)
                state[k] = scaled.before(self.t, self.initial[k].type, total, unit)
        return self.maxima.after(self.t, state, self.named)

    def _is_settled(self, k: int, state: list[Value]) -> bool:
        """Whether each iteration has of a component what it would need for its own part not to matter: `state` has that
        then. By induction, from what the component starts from."""
        assert self.maxima is not None
        type_ = self.initial[k].type
        if not is_float(type_.dtype) or self.t.size < 2:
            return False
        number = self._arbitrary(k, type_, is_number=True)
        guess = settled(self.t, number.term, self.iterate([*state[:k], number, *state[k + 1 :]])[k].term)
        if guess is None or self.before in guess.free:
            return False
        then = self.maxima.without_zeros(self.t, [*state[:k], Value(type_, guess), *state[k + 1 :]])[k].term
        if not self.maxima.is_settled(self.t, self.initial[k].term, guess, then):
            return False
        state[k] = Value(type_, guess)
        return True

    def turned_before(self) -> dict[int, Value]:
        """The components that each iteration passes on round a mesh axis, as they are before iteration t."""
        state = [self.known.get(k) or self._arbitrary(k, value.type) for k, value in enumerate(self.initial)]
        after = self.iterate(state)
        turned = {k: self._turned(k, state[k], after[k]) for k in self._open}
        return {k: found[0] for k, found in turned.items() if found is not None}

    def written_before(self) -> dict[int, Value]:
        """The components that are written to in part, and no place twice, as they are before iteration t."""
        assert self.effort is not None
        state = [self.known.get(k) or self._arbitrary(k, value.type) for k, value in enumerate(self.initial)]
        after = self.iterate(state)
        found = {}
        for k in self._open:
            now, then, first = state[k].term, opening.opened(after[k].term), self.initial[k].term
            if state[k].type.dtype != "i1":
                term = filling.written_before(self.t, self._unknown(k), now, then, first, self.effort)
                if term is not None:
                    found[k] = Value(state[k].type, term)
        return found

    @property
    def _open(self) -> list[int]:
        return [k for k in range(len(self.initial)) if k not in self.known]

    def _arbitrary(self, k: int, type_: TensorType, *, is_number: bool = False) -> Value:
        source = tensor(NUMBER if k in self.numbers else "opaque", f"carried {k}", type_.dtype, type_.shape)
        source.doubt = 0 if is_number else source.doubt
        return Value(type_, algebra.read(source, (*self._at(k), *positions(type_.shape))))

    def _end(self, k: int, term: Poly) -> Value:
        type_ = self.initial[k].type
        if rotations.turns(term) and allows("rotation_parts", len(term.items)):
            return Value(type_, term)  # another loop may have the other parts of the sum
        return Value(type_, lighten(term, type_.dtype))

    def _turned(self, k: int, state: Value, after: Value) -> tuple[Value, Value] | None:
        """At iteration t and in the end, where each iteration passes the value on round a mesh axis."""
        turn = self._turn(state.term.atom, after.term.atom)
        if turn is None:
            return None

        now, last = (
            Value(state.type, self._turned_by(turn(turns), self.initial[k].term))
            for turns in (expr.of_var(self.t), expr.constant(self.t.size))
        )
        return now, last

    def _turned_by(self, source: Index, term: Poly) -> Poly:
        """A term as it is on another device."""
        assert self.device is not None
        return algebra.substitute(term, {self.device: source})

    def _turn(self, now: Atom | None, then: Atom | None) -> Callable[[Index], Index] | None:
        """Where an arbitrary value comes from after some turns, if `then`, after one, is another device's `now`."""
        if self.device is None or not isinstance(now, Read) or not isinstance(then, Read):
            return None
        if then.tensor is not now.tensor:
            return None
        if (then.indices[0], *then.indices[2:]) != (now.indices[0], *now.indices[2:]):
            return None
        return rotation(then.indices[1], self.device)

    def _closes(self, k: int, state: Value, after: Value, ends: dict[int, Value]) -> bool:
        """Note the end of a running sum, of what is filled, or of a running maximum; whether it is a maximum."""
        term, dtype = opening.opened(after.term), state.type.dtype
        added = what_is_added(term, state.term)
        if self._unknown(k) not in added.free and dtype != "i1":
            ends[k] = self._end(k, rotations.joined(algebra.add(self.initial[k].term, self._summed(added, dtype))))
            self.sums[k] = added
            return False
        if dtype != "i1" and self._passed_on(k, state, term, ends):
            return False
        written = self._written(k, state, term)
        if written is not None:
            ends[k] = self._end(k, written)
            return False
        turn = compared(state, term) if is_float(dtype) else []
        if not turn or any(self._unknown(k) in p.free for each in turn for p in (each.on, each.seen or ZERO)):
            return False
        self.turns[k], self.seen[k] = turn, seen_by(turn)
        greatest = extrema.reduce_extremum("max", [self.t], self.seen[k])
        ends[k] = self._end(k, apply(MAXIMUM, (self.initial[k].term, greatest)))
        return True

    def _written(self, k: int, state: Value, term: Poly) -> Poly | None:
        """The last value of what each iteration leaves, or writes to in part."""
        own, first = self._unknown(k), self.initial[k].term
        found = filling.at_the_end(self.t, self.late, own, state.term, term, first, self.effort)
        return found or self._filled_round(k, state, term)

    def _passed_on(self, k: int, state: Value, term: Poly, ends: dict[int, Value]) -> bool:
        """Note the end of a sum that each iteration passes on round a mesh axis and adds to; whether it is one.

        What iteration t adds is passed on in the iterations after it.
        """
        for mono, c in term.items:
            if c != 1 or len(mono) != 1 or mono[0][1] != 1:
                continue
            turn = self._turn(state.term.atom, mono[0][0])
            added = what_is_added(term, of_atom(mono[0][0]))
            if turn is None or self._unknown(k) in added.free:
                continue
            left = expr.subtract(expr.constant(self.t.size - 1), expr.of_var(self.t))
            moved = self._turned_by(turn(left), added)
            first = self._turned_by(turn(expr.constant(self.t.size)), self.initial[k].term)
            ends[k] = self._end(k, rotations.joined(algebra.add(first, self._summed(moved, state.type.dtype))))
            return True
        return False

    def _filled_round(self, k: int, state: Value, term: Poly) -> Poly | None:
        """The last value of what each iteration passes on round a mesh axis, and fills on some device on the way: as
        for who goes along with it, it is filled in the place of what he holds."""
        passed = [read for read in reads(term) if self._unknown(k) in read.free]
        turn = self._turn(state.term.atom, passed[0]) if len(passed) == 1 else None
        if turn is None or self.effort is None:
            return None
        held = algebra.read(
            tensor("opaque", "held", state.type.dtype, state.shape), (*self._at(k)[:1], *positions(state.shape))
        )
        back = turn(expr.shift(expr.scale(expr.of_var(self.t), -1), -1))
        there = self._turned_by(back, algebra.with_atoms(term, {passed[0]: held}.get))
        late, own, first = self.late or self.t.size, self._unknown(k), self.initial[k].term
        found = filling.written_late(self.t, late, own, held, there, first, self.effort)
        return None if found is None else self._turned_by(turn(expr.constant(self.t.size)), found)

    def _summed(self, added: Poly, dtype: str) -> Poly:
        """The sum over iterations; of integers one by one, so that a number stays a number."""
        if is_integer(dtype) and allows("added_integers", self.t.size):
            every = ({self.t: expr.constant(n)} for n in range(self.t.size))
            return algebra.add(*(algebra.substitute(added, step) for step in every))
        return rotations.joined(sums.reduce_sum([self.t], added))

    def _rescaled(self, k: int, m: int, state: list[Value], after: list[Value], ends: dict[int, Value]) -> bool:
        """Note the end of a running sum in units of exp(m), for a running maximum m; whether it is one.

        Where m starts from minus infinity the sum must start from 0: no unit makes another number of it. Later m must
        be a number (`_units_are_numbers`), for exp(m - m') is none if both are infinities.
        """
        where = self._place(after[k].term, state[m])
        if where is None or not is_float(state[k].type.dtype):
            return False
        unit, last_unit, first_unit = (
            apply(EXPONENTIAL, (value.at(where),)) for value in (state[m], ends[m], self.initial[m])
        )
        now, then, added = state[k].term, opening.opened(after[k].term), ZERO
        for turn in self.turns[m]:
            on, next_unit = turn.on_at(where), apply(EXPONENTIAL, (turn.after(state[m]).at(where),))
            grown = algebra.expanded(algebra.multiply(on, then), next_unit)
            added = algebra.add(added, algebra.difference(grown, algebra.expanded(algebra.multiply(on, now), unit)))
        initial = self.initial[k].term
        if self._unknown(k) in added.free or not self._units_are_numbers(m, ends[m], initial):
            return False
        self.scaled[k] = Scaled(m, tuple(where), algebra.times(initial, first_unit), added)
        total = algebra.add(self.scaled[k].initial, sums.reduce_sum([self.t], added))
        ends[k] = self._end(k, algebra.times(total, algebra.power_of(last_unit, -1)))
        return True

    def _units_are_numbers(self, m: int, end: Value, initial: Poly) -> bool:
        """Whether no running maximum that a sum is in units of is an infinity, but for the first if the sum is 0 then.

        What is seen may be masked, if the first turn sees a number whatever its place is. What is added may be an
        infinity in either case: as a factor, a positive number passes through sums of infinities as through others.
        """
        first = self.initial[m].term
        if INFINITY in opening.ingredients(first) and initial is not ZERO:
            return False
        if INFINITY not in opening.ingredients(end.term):
            return True
        seen = self.seen[m]
        at_first = algebra.substitute(seen, {self.t: expr.constant(0)})
        finite = if_unknown_may_be()
        return (
            finite.never_above(first) and finite.never_above(seen) and (finite.surely(first) or finite.surely(at_first))
        )

    def _place(self, term: Poly, value: Value) -> list[Index] | None:
        """The one element of an arbitrary value that a term reads, the same in every iteration.

        The units of one iteration and the next cancel only where they are made of one element.
        """
        source = value.term.atom
        if not isinstance(source, Read):
            return None
        found = {read.indices for read in reads(opening.opened(term)) if read.tensor is source.tensor}
        outer = len(source.indices) - len(value.shape)
        if len(found) != 1 or (indices := found.pop())[:outer] != source.indices[:outer]:
            return None
        place = list(indices[outer:])
        fixed = term.free - {self.t, self.before, *self.own.values()}
        return place if all(e.free <= fixed for e in place) else None
