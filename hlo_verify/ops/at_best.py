"""Elements at the index of the best one: the best value itself, and the index of the best of a whole from its parts'.

    f(argmax d. f(d))                                  is  max d. f(d)
    n*d* + argmax v<n. f(d*, v)                        is  argmax d,v. (f(d, v), n*d + v)
        for d* = argmax d. max v<n. f(d, v)

`d*` is the first of the parts that hold a best element, and all indices of a part come before those of the next: so the
first best element of that part is the first of the whole. Where all values are the worst there are (minus infinity, or
the least integer), a reduction from the worst and index 0 gives 0, and so does the other side.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.equality import opening
from hlo_verify.equality.rebuilding import rebuilt
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.ops.attaining import least_index_of_best
from hlo_verify.ops.best import Pair, Types, best_value, index_of_best, is_from_the_worst, one_index
from hlo_verify.ops.elements import elsewhere, opaque, places
from hlo_verify.ops.permutations import unpermuted
from hlo_verify.ops.regions import reduce_terms
from hlo_verify.ops.slots import at_own_slots
from hlo_verify.ops.values import integer_range
from hlo_verify.program.element_types import is_integer
from hlo_verify.terms import algebra
from hlo_verify.terms.bounds import within
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.term import Atom, Poly, Read, of_atom

KINDS = ("argmax", "argmin")


def at_best(p: Poly) -> Poly:
    """The term, with what it reads at the index of a best element as the best value, or as the index of one."""
    for best in _bests(p):
        found = _resolved(opening.opened(p), best)
        if found is not None:
            return at_best(found)
    return p


def reduce_to_best(reducer: str, bound: Sequence[Var], term: Poly, dtype: str) -> Poly:
    """The reduction of a term over variables, where that may be how a program looks for the best of parts."""
    bound, term = unpermuted(bound, term)
    best = least_index_of_best(bound, term, dtype) if reducer == "min" and is_integer(dtype) else None
    reduced = reduce_terms(reducer, bound, term) if best is None else best
    return at_own_slots(at_best(reduced)) if reducer == "sum" else reduced


def _bests(p: Poly) -> list[Read]:
    """The indices of best elements that a term reads something at."""
    found = (atom for e in places(p) for atom in opaque(e))
    terms = map(own_value, found)
    return list(dict.fromkeys(a for a in terms if a is not None and a.tensor.kind in KINDS))


def _resolved(p: Poly, best: Read) -> Poly | None:
    bound, (value, index, *first) = unfold(best)
    extremum, dtypes = best.tensor.kind.removeprefix("arg"), best.tensor.attributes
    number = _numbering(bound, algebra.as_index(index, *integer_range(dtypes[1])))
    if number is None or not is_from_the_worst(extremum, (first[0], first[1]), dtypes):
        return None
    w, digits = number
    value = algebra.substitute(value, digits)
    atoms = {a for mono, _ in p.items for a, _ in mono}
    elements = {a: elsewhere(of_atom(a), best, w) for a in sorted(atoms, key=lambda a: a.uid)}
    reached: dict[Atom, Poly] = {a: _best(extremum, w, value) for a, element in elements.items() if element is value}
    if reached:
        return rebuilt(p, reached, {})
    element = elsewhere(p, best, w)
    if element is value:
        return _best(extremum, w, value)
    return None if element is None else _of_parts(extremum, w, value, element, (first[0], first[1]), dtypes)


def _best(extremum: str, w: Var, value: Poly) -> Poly:
    return reduce_terms(extremum, [w], value)


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


def _of_parts(extremum: str, w: Var, value: Poly, element: Poly, first: Pair, dtypes: Types) -> Poly | None:
    """The index of the best of a whole, for that of the best of part w (`element`), whose value is `value`."""
    inner = one_index(extremum, element)
    if inner is None or inner.tensor.attributes != dtypes:
        return None
    more, (x, i, *initial) = unfold(inner)
    if (initial[0], initial[1]) != first or best_value(extremum, more, x, first[0], dtypes[0]) is not value:
        return None
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
