"""The rank of an element: how many come before it, which is the order of the order.

    count v. [f(v) < f(i)] + [f(v) = f(i)] [v < i]   is  order (order f) at i

Of equal elements the first comes first, as in a stable sort: so each element has a rank of its own, and that of the
r-th in order is r.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.in_order import inverse, order
from hlo_verify.ops.integer_ranks import as_integer_rank
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.counts import multiple_of
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import IS_ZERO, POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ZERO, Apply, Atom, Guard, Monomial, Poly, Read, make_poly


def as_rank(p: Poly) -> Poly:
    """A count of the elements before another as that one's rank; any other term as it is."""
    counted = _counted(p)
    if counted is None:
        return as_integer_rank(p) or p
    v, body = counted
    factors = dict.fromkeys(atom for mono, _ in body.items for atom, _ in mono if v in atom.free)
    less = [a for a in factors if isinstance(a, Apply) and a.function == POSITIVE]
    for place in _places(factors, v):
        for asked in less:
            f = _compared(asked.args[0], v, place)
            if f is not None and _is_before(body, asked.args[0], v, place):
                w = expr.fresh("f", v.size)
                permutation = order(v, f, expr.of_var(w), "f32", ascending=True).atom
                return p if permutation is None else algebra.of_index(inverse(permutation, w, place))
    return p


def _counted(p: Poly) -> tuple[Var, Poly] | None:
    """A variable of as many values as each of two or three sums has, and what they sum together; None of others."""
    sums = [(mono[0][0], c) for mono, c in p.items if len(mono) == 1 and mono[0][1] == 1]
    if not 2 <= len(sums) == len(p.items) <= 3:
        return None
    read = [atom for atom, _ in sums if isinstance(atom, Read) and atom.tensor.kind == "sum"]
    sizes = {tuple(v.size for v in atom.tensor.bound) for atom in read}
    if len(read) < len(sums) or len(sizes) > 1 or len(size := sizes.pop()) != 1 or not any(map(_compares, read)):
        return None
    v, body = expr.fresh("f", size[0]), ZERO
    for atom, (_, c) in zip(read, sums, strict=True):
        (own,), (part,) = unfold(atom)
        body = algebra.add(body, algebra.scale(algebra.substitute(part, {own: expr.of_var(v)}), c))
    return v, body


def _compares(atom: Read) -> bool:
    """Whether a sum counts where one real number is greater than another."""
    (mono, *others) = [mono for mono, _ in atom.tensor.bodies[0].items]
    return not others and len(mono) == 1 and isinstance(mono[0][0], Apply) and mono[0][0].function == POSITIVE


def _places(factors: Iterable[Atom], v: Var) -> Iterator[Index]:
    """The places for which a condition says that a variable is less."""
    for atom in factors:
        c = multiple_of(v, atom.form) if isinstance(atom, Guard) and (atom.lo is None) != (atom.hi is None) else 0
        if not isinstance(atom, Guard) or abs(c) != 1:
            continue
        end = atom.hi if c > 0 else atom.lo
        if end is None:
            continue
        rest = expr.subtract(atom.form, expr.scale(expr.of_var(v), c))
        place = expr.shift(expr.scale(rest, -c), c * end + 1)  # v + rest <= hi, or lo <= rest - v
        if v not in place.free and place.lo >= 0 and place.hi < v.size:
            yield place


def _compared(difference: Poly, v: Var, place: Index) -> Poly | None:
    """f(v), where a difference is f at a place less that."""
    f = algebra.scale(make_poly(tuple((mono, c) for mono, c in difference.items if _hangs_on(mono, v))), -1)
    return f if algebra.subtract(algebra.substitute(f, {v: place}), f) is difference else None


def _hangs_on(mono: Monomial, v: Var) -> bool:
    return any(v in atom.free for atom, _ in mono)


def _is_before(body: Poly, difference: Poly, v: Var, place: Index) -> bool:
    """Whether a condition is that the difference is positive, or none and v less than the place."""
    less, equal = apply(POSITIVE, (difference,)), apply(IS_ZERO, (difference,))
    ahead = expr.subtract(expr.of_var(v), place)
    first = algebra.multiply(equal, guards.interval(ahead, None, -1))
    return body in (
        algebra.add(less, first),
        algebra.add(less, first, algebra.scale(algebra.multiply(less, first), -1)),
    )
