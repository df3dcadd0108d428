"""Elements at the index of the best one: the best value itself, and the index of the best of a whole from its parts'.

    f(argmax d. f(d))                                  is  max d. f(d)
    n*d* + argmax v<n. f(d*, v)                        is  argmax d,v. (f(d, v), n*d + v)
        for d* = argmax d. max v<n. f(d, v)

    x[n*d* + argmax v<n. f(d*, v)]                     is  x[argmax d,v. (f(d, v), n*d + v)]

`d*` is the first of the parts that hold a best element, and all indices of a part come before those of the next: so the
first best element of that part is the first of the whole. Where all values are the worst there are (minus infinity, or
the least integer), a reduction from the worst and index 0 gives 0, and so does the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.memory import once_a_session
from hlo_verify.ops.attaining import end_of_best
from hlo_verify.ops.best import KINDS, OPPOSITE, Pair, Types, index_of_best, is_from_the_worst, of_best, one_index
from hlo_verify.ops.elements import elsewhere, opaque, places
from hlo_verify.ops.order_keys import key_of
from hlo_verify.ops.permutations import over_places, summed
from hlo_verify.ops.ranks import as_rank
from hlo_verify.ops.regions import reduce_terms
from hlo_verify.ops.slots import at_own_slots
from hlo_verify.ops.values import integer_range
from hlo_verify.program.element_types import is_float
from hlo_verify.terms import algebra
from hlo_verify.terms.bounds import within
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Poly, Read, Tensor, of_atom, reads


def at_best(p: Poly) -> Poly:
    """The term, with what it reads at the index of a best element as the best value, or as the index of one; in sums
    too, whose addends have best elements of their own."""
    for best in _bests(p):
        found = _resolved(opening.opened(p), best)
        if found is not None:
            return at_best(found)
    inside: dict[Atom, Poly] = {a: better for a in _sums(p) if (better := _of_own_best(a)) is not of_atom(a)}
    return rebuilt(p, inside, {}) if inside else p


@once_a_session
def _of_own_best(atom: Read) -> Poly:
    """A sum whose addends read something at the index of a best element, each perhaps of another."""
    bound, (body,) = unfold(atom)
    better = at_best(body)
    return of_atom(atom) if better is body else reduce_sum(bound, better)


def reduce_to_best(reducer: str, bound: Sequence[Var], term: Poly, dtype: str) -> Poly:
    """The reduction of a term over variables, where that may be how a program looks for the best of parts."""
    if reducer == "sum":
        return at_own_slots(at_best(as_rank(summed(bound, term))))
    bound, term = over_places(bound, term)
    best = end_of_best(reducer, bound, term, dtype)
    return reduce_terms(reducer, bound, term) if best is None else best


def _bests(p: Poly) -> list[Read]:
    """The indices of best elements that a term, or a sum in it, reads something at."""
    inside = [body for atom in _sums(p) for body in unfold(atom)[1]]
    return list(dict.fromkeys(best for q in (p, *inside) for best in _read_at(q)))


def _read_at(p: Poly) -> list[Read]:
    terms = (own_value(atom) for e in places(p) for atom in opaque(e))
    return [a for a in terms if a is not None and a.tensor.kind in KINDS]


def _sums(p: Poly) -> list[Read]:
    """The sums in a term that read something at the index of a best element."""
    return sorted((a for a in reads(p) if a.tensor.kind == "sum" and _has_best(a.tensor)), key=lambda a: a.uid)


@once_a_session
def _has_best(source: Tensor) -> bool:
    return any(_read_at(body) for body in source.bodies)


def _elsewhere(p: Poly, best: Read, w: Var) -> Poly | None:
    """The term at element w in the place of the best one, in sums too."""
    there: dict[Atom, Poly] = {}
    for atom in _sums(p):
        bound, (body,) = unfold(atom)
        element = elsewhere(body, best, w)
        if element is not None:
            there[atom] = reduce_sum(bound, element)
    if not there:
        return elsewhere(p, best, w)
    summed = rebuilt(p, there, {})
    return elsewhere(summed, best, w) or summed


def _resolved(p: Poly, best: Read) -> Poly | None:
    bound, (value, index, *first) = unfold(best)
    extremum, dtypes = best.tensor.kind.removeprefix("arg"), best.tensor.attributes
    number = _numbering(bound, algebra.as_index(index, *integer_range(dtypes[1])))
    if number is None or not is_from_the_worst(extremum, (first[0], first[1]), dtypes):
        return None
    w, digits = number
    value = algebra.substitute(value, digits)
    atoms = {a for mono, _ in p.items for a, _ in mono}
    elements = {a: _elsewhere(of_atom(a), best, w) for a in sorted(atoms, key=lambda a: a.uid)}
    found = {a: _best(extremum, w, value, element) for a, element in elements.items() if element is not None}
    reached: dict[Atom, Poly] = {a: there for a, there in found.items() if there is not None}
    if reached:
        return rebuilt(p, reached, {})
    element = _elsewhere(p, best, w)
    there = None if element is None else _best(extremum, w, value, element)
    if element is None or there is not None:
        return there
    of_parts = partial(_of_parts, extremum, w, value, first=(first[0], first[1]), dtypes=dtypes)
    return of_parts(element=element) or _at_best_of_whole(p, best, w, of_parts)


def _best(extremum: str, w: Var, value: Poly, element: Poly) -> Poly | None:
    """What a term is at the best element, where it is the best itself, or ordered as the values are."""
    whole = opening.opened(value)  # what may be undefined has a name where it is compared
    if element is value or opening.opened(element) is whole:
        return reduce_terms(extremum, [w], value)
    own, of = key_of(element, [w]), key_of(whole, [w])
    if own.term is not of.term or w not in own.term.free or not all(map(_is_of_numbers, reads(element))):
        return None
    return reduce_terms(extremum if own.ascending == of.ascending else OPPOSITE[extremum], [w], element)


def _is_of_numbers(atom: Read) -> bool:
    """Whether an element is no integer, of which other integers are made that may wrap."""
    return is_float(atom.tensor.dtype) or not atom.tensor.dtype


def _numbering(bound: Sequence[Var], index: Index) -> tuple[Var, dict[Var, Index]] | None:
    """One variable for an index that counts elements from 0 on, and what the bound variables are of it."""
    total, digits = 1, []
    for atom, c in sorted(index.items, key=lambda item: item[1]):
        if not isinstance(atom, Digit) or c != total or atom.low != 1 or not atom.top or atom.var not in bound:
            return None
        digits.append((atom.var, total))
        total *= atom.var.size
    if index.const or {v for v, _ in digits} != set(bound):
        return None
    w = expr.fresh("f", total)
    return w, {v: expr.modulo(expr.floor_div(expr.of_var(w), low), v.size) for v, low in digits}


def _at_best_of_whole(p: Poly, best: Read, w: Var, of_parts: Callable[..., Poly | None]) -> Poly | None:
    """What a term reads at the best element of the best part, as read at the best of the whole: a row that each part
    hands on beside its best value. None where it reads nothing there."""
    there: dict[Index, Index] = {}
    for e in dict.fromkeys(places(p)):
        element = elsewhere(_with_elements(e), best, w)
        index = None if element is None else of_parts(element=element)
        if index is not None:
            there[e] = algebra.as_index(index, *integer_range(best.tensor.attributes[1]))
    return rebuilt(p, {}, there) if there else None


def _with_elements(e: Index) -> Poly:
    """An index expression as a term of the elements that it is made of the values of."""
    total = algebra.of_index(expr.constant(e.const))
    for part, c in e.items:
        own = own_value(part)
        value = algebra.of_index(expr.of_atom(part)) if own is None else of_atom(own)
        total = algebra.add(total, algebra.scale(value, c))
    return total


def _of_parts(extremum: str, w: Var, value: Poly, element: Poly, first: Pair, dtypes: Types) -> Poly | None:
    """The index of the best of a whole, for that of the best of part w (`element`), whose value is `value`."""
    inner = one_index(element)
    if inner is None or inner.tensor.attributes != dtypes:
        return None
    found = of_best(extremum, inner, value, first)
    if found is None:
        return None
    more, (x, i) = found
    lo, hi = integer_range(dtypes[1])
    ahead = algebra.subtract(element, of_atom(inner))
    start = algebra.substitute(ahead, {w: expr.constant(0)})
    index = algebra.add(algebra.subtract(ahead, start), i)
    if not within(i, 0, hi) or not within(index, 0, hi) or not _ascends(w, algebra.as_index(index, lo, hi)):
        return None
    return algebra.add(start, index_of_best(extremum, [w, *more], (x, index), first, dtypes))


def _ascends(w: Var, index: Index) -> bool:
    """Whether an index is greater at a greater w, whatever the other variables are."""
    c = next((c for atom, c in index.items if atom is expr.of_var(w).items[0][0]), 0)
    rest = expr.subtract(index, expr.scale(expr.of_var(w), c))
    return w not in rest.free and c > rest.hi - rest.lo
