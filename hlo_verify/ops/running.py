"""Loops in closed form: what a loop carries as a function of its counter.

    next = device's value at rho(device)    after t turns the initial value at rho^t(device), for a rotation of an axis
    next = now + added(t)                   in the end initial + sum over t. added(t)
    next = device's value at rho(device) + added(t)
                                            in the end initial at rho^n(device) + sum over t. added(t) at rho^(n-1-t)
    next = what is written at t, else now   in the end sum over t. written(t), where all is written once (`filling`)
    next = max(now, seen(t))                in the end max(initial, max over t. seen(t))
    next = now * exp(m - m') + added(t)     where m' is next to m, a maximum as above: in the end
                                            exp(-m) * (initial * exp(initial m) + sum over t. added(t) * exp(m'))

where what is added (times exp(m') in the last form) or seen is made of nothing that the loop carries but counters,
rotations and what never changes. The sums then close like any other: gradients accumulated over microbatches are the
gradient over the batch, and the online softmax of a ring is the softmax over all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_verify.equality import opening
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.ops.filling import filled
from hlo_verify.ops.values import Value, lighten, positions
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra, extrema, rotations, sums
from hlo_verify.terms.finite import if_unknown_may_be
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ZERO, Apply, Atom, Poly, Read, of_atom, reads, tensor

Iterate = Callable[[list[Value]], list[Value]]


@dataclass(slots=True)
class Closing:
    """A loop of iterations `t`, on every `device` if there are such, whose last values are looked for.

    `known` are the components whose value at iteration t is given; `iterate` gives the values after an iteration from
    those before it. It is run from arbitrary values for the others, which read a variable of their own (`before`): what
    is free of it depends on none of them.
    """

    t: Var
    device: Var | None
    initial: Sequence[Value]
    known: Mapping[int, Value]
    iterate: Iterate
    before: Var = field(default_factory=lambda: expr.fresh("before", 2))
    seen: dict[int, Poly] = field(default_factory=dict)
    """What every iteration compares a running maximum with."""

    @property
    def at(self) -> tuple[Index, ...]:
        """What arbitrary values are indexed by beside their positions."""
        device = () if self.device is None else (expr.of_var(self.device),)
        return (expr.of_var(self.before), *device, expr.of_var(self.t))

    def last_values(self) -> dict[int, Value] | None:
        """Of the components that are not known; None where some has no closed form."""
        state = [self.known.get(k) or self._arbitrary(k, value.type) for k, value in enumerate(self.initial)]
        after = self.iterate(state)
        turned = {k: self._turned(k, state[k], after[k]) for k in self._open}
        ends: dict[int, Value] = {}
        if any(turned.values()):
            for k, rotated in turned.items():
                if rotated is not None:
                    state[k], ends[k] = rotated
            after = self.iterate(state)
        largest: list[int] = []
        for k in self._open:
            if k not in ends and self._sum_or_largest(k, state[k], after[k], ends):
                largest.append(k)
        for k in self._open:
            if k not in ends and not any(self._rescaled(k, m, state, after, ends) for m in largest):
                return None
        return ends

    @property
    def _open(self) -> list[int]:
        return [k for k in range(len(self.initial)) if k not in self.known]

    def _arbitrary(self, k: int, type_: TensorType) -> Value:
        source = tensor("opaque", f"carried {k}", type_.dtype, type_.shape)
        return Value(type_, algebra.read(source, (*self.at, *positions(type_.shape))))

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

    def _sum_or_largest(self, k: int, state: Value, after: Value, ends: dict[int, Value]) -> bool:
        """Note the end of a running sum or maximum; whether it is a maximum."""
        term, dtype = opening.opened(after.term), state.type.dtype
        added = algebra.difference(term, state.term)
        if self.before not in added.free and dtype != "i1":
            ends[k] = self._end(k, algebra.add(self.initial[k].term, self._summed(added, dtype)))
            return False
        if dtype != "i1" and self._passed_on(k, state, term, ends):
            return False
        written = filled(self.t, self.before, state.term, term)
        if written is not None:
            ends[k] = self._end(k, written)
            return False
        atom = term.atom
        if not is_float(dtype) or not (
            isinstance(atom, Apply) and atom.function == MAXIMUM and state.term in atom.args
        ):
            return False
        seen = apply(MAXIMUM, tuple(arg for arg in atom.args if arg is not state.term))
        if self.before in seen.free:
            return False
        greatest = extrema.reduce_extremum("max", [self.t], seen)
        ends[k] = self._end(k, apply(MAXIMUM, (self.initial[k].term, greatest)))
        self.seen[k] = seen
        return True

    def _passed_on(self, k: int, state: Value, term: Poly, ends: dict[int, Value]) -> bool:
        """Note the end of a sum that each iteration passes on round a mesh axis and adds to; whether it is one.

        What iteration t adds is passed on in the iterations after it.
        """
        for mono, c in term.items:
            if c != 1 or len(mono) != 1 or mono[0][1] != 1:
                continue
            turn = self._turn(state.term.atom, mono[0][0])
            added = algebra.difference(term, of_atom(mono[0][0]))
            if turn is None or self.before in added.free:
                continue
            left = expr.subtract(expr.constant(self.t.size - 1), expr.of_var(self.t))
            moved = self._turned_by(turn(left), added)
            first = self._turned_by(turn(expr.constant(self.t.size)), self.initial[k].term)
            ends[k] = self._end(k, algebra.add(first, self._summed(moved, state.type.dtype)))
            return True
        return False

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
        unit, next_unit, last_unit, first_unit = (
            apply(EXPONENTIAL, (value.at(where),)) for value in (state[m], after[m], ends[m], self.initial[m])
        )
        grown = algebra.expanded(opening.opened(after[k].term), next_unit)
        added = algebra.difference(grown, algebra.expanded(state[k].term, unit))
        initial = self.initial[k].term
        if self.before in added.free or not self._units_are_numbers(m, ends[m], initial):
            return False
        total = algebra.add(algebra.times(initial, first_unit), sums.reduce_sum([self.t], added))
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
        assert isinstance(source, Read)
        found = {read.indices for read in reads(opening.opened(term)) if read.tensor is source.tensor}
        outer = len(self.at)
        if len(found) != 1 or (indices := found.pop())[:outer] != source.indices[:outer]:
            return None
        place = list(indices[outer:])
        fixed = term.free - {self.t, self.before}
        return place if all(e.free <= fixed for e in place) else None


def rotation(source: Index, device: Var) -> Callable[[Index], Index] | None:
    """Where a value comes from after some turns, if it comes from `source` after one: the same shift of the devices'
    places on rings. None if it is no such shift.

    Steps of several places may be rotations of more than one digit; a mesh axis is what the source is written with.
    """
    if source.free - {device}:
        return None
    found = tables.evaluate(source, device)
    written = [
        (digit.low, atom.args[0])
        for atom, _ in source.items
        if isinstance(atom, Opaque) and atom.operator == "mod"
        for digit, _ in atom.exprs[0].items
        if isinstance(digit, Digit)
    ]
    ring = None if found is None else tables.ring(found, device, written)
    return None if ring is None else ring.turned
