"""What a term is where it is positive: products of it with its sign and with its positive part.

[h > 0] * h**2  =  maximum(0, h)**2        maximum(0, h) * [h > 0]  =  maximum(0, h)
sign(h) * maximum(0, |h| - t)  =  maximum(0, h - t) - maximum(0, -h - t)
"""

from __future__ import annotations

from itertools import permutations
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


def soft_threshold(a: Poly, b: Poly) -> Poly | None:
    """`sign(v) * maximum(0, |v| - t)` as `maximum(0, v - t) - maximum(0, -v - t)`, for a number t that is not negative;
    None of other products."""
    from hlo_verify.terms.algebra import add, multiple_of_one, scale
    from hlo_verify.terms.laws import apply
    from hlo_verify.terms.term import ZERO, number

    for (signed, c), (part, d) in permutations(map(multiple_of_one, (a, b))):
        sign, size = _argument("sign", signed), _above(part)
        if sign is None or size is None:
            continue
        (v, k), t = size
        for side in (1, -1):
            if scale(v, side) is sign:
                used("a soft threshold")
                above, below = (apply(MAXIMUM, (ZERO, add(scale(v, side * k * way), number(-t)))) for way in (1, -1))
                return scale(add(above, scale(below, -1)), c * d)
    return None


def _argument(name: str, atom: Atom | None) -> Poly | None:
    """What an atom is that function of, if it is one of a real number."""
    from hlo_verify.terms.term import Apply

    is_it = isinstance(atom, Apply) and atom.function.name == name and atom.function.is_real
    return atom.args[0] if isinstance(atom, Apply) and is_it else None


def _above(atom: Atom | None) -> tuple[tuple[Poly, Number], Number] | None:
    """Of `maximum(0, k*|v| - t)`, for positive k and t: (v, k) and t."""
    from hlo_verify.terms.addition import multiple_of_one
    from hlo_verify.terms.term import Apply, make_poly

    if not isinstance(atom, Apply) or atom.function != MAXIMUM:
        return None
    p = side_of(atom.function, atom.args)
    t = -dict(p.items).get((), 0) if p is not None else 0
    if p is None or len(p.items) != 2 or t <= 0:
        return None
    size, k = multiple_of_one(make_poly(tuple(item for item in p.items if item[0])))
    v = _argument("abs", size)
    return None if v is None or k <= 0 else ((v, k), t)


def _join_with_signs(powers: dict[Atom, Number], parts: list[Apply]) -> None:
    """Likewise where laws have left out a positive factor of what the sign is of."""
    from hlo_verify.terms.laws import apply  # which make products

    for part in parts:
        sign = apply(POSITIVE, (part.args[1],)).atom
        if sign is not None and sign in powers:
            used("what its sign selects")
            del powers[sign]


def _join(powers: dict[Atom, Number], p: Poly, atoms: list[Apply]) -> None:
    from hlo_verify.terms.sign_laws import never_negative  # laws make products
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
    if n and own is not None and not never_negative(p):
        del powers[own]
        powers[part] = powers.get(part, 0) + n
