"""Inverse Fourier transforms of products of two transforms: convolutions round a circle.

    ifft p. (fft a)(p) * (fft b)(p)   at t     =     sum s<n. a(s) * b((t - s) mod n)

Of real numbers half of the transforms is enough, as the other half is its conjugate.
"""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Poly, Read


def convolved(p: Poly, place: Var, at: Index, size: int, *, is_real: bool) -> Poly | None:
    """The inverse transform along `place` of a term, at a place, where it is a product of two transforms over so many
    elements (real ones, if `is_real`); None of any other term."""
    if len(p.items) != 1 or p.doubt:
        return None
    ((mono, c),) = p.items
    factors = [atom for atom, n in mono for _ in range(n if isinstance(n, int) and n > 0 else 3)]
    bodies = [_transformed(atom, place, size, is_real=is_real) for atom in factors]
    if len(bodies) != 2 or bodies[0] is None or bodies[1] is None:
        return None
    (v, a), (w, b) = bodies[0], bodies[1]
    s = expr.fresh("f", size)
    back = expr.modulo(expr.shift(expr.subtract(at, expr.of_var(s)), size), size)
    there = algebra.substitute(a, {v: expr.of_var(s)}), algebra.substitute(b, {w: back})
    return algebra.scale(reduce_sum([s], algebra.multiply(*there)), c)


def _transformed(atom: Atom, place: Var, size: int, *, is_real: bool) -> tuple[Var, Poly] | None:
    """What an atom is the transform of along one dimension, at that place."""
    if not isinstance(atom, Read) or atom.tensor.kind != "fft" or atom.tensor.seal is not None:
        return None
    along = atom.indices[len(atom.tensor.params) :]
    if dict(atom.tensor.attributes[0])["fft_type"] != "FFT" or len(along) != 1:
        return None
    own, (body,) = unfold(atom)
    if along[0] is not expr.of_var(place) or own[0].size != size or place in body.free:
        return None
    return None if is_real and signs.of(body) & signs.BEYOND else (own[0], body)
