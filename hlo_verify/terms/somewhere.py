"""Sums of what is nowhere negative, and positive somewhere.

    sum k<8. [k <= i]*exp(s[k])   >   0        as its first element is there, whatever i is

This is what a softmax divides by whose scores are masked by minus infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import limit_of
from hlo_verify.terms import signs
from hlo_verify.terms.finite import at_conditions
from hlo_verify.terms.term import Guard, Poly, Read
from hlo_verify.terms.used import used


def is_positive_somewhere(read: Read) -> bool:
    """Whether some element of what a sum adds up is positive, wherever in their ranges its places are: the first or
    last along each dimension, or one at which a condition begins or ends to hold. No element is negative."""
    if read.tensor.kind != "sum" or not any(
        isinstance(a, Guard) for mono, _ in read.tensor.bodies[0].items for a, _ in mono
    ):
        return False
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for

    bound, (body,) = unfold(read)
    found = any(signs.of(p) == signs.POSITIVE for p in chain(_ends(bound, body), at_conditions(bound, body)))
    if found:
        used("sums that are positive somewhere")
    return found


def _ends(bound: Sequence[Var], body: Poly) -> Iterator[Poly]:
    from hlo_verify.terms.substitution import substitute

    for where in islice(product(*((0, v.size - 1) for v in bound)), limit_of("finite_elements")):
        yield substitute(body, {v: expr.constant(n) for v, n in zip(bound, where, strict=True)})
