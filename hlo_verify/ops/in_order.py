"""Laws of elements in order.

    values v. f(v)    at place 0            is  min v. f(v), and max v. f(v) at the last place
    order f           at place 0            is  argmin v. (f(v), v)
    f(order f at r)                         is  values v. f(v) at r
    order f at (order (order f) at r)       is  r: a permutation's order is its inverse
    order p at p(r)                         is  r, for a permutation p that an argument is said to be
    values v. f(v)  at (order (order f) at r)  is  f(r)
    values v. (values w. f(v, w) at n-k+u)  is  values v,w. f(v, w), among the k last places
    h(p, order f(p,.) at q) for (p, q) =    is  h((order f) div n, (order f) mod n), among the k first places
      order p,q. (values w. f(p, w) at q)

The last two say that the k best of a whole are the k best of the k best of its parts, ties included: parts come in
order, of equal elements of a part the first do, and of those each part hands on as many as are asked for at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.ops.backwards import forwards, from_the_end, taken_apart
from hlo_verify.ops.best import index_of_best
from hlo_verify.ops.elements import elsewhere, moved, opaque, places, replaced
from hlo_verify.ops.order_keys import key_of
from hlo_verify.ops.regions import combine, neutral
from hlo_verify.program.element_types import INTEGER_RANGES, is_float
from hlo_verify.terms import algebra
from hlo_verify.terms.assumed_order import is_ascending_along, is_permutation_along
from hlo_verify.terms.at_constants import UNORDERED, remade
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.order_keys import is_increasing
from hlo_verify.terms.ordered import ORDER, VALUES, is_ordered
from hlo_verify.terms.places import within_places
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import ZERO, Apply, Atom, Number, Poly, Read, atoms, number, of_atom


def values(v: Var, f: Poly, place: Index, dtype: str) -> Poly:
    """The value at a place, in the order of values from the least one on, of f for each value of v."""
    if not is_float(dtype):
        return _values(v, f, place, dtype)
    key = key_of(f, [v])
    return key.again(_values(v, key.term, place if key.ascending else from_the_end(v, place), dtype))


def _values(v: Var, f: Poly, place: Index, dtype: str) -> Poly:
    if v not in f.free:
        return f
    if is_permutation_along(f.atom, v):
        return algebra.of_index(place)
    if is_ascending_along(f.atom, v):
        return algebra.substitute(f, {v: place})
    for end, extremum in ((0, "min"), (v.size - 1, "max")):
        if place is expr.constant(end):
            return combine(extremum, reduce_extremum(extremum, [v], f), neutral(extremum, dtype), dtype)
    own = _place_of_own(v, f, place, dtype)
    if own is not None:
        return algebra.substitute(f, {v: own})
    parts = _values_of_parts(v, f, place, dtype)
    if parts is not None:
        return parts
    return define("sort", [v], (f,), attributes=VALUES, at=(place,), ordered=True, dtype=dtype)


def _values_of_parts(v: Var, f: Poly, place: Index, dtype: str) -> Poly | None:
    """The value at a place among those that parts hand on, which are their first ones or their last ones, with what is
    added to all of a part."""
    found = _handed_on(f)
    if found is None or found[1] != 1:
        return None
    atom, _, rest = found
    ((w,), (whole,)), e = unfold(atom), atom.indices[-1]
    digit, c = e.items[0] if len(e.items) == 1 else (None, 0)
    if not isinstance(digit, Digit) or digit.var is not v or abs(c) != 1:
        return None
    count = e.hi - e.lo + 1
    first = e.lo == 0 and (place.hi < count or count == w.size)
    last = e.hi == w.size - 1 and (place.lo >= v.size - count or count == w.size)
    if not first and not last:
        return None
    high, handed, low = (expr.fresh("f", size) for size in (v.size // digit.low // count, count, digit.low))
    split = expr.add(
        expr.scale(expr.of_var(high), digit.low * count), expr.scale(expr.of_var(handed), digit.low), expr.of_var(low)
    )
    body = algebra.substitute(algebra.add(whole, rest), {v: split})
    if handed in body.free:
        return None
    merged, (there,) = _as_one([high, low, w], (body,))
    moved = place if first else expr.shift(place, merged.size - v.size)
    return _values(merged, there, moved, dtype)


def _handed_on(p: Poly) -> tuple[Read, Number, Poly] | None:
    """The one value in order that a sum has, how often, and the number that is added to it: one that is the same for
    several elements leaves them in order where it is finite, and integers where it is known."""
    found = [(a, c) for mono, c in p.items for a, n in mono if is_ordered(a, VALUES) and len(mono) == n == 1]
    if len(found) != 1:
        return None
    ((atom, c),) = found
    rest = algebra.build({mono: k for mono, k in p.items if mono != ((atom, 1),)})
    if rest.constant is None and (rest.doubt or not is_float(atom.tensor.dtype)):
        return None
    return atom, c, rest


def _as_one(variables: Sequence[Var], bodies: tuple[Poly, ...]) -> tuple[Var, tuple[Poly, ...]]:
    """One variable that takes as many values as others together, and the bodies in it."""
    bound = [v for v in variables if v.size > 1]
    while (merged := merge_in(bound, bodies)) is not None:
        bound, bodies = [v for v in merged[0] if v.size > 1], merged[1]
    one = expr.fresh("f", prod(v.size for v in bound))
    digits: dict[Var, Index] = {}
    below = 1
    for v in reversed(bound):
        digits[v] = expr.modulo(expr.floor_div(expr.of_var(one), below), v.size)
        below *= v.size
    substitution = algebra.Substitution({v: digits.get(v, expr.constant(0)) for v in {*variables, *bound}})
    return one, tuple(substitution.poly(body) for body in bodies)


def order(v: Var, f: Poly, place: Index, dtype: str, *, ascending: bool) -> Poly:
    """Which value of v gives the value of f at that place in order, of equal ones the first."""
    if ascending and is_ascending_along(f.atom, v):
        return algebra.of_index(place)  # of equal ones the first comes first
    if place is expr.constant(0):
        extremum = "min" if ascending else "max"
        pair, first = (f, algebra.of_index(expr.of_var(v))), (neutral(extremum, dtype), ZERO)
        return index_of_best(extremum, [v], pair, first, (dtype, "i32"))
    turned = forwards(v, f)
    if turned is not None:
        there = order(v, turned, from_the_end(v, place), dtype, ascending=not ascending)
        return algebra.subtract(number(v.size - 1), there)
    f = _upwards(v, f, dtype, ascending)
    sign, permutation = taken_apart(f) or (1, f)
    inverse = _permuted(permutation, v)
    if inverse is not None and sign < 0:
        f, place = permutation, from_the_end(v, place)
    if inverse is not None and (plain := _permuted(inverse[1], inverse[0])) is not None:
        return _order(*plain, place)  # the order of a permutation is its inverse, and that one's is itself
    return _order(v, f, place)


def _upwards(v: Var, f: Poly, dtype: str, ascending: bool) -> Poly:
    """What is ordered from the least on: a term or its opposite, without what is the same for each element."""
    own = key_of(f, [v]).upwards if is_float(dtype) else algebra.subtract(f, number(dict(f.items).get((), 0)))
    return own if ascending else algebra.scale(own, -1)


def _order(v: Var, f: Poly, place: Index) -> Poly:
    index = algebra.of_index(expr.of_var(v))
    return define("sort", [v], (f, index), attributes=ORDER, at=(place,), ordered=True, dtype="i32")


def inverse(permutation: Atom, v: Var, place: Index) -> Index:
    """The value of v for which a permutation of its values is at a place: the order of a permutation."""
    found = order(v, of_atom(permutation), place, "i32", ascending=True)
    return algebra.as_index(found, 0, v.size - 1)


def element_of(atom: Atom, permutation: Atom, v: Var, w: Var) -> Poly | None:
    """What a value in order is of element w, where the permutation says that this is the one at that place in order."""
    if not is_ordered(permutation, ORDER) or not is_ordered(atom, VALUES) or v not in atom.indices[-1].free:
        return None
    ((a,), (f,)), ((b,), (key, _)) = unfold(atom), unfold(permutation)
    f, key = (algebra.substitute(p, {u: expr.of_var(w)}) for u, p in ((a, f), (b, key)))
    sign, place = _is_key(f, key, w, atom.tensor.dtype), permutation.indices[-1]
    if sign is None or v in f.free:
        return None
    return f if atom.indices[-1] is (place if sign > 0 else from_the_end(a, place)) else None


def _permuted(f: Poly, v: Var) -> tuple[Var, Poly] | None:
    """What f puts in order where its value for each v is the v-th element in that order."""
    atom = f.atom
    if not is_ordered(atom, ORDER) or atom.tensor.bound[0].size != v.size or atom.indices[-1] is not expr.of_var(v):
        return None
    if any(v in e.free for e in atom.indices[:-1]):
        return None
    (w,), (key, _) = unfold(atom)
    return w, key


def in_order(p: Poly) -> Poly:
    """The term, with what it reads at elements in order as values in order, or at the elements of a whole."""
    for which in _read_at(p):
        found = _resolved(opening.opened(p), which)
        if found is not None:
            return in_order(found)
    again: dict[Atom, Poly] = {
        atom: there for atom in _values_in(p) if (there := _made_again(atom)) is not of_atom(atom)
    }
    return replaced(p, again) if again else p


def _values_in(p: Poly) -> Iterator[Read]:
    """The values in order that a term is made of, in functions too, or reads something at.

    In a function they are asked at places that hang on something: where all are written out, they stay as they are.
    """
    for inner in within_places(p):
        surface = {atom for mono, _ in inner.items for atom, _ in mono}
        for atom in atoms(inner):
            if isinstance(atom, Read) and is_ordered(atom, VALUES) and (atom in surface or atom.indices[-1].items):
                yield atom


def _made_again(atom: Read) -> Poly:
    """Values in order at a place, of which more may be known than where they were defined."""
    (v,), (f,) = unfold(atom)
    return _values(v, f, atom.indices[-1], atom.tensor.dtype)


def _read_at(p: Poly) -> list[Read]:
    """The elements in order that a term reads something at."""
    found = (atom for e in places(p) for atom in opaque(e))
    terms = map(own_value, found)
    return list(dict.fromkeys(a for a in terms if a is not None and is_ordered(a, ORDER)))


def _resolved(p: Poly, which: Read) -> Poly | None:
    (v,), (key, _) = unfold(which)
    place = which.indices[-1]
    inverse = _inverted(v, key, place)
    if inverse is not None:
        return _substituted(p, which, v, {v: inverse})
    reached: dict[Atom, Poly] = {}
    for atom in sorted({a for mono, _ in p.items for a, _ in mono}, key=lambda a: a.uid):
        element = elsewhere(of_atom(atom), which, v)
        dtype = _type(atom)
        sign = None if element is None or dtype is None else _is_key(element, key, v, dtype)
        if sign is not None and element is not None and dtype is not None:
            reached[atom] = values(v, element, place if sign > 0 else from_the_end(v, place), dtype)
    if reached:
        return rebuilt(p, reached, {})
    return (
        _element_of_whole(elsewhere(p, which, v), which, v, key) if _permuted(key, v) is None else _put_back(p, which)
    )


def part_in_order(e: Index) -> Poly:
    """An integer that is made of the place of an element in order, as which part of several that is in: of those that
    parts hand on, each its best in order, it is one of the whole."""
    p = algebra.of_index(e)
    for atom in map(own_value, opaque(e)):
        if atom is not None and is_ordered(atom, ORDER):
            (v,), (key, _) = unfold(atom)
            return _element_of_whole(moved(p, atom, v), atom, v, key) or p
    return p


def _type(atom: Atom) -> str | None:
    """The type of what an atom is read from, a floating-point one of what is a function of real numbers."""
    if isinstance(atom, Read):
        return atom.tensor.dtype
    is_real = isinstance(atom, Apply) and (atom.function == INVERSE or is_increasing(atom.function))
    return "f32" if is_real else None


def _put_back(p: Poly, which: Read) -> Poly | None:
    """Definitions that are made of elements in order, read where these are put back."""
    found: dict[Atom, Poly] = {}
    for atom in _read_in(p):
        if atom.tensor.kind in (*UNORDERED, "sort") and _reads_at(atom, which):
            bound, bodies = unfold(atom)
            there = tuple(map(in_order, bodies))
            if there != bodies:
                found[atom] = remade(atom.tensor, bound, there, atom.indices[len(atom.tensor.params) :])
    return rebuilt(p, found, {}) if found else None


def _read_in(p: Poly) -> list[Read]:
    """What a term reads, in the arguments of functions too, in one order."""
    return [atom for atom in dict.fromkeys(atoms(p)) if isinstance(atom, Read)]


def _reads_at(atom: Read, which: Read) -> bool:
    return any(part.term is of_atom(which) for e in atom.indices for part in opaque(e))


def _substituted(p: Poly, which: Read, v: Var, mapping: dict[Var, Index]) -> Poly | None:
    there = elsewhere(p, which, v)
    return None if there is None else algebra.substitute(there, mapping)


def _inverted(v: Var, key: Poly, place: Index) -> Index | None:
    """Where an element in order is the one that the inverse of that order says: the place that it says it for."""
    if is_permutation_along(key.atom, v):  # whose order is its inverse
        return _taken_to(v, key, place)
    found = _inverse_at(place)
    if found is None or found[1].size != v.size:
        return None
    where, w, own = found
    return where if algebra.substitute(own, {w: expr.of_var(v)}) is key else None


def _taken_to(v: Var, permutation: Poly, place: Index) -> Index | None:
    """The value of v for which a permutation is at a place, where that is the permutation's own value somewhere."""
    ((part, c),) = place.items if len(place.items) == 1 else ((None, 0),)
    atom = None if place.const or c != 1 or part is None else own_value(part)
    if atom is None or not atom.indices:
        return None
    return atom.indices[-1] if algebra.substitute(permutation, {v: atom.indices[-1]}) is of_atom(atom) else None


def _place_of_own(v: Var, f: Poly, place: Index, dtype: str) -> Index | None:
    """The element whose value is the one at a place, where that is the element's own place in order."""
    for sign, e in ((1, place), (-1, expr.subtract(expr.constant(v.size - 1), place))):
        found = _inverse_at(e)
        if found is not None and found[1].size == v.size:
            where, w, own = found
            if _is_key(f, algebra.substitute(own, {w: expr.of_var(v)}), v, dtype) == sign:
                return where
    return None


def _inverse_at(place: Index) -> tuple[Index, Var, Poly] | None:
    """Of an index that is the place of an element in some order: that element, and what the order is of."""
    ((part, c),) = place.items if len(place.items) == 1 else ((None, 0),)
    atom = None if place.const or c != 1 or part is None else own_value(part)
    if not is_ordered(atom, ORDER):
        return None
    (w,), (inner, _) = unfold(atom)
    own = _permuted(inner, w)
    return None if own is None else (atom.indices[-1], *own)


def _is_key(element: Poly, key: Poly, v: Var, dtype: str) -> int | None:
    """1 where elements are ordered by their own values, -1 where by the opposite; None where by others."""
    if dtype in INTEGER_RANGES:
        upwards = _upwards(v, element, dtype, ascending=True)
        return 1 if upwards is key else -1 if algebra.scale(upwards, -1) is key else None
    if not is_float(dtype) and dtype:
        return None
    own, by = key_of(element, [v]), key_of(key, [v])
    if own.term is not by.term:
        return None
    return 1 if own.ascending == by.ascending else -1


def _element_of_whole(element: Poly | None, which: Read, v: Var, key: Poly) -> Poly | None:
    """What is read at the best of the elements that parts hand on, each its best in order, of what is read at any."""
    found = _handed_on(key)
    if found is None:
        return None
    handed, c, rest = found
    ((w,), (whole,)), e = unfold(handed), handed.indices[-1]
    count = e.hi - e.lo + 1
    e = e if c > 0 else expr.subtract(expr.constant(w.size - 1), e)
    place = which.indices[-1]
    if v.size % count or e is not expr.modulo(expr.of_var(v), count) or (place.hi >= count and count < w.size):
        return None
    part, own = expr.fresh("f", v.size // count), expr.fresh("f", count)
    split = {v: expr.add(expr.scale(expr.of_var(part), count), expr.of_var(own))}
    body, beside = algebra.substitute(whole, split), algebra.substitute(rest, split)
    if element is None or own in body.free | beside.free:
        return None
    key = algebra.add(algebra.scale(body, c), beside)
    there = algebra.substitute(of_atom(handed), split).atom
    assert there is not None
    element = _of_own(rebuilt(algebra.substitute(element, split), {there: body}, {}), own, w, algebra.scale(body, c))
    if own in element.free:
        return None
    one = expr.fresh("f", part.size * w.size)
    digits = {part: expr.floor_div(expr.of_var(one), w.size), w: expr.modulo(expr.of_var(one), w.size)}
    best = algebra.as_index(_order(one, algebra.substitute(key, digits), place), 0, one.size - 1)
    return algebra.substitute(element, {part: expr.floor_div(best, w.size), w: expr.modulo(best, w.size)})


def _of_own(p: Poly, own: Var, w: Var, key: Poly) -> Poly:
    """A term of the element that is the own-th of a part in order, for element w of that part."""
    for inner in (*_read_at(p), *(a for mono, _ in p.items for a, _ in mono if is_ordered(a, ORDER))):
        if inner.indices[-1] is expr.of_var(own):
            (b,), (by, _) = unfold(inner)
            if algebra.substitute(by, {b: expr.of_var(w)}) is key:
                moved = elsewhere(p, inner, w)
                p = rebuilt(p, {inner: algebra.of_index(expr.of_var(w))}, {}) if moved is None else moved
    return p
