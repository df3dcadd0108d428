"""What floats round, where real numbers decide: `0.7*12 > 8.4` is true of real numbers, and not in float32.

The proof is of real arithmetic. A comparison of numbers that hang on no argument but for flags of theirs (places,
counts, constants) comes out one way on every machine, though, and where it is decided by less than what is rounded off
it may be the other one. There nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor, gcd

from hlo_verify.terms.products import subtract
from hlo_verify.terms.steps import pieces
from hlo_verify.terms.term import Ix, Number, Poly

ROUNDING = Fraction(1, 1 << 20)
"""What a few operations on float32 round off, relative to what they add up."""

SHORT, LONG = 1 << 12, 1 << 20
"""Up to these the numerator and the denominator of a number, but for powers of two, are those of one that a person
writes or that devices and elements are counted by, and not of a literal that was rounded."""

WHOLE = 1 << 24
"""Not all integers from here on are numbers of float32."""


def is_rounded(c: Number) -> bool:
    """Whether a number is a literal that was rounded, or made of such: no integer, and no fraction of short ones, as
    1/2 and 1/12 are."""
    k = Fraction(c)
    return (k.denominator > 1 and _odd(k.numerator) > SHORT) or _odd(k.denominator) > LONG


def is_binary(c: Number) -> bool:
    """Whether some float is the number: none is a third, or a 41st that truth values are averaged with."""
    return _odd(Fraction(c).denominator) == 1


def _odd(n: int) -> int:
    """A number without its powers of two."""
    n = abs(n)
    return n // (n & -n) if n else 0


def differ_by_rounding(a: Poly, b: Poly) -> bool:
    """Whether two numbers that are made of places, counts and constants alone, some of them rounded, differ somewhere
    by no more than is rounded off, in any case of the conditions that they are made of.

    Fractions that no float is, as counts are averaged with, may be rounded so that they do not add up to what they
    are: the mean of 41 truth values that all hold is less than 1, where XLA multiplies by 1/41."""
    numbers = [c for p in (a, b) for _, c in p.items]
    if not any(is_rounded(c) or not is_binary(c) or abs(Fraction(c)) >= WHOLE for c in numbers):
        return False
    constants = [abs(Fraction(dict(p.items).get((), 0))) for p in (a, b)]
    return _comes_near(subtract(a, b), sum(constants, Fraction(0)))


def _comes_near(rest: Poly, size: Fraction) -> bool:
    """Whether a difference, of numbers of a size beside its own, comes within their rounding of 0 and is not 0."""
    cases = pieces(rest)
    if cases:
        return any(_comes_near(piece.term, size) for piece in cases)
    found = _of_places(rest)
    if found is None:
        return False
    beside = Fraction(dict(rest.items).get((), 0))
    near = _nearest(*found, -beside)
    is_averaged = _counts(rest) and not is_binary(found[0])
    return any(
        (at + beside or (is_averaged and at)) and abs(at + beside) <= ROUNDING * (abs(at) + abs(beside) + size)
        for at in near
    )


def _counts(p: Poly) -> bool:
    """Whether a multiple of one atom, beside a constant, is one of a count."""
    return any(mono and not isinstance(mono[0][0], Ix) for mono, _ in p.items)


def _of_places(p: Poly) -> tuple[Fraction, int, int] | None:
    """What a multiple of a place or a count has as many times as an integer between two others, beside a constant;
    None of another term."""
    from hlo_verify.terms.counts import range_of_count  # which compares counts

    factor, first, last = Fraction(0), 0, 0
    for mono, c in p.items:
        if not mono:
            continue
        atom, n = mono[0]
        if factor or len(mono) > 1 or n != 1:
            return None
        if not isinstance(atom, Ix) or not atom.index.items:
            ends = range_of_count(atom)
            if ends is None:
                return None
            factor, (first, last) = Fraction(c), ends
            continue
        step = gcd(atom.index.const, *(k for _, k in atom.index.items))
        factor, first, last = Fraction(c) * step, atom.index.lo // step, atom.index.hi // step
    return factor, first, last


def _nearest(factor: Fraction, first: int, last: int, value: Fraction) -> Iterator[Fraction]:
    """The multiples of a factor, by integers from a first to a last one, that are next to a value."""
    below = floor(value / factor) if factor else first
    for n in (below, below + 1):
        if first <= n <= last:
            yield factor * n


def off_by_rounding(k: Number, *, is_computed: bool = False) -> Fraction:
    """How far a number may be off in floats: 0 where it was made of none that were rounded, and is not computed."""
    return ROUNDING * abs(Fraction(k)) if is_computed or is_rounded(k) else Fraction(0)


def is_near_whole(k: Number) -> bool:
    """Whether a number may lie on either side of a whole one: floats have `0.7 * 10` as 7, or as less."""
    off = off_by_rounding(k)
    return floor(k - off) != floor(k + off)
