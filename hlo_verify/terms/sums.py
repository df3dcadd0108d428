"""Sums over index variables, in canonical form.

    sum v. c * f * g(v)      = c * f * sum v. g(v)                    f does not depend on v, inside of names too
    sum v. sum k. g          = sum v,k. g                             partial sums close here
    sum v<n. [v = e] g(v)    = [0 <= e < n] g(e)             the one-point rule (`fixing`): a name stays one
    sum v. [e(v) = i] g(e(v)) = g(i) * sum v. [e(v) = i]      what a condition tells (`told_places`)
    sum v. (k*[v = e] + c) g(v)   = k*g(e) + c * sum v. g(v)          also of three pieces (`beside_all`)
    sum v<n. g(n-1-v)        = sum v<n. g(v)                          counted down (`merging`)
    sum v<n. g((e + c*v) mod n)   = sum v<n. g(v)             a full rotation, c prime to n (`merging`)
    sum a<m. sum b<n. g(a + m*b)  = sum k<m*n. g(k)                   digits that only occur together (`merging`)
    sum a<m. sum b<n. g(a + m*b) h(e(a,b) mod k) = sum v<m*n. g(v) h(e(v) mod k)      or so modulo k (`merging`)
    sum v. sorted(x)[v]      = sum v. x[v]                                 values in order (`sums_in_order`)
    sum v,w. f(v) g(w)       = (sum v. f(v)) (sum w. g(w))
    sum v,w. f(v,w) g(v)     = sum v. (sum w. f(v,w)) g(v)            f may be several factors

What remains is defined as a tensor of its own (`definitions.define`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

from hlo_verify.index.expr import Digit, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.looking import look
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.beside_all import over_all
from hlo_verify.terms.definitions import define, named, unfold
from hlo_verify.terms.domains import is_defined_beside
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.factors import of_factors
from hlo_verify.terms.fixing import eliminated
from hlo_verify.terms.losses import selected_by, separated, tidied, without_zeros
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.openings import as_it_is_added_up, keeps_its_name, opening_within_bounds
from hlo_verify.terms.order_counts import how_many_below
from hlo_verify.terms.products import product_with
from hlo_verify.terms.substitution import deciding
from hlo_verify.terms.sums_in_order import summed_in_order
from hlo_verify.terms.term import ONE, ZERO, Atom, Guard, Monomial, Number, Poly, Read, Tensor, make_poly
from hlo_verify.terms.told_places import told
from hlo_verify.terms.used import used

Item = tuple[Atom, Number]


def reduce_sum(bound: Sequence[Var], p: Poly) -> Poly:
    """`sum over bound of p`."""
    if not bound:
        return p
    look()
    parts = over_all(p, bound)
    if parts is not None:
        return algebra.add(*(reduce_sum(bound, part) for part in parts))
    selected = selected_by(p, bound, {a for mono, _ in p.items for a, _ in mono if a.free.isdisjoint(bound)})
    addends = separated(p)
    if len(addends) > 1:
        used("sum of terms")
    sums = (algebra.scale(_within_bounds(bound, mono, selected), c) for mono, c in addends)
    return tidied(algebra.add(*sums))


def _within_bounds(bound: Sequence[Var], mono: Monomial, selected: Collection[Atom]) -> Poly:
    return opening_within_bounds(lambda: _sum_monomial(bound, mono, selected), bound, mono)


def _sum_monomial(bound: Sequence[Var], mono: Monomial, selected: Collection[Atom]) -> Poly:
    """The sum of a product; some of its factors are computed for some of the elements only, and stay in it, unless a
    condition that leaves the sum with them says that they are numbers.

    So do infinities, as `inf * (a + b)` is not `inf * a + inf * b`.
    """
    free = [item for item in mono if item[0].free.isdisjoint(bound)]
    doubted = (atom for atom, _ in free if atom in selected and not is_defined_beside(atom, free))
    stays = {*doubted, *(atom for atom, _ in free if atom.doubt & INFINITE)}
    dependent = [item for item in mono if item[0] in stays or not item[0].free.isdisjoint(bound)]
    outside = of_factors(item for item in mono if item not in dependent)
    occurring: set[Var] = set()
    for atom, _ in dependent:
        occurring |= atom.free.intersection(bound)
    count = 1
    for v in bound:
        if v not in occurring:
            count *= v.size
    if outside is not ONE:
        used("factor of a sum")
    if count > 1:
        used("sum of one term")
    inner = _sum_product([v for v in bound if v in occurring], dependent)
    return algebra.scale(algebra.expanded(outside, inner), count)


def _sum_product(bound: list[Var], items: list[Item]) -> Poly:
    """The sum of a product every factor of which depends on a bound variable."""
    if not bound:
        return of_factors(items)
    count = how_many_below(bound, items)
    if count is not None:
        return count
    factors = [item for item in items if not isinstance(item[0], Guard)]
    if len(factors) == 1 and factors[0][1] == 1:
        atom = factors[0][0]
        opened = _opened(bound, items, atom) if isinstance(atom, Read) else None
        opened = summed_in_order(bound, items) if opened is None else opened
        if opened is not None:
            return opened
    at_place = told(bound, items)
    if at_place is not None:
        return reduce_sum(bound, at_place)
    is_infinite = any(atom.doubt & INFINITE for atom, _ in items)
    put_together = None if is_infinite else _put_together(bound, items)
    if put_together is not None:
        return reduce_sum(bound, put_together)
    parted = _parted(bound, items)
    if parted is not None:
        return reduce_sum(bound, parted)
    merged = merge_in(bound, (of_factors(items),))
    if merged is not None:
        return reduce_sum(merged[0], merged[1][0])
    fewer = eliminated(bound, items)
    if fewer is not None:
        return reduce_sum(*fewer)
    picked = _picked(bound, items)
    if picked is not None:
        return reduce_sum(*picked)
    groups = components(bound, items)
    if len(groups) > 1 and _may_part([part for _, part in groups]):
        used("product of sums")
        result = ONE
        for vs, part in groups:
            result = algebra.expanded(result, _sum_product(vs, part))
        return result
    if len(factors) > 1 and not is_infinite:
        pushed = _push(bound, items)
        if pushed is not None:
            return pushed
    return define("sum", bound, (of_factors(items),))


def _opened(bound: list[Var], items: list[Item], atom: Read) -> Poly | None:
    """The sum of a sum, or of a named term, taken apart; None where it is neither, or keeps its name (`openings`)."""
    if atom.tensor.kind not in ("sum", "term"):
        return None
    if atom.tensor.kind == "term":
        read_elsewhere = eliminated(bound, items)
        if read_elsewhere is not None:
            return reduce_sum(*read_elsewhere)
        if keeps_its_name(bound, atom):
            return None
    used("sum of a sum")
    more, (body,) = unfold(atom)
    rest = of_factors(item for item in items if item[0] is not atom)
    if atom.tensor.kind == "term":
        return reduce_sum([*bound, *more], algebra.expanded(rest, body))
    with as_it_is_added_up(atom.tensor.bodies[0]):
        return reduce_sum([*bound, *more], algebra.expanded(rest, body))


def _put_together(bound: Sequence[Var], items: Sequence[Item]) -> Poly | None:
    """A product with a factor that has a name written out, where that is one thing in one part of the range and another
    in the next: of `sum v<n. f(v) g(v)` with `[v < k] a(v) + [v >= k] b(v)` for f, both parts.

    Shards whose borders lie elsewhere add up the same two sums, once they are added up themselves.
    """
    here = frozenset(bound)
    for atom, n in items:
        if not isinstance(atom, Read) or atom.tensor.kind != "term" or n != 1 or atom.tensor.seal is not None:
            continue
        (body,) = atom.tensor.bodies
        given = {p for p, e in zip(atom.tensor.params, atom.indices, strict=False) if e.items and e.free <= here}
        asked = deciding(atom.tensor) & given
        if len(body.items) < 2 or not asked or not allows("opened_weight", body.weight):
            continue
        if any(all(_asks(mono, v) for mono, _ in body.items) for v in asked) and not keeps_its_name(bound, atom):
            used("sum of what is put together")
            return product_with(of_factors(items).items[0][0], {atom: _in_pieces(unfold(atom)[1][0], here)}.get)
    return None


def _in_pieces(p: Poly, bound: Set[Var]) -> Poly:
    """A term with one product for each of the conditions on bound variables in it: what is added up under one of them
    has a name, as an operand has that is nothing else."""
    pieces: dict[Monomial, dict[Monomial, Number]] = {}
    for mono, c in p.items:
        on = tuple(item for item in mono if isinstance(item[0], Guard) and item[0].free <= bound)
        pieces.setdefault(on, {})[tuple(item for item in mono if item not in on)] = c
    if len(pieces) == len(p.items):
        return p
    named_pieces = ((make_poly(((on, 1),)), algebra.up_to_scale(algebra.build(q), named)) for on, q in pieces.items())
    return algebra.add(*(algebra.multiply(on, piece) for on, piece in named_pieces))


def _asks(mono: Monomial, v: Var) -> bool:
    """Whether a product has a condition on a variable alone."""
    return any(isinstance(atom, Guard) and atom.free == {v} for atom, _ in mono)


def _picked(bound: list[Var], items: list[Item]) -> tuple[list[Var], Poly] | None:
    """The sum with a factor written out that is itself a sum over what picks a value of a bound variable:
    `sum v. (sum w. [e(w) = v] g(w)) h(v)` is `sum w. g(w) h(e(w))`."""
    if any(atom.doubt for atom, _ in items):
        return None
    for item in items:
        atom, n = item
        if n != 1 or not isinstance(atom, Read) or not picks(atom.tensor):
            continue
        more, (body,) = unfold(atom)
        if len(body.items) != 1:
            continue
        ((own, c),) = body.items
        for v in bound:
            chosen = eliminated([v], own) if v in atom.free and len(items) > 1 else None
            if chosen is None or chosen[0]:
                continue
            used("what is picked by a sum")
            rest = of_factors(other for other in items if other is not item)
            return [*bound, *more], algebra.scale(algebra.expanded(rest, make_poly(((own, 1),))), c)
    return None


@once_a_session
def picks(source: Tensor) -> bool:
    """Whether a sum is over products in which an element that is looked up must be a parameter."""
    if source.kind != "sum" or source.seal is not None or len(source.bodies[0].items) != 1:
        return False
    return any(
        isinstance(atom, Guard)
        and atom.lo == atom.hi
        and any(isinstance(part, Opaque) and part.operator == "value" for part, _ in atom.form.items)
        and any(isinstance(part, Digit) and part.var in source.params and abs(c) == 1 for part, c in atom.form.items)
        for atom, _ in source.bodies[0].items[0][0]
    )


def _may_part(groups: Sequence[Sequence[Item]]) -> bool:
    """Whether a product may be taken apart into such factors: not if one that may be no number is then computed where
    the conditions in another one select nothing, or if there are infinities, which do not distribute."""
    if any(atom.doubt & INFINITE for group in groups for atom, _ in group):
        return False
    doubted = [n for n, group in enumerate(groups) if any(atom.doubt for atom, _ in group)]
    selected = [n for n, group in enumerate(groups) if any(atom.boolean for atom, _ in group)]
    return all(n == k for n in doubted for k in selected)


def _are_selected(factors: Sequence[Atom], p: Poly) -> bool:
    """Whether some common factors of a term may be no numbers, and are computed under some of its conditions only."""
    doubted = [atom for atom in factors if atom.doubt]
    return bool(doubted) and (any(a.doubt & INFINITE for a in doubted) or bool(selected_by(p, among=doubted)))


def _parted(bound: list[Var], items: list[Item]) -> Poly | None:
    """The product with a named factor taken apart, a part of which does not depend on the variables, or on some of
    those that the rest of it depends on."""
    for item in items:
        atom, n = item
        if not isinstance(atom, Read) or atom.tensor.kind != "term" or n != 1 or not _common(atom.tensor.bodies[0]):
            continue
        (body,) = unfold(atom)[1]
        numbers = without_zeros(body)
        inside = atom.free.intersection(bound)
        outside = [(a, n) for a, n in _common(numbers) if a.free.intersection(bound) < inside]
        if numbers.items and (not outside or _are_selected([a for a, _ in outside], body)):
            continue
        parts, zeros = numbers, algebra.difference(body, numbers)
        if numbers.items:
            rest = algebra.build({tuple(i for i in mono if i not in outside): c for mono, c in numbers.items})
            if not any(a.doubt or a.boolean for a, _ in outside):  # 0 * t is so many times as much
                rest, zeros = algebra.add(rest, zeros), ZERO
            parts = algebra.expanded(of_factors(outside), rest if len(rest.items) == 1 else named(rest))
        parts = algebra.add(parts, zeros)
        if keeps_its_name(bound, atom):
            continue
        used("factor of a named term")
        return algebra.product_with(tuple(items), {atom: parts}.get)
    return None


def _common(p: Poly) -> list[Item]:
    """The factors, with their powers, that all monomials have, but for those that are 0 or no number."""
    first, *others = [mono for mono, _ in without_zeros(p).items] or [()]
    return [item for item in first if all(item in mono for mono in others)]


def components(bound: Sequence[Var], items: Iterable[Item]) -> list[tuple[list[Var], list[Item]]]:
    """Factors grouped by the bound variables that they share."""
    groups: list[tuple[set[Var], list[Item]]] = []
    for item in items:
        vs = set(item[0].free.intersection(bound))
        mine = [item]
        rest = []
        for group in groups:
            if group[0] & vs:
                vs |= group[0]
                mine = group[1] + mine
            else:
                rest.append(group)
        groups = [*rest, (vs, mine)]
    return [([v for v in bound if v in vs], part) for vs, part in groups]


def _push(bound: list[Var], items: list[Item]) -> Poly | None:
    """Sum variables that occur in some of the factors only, there, with the guards that are about them.

    Of two variables that share some factors but not all, neither is summed first: a[k] * b[k,j] * c[j] stays as it is.
    """
    factors = [item for item in items if not isinstance(item[0], Guard)]
    for v in bound:
        beyond = set[Var]().union(*(atom.free for atom, _ in factors if v not in atom.free))
        own = [w for w in bound if w not in beyond]
        inner = [item for item in items if not item[0].free.isdisjoint(own)]
        outer = [item for item in items if item not in inner]
        within = [atom for atom, _ in inner if not isinstance(atom, Guard)]
        across = any(len({w in atom.free for atom in within}) > 1 for w in bound if w in beyond)
        if len(within) < len(factors) and not across and _may_part([inner, outer]):
            used("sum inside of a sum")
            summed = reduce_sum(own, of_factors(inner))
            return reduce_sum([w for w in bound if w not in own], algebra.expanded(summed, of_factors(outer)))
    return None
