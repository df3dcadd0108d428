"""What a term is where it is positive: products of it with its sign and with its positive part.

[h > 0] * h**2  =  maximum(0, h)**2        maximum(0, h) * [h > 0]  =  maximum(0, h)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlo_verify.terms.functions import MAXIMUM, POSITIVE, Function
from hlo_verify.terms.used import used

if TYPE_CHECKING:
    from hlo_verify.terms.term import Apply, Atom, Number, Poly


def side_of(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """The number that a function has the sign, or the positive part, of; None of other functions."""
    from hlo_verify.terms.term import ZERO

    if function == POSITIVE:
        return None if args[0].doubt else args[0]
    if function == MAXIMUM and len(args) == 2 and args[0] is ZERO:
        return None if args[1].doubt else args[1]
    return None


def joined(powers: dict[Atom, Number], halves: list[Apply]) -> None:
    """Make what a product has of one term and of its sign a power of its positive part.

    Not beside what may be no number: there the sign says where that is computed, as in `[h > 0] * h * inverse(h)`.
    """
    if any(atom.doubt for atom in powers):
        return
    by_term: dict[Poly, list[Apply]] = {}
    for atom in halves:
        if atom.half is not None:
            by_term.setdefault(atom.half, []).append(atom)
    for p, atoms in by_term.items():
        _join(powers, p, atoms)
    parts = [atom for atom in halves if atom.function == MAXIMUM and atom in powers]
    if parts and any(atom.function == POSITIVE and atom in powers for atom in halves):
        _join_with_signs(powers, parts)


def _join_with_signs(powers: dict[Atom, Number], parts: list[Apply]) -> None:
    """Likewise where laws have left out a positive factor of what the sign is of."""
    from hlo_verify.terms.laws import apply  # which make products

    for part in parts:
        sign = apply(POSITIVE, (part.args[1],)).atom
        if sign is not None and sign in powers:
            used("what its sign selects")
            del powers[sign]


def _join(powers: dict[Atom, Number], p: Poly, atoms: list[Apply]) -> None:
    from hlo_verify.terms.term import ZERO, make_apply

    own = p.atom
    part = make_apply(MAXIMUM, (ZERO, p))
    n = powers.get(own, 0) if own is not None else 0
    if not isinstance(n, int) or n < 0 or (part not in powers and not n):
        return
    signs = [atom for atom in atoms if atom.function == POSITIVE]
    if not n and not signs:
        return
    used("what its sign selects")
    for sign in signs:
        del powers[sign]
    if n and own is not None:
        del powers[own]
        powers[part] = powers.get(part, 0) + n
