"""Whether more than a rounding comes of elements of a table that are nearly 0.

An element of a table may be 1.2e-16 where the other program has -8.7e-8, the sine of a pi that is rounded. That is a
rounding beside the largest elements of the table, but not in what hangs on that element alone: its inverse, its sign,
which of such elements is the greatest, or a function of a large multiple of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil

from hlo_verify.equality.opening import opened
from hlo_verify.limits import allows
from hlo_verify.passes.chain.constant_terms import is_number
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Apply, Atom, Monomial, Poly, Read, Tensor, of_atom

EVEN_ENOUGH = frozenset({"maximum", "minimum", "abs"})
"""Functions of which no more comes than what they are of moves by, wherever that is."""

SMOOTH = EVEN_ENOUGH | {
    "asinh",
    "atan",
    "cosine",
    "cosh",
    "erf",
    "erfc",
    "exponential",
    "exponential_minus_one",
    "logistic",
    "sine",
    "sinh",
    "tanh",
}
"""Functions of which a little more may come, as long as they are of no large multiple."""

CHOOSING = frozenset({"argmax", "argmin", "sort", "top_k", "reduce"})
"""Kinds of definitions that hang on which of their elements comes first."""

COMPARISONS = ("less", "equal")
"""Functions that compare two terms."""


def hangs_on_what_is_near_zero(p: Poly, factors: Mapping[Tensor, float]) -> bool:
    """Whether a function in a term, or a choice, is of elements of tables alone some of which are nearly 0, or of large
    multiples of them. `factors` stand for the roundings of these tables, each with its greatest element."""
    if any(power < 0 and _is_faint_atom(atom, factors) for mono, _ in p.items for atom, power in mono):
        return True
    return any(_is_decided(atom, given, factors) for atom, given in _given(p))


def _given(p: Poly) -> Iterator[tuple[Atom, Poly]]:
    """What functions and choices in a term are of."""
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Apply):
                if atom.function.name in COMPARISONS and len(atom.args) == 2:
                    yield atom, algebra.subtract(*atom.args)
                else:
                    yield from ((atom, each) for each in atom.args)
            elif isinstance(atom, Read) and atom.tensor.kind in CHOOSING:
                yield from ((atom, each) for each in atom.tensor.bodies)


def _is_decided(atom: Atom, given: Poly, factors: Mapping[Tensor, float]) -> bool:
    name = atom.function.name if isinstance(atom, Apply) else ""
    given = opened(given)
    if name in EVEN_ENOUGH or not any(_is_faint(mono, factors) for mono, _ in given.items):
        return False
    if name not in SMOOTH:
        return _is_all_faint(given, factors)
    largest = (abs(Fraction(c)) * Fraction(_largest(mono, factors)) for mono, c in given.items)
    return not all(allows("grown_roundings", ceil(each)) for each in largest)


def _is_all_faint(p: Poly, factors: Mapping[Tensor, float]) -> bool:
    """Whether there is nothing else in a sum than elements that may be nearly 0, and numbers."""
    other = [mono for mono, _ in p.items if not _is_faint(mono, factors)]
    return len(other) < len(p.items) and all(atom.boolean or is_number(of_atom(atom)) for m in other for atom, _ in m)


def _is_faint(mono: Monomial, factors: Mapping[Tensor, float]) -> bool:
    return any(_is_faint_atom(atom, factors) for atom, _ in mono)


def _is_faint_atom(atom: Atom, factors: Mapping[Tensor, float]) -> bool:
    if isinstance(atom, Read):
        return atom.tensor in factors
    if not isinstance(atom, Apply) or atom.function.name not in EVEN_ENOUGH:
        return False
    return any(_is_all_faint(opened(each), factors) for each in atom.args)


def _largest(mono: Monomial, factors: Mapping[Tensor, float]) -> float:
    found: Iterable[float] = (factors.get(atom.tensor, 0.0) for atom, _ in mono if isinstance(atom, Read))
    return max(found, default=0.0)
