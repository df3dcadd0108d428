"""Places in order: what a sort gives of an iota beside its keys is each index once.

    sum b<n. h(p(b)) = sum w<n. h(w)        for a permutation p of 0, 1, ..., n - 1: of a maximum and others, too
    sum b<n. [p(b) = w] h(b) = h(q(w))      for its inverse q, which is its order
    sum b<n. [p(b) < k] h(b) = sum w<k. h(q(w))     and  max b<n. (h(b) where p(b) < k, else c)  alike
    sum w<n. h(q(w), w)      = sum b<n. h(b, p(b))   where q is the order of an order p: the ranks of elements
    [order f at b = w]       = [q(w) = b]   where q is the order of that order: w is the b-th if its rank is b

So tokens that are sorted by their expert, and scattered back to where they came from, are the tokens, and an element is
one of the k first if its rank is less than k. A sort orders what it is given, whatever its comparator says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Var
from hlo_verify.memory import once_a_session
from hlo_verify.ops.backwards import from_the_end
from hlo_verify.ops.elements import replaced
from hlo_verify.ops.in_order import element_of, in_order, inverse
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.assumed_order import is_permutation_along
from hlo_verify.terms.counts import multiple_of
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.ordered import ORDER, is_ordered
from hlo_verify.terms.places import within_places
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Guard, Monomial, Poly, Read, Tensor, atoms, make_poly


def is_permutation(atom: Atom | None, v: Var) -> bool:
    """Whether an atom takes each of the values of a variable once, as the variable does."""
    if is_permutation_along(atom, v):
        return True
    if not isinstance(atom, Read) or not orders_places(atom.tensor):
        return False
    (bound,), (*others, place) = atom.tensor.bound, atom.indices
    once = place is expr.of_var(v) or place is from_the_end(v, expr.of_var(v))
    return once and bound.size == v.size and not any(v in e.free for e in others)


def is_another_each(atom: Atom, v: Var) -> bool:
    """Whether an atom takes no value twice, as a variable goes through its values: what is at other places in order."""
    if not isinstance(atom, Read) or not orders_places(atom.tensor):
        return False
    *others, place = atom.indices
    c = multiple_of(v, place)
    rest = expr.subtract(place, expr.scale(expr.of_var(v), c))
    return c != 0 and not any(v in e.free for e in (rest, *others))


@once_a_session
def orders_places(source: Tensor) -> bool:
    """Whether a definition is what a sort of one dimension makes of the places 0, 1, ..., which do not wrap."""
    if source.kind != "sort" or len(source.bound) != 1:
        return False
    (bound,), number = source.bound, source.attributes[2]
    hi = INTEGER_RANGES.get(source.dtype, (0, bound.size))[1]
    return source.bodies[number] is algebra.of_index(expr.of_var(bound)) and bound.size - 1 <= hi


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
    return over_places_in_order(reduce_sum(variables, found), changed=found is not p)


def over_places_in_order(p: Poly, *, changed: bool = False, of_elements: bool = False) -> Poly:
    """The sums that variables have together, once they are one, over places in order, whatever factors they have, also
    behind names; or those alone that are over elements, of which ranks are asked: not of which one is at a place."""
    asks = _asks_rank if of_elements else _asks_order
    there: dict[Atom, Poly] = {}
    for atom in (atom for mono, _ in p.items for atom, _ in mono):
        if isinstance(atom, Read) and atom.tensor.kind == "sum" and _asks_somewhere(atom.tensor, asks):
            bound, (body,) = unfold(atom)
            opened = {name: unfold(name)[1][0] for name in _names(body) if asks(name.tensor)}
            body = algebra.with_atoms(body, opened.get)
            variables, found = unpermuted(bound, body, by_inverse=True)
            if found is not body:
                there[atom] = reduce_sum(variables, found)
    is_alone = p.atom is not None or all(len(found.items) == 1 for found in there.values())  # nothing is multiplied out
    if there and is_alone:
        return in_order(algebra.with_atoms(p, there.get))
    return in_order(p) if changed else p


def over_places(bound: Sequence[Var], p: Poly) -> tuple[list[Var], Poly]:
    """What a reduction is over, and of: places in order, where elements that are among the first are told from others,
    in a term with a name too."""
    variables, found = unpermuted(bound, p)
    if variables != list(bound):
        return variables, found
    atom, whole = p.atom, found
    if isinstance(atom, Read) and atom.tensor.kind == "term" and _asks_order(atom.tensor):
        _, (whole,) = unfold(atom)
    variables, there = unpermuted(bound, whole, by_inverse=True)
    return (variables, there) if variables != list(bound) else (list(bound), found)


def _asks_somewhere(source: Tensor, asks: Callable[[Tensor], bool]) -> bool:
    """Whether a definition, or a factor in it that has a name, asks."""
    return asks(source) or any(asks(name.tensor) for name in _names(source.bodies[0]))


def _names(p: Poly) -> Iterator[Read]:
    """The named terms among a term's factors."""
    return (a for mono, _ in p.items for a, _ in mono if isinstance(a, Read) and a.tensor.kind == "term")


@once_a_session
def _asks_order(source: Tensor) -> bool:
    """Whether a definition has conditions on which element is at a place in order, or ranks."""
    asked = (guard for mono, _ in source.bodies[0].items for guard in guards.guards_of(mono))
    is_asked = any(is_ordered(own_value(part), ORDER) for guard in asked for part, _ in guard.form.items)
    return is_asked or _asks_rank(source)


@once_a_session
def _asks_rank(source: Tensor) -> bool:
    """Whether a definition has ranks of elements."""
    return any(map(_is_rank, _atoms(source.bodies[0])))


def unpermuted(bound: Sequence[Var], p: Poly, *, by_inverse: bool = False) -> tuple[list[Var], Poly]:
    """Variables, and a term of them, with those that occur in permutations alone in the place of these; by the inverse
    also those that occur otherwise, where a permutation has one value."""
    found, variables = p, list(bound)
    for v in bound:
        through = _through_permutation(found, v, by_inverse)
        if through is not None:
            variables[variables.index(v)], found = through
    return variables, by_rank(variables, found)


def by_rank(bound: Collection[Var], p: Poly) -> Poly:
    """The term, in which that some element is at a place in order, which hangs on variables, is asked of its rank."""
    found: dict[Atom, Poly] = {}
    for guard in (guard for mono, _ in p.items for guard in guards.guards_of(mono)):
        if guard.lo == guard.hi and not guard.free.isdisjoint(bound):
            there = _asked_of_rank(guard, bound)
            if there is not None:
                found[guard] = there
    return algebra.with_atoms(p, found.get) if found else p


def _asked_of_rank(guard: Guard, bound: Collection[Var]) -> Poly | None:
    """`[order f at b = w]` as `[order (order f) at w = b]`, where w is an element; None of other conditions.

    An element that is a number is asked as it is: where all are written out, no sum over them becomes one in order.
    """
    for part, c in guard.form.items:
        which = own_value(part)
        if abs(c) != 1 or not is_ordered(which, ORDER) or which.indices[-1].free.isdisjoint(bound):
            continue
        rest = expr.subtract(guard.form, expr.scale(expr.of_atom(part), c))
        element = expr.scale(expr.subtract(expr.constant(guard.lo or 0), rest), c)
        b = expr.fresh("f", which.tensor.bound[0].size)
        fixed = (element, *which.indices[:-1])
        if not element.items or not all(e.free.isdisjoint(bound) for e in fixed):
            continue
        permutation = algebra.read(which.tensor, (*which.indices[:-1], expr.of_var(b))).atom
        if permutation is not None:
            has_rank = guards.interval(element, 0, b.size - 1)
            ahead = expr.subtract(which.indices[-1], inverse(permutation, b, element))
            return algebra.multiply(has_rank, guards.interval(ahead, 0, 0))
    return None


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
    few = all(_at_few_points(mono, w) for mono, _ in there.items)
    return (w, there) if few or _is_rank(order) else None


def _is_rank(permutation: Atom) -> bool:
    """Whether a permutation is an order's order, the ranks of elements, whose inverse is that order."""
    return is_ordered(permutation, ORDER) and is_ordered(permutation.tensor.bodies[0].atom, ORDER)


def _at_few_points(mono: Monomial, w: Var) -> bool:
    """Whether a product is 0 but for one value of a variable, so that a sum over that is no sum, or for those of a part
    of its range, so that it is one over these."""
    digit = expr.of_var(w).items[0][0]
    return any(
        all(isinstance(part, Digit) and part.var is w for part, _ in atom.form.items)
        or (atom.lo == atom.hi and any(part is digit for part, _ in atom.form.items))
        for atom, _ in mono
        if isinstance(atom, Guard)
    )


def _atoms(p: Poly) -> Iterator[Atom]:
    """What a term is made of, in arguments and places too."""
    return (atom for inner in within_places(p) for atom in atoms(inner))
