"""Quotients of quotients: one polynomial over another, whatever was divided on the way.

    (1 - p/(p + r))*p  =  r*p/(p + r)        1/(1/a + 1/b)  =  a*b/(a + b)

From the inside out, each term is a polynomial over a product of such, and two of them are one if the polynomials are
once both are multiplied by what they are divided by. None of that may be 0, whatever the arguments are, in either term:
where the expected one divides by 0 it may be finite (`1/(1 + 1/a)`), or be a part of what is. Under different
conditions terms are looked at by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from hlo_verify.equality.opening import made_of_few
from hlo_verify.equality.quotients import MOST
from hlo_verify.equality.scalar_values import is_far
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.memory import once_a_session
from hlo_verify.session import Session
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Monomial, Number, Poly, Read, make_poly, of_atom

Divisors = Mapping[Poly, int]
"""What a polynomial is divided by, with powers."""


def same_rational_function(found: Poly, expected: Poly, session: Session) -> bool:
    """Whether two terms are one quotient of polynomials, under the same conditions."""
    if not (divides(found) or divides(expected)) or not made_of_few((found, expected), MOST):
        return False
    if is_far(algebra.difference(found, expected)):
        return False
    steps = Steps(session.limits.quotient_steps)
    mine, others = _by_conditions(found), _by_conditions(expected)
    try:
        return all(_are_one(mine.get(on, ZERO), others.get(on, ZERO), steps) for on in dict.fromkeys((*mine, *others)))
    except _OtherError:
        return False
    except SpentError:
        session.reached("quotient_steps")
        return False


def _are_one(found: Poly, expected: Poly, steps: Steps) -> bool:
    quotients = _Quotients(steps)
    one, other = quotients.of(found), quotients.of(expected)
    return quotients.over(other[1], one) is quotients.over(one[1], other)


def _by_conditions(p: Poly) -> dict[Monomial, Poly]:
    """What a term is under each product of conditions."""
    parts: dict[Monomial, dict[Monomial, Number]] = {}
    for mono, c in p.items:
        on = tuple(item for item in mono if item[0].boolean)
        parts.setdefault(on, {})[tuple(item for item in mono if not item[0].boolean)] = c
    return {on: algebra.build(terms) for on, terms in parts.items()}


@once_a_session
def divides(p: Poly) -> bool:
    """Whether something is divided in a term."""
    return any(_divides_in(atom) for mono, _ in p.items for atom, _ in mono)


def _divides_in(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return atom.function == INVERSE
    return isinstance(atom, Read) and atom.tensor.kind == "term" and divides(atom.tensor.bodies[0])


def _common(p: Poly) -> dict[Atom, int]:
    """The atoms that all products of a term have as factors, with powers."""
    products = [dict(mono) for mono, _ in p.items]
    powers = {a: [product.get(a, 0) for product in products] for a in products[0]}
    return {a: int(min(each)) for a, each in powers.items() if all(isinstance(n, int) and n > 0 for n in each)}


class _OtherError(Exception):
    """A term is no quotient of polynomials of numbers, or may be divided by 0."""


@dataclass(slots=True)
class _Quotients:
    """Terms as polynomials over products of some."""

    steps: Steps
    found: dict[Poly, tuple[Poly, Divisors]] = field(default_factory=dict)

    def of(self, p: Poly) -> tuple[Poly, Divisors]:
        known = self.found.get(p)
        if known is None:
            if p.doubt & INFINITE:
                raise _OtherError
            known = self.found[p] = self._sum([self._product(mono, c) for mono, c in p.items])
        return known

    def _sum(self, parts: list[tuple[Poly, Divisors]]) -> tuple[Poly, Divisors]:
        common: dict[Poly, int] = {}
        for _, divisors in parts:
            for p, n in divisors.items():
                common[p] = max(n, common.get(p, 0))
        return algebra.add(*(self.over(common, part) for part in parts)), common

    def over(self, common: Divisors, quotient: tuple[Poly, Divisors]) -> Poly:
        """The polynomial that a quotient is over other divisors, with more factors."""
        top, divisors = quotient
        for p, n in common.items():
            for _ in range(n - divisors.get(p, 0)):
                top = self._times(top, p)
        return top

    def _product(self, mono: Monomial, c: Number) -> tuple[Poly, Divisors]:
        top, divisors = make_poly((((), c),)), dict[Poly, int]()
        for atom, n in mono:
            if atom.boolean:
                raise _OtherError
            if not isinstance(n, int) or n < 0:
                self._keep(atom)
                top = algebra.multiply(top, make_poly(((((atom, n),), 1),)))
                continue
            above, below = self._atom(atom)
            for _ in range(n):
                top = self._times(top, above)
            for p, k in below.items():
                divisors[p] = divisors.get(p, 0) + k * n
        return top, divisors

    def _atom(self, atom: Atom) -> tuple[Poly, Divisors]:
        if isinstance(atom, Apply) and atom.function == INVERSE:
            return self._inverse(atom.args[0])
        if isinstance(atom, Read) and atom.tensor.kind == "term" and atom.tensor.seal is None:
            return self.of(unfold(atom)[1][0])
        self._keep(atom)
        return of_atom(atom), {}

    def _inverse(self, p: Poly) -> tuple[Poly, Divisors]:
        top, divisors = self.of(p)
        if top is ZERO or all(signs.of(each) & (signs.ZERO | signs.BEYOND) for each in (p, top)):
            raise _OtherError
        above = ONE
        for divisor, n in divisors.items():
            for _ in range(n):
                above = self._times(above, divisor)
        common = _common(top)
        rest = make_poly(
            tuple(
                (tuple((a, n - common.get(a, 0)) for a, n in mono if n != common.get(a, 0)), c) for mono, c in top.items
            )
        )
        scale = 1 / Fraction(rest.items[0][1])
        rest = algebra.scale(rest, scale)
        below = {of_atom(a): n for a, n in common.items()}
        if rest is not ONE:
            below[rest] = 1
        return algebra.scale(above, scale), below

    def _keep(self, atom: Atom) -> None:
        if atom.doubt:
            raise _OtherError

    def _times(self, p: Poly, q: Poly) -> Poly:
        self.steps.take(len(p.items) * len(q.items))
        return algebra.expanded(p, q)
