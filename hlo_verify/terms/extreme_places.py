"""The greatest or the least of places, as which programs write the first or last one where something holds.

0 <= min v<16. (v where m(v), else 16) <= 16
[min v. (v where m(v), else 16) >= n]  is  not any v. m(v) [v < n]      for n <= 16
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms import guards
from hlo_verify.terms.addition import difference
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.functions import MAXIMUM, MINIMUM
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.products import multiply, with_atoms
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Ix, Poly, Read, of_atom, value_of

Bound = int | None


@once_a_session
def range_of_places(atom: Atom) -> tuple[int, int] | None:
    """The least and the greatest that the extremum of places and numbers may be, which conditions choose; None of what
    is no such extremum."""
    from hlo_verify.terms.bounds import bounds  # which is built on extrema

    if not isinstance(atom, Read) or atom.boolean or atom.tensor.kind not in ("max", "min") or atom.tensor.seal:
        return None
    _, body = _taken_of(atom)
    return bounds(body) if is_of_places(body) else None


def without_idle_number(p: Poly) -> Poly:
    """The extremum of places without a number that none of these is beyond: the greatest integer, by which reductions
    begin."""
    atom = p.atom
    if not isinstance(atom, Apply) or atom.function not in (MAXIMUM, MINIMUM) or len(atom.args) != 2:
        return p
    first, second = atom.args
    number, places = (first, second) if first.constant is not None else (second, first)
    found, k = None if places.atom is None else range_of_places(places.atom), number.constant
    if found is None or k is None or (k > found[0] if atom.function == MAXIMUM else k < found[1]):
        return p
    return places


def asked_of_places(g: Guard) -> Poly | None:
    """`[lo <= form <= hi]` where the form adds the extremum of some places to others, as whether that is so of any, or
    of all, of these."""
    for part, times in g.form.items:
        found = _extremum_in(part) if isinstance(part, Opaque) and part.operator == "value" else None
        if found is None:
            continue
        extremum, k, n = found
        c, rest = k * times, expr.subtract(g.form, expr.scale(expr.of_atom(part), times))
        rest = expr.shift(rest, n * times)
        above = ONE if g.lo is None else _is_above(extremum, c, rest, g.lo - 1)
        beyond = ZERO if g.hi is None else _is_above(extremum, c, rest, g.hi)
        if above is not None and beyond is not None:
            return difference(above, beyond)
    return None


def _extremum_in(part: Opaque) -> tuple[Read, int, int] | None:
    """The extremum of places that a machine value is a multiple of, by what, and a number that is added to it; None of
    what is none, or may wrap."""
    p = without_idle_number(value_of(part))
    n = dict(p.items).get((), 0)
    (mono, k), *others = [item for item in p.items if item[0]] or [((), 0)]
    atom = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 else None
    ends = range_of_places(atom) if atom is not None else None
    if others or ends is None or not isinstance(atom, Read) or not isinstance(k, int) or not isinstance(n, int):
        return None
    low, high = sorted(n + k * end for end in ends)
    return (atom, k, n) if part.lo <= low and high <= part.hi else None


def _taken_of(extremum: Read) -> tuple[tuple[Var, ...], Poly]:
    """What an extremum is taken of, over which variables."""
    from hlo_verify.terms.definitions import unfold  # made of laws

    bound, (body,) = unfold(extremum)
    while isinstance(body.atom, Read) and body.atom.tensor.kind == "term":
        _, (body,) = unfold(body.atom)
    return bound, body


def is_of_places(p: Poly) -> bool:
    """Whether a term adds places and numbers alone, under few conditions."""
    if not allows("bound_choices", len({atom for mono, _ in p.items for atom, _ in mono if atom.boolean})):
        return False
    numbers = [(numbers_of(mono), c) for mono, c in p.items]
    return all(
        isinstance(c, int) and (not own or (len(own) == 1 and own[0][1] == 1 and isinstance(own[0][0], Ix)))
        for own, c in numbers
    )


def _is_above(extremum: Read, c: int, rest: Index, n: int) -> Poly | None:
    """Whether `rest + c*extremum` is more than n: whether that is so of any place, or of all. None of many cases."""
    from hlo_verify.terms.extrema import reduce_extremum  # made of laws

    bound, body = _taken_of(extremum)
    is_any = (extremum.tensor.kind == "max") == (c > 0)
    lo, hi = (n + 1, None) if is_any else (None, n)
    held = [(on, guards.interval(expr.add(rest, expr.scale(_place(here), c)), lo, hi)) for on, here in cases_of(body)]
    asked = [multiply(on, holds) for on, holds in held if holds.items]
    if not allows("expanded_terms", len(asked)):
        return None
    parts = (reduce_extremum("max", bound, each) for each in asked)
    none = reduce(multiply, (difference(ONE, part) for part in parts), ONE)
    return difference(ONE, none) if is_any else none


def _place(p: Poly) -> Index:
    return as_index(p, -expr.UNBOUNDED, expr.UNBOUNDED)


def cases_of(p: Poly) -> Iterator[tuple[Poly, Poly]]:
    """What a term is, without conditions, with the condition that chooses it."""
    condition = next((atom for mono, _ in p.items for atom, _ in mono if atom.boolean), None)
    if condition is None:
        yield ONE, p
        return
    choices = steps(p) if isinstance(condition, Guard) else []
    for on, here in choices or _by(condition, p):
        for more, what in cases_of(here):
            both = multiply(on, more)
            if both.items:
                yield both, what


def _by(condition: Atom, p: Poly) -> list[tuple[Poly, Poly]]:
    """What a term is where a condition holds, and where it does not."""
    on = of_atom(condition)
    holds, fails = (with_atoms(p, {condition: known}.get) for known in (ONE, ZERO))
    return [(on, holds), (difference(ONE, on), fails)]
