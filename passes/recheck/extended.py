"""Extended reals at a small instance: a number, and three conditions that say where it is none.

All nodes of a graph are real numbers. A term in which a program's infinity takes part is a number where none of the
conditions holds, plus infinity, minus infinity or no number where one does, and its number means nothing there.
Operations are IEEE's, but for roundings: `inf - inf` and `0 * inf` are no numbers, `exp(-inf)` is 0, and `max(-inf, a)`
is a.

    where(m, x, -inf)          number x,  minus 1 - m
    exp(where(m, x, -inf))     m * exp(x)

The greatest of several is the greatest of their numbers, with a symbol in the place of minus infinity that is less than
each of them (`z3_terms`): whatever these are, there is such a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import product

from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.terms.functions import NAN
from hlo_verify.terms.term import Number

FEW = 6
"""The most conditions of a coefficient of which all cases are looked at, for a shorter formula."""


@dataclass(frozen=True, slots=True)
class Extended:
    """A term that may be no number: of the conditions no two hold together."""

    number: Node
    plus: Node
    minus: Node
    none: Node


Value = Node | Extended
"""A number, or a term that may be none."""

Pairs = tuple[list[tuple[Node, Node]], list[tuple[Node, Node]]]
"""Formulas that have to be equal for values to be where both are numbers or infinite; and whether they are that."""


@dataclass(frozen=True, slots=True)
class Term:
    """A product of the prover's: it is computed where its conditions hold."""

    number: Number
    conditions: tuple[Node, ...]
    factors: tuple[Value, ...]


@dataclass(slots=True)
class Arithmetic:
    """Operations on extended reals, as formulas of one graph."""

    graph: Graph
    _grounded: set[tuple[str, Extended]] = field(default_factory=set)
    """Extrema that are the symbol where all that they are of is infinite."""

    # conditions: nodes that are 0 or 1

    def both(self, *conditions: Node) -> Node:
        """Where all hold."""
        graph = self.graph
        factors: set[Node] = set()
        for n in conditions:
            node = graph.nodes[n]
            factors.update([m for m, _ in node[1]] if node[0] == "product" else [n])
        return self._short(graph.multiply(sorted(factors)))

    def otherwise(self, condition: Node) -> Node:
        """Where it does not hold."""
        return self._short(self.graph.add([(self.graph.one, 1), (condition, -1)]))

    def either(self, *conditions: Node) -> Node:
        """Where one of them holds."""
        live = sorted({n for n in conditions if n != self.graph.zero})
        if len(live) < 2:
            return live[0] if live else self.graph.zero
        return self.otherwise(self.both(*map(self.otherwise, live)))

    def _short(self, n: Node) -> Node:
        p = self.graph.expand(n)
        return n if p is None else self.graph.of_monomials(p)

    def _cases(self, n: Node) -> set[Number] | None:
        """The values of a polynomial of few conditions; None of anything else."""
        p = self.graph.expand(n)
        if p is None:
            return None
        atoms = sorted({m for mono in p for m, _ in mono})
        if len(atoms) > FEW or not all(map(self.graph.is_boolean, atoms)):
            return None
        return {
            sum((c for mono, c in p.items() if all(m in on for m, _ in mono)), start=0)
            for chosen in product((False, True), repeat=len(atoms))
            for on in [{m for m, is_on in zip(atoms, chosen, strict=True) if is_on}]
        }

    def is_condition(self, n: Node) -> bool:
        """Whether a number is 0 or 1 as it is made of such."""
        values = {0} if self.graph.is_boolean(n) else self._cases(n)
        return values is not None and values <= {0, 1}

    def positive(self, n: Node) -> Node:
        """Where a number is positive."""
        values = self._cases(n)
        if self.graph.nodes[n][0] == "exp":
            return self.graph.one
        above = None if values is None else {v for v in values if v > 0}
        if values is None or above is None or len(above) > 1 or (above and min(values) < 0):
            return self.graph.positive(n)
        return self._short(self.graph.add([(n, 1 / Fraction(above.pop()))])) if above else self.graph.zero

    def negative(self, n: Node) -> Node:
        """Where a number is negative."""
        return self.positive(self.graph.add([(n, -1)]))

    def _is_zero(self, n: Node) -> Node:
        return self.graph.zero if self.graph.nodes[n][0] == "exp" else self.graph.is_zero(n)

    # values

    def extended(self, value: Value) -> Extended:
        """A value with its conditions."""
        zero = self.graph.zero
        return value if isinstance(value, Extended) else Extended(value, zero, zero, zero)

    def infinity(self, sign: int = 1) -> Extended:
        """Plus or minus infinity."""
        zero, one = self.graph.zero, self.graph.one
        return Extended(zero, one, zero, zero) if sign > 0 else Extended(zero, zero, one, zero)

    def nothing(self) -> Extended:
        """What is no number."""
        zero = self.graph.zero
        return Extended(zero, zero, zero, self.graph.one)

    def made(self, number: Node, plus: Node, minus: Node, none: Node) -> Value:
        """A value; where one of several conditions holds, it is none if that is `none`."""
        graph = self.graph
        none = self.either(none, self.both(plus, minus))
        if none == graph.one:
            return self.nothing()
        if none != graph.zero:
            is_one = self.otherwise(none)
            plus, minus = self.both(plus, is_one), self.both(minus, is_one)
        if {plus, minus, none} == {graph.zero}:
            return number
        found = Extended(number, plus, minus, none)
        return Extended(self._where_finite(found), plus, minus, none)

    def is_finite(self, value: Value) -> Node:
        """Where it is a number."""
        if not isinstance(value, Extended):
            return self.graph.one
        return self.otherwise(self.either(value.plus, value.minus, value.none))

    def _where_finite(self, value: Extended) -> Node:
        """The number of a value, without conditions that hold wherever it is one, or never do."""
        graph = self.graph
        found, number = graph.expand(self.is_finite(value)), graph.expand(value.number)
        if not found:
            return graph.zero if found is not None else value.number
        if number is None or max(found.values()) != 1 or (len(found) == 2 and min(found.values()) != -1):
            return value.number
        monos = [mono for mono in found if mono]
        if len(found) == 1:
            left = {m for m, _ in monos[0]} if monos else set()
            kept: dict[tuple[tuple[Node, int], ...], Number] = {}
            for mono, c in number.items():
                rest = tuple(item for item in mono if item[0] not in left)
                kept[rest] = kept.get(rest, 0) + c
            return graph.of_monomials({mono: c for mono, c in kept.items() if c})
        if len(found) == 2 and len(monos) == 1 and len(monos[0]) == 1:
            return graph.of_monomials({mono: c for mono, c in number.items() if monos[0][0] not in mono})
        return value.number

    def grounded(self, value: Value, reducer: str = "") -> Node:
        """A value as one number: infinities are the symbol and its opposite."""
        if not isinstance(value, Extended):
            return value
        if (reducer, value) in self._grounded:
            return value.number
        graph = self.graph
        low = graph.choose(value.minus, graph.add([(graph.infinity, -1)]), value.number)
        found = graph.choose(value.plus, graph.infinity, low)
        return found if value.none == graph.zero else graph.choose(value.none, graph.call(NAN, ()), found)

    # operations

    def scaled(self, value: Value, by: Number) -> Value:
        """A value times a number."""
        if not isinstance(value, Extended):
            return self.graph.add([(value, by)])
        if not by:
            return self.zero_times(value)
        ends = (value.plus, value.minus) if by > 0 else (value.minus, value.plus)
        return self.made(self.graph.add([(value.number, by)]), *ends, value.none)

    def zero_times(self, value: Value) -> Value:
        """0 of a number, else none."""
        zero = self.graph.zero
        return self.made(zero, zero, zero, self.otherwise(self.is_finite(value)))

    def add(self, values: Iterable[Value]) -> Value:
        """The sum."""
        parts = list(values)
        all_ = [self.extended(value) for value in parts]
        number = self.graph.add((value.number, 1) for value in all_)
        if not any(isinstance(value, Extended) for value in parts):
            return number
        plus, minus, none = (
            self.either(*found) for found in zip(*((v.plus, v.minus, v.none) for v in all_), strict=True)
        )
        return self.made(number, plus, minus, none)

    def multiply(self, values: Sequence[Value]) -> Value:
        """The product."""
        numbers = [value for value in values if not isinstance(value, Extended)]
        others = [value for value in values if isinstance(value, Extended)]
        start: Value = self.graph.multiply(numbers)
        return reduce(self._product, others, start)

    def _product(self, a: Value, b: Value) -> Value:
        if not isinstance(a, Extended):
            constant = self.graph.value(a)
            if constant is not None:
                return self.scaled(b, constant)
        one, other = self.extended(a), self.extended(b)
        ends = [self.either(value.plus, value.minus) for value in (one, other)]
        zeros = [self.both(self.is_finite(v), self._is_zero(v.number)) for v in (one, other)]
        below = [self.either(v.minus, self.both(self.is_finite(v), self.negative(v.number))) for v in (one, other)]
        lost = [self.both(ends[0], zeros[1]), self.both(ends[1], zeros[0])]
        infinite = self.either(*ends)
        opposite = self.either(
            self.both(below[0], self.otherwise(below[1])), self.both(self.otherwise(below[0]), below[1])
        )
        return self.made(
            self.graph.multiply([one.number, other.number]),
            self.both(infinite, self.otherwise(opposite), *map(self.otherwise, lost)),
            self.both(infinite, opposite, *map(self.otherwise, lost)),
            self.either(one.none, other.none, *lost),
        )

    def choose(self, condition: Node, a: Value, b: Value) -> Value:
        """One of two values."""
        graph = self.graph
        if not isinstance(a, Extended) and not isinstance(b, Extended):
            return graph.choose(condition, a, b)
        one, other = self.extended(a), self.extended(b)
        opposite = self.otherwise(condition)
        ends = [
            self.either(self.both(condition, first), self.both(opposite, second))
            for first, second in zip(
                (one.plus, one.minus, one.none), (other.plus, other.minus, other.none), strict=True
            )
        ]
        if self.is_finite(one) == graph.zero:
            number = other.number
        else:
            is_never = self.is_finite(other) == graph.zero
            number = one.number if is_never else graph.choose(condition, one.number, other.number)
        return self.made(number, *ends)

    def collected(self, terms: Iterable[Term]) -> Value:
        """The sum of products of the prover's: those of the same factors add up first, and where their coefficients, of
        all whose conditions hold, add up to 0, none of them is computed."""
        graph = self.graph
        numbers: list[tuple[Node, Number]] = []
        sums: dict[frozenset[tuple[Value, int]], list[tuple[Node, Number]]] = {}
        for term in terms:
            if any(isinstance(factor, Extended) for factor in term.factors):
                key = frozenset((factor, term.factors.count(factor)) for factor in term.factors)
                sums.setdefault(key, []).append((graph.multiply(term.conditions), term.number))
            else:
                nodes = [factor for factor in term.factors if not isinstance(factor, Extended)]
                numbers.append((graph.multiply([*term.conditions, *nodes]), term.number))
        found: list[Value] = [graph.add(numbers)]
        for key, parts in sums.items():
            factors = [factor for factor, count in key for _ in range(count)]
            found.append(self._times_chosen(self._short(graph.add(parts)), self.extended(self.multiply(factors))))
        return self.add(found)

    def _times_chosen(self, coefficient: Node, value: Extended) -> Value:
        """A value times a coefficient; where that is 0, nothing is computed."""
        above, below = self.positive(coefficient), self.negative(coefficient)
        return self.made(
            self.graph.multiply([coefficient, value.number]),
            self.either(self.both(above, value.plus), self.both(below, value.minus)),
            self.either(self.both(above, value.minus), self.both(below, value.plus)),
            self.both(self.either(above, below), value.none),
        )

    def extremum(self, reducer: str, values: Sequence[Value]) -> Value:
        """The greatest (`max`) or least (`min`) of some values."""
        all_ = [self.extended(value) for value in values]
        number = self.graph.extremum(reducer, [self.grounded(value, reducer) for value in values])
        if not any(isinstance(value, Extended) for value in values):
            return number
        none = self.either(*(value.none for value in all_))
        plus, minus = [value.plus for value in all_], [value.minus for value in all_]
        ends = (self.either(*plus), self.both(*minus)) if reducer == "max" else (self.both(*plus), self.either(*minus))
        zero = self.graph.zero
        if {*ends, none} == {zero}:
            return number
        if none != zero:
            ends = self.both(ends[0], self.otherwise(none)), self.both(ends[1], self.otherwise(none))
        found = Extended(number, *ends, none)
        self._grounded.add((reducer, found))
        return found

    # comparing

    def pairs(self, a: Value, b: Value) -> Pairs:
        """What has to be equal for two values to be."""
        if not isinstance(a, Extended) and not isinstance(b, Extended):
            return [(a, b)], []
        one, other = self.extended(a), self.extended(b)
        both = self.both(self.otherwise(one.none), self.otherwise(other.none))
        found = []
        for here, there in ((one.plus, other.plus), (one.minus, other.minus)):
            found.append((self.both(both, here), self.both(both, there)))
        graph = self.graph
        found.append(
            (
                graph.choose(self.both(both, self.is_finite(one)), one.number, graph.zero),
                graph.choose(self.both(both, self.is_finite(other)), other.number, graph.zero),
            )
        )
        return [pair for pair in found if pair[0] != pair[1]], [
            pair for pair in [(one.none, other.none)] if pair[0] != pair[1]
        ]
