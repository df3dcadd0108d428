"""Roots and inverses of one base in a product: they are one power of it.

    inverse(sqrt(S)) * inverse(sqrt(S))  =  inverse(S)        S * inverse(sqrt(S))  =  sqrt(S)

A power of base S is written as S, inverse(S), sqrt(S) and inverse(sqrt(S)), each at most as often as it needs to be.
What cancels must not be 0: it is seen to be positive. Of what may be 0, roots are joined with roots and inverses with
inverses.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from hlo_verify.terms import signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import ABS, INVERSE, SQRT, Function
from hlo_verify.terms.used import used

if TYPE_CHECKING:
    from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly

HALF = Fraction(1, 2)


def base_of(function: Function, args: tuple[Poly, ...]) -> tuple[Poly, Fraction] | None:
    """What a root or an inverse is a power of, and which; None of other functions, and of what may be negative."""
    if function not in (INVERSE, SQRT):
        return None
    (base,) = args
    exponent = HALF if function == SQRT else Fraction(-1)
    inner = base.atom
    root = getattr(inner, "power", None)
    if root is not None:
        if function == SQRT or root[1] != HALF:
            return None
        base, exponent = root[0], -HALF
    if base.doubt & INFINITE or signs.of(base) & (signs.NEGATIVE | signs.BEYOND):
        return None
    return base, exponent


def joined(powers: dict[Atom, Number], rooted: list[Apply]) -> None:
    """Make the powers of each base in a product one."""
    by_base: dict[Poly, list[Apply]] = {}
    for atom in rooted:
        if atom.power is not None:
            by_base.setdefault(atom.power[0], []).append(atom)
    for base, atoms in by_base.items():
        own = base.atom
        found: list[tuple[Atom, Fraction]] = [(a, a.power[1] * Fraction(powers[a])) for a in atoms if a.power]
        if own is not None and own in powers:
            found.append((own, Fraction(powers[own])))
        if len(found) > 1 or (own is not None and found[0][1] >= 1) or found[0][1] < -HALF:
            _join(powers, base, found)


def _join(powers: dict[Atom, Number], base: Poly, found: list[tuple[Atom, Fraction]]) -> None:
    above = sum((e for _, e in found if e > 0), Fraction(0))
    below = sum((e for _, e in found if e < 0), Fraction(0))
    cancels = bool(above and below)
    groups = [above, below] if cancels and signs.of(base) != signs.POSITIVE else [above + below]
    new: dict[Atom, Number] = {}
    for exponent in groups:
        for atom, n in _written(base, exponent):
            new[atom] = n
    if all(powers.get(atom) == n for atom, n in new.items()) and len(new) == len(found):
        return
    if cancels and len(groups) == 1:
        used("powers of a positive base")
    else:
        used("powers of one base")
    for atom, _ in found:
        del powers[atom]
    powers.update(new)


def _written(base: Poly, exponent: Fraction) -> Sequence[tuple[Atom, int]]:
    """The factors that a power is written as; the square of a root stays one where the base is no atom."""
    from hlo_verify.terms.term import make_apply, of_atom

    if not exponent:
        return []
    root = make_apply(SQRT, (base,))
    if exponent > 0:
        if base.atom is None:
            return [(root, int(2 * exponent))]
        whole, rest = divmod(exponent, 1)
        return [(base.atom, int(whole))] * bool(whole) + [(root, 1)] * bool(rest)
    whole, rest = divmod(-exponent, 1)
    inverse = make_apply(INVERSE, (base,))
    return [(inverse, int(whole))] * bool(whole) + [(make_apply(INVERSE, (of_atom(root),)), 1)] * bool(rest)


def multiple(p: Poly, base: Poly) -> Poly | None:
    """What a positive sum is multiplied by, where a term is it times a number and positive factors."""
    from hlo_verify.terms.addition import scale
    from hlo_verify.terms.factors import apart, product
    from hlo_verify.terms.patterns import leading

    if signs.of(base) != signs.POSITIVE:
        return None
    factors, rest = apart(p)
    k = Fraction(leading(rest)) / Fraction(leading(base))
    return scale(product(factors), k) if scale(base, k) is rest else None


def squared_roots(mono: Monomial) -> tuple[Monomial, Poly, int] | None:
    """A product that has the square of a root, or of an absolute value, as a factor: the rest of it, what the root is
    of, and the power of that."""
    from hlo_verify.terms.term import Apply

    for n, (atom, k) in enumerate(mono):
        if not isinstance(k, int) or k < 2 or not isinstance(atom, Apply):
            continue
        left = ((atom, 1),) if k % 2 else ()
        rest = (*mono[:n], *left, *mono[n + 1 :])
        if atom.function == ABS:
            used("square of an absolute value")
            return rest, atom.args[0], k - k % 2
        if atom.power is not None and atom.power[1] == HALF:
            used("square of a root")
            return rest, atom.power[0], k // 2
    return None
