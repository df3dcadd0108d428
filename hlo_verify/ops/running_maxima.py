"""Running maxima by name, and factors of turns whose product they are left of.

    m[t + 1] = max(m[t], seen(t))

A running maximum has no form that gets simpler from turn to turn. So it has a name, m[t] before turn t, where others
read it: online softmaxes keep `exp(x(t) - m[t + 1])` and `exp(m[t] - m[t + 1])` of each turn for their gradients. In a
loop that goes back, the product of the latter is what stands before and after, alone:

    product over u with t < u < n. exp(m[u] - m[u + 1]) = exp(m[t + 1] - m[n])

and m[n] is the maximum that the loop leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.values import Value, positions
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.terms import algebra, guards, sums
from hlo_verify.terms.functions import EXPONENTIAL, INFINITE_EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ZERO, Apply, Atom, Poly, Read, Tensor, make_poly, tensor

Instead = Callable[[Op, list[Value]], list[Value]]


@dataclass(frozen=True, slots=True, eq=False)
class RunningMaximum:
    """A running maximum of so many turns, of each execution of a loop: read at that, the turn and a position."""

    before: Tensor
    """What it is before a turn."""
    number: Tensor
    """The same from turn 1 on; some number before turn 0, where what it starts from is none."""
    execution: tuple[Index, ...]
    trips: int
    type: TensorType
    end: Value
    """What it is in the end."""

    def at(self, turn: Index) -> Value:
        return Value(self.type, algebra.read(self.before, (*self.execution, turn, *positions(self.type.shape))))

    def number_at(self, turn: Index) -> Value:
        return Value(self.type, algebra.read(self.number, (*self.execution, turn, *positions(self.type.shape))))

    def turn_of(self, read: Read) -> Index:
        return read.indices[len(self.execution)]

    def end_of(self, read: Read) -> Poly:
        """What a name of it in the end stands for, where that is read."""
        count = len(self.execution)
        there = {}
        for own, its in zip(self.execution, read.indices[:count], strict=True):
            for var in own.free:
                there[var] = its
        end = algebra.substitute(self.end.term, there)
        return Value(self.type, end).at(list(read.indices[count + 1 :]))


@dataclass(frozen=True, slots=True)
class Scaled:
    """A running sum in units of exp(m): what it starts from, and what every iteration adds, times the unit."""

    maximum: int
    """The component m."""
    place: tuple[Index, ...]
    """The element of m."""
    initial: Poly
    added: Poly

    def so_far(self, t: Var, type_: TensorType, maximum: Value) -> Value:
        """It at iteration t, where m is that: what was added in the iterations before."""
        s = expr.fresh("f", t.size)
        is_before = guards.interval(expr.subtract(expr.of_var(t), expr.of_var(s)), 1, None)
        then = algebra.substitute(self.added, {t: expr.of_var(s)})
        total = algebra.add(self.initial, sums.reduce_sum([s], algebra.multiply(is_before, then)))
        unit = apply(EXPONENTIAL, (algebra.scale(maximum.at(self.place), -1),))
        return Value(type_, algebra.times(total, unit))


@dataclass(slots=True, eq=False)
class Maxima:
    """The running maxima that have names, and how a loop's iteration is run that gives one its name."""

    execution: tuple[Index, ...]
    """Which execution of the loop this is."""
    iterate: Callable[[list[Value], Instead], list[Value]]
    """What is carried after an iteration, where something stands in the place of operations' results."""
    known: dict[Tensor, RunningMaximum] = field(default_factory=dict)

    def named(self, t: Var, type_: TensorType, end: Value, doubt: int, *, starts_from_number: bool) -> RunningMaximum:
        """A new name; what it stands for after the first turn has no more doubts than those."""
        shape = (t.size + 1, *type_.shape)
        number = tensor("opaque", "greatest so far", type_.dtype, shape)
        number.doubt = doubt
        before = number if starts_from_number else tensor("opaque", "greatest before", type_.dtype, shape)
        found = RunningMaximum(before, number, self.execution, t.size, type_, end)
        self.known[number] = self.known[before] = found
        return found

    def after(self, t: Var, state: list[Value], named: dict[int, RunningMaximum]) -> list[Value]:
        """What is carried after an iteration before which `state` has maxima by name: after it they have names, too."""
        plain = self.iterate(state, lambda _, values: values)
        turn = expr.shift(expr.of_var(t), 1)
        greatest = {(plain[k].type, plain[k].term): each.number_at(turn) for k, each in named.items()}

        def by_name(op: Op, values: list[Value]) -> list[Value]:
            return [greatest.get((value.type, value.term), value) for value in values]

        return self.iterate(state, by_name)

    def multiplied(self, t: Var, before: Var, initial: Value, state: Value, after: Value) -> tuple[Value, Value] | None:
        """What each iteration multiplies by such a factor, at iteration t and in the end; `state` is an arbitrary value
        that alone reads `before`."""
        atom, term = state.term.atom, opening.opened(after.term)
        if not term.items or not all((atom, 1) in mono for mono, _ in term.items):
            return None
        factor = algebra.build({tuple(item for item in mono if item[0] is not atom): c for mono, c in term.items})
        found = None if before in factor.free else self.product(t, factor)
        if found is None:
            return None
        now, last = (Value(state.type, algebra.times(initial.term, p)) for p in found)
        return now, last

    def product(self, t: Var, factor: Poly) -> tuple[Poly, Poly] | None:
        """The product of that factor over the iterations before t, and over all, where maxima by name are left of it:
        exp(F(t + 1) - F(t)) in iteration t."""
        exponent = _exponent(factor)
        if exponent is None or t.size < 2:
            return None
        earlier = expr.fresh("t", t.size - 1)  # what turn 0 of the maximum is in is a factor of the last iteration
        inside = {read: self._number(read, {t: expr.of_var(earlier)}) for read in self._reads(exponent)}
        if not inside or None in inside.values():
            return None
        exponent = algebra.with_atoms(exponent, inside.get)
        sides = [
            algebra.add(*(make_poly((item,)) for item in exponent.items if (item[1] > 0) == is_up))
            for is_up in (True, False)
        ]
        for later, sooner in (sides, sides[::-1]):
            start = algebra.scale(sooner, -1)
            if algebra.substitute(start, {t: expr.shift(expr.of_var(t), 1)}) is later:
                return self._left(t, start, factor)
        return None

    def _left(self, t: Var, start: Poly, factor: Poly) -> tuple[Poly, Poly]:
        first, last = (algebra.substitute(start, {t: expr.constant(n)}) for n in (0, t.size - 1))
        first, last, now = (algebra.with_atoms(p, self._end) for p in (first, last, start))
        before, most = (apply(EXPONENTIAL, (algebra.difference(p, first),)) for p in (now, last))
        return before, algebra.times(most, algebra.substitute(factor, {t: expr.constant(t.size - 1)}))

    def _reads(self, p: Poly) -> list[Read]:
        return [a for mono, _ in p.items for a, _ in mono if isinstance(a, Read) and a.tensor in self.known]

    def _number(self, read: Read, there: dict[Var, Index]) -> Poly | None:
        """The same read of what is a number; None where it may be of what the loop starts from, and none."""
        found = self.known[read.tensor]
        turn = expr.substitute(found.turn_of(read), there)
        if read.tensor is not found.number and turn.lo < 1:
            return None
        return algebra.read(found.number, read.indices)

    def _end(self, atom: Atom) -> Poly | None:
        found = self.known.get(atom.tensor) if isinstance(atom, Read) else None
        if found is None or not isinstance(atom, Read) or found.turn_of(atom) is not expr.constant(found.trips):
            return None
        return found.end_of(atom)


def _exponent(factor: Poly) -> Poly | None:
    """What a factor is the exponential of."""
    factor = opening.opened(factor)
    if len(factor.items) != 1 or factor.items[0][1] != 1:
        return None
    exponent = ZERO
    for atom, n in factor.items[0][0]:
        if not isinstance(atom, Apply) or atom.function not in (EXPONENTIAL, INFINITE_EXPONENTIAL):
            return None
        if atom.function == INFINITE_EXPONENTIAL and n != 1:
            return None
        exponent = algebra.add(exponent, algebra.scale(atom.args[0], n))
    return exponent
