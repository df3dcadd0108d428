"""What the logical term divides by is not 0 where it is a number, and nothing is asked where it is none.

s / (n = 0 ? 1 : n)   is   s/n   where that is expected,   and   n > 0 ? s/n : 0   for an n that is never negative
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.memory import once_a_session
from hlo_verify.terms import losses, signs
from hlo_verify.terms.doubts import NUMBER, UNDEFINED
from hlo_verify.terms.functions import INVERSE, IS_ZERO, LOG, POSITIVE, SQRT
from hlo_verify.terms.laws import apply
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sign_laws import never_negative
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Poly, Read, atoms


def where_divided(found: Poly, expected: Poly) -> tuple[Poly, Poly]:
    """Two terms where the second one is a number: what that divides by, whatever its conditions are, is not 0."""
    there: dict[Atom, Poly] = {}
    for divisor in _divisors(expected):
        for asked, holds in ((IS_ZERO, ZERO), (POSITIVE, ONE)):
            condition = apply(asked, (divisor,)).atom
            if condition is not None and (asked == IS_ZERO or never_negative(divisor)):
                there[condition] = holds
    return (rebuilt(found, there, {}), rebuilt(expected, there, {})) if there else (found, expected)


def _divisors(p: Poly) -> Iterator[Poly]:
    """What a term divides by in each case of its conditions, or takes the logarithm of, and hangs on arguments."""
    for atom in sorted(losses.doubtful(p) - losses.selected_by(p), key=lambda atom: atom.uid):
        if not isinstance(atom, Apply) or atom.function not in (INVERSE, LOG) or atom.doubt != UNDEFINED:
            continue
        if _is_decided_by_arguments(atom.args[0]):
            (given,) = atom.args  # which is defined, or another atom is that is not
            yield given
            root = given.atom
            if isinstance(root, Apply) and root.function == SQRT and not signs.of(root.args[0]) & signs.BEYOND:
                yield root.args[0]


@once_a_session
def _is_decided_by_arguments(p: Poly) -> bool:
    """Whether it is seen what a term adds up: loops, products and the like may be 0 for all arguments at some place,
    which `certain_poles` sees of sums alone."""
    for atom in atoms(p):
        if atom.boolean or not isinstance(atom, Read) or atom.tensor.kind in ("argument", NUMBER):
            continue
        if atom.tensor.kind not in ("sum", "term", "max", "min") or not all(
            map(_is_decided_by_arguments, atom.tensor.bodies)
        ):
            return False
    return True
