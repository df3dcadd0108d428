"""Sums of what is nowhere negative, and positive somewhere.

    sum k<8. [k <= i]*exp(s[k])   >   0        as its first element is there, whatever i is
    sum k<8. [k != i]*exp(s[k])   >   0        as its first element is there, or its last

This is what a softmax divides by whose scores are masked by minus infinity.
"""

from __future__ import annotations

from hlo_verify.terms.shared_sums import one_is_positive
from hlo_verify.terms.term import Guard, Read
from hlo_verify.terms.used import used


def is_positive_somewhere(read: Read) -> bool:
    """Whether some element of what a sum adds up under conditions is positive, wherever in their ranges its places are:
    the first or last along each dimension, or one at which a condition begins or ends to hold. None is negative."""
    if not any(isinstance(atom, Guard) for mono, _ in read.tensor.bodies[0].items for atom, _ in mono):
        return False
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for

    bound, (body,) = unfold(read)
    found = one_is_positive(bound, body)
    if found:
        used("sums that are positive somewhere")
    return found
