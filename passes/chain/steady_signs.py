"""Signs that no rounding of a constant changes: that of `sum v. exp(10*x[v])` is 1 with any number near 10.

What is added up are products, none of which is negative. In each, what holds a rounding is positive whatever the
rounding is: the rounding itself, a factor near 1; a function that has positive values alone; or a sum of such products.
So a product is 0 where one of its other factors is, which do not move, and positive elsewhere, and so is the sum.
What is known to be positive by bounds (`1.0000001 - x/3` of x up to 3) is not among these: a rounding may carry it
across 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from hlo_verify.terms import signs
from hlo_verify.terms.signs import BEYOND, NEGATIVE
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor, of_atom


def keeps_its_sign(p: Poly, roundings: Collection[Tensor], is_still: Callable[[Poly], bool]) -> bool:
    """Whether a term has one sign, positive or 0, whatever the factors `roundings` are; `is_still` says in which terms
    there are none of them."""
    if p.doubt:
        return False

    def is_steady(atom: Atom) -> bool:
        if is_still(of_atom(atom)):
            return not signs.of(of_atom(atom)) & (NEGATIVE | BEYOND)
        if isinstance(atom, Apply):
            return atom.function.properties.positive
        if not isinstance(atom, Read):
            return False
        is_sum = atom.tensor.kind == "sum"
        return atom.tensor in roundings or (
            is_sum and all(keeps_its_sign(body, roundings, is_still) for body in atom.tensor.bodies)
        )

    return all(c > 0 and all(is_steady(atom) for atom, _ in mono) for mono, c in p.items)
