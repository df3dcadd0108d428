"""Orders of elements that are counted from the other end.

    order v. f(n-1-v) at r       is  n-1 - (order v. -f(v) at n-1-r)
    order v. (c - p(v)) at r     is  order p at n-1-r, for a permutation p of 0, 1, ..., n-1

Of equal elements the last comes first where they are looked at backwards, and first again where that order is read
backwards: so the greatest first, as `jnp.argsort(x, descending=True)` has it, is the order of -f.
"""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra
from hlo_verify.terms.counts import multiple_of
from hlo_verify.terms.term import Poly, atoms, indices, of_atom


def from_the_end(v: Var, place: Index) -> Index:
    """The place of the values of a variable that is as far from the last as another is from the first."""
    return expr.subtract(expr.constant(v.size - 1), place)


def forwards(v: Var, p: Poly) -> Poly | None:
    """f(v), where a term is f(n-1-v), for an f that itself goes through its places upwards; None of other terms."""
    hanging = {e for atom in atoms(p) for e in indices(atom) if v in e.free}
    if not hanging or not all(_descends(v, e) for e in hanging):
        return None
    return algebra.substitute(p, {v: from_the_end(v, expr.of_var(v))})


def _descends(v: Var, e: Index) -> bool:
    c = multiple_of(v, e)
    return c < 0 and v not in expr.subtract(e, expr.scale(expr.of_var(v), c)).free


def taken_apart(p: Poly) -> tuple[int, Poly] | None:
    """1 or -1, and the one atom that a number and that multiple of it are together; None of other terms."""
    own = [(mono, c) for mono, c in p.items if mono]
    ((mono, c),) = own if len(own) == 1 else (((), 0),)
    return (int(c), of_atom(mono[0][0])) if c in (1, -1) and len(mono) == 1 and mono[0][1] == 1 else None
