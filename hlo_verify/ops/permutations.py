"""Places in order: what a sort gives of an iota beside its keys is each index once.

    sum b<n. h(p(b)) = sum w<n. h(w)        for a permutation p of 0, 1, ..., n - 1: of a maximum and others, too

So tokens that are sorted by their expert, and scattered back to where they came from, are the tokens. A sort orders
what it is given, whatever its comparator says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.equality.rebuilding import rebuilt
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra, guards
from hlo_verify.terms import term as terms
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Guard, Poly, Read, indices, make_poly, value_of


def is_permutation(atom: Atom | None, v: Var) -> bool:
    """Whether an atom takes each of the values of a variable once, as the variable does."""
    if not isinstance(atom, Read) or atom.tensor.kind != "sort" or len(atom.tensor.bound) != 1:
        return False
    source = atom.tensor
    number = source.attributes[2]
    (bound,), (*others, place) = source.bound, atom.indices
    hi = INTEGER_RANGES.get(source.dtype, (0, bound.size))[1]
    counts = source.bodies[number] is algebra.of_index(expr.of_var(bound)) and bound.size - 1 <= hi  # not wrapped
    return counts and bound.size == v.size and place is expr.of_var(v) and not any(v in e.free for e in others)


def summed(bound: Sequence[Var], p: Poly) -> Poly:
    """The sum of a term over variables. Of one sum, conditions apart, those of its variables too."""
    variables, found = unpermuted(bound, p)
    if variables == list(bound) and len(p.items) == 1:
        ((mono, c),) = p.items
        sums = [a for a, n in mono if isinstance(a, Read) and a.tensor.kind == "sum" and n == 1]
        if len(sums) == 1 and all(a.boolean for a, _ in mono if a is not sums[0]):
            more, (body,) = unfold(sums[0])
            inner = algebra.expanded(make_poly(((tuple(item for item in mono if item[0] is not sums[0]), c),)), body)
            outer, moved = unpermuted(bound, inner)
            if outer != list(bound):
                return reduce_sum([*outer, *more], moved)
    return reduce_sum(variables, found)


def unpermuted(bound: Sequence[Var], p: Poly) -> tuple[list[Var], Poly]:
    """Variables, and a term of them, with those that occur in permutations alone in the place of these."""
    found, variables = p, list(bound)
    for v in bound:
        moved = _through_permutation(found, v)
        if moved is not None:
            variables[variables.index(v)], found = moved
    return variables, found


def _through_permutation(p: Poly, v: Var) -> tuple[Var, Poly] | None:
    """A term that depends on a variable through one permutation of its values alone, as a function of these values."""
    inside = {atom for atom in _atoms(p) if is_permutation(atom, v)}
    if len(inside) != 1:
        return None
    (order,) = inside
    w = expr.fresh("f", v.size)
    moved = _moved(p, order, w)
    return None if v in moved.free else (w, moved)


def _atoms(p: Poly) -> Iterator[Atom]:
    """What a term is made of, in arguments and places too."""
    for atom in terms.atoms(p):
        yield atom
        for inner in values_in_places(atom):
            yield from _atoms(inner)


def _moved(p: Poly, order: Atom, w: Var) -> Poly:
    """The term with a variable in the place of a permutation's values."""
    atoms: dict[Atom, Poly] = {order: algebra.of_index(expr.of_var(w))}
    places: dict[Index, Index] = {}
    for atom in terms.atoms(p):
        for e in indices(atom):
            places[e] = _moved_place(e, order, w)
        if isinstance(atom, Guard):
            atoms[atom] = guards.interval(places[atom.form], atom.lo, atom.hi)
    return rebuilt(p, atoms, places)


def _moved_place(e: Index, order: Atom, w: Var) -> Index:
    total = expr.constant(e.const)
    for part, c in e.items:
        there = expr.of_atom(part)
        if isinstance(part, Opaque) and part.operator == "value":
            term = value_of(part)
            moved = _moved(term, order, w)
            there = there if moved is term else algebra.as_index(moved, part.lo, part.hi)
        elif isinstance(part, Opaque) and (inner := _moved_place(part.exprs[0], order, w)) is not part.exprs[0]:
            there = expr.again(part, inner)
        total = expr.add(total, expr.scale(there, c))
    return total
