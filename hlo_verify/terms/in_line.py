"""Pieces of a step function at places side by side that are one function of the place.

    [d = 0]*x[512] + [d = 1]*x[144*d + 384] + [d >= 2]*x[16*d + 512]     is x[16*d + 512]

A partitioner that sends each device what it lacks selects what came from where, device by device: the same element of
another offset each time. What the pieces are at each place is compared, and put together by `neighbours.spread`: what
is equal to them at each place stands for them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.index.tables import evaluate
from hlo_verify.limits import allows
from hlo_verify.memory import per_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.neighbours import spread
from hlo_verify.terms.substitution import deciding
from hlo_verify.terms.term import ZERO, Atom, Guard, Poly, Read
from hlo_verify.terms.used import used

FEWEST = 3
"""So many places are looked at first: any two are in line."""

_known: Callable[[], dict[tuple[Poly, Var], Poly]] = per_session("pieces in line", dict)


def in_line(p: Poly, variable: Var) -> Poly:
    """A term whose pieces at places of some digits of a variable are one function of these, as that function there."""
    if variable not in p.free or not p.items:
        return p
    known = _known()
    found = known.get((p, variable))
    if found is None:
        found = known[p, variable] = (_of_names if len(p.items) == 1 else _joined)(p, variable)
    return found


def _of_names(p: Poly, variable: Var) -> Poly:
    """A product with the pieces that names in it stand for put together: what is chosen of is named where it is long,
    and only then is the part taken of it that is in line."""
    ((mono, c),) = p.items
    for atom, power in mono:
        if power == 1 and isinstance(atom, Read) and _is_decided_by(atom, variable):
            (body,) = unfold(atom)[1]
            found = in_line(body, variable)
            if found is not body:
                return algebra.scale(algebra.product_with(mono, {atom: found}.get), c)
    return p


def _is_decided_by(read: Read, variable: Var) -> bool:
    """Whether a name that may be opened has a condition that hangs on digits of the variable alone."""
    source = read.tensor
    if source.kind != "term" or source.seal is not None or not allows("opened_weight", source.bodies[0].weight):
        return False
    decided = deciding(source)
    at = (e for v, e in zip(source.params, read.indices, strict=False) if v in decided and variable in e.free)
    return any(all(digit.var is variable for digit in _digits(e)) and _is_looked_up(e) for e in at)


def _is_of(guard: Guard, variable: Var) -> bool:
    """Whether a condition hangs on digits of the variable alone, or on entries of tables at such."""
    return all(atom.var is variable for atom in _digits(guard.form)) and _is_looked_up(guard.form)


def _is_looked_up(e: Index) -> bool:
    """Whether an index expression is made of digits and of entries of tables at such expressions."""
    others = [atom for atom, _ in e.items if not isinstance(atom, Digit)]
    return all(atom.operator == "table" and _is_looked_up(atom.exprs[0]) for atom in others)


def _digits(e: Index) -> Iterator[Digit]:
    """The digits in an index expression, those at whose places tables are looked up too."""
    for atom, _ in e.items:
        if isinstance(atom, Digit):
            yield atom
        else:
            for part in atom.exprs:
                yield from _digits(part)


def _joined(p: Poly, variable: Var) -> Poly:
    """The term, with the pieces of one run of places put together."""
    held = list({a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard) and _is_of(a, variable)})
    if not held:
        return p
    digits = [digit for guard in held for digit in _digits(guard.form)]
    low = min(digit.low for digit in digits)
    size = max(digit.low * digit.radix for digit in digits) // low
    if not allows("line_places", size):
        return p
    whole, terms = expr.of_var(variable), dict[int, Poly]()
    beside = expr.subtract(whole, expr.scale(expr.digit_of(whole, low, size), low))

    def at(place: int) -> Poly:
        if place not in terms:
            terms[place] = algebra.substitute(p, {variable: expr.shift(beside, low * place)})
        return terms[place]

    for start, stop in _runs(held, variable, low, size, lambda place: at(place) is not ZERO):
        found = _one(at, start, stop) or _one(lambda place: _opened(at(place)), start, stop)
        if found is None:
            continue
        place = expr.digit_of(whole, low, size)
        on = guards.interval(place, start, stop - 1)
        there = algebra.multiply(on, algebra.substitute(found[1], {found[0]: expr.shift(place, -start)}))
        shorter = algebra.add(there, algebra.multiply(algebra.logical_not(on), p))
        if len(shorter.items) < len(p.items):
            used("pieces in line")
            return shorter
    return p


def _opened(p: Poly) -> Poly:
    """The term without those names of which a condition is decided where they are read."""

    def image(atom: Atom) -> Poly | None:
        if not isinstance(atom, Read) or atom.tensor.kind != "term" or atom.tensor.seal is not None:
            return None
        decided = deciding(atom.tensor)
        given = [e for v, e in zip(atom.tensor.params, atom.indices, strict=False) if v in decided]
        if not any(not e.items for e in given) or not allows("opened_weight", atom.tensor.bodies[0].weight):
            return None
        return _opened(unfold(atom)[1][0])

    return algebra.with_atoms(p, image)


def _runs(
    held: Sequence[Guard], variable: Var, low: int, size: int, is_something: Callable[[int], bool]
) -> Iterator[tuple[int, int]]:
    """From where to where pieces, two or more, lie side by side at which there is something."""
    asked = np.zeros(size, dtype=object)
    for guard in held:
        values = evaluate(guard.form, variable)
        if values is None:
            return
        here = values[low * np.arange(size)]
        above = True if guard.lo is None else here >= guard.lo
        below = True if guard.hi is None else here <= guard.hi
        asked = 2 * asked + (above & below)
    edges = [0, *(n for n in range(1, size) if asked[n] != asked[n - 1]), size]
    run: list[int] = []
    for first, behind in pairwise(edges):
        if is_something(first):
            run += [behind] if run else [first, behind]
            continue
        if len(run) > 2:
            yield run[0], run[-1]
        run = []
    if len(run) > 2:
        yield run[0], run[-1]


def _one(at: Callable[[int], Poly], start: int, stop: int) -> tuple[Var, Poly] | None:
    """A function that is each of the terms from one place to another at its place; a few are looked at first."""
    few = _spread([at(n) for n in range(start, min(stop, start + FEWEST))])
    return few if few is None or stop <= start + FEWEST else _spread([at(n) for n in range(start, stop)])


def _spread(terms: list[Poly]) -> tuple[Var, Poly] | None:
    """A function of a place that is each of some terms at its place, if there is one and none of them is 0."""
    if any(term is ZERO for term in terms):
        return None
    place = expr.var("line", "", len(terms))
    found = spread(terms, place)
    return None if found is None else (place, found)
