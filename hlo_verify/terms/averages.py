"""Counts over what a total is a total of: a mean of nothing is 0 where its count is at least 1.

    n * s / maximum(n, 1)   =   s        for n = sum v. p(v) and s = sum v. p(v) f(v)

Where nothing is counted s is 0, and elsewhere the maximum is n. So the square of a group's mean, times its count, is
`s*s / maximum(n, 1)`, as variances have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hlo_verify.index.expr import Opaque
from hlo_verify.memory import once_a_session
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.used import used

if TYPE_CHECKING:
    from hlo_verify.terms.term import Apply, Atom, Number, Read


def joined(powers: dict[Atom, Number], related: Iterable[Apply]) -> None:
    """Leave out counts in a product that are divided by themselves, or by 1, beside a total of what they count."""
    for inverse in related:
        n = at_least_one(inverse)
        if n is None or n not in powers:
            continue
        if not any(k > 0 and atom is not n and _is_total(atom, n) for atom, k in powers.items()):
            continue
        k = min(powers[n], powers[inverse])
        if not isinstance(k, int) or k < 1:
            continue
        used("count beside a total")
        for atom in (n, inverse):
            powers[atom] -= k
            if not powers[atom]:
                del powers[atom]


@once_a_session
def at_least_one(atom: Apply) -> Read | None:
    """The count that an atom divides by, where it divides by 1 instead of 0."""
    from hlo_verify.terms.term import Ix, Read, value_of
    from hlo_verify.terms.truths import is_count

    clamped = atom.args[0].atom if atom.function == INVERSE else None
    if not isinstance(clamped, Ix) or clamped.index.const or len(clamped.index.items) != 1:
        return None
    ((inner, c),) = clamped.index.items
    if not isinstance(inner, Opaque) or inner.operator != "clamp" or c != 1 or inner.args[0] != 1:
        return None
    e = inner.exprs[0]
    ((value, k), *others) = e.items
    if others or k != 1 or e.const or not isinstance(value, Opaque) or value.operator != "value":
        return None
    n = value_of(value).atom
    return n if e.lo >= 0 and e.hi <= inner.args[1] and isinstance(n, Read) and is_count(n) else None


@once_a_session
def _is_total(atom: Atom, n: Read) -> bool:
    """Whether a sum of numbers is over those values of variables alone that are counted."""
    from hlo_verify.terms.comparing import is_over
    from hlo_verify.terms.truths import what_is_counted

    counted = what_is_counted(n)
    return not atom.doubt and counted is not None and is_over(atom, [counted])
