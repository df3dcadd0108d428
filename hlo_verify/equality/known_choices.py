"""Choices by what may be no number, as an extremum makes them that the expected term computes.

    q < 5 ? q : 5    is    minimum(q, 5)    where the expected term computes that, for a quotient q = a/b

Where q is no number at all, nor is the expected term, and nothing is asked. An infinite q is compared as a number is:
both choose alike, and what they choose is the same. So nothing is said of the denominator, and the one condition alone
is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from hlo_verify.terms import algebra
from hlo_verify.terms.functions import EXTREMA, MAXIMUM, POSITIVE
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Number, Poly


def by_choices(p: Poly, applied: Sequence[Apply], always: Callable[[Apply], bool]) -> tuple[Poly, Poly] | None:
    """A term where a choice by what may be no number is made in one way, and in the other; None where no extremum that
    is `always` computed makes that choice. `applied` are the functions in the term."""
    choices = [a for a in applied if any(arg.doubt for arg in a.args) and (a.function == POSITIVE or _is_extremum(a))]
    for choice in sorted(choices, key=_is_extremum):  # at what is equal, either operand is the extremum
        alike = {a: c for a in choices if (c := _multiple(_compared(a), _compared(choice)))}
        alike = {a: c for a, c in alike.items() if c > 0 or _is_extremum(a)}
        if any(_is_extremum(a) and always(a) for a in alike):
            above: dict[Atom, Poly] = {a: _made(a, is_above=c > 0) for a, c in alike.items()}
            below: dict[Atom, Poly] = {a: _made(a, is_above=c < 0) for a, c in alike.items()}
            return rebuilt(p, above, {}), rebuilt(p, below, {})
    return None


def _is_extremum(a: Apply) -> bool:
    return a.function in EXTREMA.values() and len(a.args) == 2


def _compared(a: Apply) -> Poly:
    """What decides a choice by its sign."""
    return algebra.subtract(*a.args) if _is_extremum(a) else a.args[0]


def _multiple(p: Poly, of: Poly) -> Number:
    """Which multiple of another a term is; 0 where it is none."""
    if not p.items or not of.items:
        return 0
    c = Fraction(p.items[0][1]) / Fraction(of.items[0][1])
    return c if algebra.scale(of, c) is p else 0


def _made(a: Apply, *, is_above: bool) -> Poly:
    """What a choice is where what it compares is positive, or where it is not."""
    if not _is_extremum(a):
        return ONE if is_above else ZERO
    return a.args[0] if is_above is (a.function == MAXIMUM) else a.args[1]
