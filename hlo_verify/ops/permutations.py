"""Places in order: what a sort gives of an iota beside its keys is each index once.

    sum b<n. h(p(b)) = sum w<n. h(w)        for a permutation p of 0, 1, ..., n - 1: of a maximum and others, too
    sum b<n. [p(b) = w] h(b) = h(q(w))      for its inverse q, which is its order

So tokens that are sorted by their expert, and scattered back to where they came from, are the tokens. A sort orders
what it is given, whatever its comparator says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ops.elements import replaced
from hlo_verify.ops.in_order import element_of, in_order, inverse
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra
from hlo_verify.terms.assumed_order import is_permutation_along
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Guard, Monomial, Poly, Read, atoms, make_poly


def is_permutation(atom: Atom | None, v: Var) -> bool:
    """Whether an atom takes each of the values of a variable once, as the variable does."""
    if is_permutation_along(atom, v):
        return True
    if not isinstance(atom, Read) or atom.tensor.kind != "sort" or len(atom.tensor.bound) != 1:
        return False
    source = atom.tensor
    number = source.attributes[2]
    (bound,), (*others, place) = source.bound, atom.indices
    hi = INTEGER_RANGES.get(source.dtype, (0, bound.size))[1]
    counts = source.bodies[number] is algebra.of_index(expr.of_var(bound)) and bound.size - 1 <= hi  # not wrapped
    return counts and bound.size == v.size and place is expr.of_var(v) and not any(v in e.free for e in others)


def summed(bound: Sequence[Var], p: Poly) -> Poly:
    """The sum of a term over variables. Of one sum times numbers and conditions, those of its variables too."""
    variables, found = unpermuted(bound, p)
    if variables == list(bound) and len(p.items) == 1:
        ((mono, c),) = p.items
        sums = [a for a, n in mono if isinstance(a, Read) and a.tensor.kind == "sum" and n == 1]
        others = [a for a, _ in mono if not sums or a is not sums[0]]
        if len(sums) == 1 and all(a.boolean or not (a.doubt or sums[0].doubt & INFINITE) for a in others):
            more, (body,) = unfold(sums[0])
            inner = algebra.expanded(make_poly(((tuple(item for item in mono if item[0] is not sums[0]), c),)), body)
            outer, there = unpermuted(bound, inner)
            if outer != list(bound):
                return reduce_sum([*outer, *more], there)
    if variables == list(bound):
        variables, found = unpermuted(bound, p, by_inverse=True)
    return reduce_sum(variables, found)


def unpermuted(bound: Sequence[Var], p: Poly, *, by_inverse: bool = False) -> tuple[list[Var], Poly]:
    """Variables, and a term of them, with those that occur in permutations alone in the place of these; by the inverse
    also those that occur otherwise, where a permutation has one value."""
    found, variables = p, list(bound)
    for v in bound:
        through = _through_permutation(found, v, by_inverse)
        if through is not None:
            variables[variables.index(v)], found = through
    return variables, found


def _through_permutation(p: Poly, v: Var, by_inverse: bool) -> tuple[Var, Poly] | None:
    """A term that depends on a variable through one permutation of its values alone, as a function of these values."""
    inside = {atom for atom in _atoms(p) if is_permutation(atom, v)}
    if len(inside) != 1:
        return None
    (order,) = inside
    w = expr.fresh("f", v.size)
    sorted_by = {atom: at for atom in _atoms(p) if (at := element_of(atom, order, v, w)) is not None}
    there = replaced(p, {order: algebra.of_index(expr.of_var(w)), **sorted_by})
    if v not in there.free:
        return w, there
    if not by_inverse:
        return None
    there = in_order(algebra.substitute(there, {v: inverse(order, v, expr.of_var(w))}))
    return (w, there) if all(_at_one_point(mono, w) for mono, _ in there.items) else None


def _at_one_point(mono: Monomial, w: Var) -> bool:
    """Whether a product is 0 but for one value of a variable, so that a sum over that is no sum."""
    digit = expr.of_var(w).items[0][0]
    return any(
        isinstance(atom, Guard) and atom.lo == atom.hi and any(part is digit for part, _ in atom.form.items)
        for atom, _ in mono
    )


def _atoms(p: Poly) -> Iterator[Atom]:
    """What a term is made of, in arguments and places too."""
    for atom in atoms(p):
        yield atom
        for inner in values_in_places(atom):
            yield from _atoms(inner)
