"""Sums up to a place, as programs that share them out compute them: those of earlier parts, and a part's own.

    sum v<16. [v <= 4*d + i] x[v]   =   sum j<4, w<4. [j < d] x[4*j + w]   +   sum w<4. [w <= i] x[4*d + w]

for i < 4. A window that begins before the first element is such a sum: `sum a<16. [a + e >= 15] x[a + e - 15]`. Sums
from a place on are those of later parts, and a part's own: of windows that end behind the last element, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.places import index_expressions
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Guard, Poly, Read, atoms

Cut = tuple[Var, int]
"""A variable, and where digits of it begin or end."""


def by_parts(p: Poly) -> Poly | None:
    """A term with its sums up to a place written part by part; None where it has none."""
    sums = dict.fromkeys(a for a in atoms(p) if isinstance(a, Read) and a.tensor.kind == "sum")
    cuts = {(a.var, low) for a in _digits(p) for low in (a.low, a.low * a.radix)}
    parts: dict[Atom, Poly] = {read: found for read in sums if (found := _parted(read, cuts)) is not None}
    return rebuilt(p, parts, {}) if parts else None


def _parted(read: Read, cuts: Collection[Cut]) -> Poly | None:
    bound, (body, *_) = unfold(read)
    if len(body.items) != 1:
        return None
    mono, c = body.items[0]
    for guard in guards.guards_of(mono):
        for n, v in enumerate(bound):
            onward = _onward(guard, v, bound, n, algebra.build({guards.without(mono, guard): c}), cuts)
            if onward is not None:
                return onward
            place = _up_to(guard, v)
            if place is None:
                continue
            start, last = place
            rest = algebra.build({guards.without(mono, guard): c})
            if start is None:
                found = _split(bound, n, rest, last, cuts)
                return reduce_sum(bound, body) if found is None else found
            element = expr.fresh("f", v.size)
            others = [*bound[:n], element, *bound[n + 1 :]]
            moved = algebra.substitute(rest, {v: expr.add(expr.of_var(element), start)})
            found = _split(others, n, moved, last, cuts)
            if found is not None:
                return found
            up_to = guards.interval(expr.subtract(expr.of_var(element), last), None, 0)
            return reduce_sum(others, algebra.multiply(up_to, moved))
    return None


def _onward(guard: Guard, v: Var, bound: Sequence[Var], n: int, rest: Poly, cuts: Collection[Cut]) -> Poly | None:
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
    found = _split(bound, n, rest, start, cuts, onward=True)
    from_there = guards.interval(expr.subtract(expr.of_var(v), start), 0, None)
    return reduce_sum(bound, algebra.multiply(from_there, rest)) if found is None else found


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
    bound: Sequence[Var], n: int, body: Poly, last: Index, cuts: Collection[Cut], *, onward: bool = False
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
        return algebra.add(*(reduce_sum([*others, part, within], each) for each in (earlier, own)))
    return None
