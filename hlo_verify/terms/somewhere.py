"""Sums of what is nowhere negative, and positive somewhere.

    sum k<8. [k <= i]*exp(s[k])   >   0        as its first element is there, whatever i is
    sum k<8. [k != i]*exp(s[k])   >   0        as its first element is there, or its last

This is what a softmax divides by whose scores are masked by minus infinity.
"""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.terms.shared_sums import one_is_positive
from hlo_verify.terms.term import Guard, Read, of_atom
from hlo_verify.terms.used import used


def is_positive_somewhere(read: Read) -> bool:
    """Whether some element of what a sum adds up under conditions is positive, wherever in their ranges its places are:
    the first or last along each dimension, or one at which a condition begins or ends to hold. None is negative."""
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for

    bound, (body,) = unfold(read)
    found = one_is_positive(bound, body)
    if found:
        used("sums that are positive somewhere")
    return found


def has_conditions(read: Read) -> bool:
    """Whether a sum has conditions on what it adds up."""
    return any(isinstance(atom, Guard) for mono, _ in read.tensor.bodies[0].items for atom, _ in mono)


def at_own_places(read: Read) -> Read:
    """The read with variables of the same sizes that are always the same ones: what goes through a sum has new
    variables wherever it is looked into, and the same signs."""
    from hlo_verify.terms.substitution import substitute  # made of terms, whose signs are asked for

    places = dict.fromkeys(v for e in read.indices for v in sorted(e.free, key=lambda v: v.uid))
    own = {v: expr.of_var(expr.var("at", n, v.size)) for n, v in enumerate(places)}
    renamed = substitute(of_atom(read), own).atom
    return renamed if isinstance(renamed, Read) and renamed.tensor is read.tensor else read
