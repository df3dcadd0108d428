"""Sums up to a place, as programs that share them out compute them: those of earlier parts, and a part's own.

    sum v<16. [v <= 4*d + i] x[v]   =   sum j<4, w<4. [j < d] x[4*j + w]   +   sum w<4. [w <= i] x[4*d + w]

for i < 4. A window that begins before the first element is such a sum: `sum a<16. [a + e >= 15] x[a + e - 15]`. Sums
from a place on are those of later parts, and a part's own: of windows that end behind the last element, too. Whether
anything holds up to a place is told in the same way, and whether all does: whether nothing else does.

    max v<16. [v <= 4*d + i] p(v)   =   max j<4, w<4. [j < d] p(4*j + w)   or   max w<4. [w <= i] p(4*d + w)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.terms import algebra, guards, truths
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.extrema import reduce_boolean
from hlo_verify.terms.functions import MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.places import index_expressions
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Atom, Guard, Poly, Read, atoms

KINDS = ("sum", "max", "min")
Adding = Callable[[Sequence[Var], Poly], Poly]
"""What makes one of the elements that variables give: their sum, or whether any of them holds."""
Cut = tuple[Var, int]
"""A variable, and where digits of it begin or end."""


def by_parts(p: Poly) -> Poly | None:
    """A term with its sums up to a place written part by part; None where it has none."""
    sums = dict.fromkeys(a for a in atoms(p) if isinstance(a, Read) and a.tensor.kind in KINDS)
    cuts = {(a.var, low) for a in _digits(p) for low in (a.low, a.low * a.radix)}
    parts: dict[Atom, Poly] = {read: found for read in sums if (found := _parted(read, cuts)) is not None}
    return rebuilt(p, parts, {}) if parts else None


def _parted(read: Read, cuts: Collection[Cut]) -> Poly | None:
    if read.tensor.kind != "sum" and read.tensor.seal is not None:
        return None
    bound, (body, *_) = unfold(read)
    if read.tensor.kind == "sum":
        return _in_parts(reduce_sum, bound, body, cuts) if len(body.items) == 1 else None
    if not truths.is_truth(body):
        return None
    if read.tensor.kind == "max":
        return _in_parts(_any, bound, body, cuts)
    found = _in_parts(_any, bound, algebra.subtract(ONE, body), cuts)
    return None if found is None else algebra.subtract(ONE, found)


def _any(bound: Sequence[Var], p: Poly) -> Poly:
    return reduce_boolean("or", bound, p)


def _in_parts(adding: Adding, bound: tuple[Var, ...], body: Poly, cuts: Collection[Cut]) -> Poly | None:
    first = body.items[0][0] if body.items else ()
    for guard in guards.guards_of(first):
        if not all((guard, 1) in mono for mono, _ in body.items):
            continue
        rest = algebra.build({guards.without(mono, guard): c for mono, c in body.items})
        for n, v in enumerate(bound):
            if adding is reduce_sum and rest.constant is not None and (count := _how_many(guard, v, bound)) is not None:
                return algebra.scale(count, rest.constant)
            onward = _onward(adding, guard, v, bound, n, rest, cuts)
            if onward is not None:
                return onward
            place = _up_to(guard, v)
            if place is None:
                continue
            start, last = place
            if start is None:
                found = _split(adding, bound, n, rest, last, cuts)
                return adding(bound, body) if found is None else found
            element = expr.fresh("f", v.size)
            others = [*bound[:n], element, *bound[n + 1 :]]
            moved = algebra.substitute(rest, {v: expr.add(expr.of_var(element), start)})
            found = _split(adding, others, n, moved, last, cuts)
            if found is not None:
                return found
            up_to = guards.interval(expr.subtract(expr.of_var(element), last), None, 0)
            return adding(others, algebra.multiply(up_to, moved))
    return None


def _how_many(guard: Guard, v: Var, bound: Sequence[Var]) -> Poly | None:
    """How many values of one variable there are up to some place, where that is what a guard asks for."""
    place = _up_to(guard, v) if len(bound) == 1 else None
    if place is None:
        return None
    count = expr.shift(place[1], 1)
    return algebra.of_index(count) if count.lo >= 0 and count.hi <= v.size else None


def _onward(
    adding: Adding, guard: Guard, v: Var, bound: Sequence[Var], n: int, rest: Poly, cuts: Collection[Cut]
) -> Poly | None:
    """The sum from a place on, part by part, where that alone hangs on the place: as it stands, or as the window from
    that place to the last element."""
    place = _up_to(guard, v)
    if place is None:
        return None
    start, last = place
    if start is None:  # a window of v <= last: its elements are start + v
        start = expr.subtract(expr.constant(v.size - 1), last)
        element = expr.fresh("f", v.size)
        rest = algebra.substitute(rest, {v: expr.subtract(expr.of_var(element), start)})
        bound, v = [*bound[:n], element, *bound[n + 1 :]], element
    if start.lo < 0 or start.hi > v.size - 1 or _hangs_on(rest, start):
        return None
    found = _split(adding, bound, n, rest, start, cuts, onward=True)
    from_there = guards.interval(expr.subtract(expr.of_var(v), start), 0, None)
    return adding(bound, algebra.multiply(from_there, rest)) if found is None else found


def _hangs_on(p: Poly, place: Index) -> bool:
    """Whether a term reads something at a place's digits, or at others that these are parts of."""
    digits = list(_digits(p))
    return any(
        not isinstance(part, Digit)
        or any(a.var is part.var and a.low < part.low * part.radix and part.low < a.low * a.radix for a in digits)
        for part, _ in place.items
    )


def _digits(p: Poly) -> Iterator[Digit]:
    """The digits that a term reads at or asks about, those of integers that it compares too: `[x[i] = x[v]]`."""
    return (part for e in index_expressions(p) for part, _ in e.items if isinstance(part, Digit))


def _up_to(guard: Guard, v: Var) -> tuple[Index | None, Index] | None:
    """Where a guard on a variable asks for the places up to some one: what the variable is beyond such a place (None:
    nothing), and the last of them."""
    form = expr.of_var(v)
    (digit, _), *_ = form.items or [(None, 0)]
    c = dict(guard.form.items).get(digit) if digit is not None else None
    rest = expr.subtract(guard.form, expr.scale(form, c or 0))
    if c not in (1, -1) or v in rest.free or (guard.lo is None) is (guard.hi is None):
        return None
    least, most = (guard.lo, guard.hi) if c == 1 else (_opposite(guard.hi), _opposite(guard.lo))
    rest = expr.scale(rest, c)  # least <= v + rest, or v + rest <= most
    if most is not None:
        return None, expr.subtract(expr.constant(most), rest)
    assert least is not None
    start = expr.subtract(expr.constant(least), rest)  # v >= start: v is start + element
    last = expr.subtract(expr.constant(v.size - 1), start)
    return (start, last) if start.lo >= 0 and start.hi <= v.size - 1 else None


def _opposite(x: int | None) -> int | None:
    return None if x is None else -x


def _split(
    adding: Adding,
    bound: Sequence[Var],
    n: int,
    body: Poly,
    last: Index,
    cuts: Collection[Cut],
    *,
    onward: bool = False,
) -> Poly | None:
    """The sum of a body over the variables, of which the n-th is at most `last` (at least that, `onward`), part by part
    of the n-th."""
    v = bound[n]
    digits = [(atom, abs(c)) for atom, c in last.items if isinstance(atom, Digit)]
    sizes = {c for _, c in digits}
    sizes |= {c * low // a.low for a, c in digits for cut, low in cuts if cut is a.var and low % a.low == 0}
    sizes |= {c * a.radix for a, c in digits if last.const >= c * a.radix}  # a part's own, behind parts that are known
    for m in sorted(sizes - {1}):
        high, low = expr.high_and_low(last, m)
        if v.size % m or m >= v.size or (not high.free and high.const < 1):
            continue
        if low.lo < (0 if onward else -1) or low.hi > m - 1:
            continue
        part, within = expr.fresh("f", v.size // m), expr.fresh("f", m)
        others = [*bound[:n], *bound[n + 1 :]]
        place = expr.add(expr.scale(expr.of_var(part), m), expr.of_var(within))
        there = algebra.substitute(body, {v: place})
        ahead = expr.subtract(expr.of_var(part), high)
        beyond, beside = ((1, None), (0, None)) if onward else ((None, -1), (None, 0))
        earlier = algebra.multiply(guards.interval(ahead, *beyond), there)
        up_to = guards.interval(expr.subtract(expr.of_var(within), low), *beside)
        own = algebra.multiply(algebra.multiply(guards.interval(ahead, 0, 0), up_to), there)
        parts = tuple(adding([*others, part, within], each) for each in (earlier, own))
        return algebra.add(*parts) if adding is reduce_sum else apply(MAXIMUM, parts)
    return None
