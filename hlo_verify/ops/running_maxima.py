"""Running maxima by name, and factors of turns whose product they are left of.

    m[t + 1] = max(m[t], seen(t))

A running maximum has no form that gets simpler from turn to turn. So it has a name, m[t] before turn t, where others
read it: online softmaxes keep `exp(x(t) - m[t + 1])` and `exp(m[t] - m[t + 1])` of each turn for their gradients. In a
loop that goes back, the product of the latter is what stands before and after, alone:

    product over u with t < u < n. exp(m[u] - m[u + 1]) = exp(m[t + 1] - m[n])

and m[n] is the maximum that the loop leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hlo_verify.equality import opening
from hlo_verify.equality.briefly import equal_briefly
from hlo_verify.equality.opening import ingredients
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.values import Value, position_var, positions
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards, sums
from hlo_verify.terms.at_constants import remade
from hlo_verify.terms.definitions import at_places
from hlo_verify.terms.doubts import INFINITE, UNDEFINED
from hlo_verify.terms.functions import EXPONENTIAL, INFINITE_EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Poly, Read, Tensor, make_poly, tensor

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
    starts_from_least: bool = False
    """Whether it is minus infinity before turn 0."""

    def at(self, turn: Index) -> Value:
        if self.starts_from_least:
            at_first, later = guards.interval(turn, None, 0), guards.interval(turn, 1, None)
            number = algebra.multiply(later, self.number_at(turn).term)
            return Value(self.type, algebra.add(number, algebra.multiply(at_first, infinity(-1))))
        return Value(self.type, algebra.read(self.before, (*self.execution, turn, *positions(self.type.shape))))

    def number_at(self, turn: Index) -> Value:
        return Value(self.type, algebra.read(self.number, (*self.execution, turn, *positions(self.type.shape))))

    def turn_of(self, read: Read) -> Index:
        return read.indices[len(self.execution)]

    def end_at(self, read: Read) -> Poly:
        """What it is in the end, of the execution and at the position where a name of it is read."""
        return _there(read, self.execution, self.end, {})


@dataclass(frozen=True, slots=True)
class Scaled:
    """A running sum in units of exp(m): what it starts from, and what every iteration adds, times the unit."""

    maximum: int
    """The component m."""
    place: tuple[Index, ...]
    """The element of m."""
    initial: Poly
    added: Poly

    def before(self, t: Var, type_: TensorType, total: Total, maximum: Value) -> Value:
        """It at iteration t, where m is that: what was added up to there, less what this iteration adds."""
        up_to_now = total.at(expr.shift(expr.of_var(t), 1)).term
        unit = apply(EXPONENTIAL, (algebra.scale(maximum.at(self.place), -1),))
        return Value(type_, algebra.times(algebra.difference(up_to_now, self.added), unit))


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """What a running sum in units of a maximum is before a turn, times its unit."""

    tensor: Tensor
    execution: tuple[Index, ...]
    t: Var
    type: TensorType
    added: Poly
    second: Poly
    """What it is before turn 1."""
    end: Poly

    def at(self, turn: Index) -> Value:
        return Value(self.type, algebra.read(self.tensor, (*self.execution, turn, *positions(self.type.shape))))

    def of(self, read: Read, term: Poly) -> Poly:
        """A term of this execution, turn and position, where that is read."""
        return _there(read, self.execution, Value(self.type, term), {self.t: read.indices[len(self.execution)]})


def _there(read: Read, execution: tuple[Index, ...], value: Value, turn: dict[Var, Index]) -> Poly:
    """A value of an execution (variables and numbers), where a name of it is read: all at once, as what it is read at
    may hold variables of positions, too."""
    there = dict(turn)
    count = len(execution)
    for own, its in zip(execution, read.indices[:count], strict=True):
        there.update(dict.fromkeys(own.free, its))
    for k, (size, its) in enumerate(zip(value.shape, read.indices[count + 1 :], strict=True)):
        if size > 1:
            there[position_var(k, size)] = its
    return algebra.substitute(value.term, there)


@dataclass(slots=True, eq=False)
class Maxima:
    """The running maxima that have names, and how a loop's iteration is run that gives one its name."""

    execution: tuple[Index, ...]
    """Which execution of the loop this is."""
    iterate: Callable[[list[Value], Instead], list[Value]]
    """What is carried after an iteration, where something stands in the place of operations' results."""
    session: Session
    known: dict[Tensor, RunningMaximum] = field(default_factory=dict)
    totals: dict[Tensor, Total] = field(default_factory=dict)

    def total(self, t: Var, type_: TensorType, scaled: Scaled) -> Total:
        """A new name of what a running sum in units of a maximum is before each turn."""
        name = tensor("opaque", "sum so far", type_.dtype, (t.size + 1, *type_.shape))
        end = algebra.add(scaled.initial, sums.reduce_sum([t], scaled.added))
        second = algebra.add(scaled.initial, algebra.substitute(scaled.added, {t: expr.constant(0)}))
        name.doubt = scaled.initial.doubt | scaled.added.doubt
        found = self.totals[name] = Total(name, self.execution, t, type_, scaled.added, second, end)
        return found

    def named(self, t: Var, first: Poly, end: Value, doubt: int, *, starts_from_number: bool) -> RunningMaximum:
        """A new name; what it stands for after the first turn has no more doubts than those."""
        type_, shape = end.type, (t.size + 1, *end.shape)
        number = tensor("opaque", "greatest so far", type_.dtype, shape)
        number.doubt = doubt
        before = number if starts_from_number else tensor("opaque", "greatest before", type_.dtype, shape)
        least = not starts_from_number and first is infinity(-1)
        found = RunningMaximum(before, number, self.execution, t.size, type_, end, starts_from_least=least)
        before.doubt = doubt if starts_from_number else UNDEFINED | INFINITE
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

    def without_zeros(self, t: Var, state: list[Value]) -> list[Value]:
        """What is carried after an iteration where differences are 0 that are so with what is named taken apart: what
        a component is less what it would be then, which conditions and quotients may be multiplied by."""

        def seen(_: Op, values: list[Value]) -> list[Value]:
            return [Value(value.type, ZERO) if self._is_nothing(t, value) else value for value in values]

        return self.iterate(state, seen)

    def _is_nothing(self, t: Var, value: Value) -> bool:
        """Whether a value is 0 in each iteration; perhaps in the last one, which goes back to the first turn of a
        maximum, because sums before the second turn are what the first one added."""
        if not is_float(value.type.dtype) or len(value.term.items) < 2:
            return False
        term = opening.opened(value.term)
        if term is ZERO or not ingredients(term) & self.totals.keys():
            return term is ZERO
        sooner = algebra.substitute(term, {t: expr.of_var(expr.fresh("t", t.size - 1))})
        if opening.opened(sooner) is not ZERO:
            return False
        last = algebra.substitute(term, {t: expr.constant(t.size - 1)})
        return equal_briefly(self._replaced(last, self._second), ZERO, ONE, self.session)

    def _second(self, atom: Atom) -> Poly | None:
        """What a sum is before turn 1, times its unit."""
        total = self.totals.get(atom.tensor) if isinstance(atom, Read) else None
        if total is None or not isinstance(atom, Read):
            return None
        is_second = atom.indices[len(total.execution)] is expr.constant(1)
        return total.of(atom, total.second) if is_second else None

    def all_multiplied(
        self, t: Var, before: Var, initial: Sequence[Value], state: list[Value], numbers: Mapping[int, Value]
    ) -> dict[int, tuple[Value, Value]]:
        """What `multiplied` gives of each component that it gives something of, of those that `numbers` has an
        arbitrary number for. A component that starts from a number and is multiplied by such a factor is a number
        before each iteration: so those of which that is found are taken for such, all together."""
        after = self.iterate(state, lambda _, values: values)
        found = {k: self.multiplied(t, before, initial[k], state[k], after[k]) for k in numbers}
        left = [k for k, each in found.items() if each is None and not initial[k].term.doubt]
        while left:
            taken = [numbers[k] if k in left else value for k, value in enumerate(state)]
            after = self.iterate(taken, lambda _, values: values)
            now = {k: self.multiplied(t, before, initial[k], taken[k], after[k]) for k in left}
            held = [k for k, each in now.items() if each is not None]
            if held == left:
                found |= now
                break
            left = held
        return {k: each for k, each in found.items() if each is not None}

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
        if t.size < 2:
            return None
        # what turn 0 of the maximum is in is a factor of the last iteration
        earlier = {t: expr.of_var(expr.fresh("t", t.size - 1))}
        exponent = _exponent(_where(factor, earlier))
        if exponent is None:
            return None
        inside = {read: self._number(read, earlier) for read in self._reads(exponent)}
        if not inside or None in inside.values():
            return None
        exponent = algebra.with_atoms(exponent, inside.get)
        if exponent.doubt:
            return None
        sides = [
            algebra.add(*(make_poly((item,)) for item in exponent.items if (item[1] > 0) == is_up))
            for is_up in (True, False)
        ]
        for later, sooner in (sides, sides[::-1]):
            start = algebra.scale(sooner, -1)
            if algebra.substitute(start, {t: expr.shift(expr.of_var(t), 1)}) is later:
                return self._left(t, start, factor)
        return None

    def is_settled(self, t: Var, initial: Poly, guess: Poly, then: Poly) -> bool:
        """Whether a component is that before each iteration: it starts from it, and an iteration that has it gives
        `then`, which is what it is before the next one."""
        if not self.are_equal(algebra.substitute(guess, {t: expr.constant(0)}), initial):
            return False
        sooner = expr.of_var(expr.fresh("t", t.size - 1))
        later = expr.shift(sooner, 1)
        return self.are_equal(algebra.substitute(then, {t: sooner}), algebra.substitute(guess, {t: later}))

    def are_equal(self, made: Poly, next_: Poly) -> bool:
        """Whether two terms are seen to be equal, with what names stand for in the end in the place of these; and in
        the second one, what sums are one turn later, less what is added then."""
        made, next_ = (self._replaced(p, self._settled_at) for p in (made, self._replaced(next_, self._later)))
        return equal_briefly(made, next_, ONE, self.session)

    def _settled_at(self, atom: Atom) -> Poly | None:
        """What a name stands for in the end, or the same name where it surely is a number."""
        end = self._end(atom)
        if end is not None or not isinstance(atom, Read) or atom.tensor not in self.known:
            return end
        return self._number(atom, {})

    def _later(self, atom: Atom) -> Poly | None:
        found = self.totals.get(atom.tensor) if isinstance(atom, Read) else None
        if found is None or not isinstance(atom, Read) or atom.indices[len(found.execution)].hi >= found.t.size:
            return None
        later = algebra.substitute(found.at(expr.shift(expr.of_var(found.t), 1)).term, {})
        return found.of(atom, algebra.difference(later, found.added))

    def _replaced(self, p: Poly, image: Callable[[Atom], Poly | None]) -> Poly:
        """A term with some atoms replaced, those that its definitions are made of too."""
        anew: dict[Atom, Poly | None] = {}

        def replaced(p: Poly) -> Poly:
            if not ingredients(p) & (self.known.keys() | self.totals.keys()):
                return p
            return algebra.with_atoms(p, once)

        def once(atom: Atom) -> Poly | None:
            if atom not in anew:
                anew[atom] = of(atom)
            return anew[atom]

        def of(atom: Atom) -> Poly | None:
            if isinstance(atom, Apply):
                return apply(atom.function, tuple(map(replaced, atom.args)))
            if not isinstance(atom, Read) or not atom.tensor.bodies or atom.tensor.seal is not None:
                return image(atom)
            count = len(atom.tensor.params)
            bound, there = at_places(atom.tensor, atom.indices[:count])
            bodies = tuple(replaced(there.poly(body)) for body in atom.tensor.bodies)
            return remade(atom.tensor, bound, bodies, atom.indices[count:])

        return replaced(p)

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
        total = self.totals.get(atom.tensor) if isinstance(atom, Read) else None
        if total is not None and isinstance(atom, Read):
            is_end = atom.indices[len(total.execution)] is expr.constant(total.t.size)
            return total.of(atom, total.end) if is_end else None
        found = self.known.get(atom.tensor) if isinstance(atom, Read) else None
        if found is None or not isinstance(atom, Read) or found.turn_of(atom) is not expr.constant(found.trips):
            return None
        return found.end_at(atom)


def _where(p: Poly, there: dict[Var, Index]) -> Poly:
    """What a term is where variables are that, as its conditions say; with the same variables."""
    found = (term for on, term in steps(p) if algebra.substitute(on, there) is ONE)
    return next(found, p)


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


def settled(t: Var, now: Poly, after: Poly) -> Poly | None:
    """What a component, `now` before iteration t, has to be so that it does not matter for what comes after it: where
    `after` is `others + factor * (now - that)` in all iterations but perhaps the last one. A guess, by a product of the
    factor that is part of no other one, as `[a > b]*[a = b]` is of `[a > b] + [a = b]/2 - [a > b]*[a = b]/2`, which
    gradients of maxima are multiplied by."""
    atom, after = now.atom, opening.opened(after)
    own = [(mono, c) for mono, c in after.items if any(a is atom for a, _ in mono)]
    if atom is None or any(len(mono) == 1 or dict(mono)[atom] != 1 for mono, _ in own):
        return None
    earlier = {t: expr.of_var(expr.fresh("t", t.size - 1))}
    held = [item for item in own if algebra.substitute(make_poly((item,)), earlier) is not ZERO]
    if not held:
        return None
    most, scale = max(held, key=lambda item: len(item[0]))
    factor = frozenset(item for item in most if item[0] is not atom)
    that = ZERO
    for mono, c in after.items:
        if factor.issubset(mono) and all(a is not atom for a, _ in mono):
            rest = tuple(item for item in mono if item not in factor)
            that = algebra.add(that, make_poly(((rest, -Fraction(c) / Fraction(scale)),)))
    return that
