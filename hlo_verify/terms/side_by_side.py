"""Conditions on two digits that lie side by side at some place, as conditions on that place.

Where a dimension of 80 is split into 40 on each of two devices, and its first part has 64 elements, XLA asks on each
device whether an element is one of its 32 of that part, `[32*d + l <= 31]` of l < 40, and reads at `40*d + l`. Both
conditions, that one and `[40*d + l <= 31]`, say the same of d and l. The latter is kept where something is read at
`40*d + l`: then one index is all that a term depends on, and d and l join to one digit of whatever takes their place.

Conditions of one product are taken together: `[8*d + l >= 32] * [d <= 0]` is `[32 <= 40*d + l <= 39]`. The first of the
two alone holds in two pieces of `40*d + l`, and is written as these where they join with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index
from hlo_verify.limits import allows
from hlo_verify.terms.algebra import add, multiply
from hlo_verify.terms.guards import guards_of, interval
from hlo_verify.terms.products import mapped
from hlo_verify.terms.term import ONE, Guard, Monomial, Poly, atoms, indices, make_poly
from hlo_verify.terms.used import used

Span = tuple[int, int]
"""The first and the last of some values that are neighbours; none where the first one comes after the last."""


@dataclass(frozen=True, slots=True)
class Place:
    """`n*high + low`, where low has n values."""

    low: Digit
    high: Digit

    @property
    def index(self) -> Index:
        """The place as an index expression."""
        return expr.add(expr.of_atom(self.low), expr.scale(expr.of_atom(self.high), self.low.radix))

    def within(self, first: int, last: int) -> Poly:
        """The condition that the place lies there, as one digit would have it: on its upper part, if it asks for no
        more."""
        size = self.low.radix * self.high.radix
        m = gcd(size, first, last + 1)
        lo, hi = first // m if first else None, (last + 1) // m - 1 if last < size - 1 else None
        return interval(expr.floor_div(self.index, m), lo, hi)

    def is_asked(self, guard: Guard) -> bool:
        """Whether a condition asks of nothing else than the two digits: of the low one, or of the upper part of it."""
        others = [atom for atom, _ in guard.form.items if atom is not self.high]
        return len(others) < 2 and all(self._is_in_low(atom) for atom in others)

    def _is_in_low(self, atom: expr.Atom) -> bool:
        low = self.low
        return (
            isinstance(atom, Digit)
            and atom.var is low.var
            and atom.low % low.low == 0
            and atom.low * atom.radix == low.low * low.radix
        )

    def is_split(self, guard: Guard) -> bool:
        """Whether a condition asks of both digits, as if the low one had another number of values."""
        if len(guard.form.items) != 2 or not self.is_asked(guard):
            return False
        factors = {atom is self.high: (c, atom) for atom, c in guard.form.items}
        if len(factors) < 2:
            return False
        (upper, _), (c, atom) = factors[True], factors[False]
        assert isinstance(atom, Digit)
        return upper * atom.low != c * self.low.radix * self.low.low


def on_places(p: Poly) -> Poly:
    """The term with its conditions on two digits as conditions on the place where these lie side by side, if there is
    one: something is read there, or they are neighbouring digits of one variable."""
    asked = [atom for atom in atoms(p) if isinstance(atom, Guard) and _is_on_two_digits(atom)]
    for place in _places(p, asked) if asked else ():
        if any(place.is_split(guard) for guard in asked) and allows("joined_terms", place.high.radix):
            p = _at(p, place)
    return p


def _is_on_two_digits(guard: Guard) -> bool:
    return len(guard.form.items) == 2 and all(isinstance(atom, Digit) for atom, _ in guard.form.items)


def _places(p: Poly, asked: Sequence[Guard]) -> Iterator[Place]:
    """The places of a term at which two digits lie side by side, each once."""
    found: dict[Place, None] = {}
    for e in (e for atom in atoms(p) for e in indices(atom)):
        digits = [(a, c) for a, c in e.items if isinstance(a, Digit)]
        for low, c in digits:
            for high, k in digits:
                follows = low.var is high.var and high.low == low.low * low.radix
                if high is not low and (follows or k == c * low.radix):
                    found[Place(low, high)] = None
    yield from found


def _at(p: Poly, place: Place) -> Poly:
    """The term with its products' conditions on the two digits of a place as ones on the place. Where those of a
    product hold in several pieces, so it is if these join with pieces of others, and the term does not get longer."""
    found = mapped(p, lambda mono: _written(mono, place, 2 * len(p.items)))
    return found if len(found.items) <= len(p.items) else mapped(p, lambda mono: _written(mono, place, 1))


def _written(mono: Monomial, place: Place, most: int) -> Poly:
    """A product with its conditions as ones on a place, where they hold in so many pieces at most."""
    guards = [guard for guard in guards_of(mono) if place.is_asked(guard)]
    spans = _spans(place, guards) if any(place.is_split(guard) for guard in guards) else None
    if spans is None or len(spans) > most:
        return make_poly(((mono, 1),))
    used("conditions side by side")
    rest = tuple(item for item in mono if item[0] not in guards)
    where = reduce(add, (place.within(*span) for span in spans), add())
    return multiply(where, make_poly(((rest, 1),)) if rest else ONE)


def _spans(place: Place, guards: Sequence[Guard]) -> list[Span]:
    """Where all conditions on the digits of a place hold: the first and the last of places that are neighbours."""
    found: list[Span] = []
    for high in range(place.high.radix):
        least, most = _lows(place, guards, high)
        if least > most:
            continue
        start, end = place.low.radix * high + least, place.low.radix * high + most
        if found and start == found[-1][1] + 1:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def _lows(place: Place, guards: Sequence[Guard], high: int) -> Span:
    """The low digit's values at which conditions on both digits hold, beside one of the high digit's."""
    least, most = 0, place.low.radix - 1
    for guard in guards:
        factors = {place.high: 0} | dict(guard.form.items)
        rest = factors.pop(place.high) * high
        lo, hi = (None if end is None else end - rest for end in (guard.lo, guard.hi))
        if not factors:
            if (lo is not None and lo > 0) or (hi is not None and hi < 0):
                return 0, -1
            continue
        ((atom, c),) = factors.items()
        assert isinstance(atom, Digit)
        if c < 0:
            c, lo, hi = -c, None if hi is None else -hi, None if lo is None else -lo
        part = atom.low // place.low.low
        least = least if lo is None else max(least, -(-lo // c) * part)
        most = most if hi is None else min(most, (hi // c + 1) * part - 1)
    return least, most
