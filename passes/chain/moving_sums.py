"""How much a sum moves with the roundings of constants, in each case of what it selects by.

    k ? 0.99*e + 0.01*w : e     =     [k]*0.99*e - [k]*e + [k]*0.01*w + e

No 0.99*e is left over of e where k holds, as there is one e there and one elsewhere, and never both. But of
`[k]*3*T*x - x`, for a T that is 1/3 but for a rounding, nothing else is left where k holds. What is the same with the
roundings in it is the same number: of `[k]*exp(T*x) + f(T*x) - [k]*f(T*x)`, nothing of f is there where k holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import Case, Conditions
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.term import Apply, Monomial, Poly


@dataclass(frozen=True, slots=True)
class Addend:
    """A product in a sum, with all roundings left out."""

    conditions: Monomial
    """What selects it, whatever the roundings are."""
    product: Monomial
    """Its other factors, but for numbers and roundings."""
    rounded: tuple[Monomial, Monomial]
    """Its other factors with their roundings, and which product that is without: what it is a multiple of."""
    size: Fraction
    """Its coefficient, as far as that is known."""
    is_known: bool
    roundings: Fraction
    """By how many roundings it moves."""


def growth(addends: Iterable[Addend]) -> Fraction | None:
    """How many roundings a sum moves by at the most, relative to what is left of a product in some case; None where
    nothing else may be left."""
    alike: dict[Monomial, list[Addend]] = defaultdict(list)
    for addend in addends:
        alike[addend.product].append(addend)
    worst = Fraction(0)
    for group in alike.values():
        if any(addend.roundings for addend in group):
            found = _in_cases(group)
            if found is None:
                return None
            worst = max(worst, found)
    return worst


def _in_cases(group: Sequence[Addend]) -> Fraction | None:
    """The same of multiples of one product."""
    conditions = Conditions.of([addend.conditions for addend in group])
    if not allows("told_apart", conditions.count):
        return _worst(_of_multiples(own) for own in _by_conditions(group))
    return _worst(_in_case(group, case) for case in conditions.cases())


def _worst(found: Iterable[Fraction | None]) -> Fraction | None:
    worst = Fraction(0)
    for moved in found:
        if moved is None:
            return None
        worst = max(worst, moved)
    return worst


def _by_conditions(group: Sequence[Addend]) -> Collection[list[Addend]]:
    """Multiples that the same selects: where there are too many cases, each is looked at by itself."""
    under: dict[Monomial, list[Addend]] = defaultdict(list)
    for addend in group:
        under[addend.conditions].append(addend)
    return under.values()


def _in_case(group: Sequence[Addend], case: Case) -> Fraction | None:
    found = _of_multiples([addend for addend in group if all(case.holds(atom) for atom, _ in addend.conditions)])
    return Fraction(0) if (found is None or found > 1) and not _may_be(case) else found


def _may_be(case: Case) -> bool:
    """Whether a case is not seen to be none, as a term and its opposite are not both positive."""
    true = (atom for atom, holds in case.truths.items() if holds)
    above = [atom.args[0] for atom in true if isinstance(atom, Apply) and atom.function == POSITIVE]
    return not any(_exclude_each_other(one, other) for one, other in combinations(above, 2))


def _exclude_each_other(p: Poly, q: Poly) -> bool:
    """Whether a positive multiple of the one and the other add up to what is not positive."""
    sizes = [next((abs(Fraction(c)) for mono, c in each.items if mono), Fraction(1)) for each in (p, q)]
    total = algebra.add(p, algebra.scale(q, sizes[0] / sizes[1])).constant
    return total is not None and total <= 0


def _of_multiples(added: Sequence[Addend]) -> Fraction | None:
    """The same of what is all added up. Multiples of one number are one multiple of it."""
    alike: dict[tuple[Monomial, Monomial], list[Addend]] = defaultdict(list)
    for addend in added:
        alike[addend.rounded].append(addend)
    sums = [(sum((addend.size for addend in same), Fraction(0)), same[0]) for same in alike.values()]
    left = [(size, addend) for size, addend in sums if size]
    moved = sum((abs(size) * addend.roundings for size, addend in left), Fraction(0))
    if not moved:
        return Fraction(0)
    total = sum((size for size, _ in left), Fraction(0))
    is_unknown = len(left) > 1 and not all(addend.is_known for _, addend in left)
    return None if not total or is_unknown else moved / abs(total)
