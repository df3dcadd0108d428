"""What a term is made of."""

from __future__ import annotations

import itertools

from hlo_verify.terms import algebra
from hlo_verify.terms.functions import MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Poly, atoms, number, reads, tensor

DEPTH = 200


def test_what_is_an_argument_in_many_places_is_gone_through_once() -> None:
    """A graph of 200 functions has more paths than could ever be walked."""
    x, y = (algebra.read(tensor("argument", name, "f32", ()), ()) for name in "xy")
    p: Poly = x
    for k in range(DEPTH):
        p = apply(MAXIMUM, (algebra.multiply(p, y), algebra.add(p, number(k))))
    found = list(itertools.islice(atoms(p), 10 * DEPTH))
    assert len(found) < 10 * DEPTH and len({a for a in found if isinstance(a, Apply)}) >= DEPTH
    assert reads(p) == reads(x) | reads(y)
