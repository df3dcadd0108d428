"""Sums of what is nowhere negative, and positive somewhere.

    sum k<8. [k <= i]*exp(s[k])   >   0        as its first element is there, whatever i is

This is what a softmax divides by whose scores are masked by minus infinity.
"""

from __future__ import annotations

from hlo_verify.terms import signs
from hlo_verify.terms.finite import at_ends_and_conditions
from hlo_verify.terms.term import Guard, Read
from hlo_verify.terms.used import used


def is_positive_somewhere(read: Read) -> bool:
    """Whether some element of what a sum adds up under conditions is positive, wherever in their ranges its places are:
    the first or last along each dimension, or one at which a condition begins or ends to hold. None is negative."""
    if not any(isinstance(atom, Guard) for mono, _ in read.tensor.bodies[0].items for atom, _ in mono):
        return False
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for

    bound, (body,) = unfold(read)
    found = any(signs.of(p) == signs.POSITIVE for p in at_ends_and_conditions(bound, body))
    if found:
        used("sums that are positive somewhere")
    return found
