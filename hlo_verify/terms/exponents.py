"""What a product of exponentials is an exponential of: running products of `exp(-a[v])`, as decays and transmittances
are computed, are exponentials of running sums."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index.expr import Var
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.factors import is_exponential
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.steps import pieces
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Apply, Poly, Read, make_poly
from hlo_verify.terms.used import used


def product_of_exponentials(bound: Sequence[Var], p: Poly) -> tuple[Poly, Poly] | None:
    """The exponentials of a product over bound variables, as one of a sum, and the other factors, which may be 1; None
    if there are none, as there are none of `exp(a) + 1`."""
    atom = p.atom
    inside = unfold(atom)[1][0] if isinstance(atom, Read) and atom.tensor.kind == "term" else p
    exponent, rest = _exponent(inside), ONE
    if exponent is None and len(inside.items) == 1:
        ((mono, c),) = inside.items
        own = tuple(item for item in mono if is_exponential(item[0]))
        exponent = _exponent(make_poly(((own, 1),))) if own else None
        rest = make_poly(((tuple(item for item in mono if item not in own), c),))
    if exponent is None or exponent is ZERO:
        return None
    used("product of exponentials")
    return apply(EXPONENTIAL, (reduce_sum(bound, exponent),)), rest


def _exponent(p: Poly) -> Poly | None:
    """What a term is the exponential of, whatever is chosen; None if it is none.

    That of `[v < i] exp(a) + [v >= i]` is `[v < i] a`.
    """
    if p is ONE:
        return ZERO
    choices = pieces(p)
    if choices:
        exponents = [_exponent(choice.term) for choice in choices]
        chosen = [algebra.multiply(c.on, e) for c, e in zip(choices, exponents, strict=True) if e is not None]
        return algebra.add(*chosen) if None not in exponents else None
    if len(p.items) != 1 or p.items[0][1] != 1:
        return None
    total = ZERO
    for atom, n in p.items[0][0]:
        if not isinstance(atom, Apply) or not is_exponential(atom):
            return None
        total = algebra.add(total, algebra.scale(atom.args[0], n))
    return total
