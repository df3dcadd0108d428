"""The least of what a mask leaves beside infinities, written as the greatest of the opposites.

    -min v. (m(v) ? -x(v) : infinity)    is    max v. (m(v) ? x(v) : -infinity)

Laws write an extremum of what is negated as the other one. In a body with infinities one summand or the other is
negative, so that both ways of writing it stay.
"""

from __future__ import annotations

from hlo_verify.equality.opening import opened
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import Atom, Poly, Read, atoms


def both_turned(found: Poly, expected: Poly) -> tuple[Poly, Poly]:
    """Two terms with greatest values alone of what has infinities in it, where one has some, and the other least ones
    that it has not."""
    own, other = _beside_infinities(found), _beside_infinities(expected)
    kinds = [{atom.tensor.kind for atom in some if atom not in others} for some, others in ((own, other), (other, own))]
    if not ({"min", "max"} <= kinds[0] | kinds[1] and all(kinds)):
        return found, expected
    images: dict[Atom, Poly] = {atom: _as_maximum(atom) for atom in (*own, *other)}
    return rebuilt(found, images, {}), rebuilt(expected, images, {})


def _beside_infinities(p: Poly) -> dict[Read, None]:
    """The extrema that a term reads, of what has infinities in it."""
    found = (a for a in atoms(p) if isinstance(a, Read) and a.tensor.kind in EXTREMA and a.tensor.seal is None)
    return dict.fromkeys(atom for atom in found if atom.tensor.bodies[0].doubt & INFINITE)


def _as_maximum(atom: Read) -> Poly:
    bound, (body,) = unfold(atom)
    sign = 1 if atom.tensor.kind == "max" else -1
    return algebra.scale(reduce_extremum("max", bound, algebra.scale(opened(body), sign)), sign)
