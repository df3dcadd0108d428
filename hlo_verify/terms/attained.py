"""Counts of the elements that are the greatest, or the least: there is one at least.

    sum v. [f(v) = m]  +  [g = m]   >=  1          for m = maximum(max v. f(v), g)

The gradient of a maximum is divided by this count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from hlo_verify.index.expr import Var
from hlo_verify.terms import signs
from hlo_verify.terms.addition import difference, scale
from hlo_verify.terms.doubts import INFINITE, UNDEFINED
from hlo_verify.terms.functions import EXTREMA, IS_ZERO
from hlo_verify.terms.term import Apply, Atom, Poly, Read, of_atom
from hlo_verify.terms.used import used


def counts_the_best(p: Poly, *, of_numbers: bool = False) -> bool:
    """Whether among the addends of a term, none of which is negative, are indicators of all elements that the greatest
    or least one is one of, where these are numbers; which is asked too unless they are taken to be (`of_numbers`)."""
    from hlo_verify.terms.laws import apply  # whose laws ask for signs

    if any(c < 0 or signs.of_product(mono) & (signs.NEGATIVE | signs.BEYOND) for mono, c in p.items):
        return False
    compared: dict[tuple[str, Poly], list[Poly]] = defaultdict(list)
    for mono, c in p.items:
        if c > 0 and len(mono) == 1 and mono[0][1] == 1:
            for extremum, best, element in _compared(mono[0][0], of_numbers):
                compared[extremum, best].append(element)
    found = any(apply(EXTREMA[extremum], tuple(elements)) is best for (extremum, best), elements in compared.items())
    if found:
        used("one is the best")
    return found


def indicated(atom: Atom) -> tuple[tuple[Var, ...], Poly] | None:
    """What an indicator, or the sum of one over some variables, asks to be 0."""
    from hlo_verify.terms.definitions import unfold

    bound: tuple[Var, ...] = ()
    while isinstance(atom, Read) and atom.tensor.kind in ("sum", "term"):
        more, (body,) = unfold(atom)
        inner = body.atom
        if inner is None:
            return None
        bound, atom = (*bound, *more), inner
    return (bound, atom.args[0]) if isinstance(atom, Apply) and atom.function == IS_ZERO else None


def _compared(indicator: Atom, of_numbers: bool) -> Iterator[tuple[str, Poly, Poly]]:
    """What an indicator, or the sum of one, may compare some elements with, and the best one of these."""
    from hlo_verify.terms.extrema import reduce_extremum

    found = indicated(indicator)
    if found is None or found[1].doubt & (INFINITE if of_numbers else INFINITE | UNDEFINED):
        return
    bound, asked = found
    for mono, c in asked.items:
        extremum = _extremum(mono[0][0]) if len(mono) == 1 and mono[0][1] == 1 else None
        if extremum is not None and mono[0][0].free.isdisjoint(bound):
            best = of_atom(mono[0][0])
            element = difference(best, scale(asked, 1 / Fraction(c)))
            yield extremum, best, reduce_extremum(extremum, bound, element)


def _extremum(atom: Atom) -> str | None:
    """Whether an atom is a greatest or a least value."""
    if isinstance(atom, Apply):
        return next((extremum for extremum, function in EXTREMA.items() if atom.function == function), None)
    return atom.tensor.kind if isinstance(atom, Read) and atom.tensor.kind in EXTREMA else None
