"""What a loop fills window by window: every iteration writes to some places, and no two write to the same.

    after[p] = v_i(t) where p is in window i of iteration t, and before[p] where it is in none

If the windows of all iterations together cover every place once (their guards add up to 1), what the loop gives is
`sum over t and i. [p in window i of iteration t] * v_i(t)`, whatever it began with. A value v that is the same in all
iterations is selected by all its windows together, `(sum over t and i. [p in window i of iteration t]) * v`: whether v
is a number is not asked where none of them is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops.clearing import ever_before
from hlo_verify.terms import algebra, guards, rotations
from hlo_verify.terms.products import is_condition
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    Read,
    make_poly,
    of_atom,
    reads,
    tensor,
)


def at_the_end(
    t: Var, turns: int, before: Var, now: Poly, after: Poly, initial: Poly, effort: Effort | None
) -> Poly | None:
    """The last value of what iterations leave or write to, of one of the forms below; `turns` are how many of the last
    ones write to all places, if there are such."""
    if initial is ZERO and is_left_at_zero(now, after):
        return ZERO
    found = filled(t, before, now, after)
    if found is not None or effort is None:
        return found
    found = written_in_part(t, before, now, after, initial, effort) or filled_late(t, turns, before, now, after)
    return found or written_late(t, turns, before, now, after, initial, effort)


def filled(t: Var, before: Var, now: Poly, after: Poly) -> Poly | None:
    """The value in the end of what is `now`, an arbitrary value that alone reads `before`, before iteration t and
    `after` after it; None if it is not filled so."""
    windows = _windows(after)
    if not windows or any(before in window.free for window in windows.values()):
        return None
    if not allows("filled_windows", len(windows)):
        return None
    if _where(after, windows, None) is not now:
        return None
    written: dict[Poly, Poly] = {}
    for window in windows.values():
        value = _where(after, windows, window)
        if value is None or before in value.free:
            return None
        written[value] = algebra.add(written.get(value, ZERO), of_atom(window))
    if _summed(t, algebra.add(*written.values())) is not ONE:
        return None
    ends, other = ZERO, ZERO
    for value, where in written.items():
        ever = ZERO if t in value.free else _summed(t, where)
        if t not in value.free and is_condition(ever):
            ends = algebra.add(ends, algebra.multiply(ever, value))
        else:
            other = algebra.add(other, algebra.multiply(where, value))
    return algebra.add(ends, _summed(t, other))


def is_left_at_zero(now: Poly, after: Poly) -> bool:
    """Whether what is 0 before an iteration is 0 after it, whatever else is: it is left, or written over by 0, under
    conditions."""
    own = now.atom
    return own is not None and all(
        dict(mono).get(own) == 1 and all(a is own or a.boolean for a, _ in mono) for mono, _ in after.items
    )


def filled_late(t: Var, turns: int, before: Var, now: Poly, after: Poly) -> Poly | None:
    """The same of what is filled by that many turns at the end: what the others wrote is written anew."""
    if not 0 < turns < t.size:
        return None
    late = expr.fresh("t", turns)
    there = {t: expr.shift(expr.of_var(late), t.size - turns)}
    return filled(late, before, algebra.substitute(now, there), algebra.substitute(after, there))


def written_late(t: Var, turns: int, before: Var, now: Poly, after: Poly, initial: Poly, effort: Effort) -> Poly | None:
    """The same of what that many turns at the end write to, each place in one of them where a condition holds: what was
    written there before is written over. Where it does not hold, no turn of all changes anything.

    That early turns write to no such place is not enough: they may change what is there in another way.
    """
    if not 0 < turns <= t.size:
        return None
    late = expr.fresh("t", turns)
    there = {t: expr.shift(expr.of_var(late), t.size - turns)}
    found = parts_written(late, before, algebra.substitute(now, there), algebra.substitute(after, there), effort)
    if found is None:
        return None
    window, new = (_summed(late, part) for part in found)
    if window is ONE:
        return new
    beside = algebra.logical_not(window)
    then = algebra.multiply(beside, _in_place(now.atom, after))
    is_left = cases.equal(then, algebra.multiply(beside, now), total=effort)
    return algebra.add(new, algebra.multiply(beside, initial)) if is_left else None


def written_in_part(t: Var, before: Var, now: Poly, after: Poly, initial: Poly, effort: Effort) -> Poly | None:
    """The same of what is written to some places in one turn each, and left as it is in all others.

    after = (1 - window(t)) * before + written(t), and written(t) is 0 outside of the window

    The guards of the windows of all turns add up to one condition: no two windows meet.
    """
    found = parts_written(t, before, now, after, effort)
    if found is None or found[1] is ZERO:
        return None
    window, new = found
    return algebra.add(_summed(t, new), algebra.multiply(algebra.logical_not(_summed(t, window)), initial))


def written_before(t: Var, before: Var, now: Poly, after: Poly, initial: Poly, effort: Effort) -> Poly | None:
    """What is written to in part as it is before iteration t; of what is written over by 0, once or again, as well."""
    parts = _parts(before, now, after)
    if parts is None:
        return None
    left, window, new = parts
    cleared = ever_before(t, window) if new is ZERO and left is algebra.logical_not(window) else None
    if cleared is not None:
        return algebra.multiply(algebra.logical_not(cleared), initial)
    found = _written_once(t, parts, effort)
    if found is None:
        return None
    s = expr.fresh("f", t.size)
    is_before = guards.interval(expr.subtract(expr.of_var(t), expr.of_var(s)), 1, None)
    window, new = (_summed(s, algebra.multiply(is_before, algebra.substitute(p, {t: expr.of_var(s)}))) for p in found)
    return algebra.add(new, algebra.multiply(algebra.logical_not(window), initial)) if is_condition(window) else None


def parts_written(t: Var, before: Var, now: Poly, after: Poly, effort: Effort) -> tuple[Poly, Poly] | None:
    """Where iteration t writes, and what, in that form; no place is written to twice."""
    parts = _parts(before, now, after)
    return None if parts is None else _written_once(t, parts, effort)


def _written_once(t: Var, parts: tuple[Poly, Poly, Poly], effort: Effort) -> tuple[Poly, Poly] | None:
    """The same of what is left, the window and what is written."""
    left, window, new = parts
    if not _is_one_condition(_summed(t, window)):
        return None
    return (window, new) if cases.equal(left, algebra.logical_not(window), total=effort) else None


def _parts(before: Var, now: Poly, after: Poly) -> tuple[Poly, Poly, Poly] | None:
    """What is left of what was there, the window that this suggests, and what is written."""
    own = now.atom
    after = _in_place(own, after)
    kept: list[tuple[Monomial, Number]] = []
    written: list[tuple[Monomial, Number]] = []
    for mono, c in after.items:
        n = dict(mono).get(own, 0) if own is not None else 0
        if n:
            kept.append((tuple(item for item in mono if item[0] is not own), c))
        else:
            written.append((mono, c))
        if n not in (0, 1):
            return None
    left, new = (algebra.add(*(make_poly((item,)) for item in items)) for items in (kept, written))
    if not kept or before in left.free or before in new.free or not is_condition(left):
        return None
    if written:
        forms = {guard.form for mono, _ in kept for guard in guards.guards_of(mono)}
        common = set.intersection(*(set(guards.guards_of(mono)) for mono, _ in written))
        window = ONE
        own_forms = (guard for guard in common if guard.form in forms or guard.lo == guard.hi is not None)
        for guard in sorted(own_forms, key=guards.order):
            window = algebra.multiply(window, of_atom(guard))
    else:
        window = algebra.logical_not(left)
    return (left, window, new) if _is_one_condition(window) else None


def _in_place(own: Atom | None, p: Poly) -> Poly:
    """The term with what is in a place where that is read under the condition that it is that place:
    `[p = slot] * before[slot]` is `[p = slot] * before[p]`."""
    if not isinstance(own, Read):
        return p
    return algebra.add(*(_in_its_place(own, make_poly((item,))) for item in p.items))


def _in_its_place(own: Read, product: Poly) -> Poly:
    ((mono, _),) = product.items
    same = [expr.shift(g.form, -g.lo) for g in guards.guards_of(mono) if g.lo is not None and g.lo == g.hi]
    held = [a for a, _ in mono if isinstance(a, Read) and a.tensor is own.tensor and a is not own]
    there: dict[Atom, Poly] = {a: of_atom(own) for a in held if _is_place(a.indices, own.indices, same)}
    return algebra.with_atoms(product, there.get) if there else product


def _is_place(there: Sequence[Index], here: Sequence[Index], same: Sequence[Index]) -> bool:
    """Whether two places are one where some index expressions are 0."""
    apart = (expr.subtract(a, b) for a, b in zip(there, here, strict=True))
    return all(e is expr.constant(0) or e in same or expr.scale(e, -1) in same for e in apart)


def _is_one_condition(p: Poly) -> bool:
    """Whether a term is a product of guards, which is 1 or 0."""
    return len(p.items) == 1 and p.items[0][1] == 1 and all(isinstance(a, Guard) for a, _ in p.items[0][0])


def _summed(t: Var, p: Poly) -> Poly:
    return rotations.joined(reduce_sum([t], p))


def _windows(p: Poly) -> dict[Index, Guard]:
    """The intervals that p tells from what is below and what is above them, by their forms."""
    found = [a for mono, _ in p.items for a in guards.guards_of(mono)]
    sides = {(g.form, g.lo, g.hi) for g in found}
    between = (g for g in found if g.lo is not None and g.hi is not None)
    return {g.form: g for g in between if any((g.form, *side) in sides for side in guards.complement(g))}


def _where(p: Poly, windows: Mapping[Index, Guard], inside: Guard | None) -> Poly | None:
    """p at the places inside of that window and of no other, or of none at all if it is None; None if this is not seen.

    What is not in a window is below or above it: `[below]` is any truth value there, and `[above]` the opposite.
    """
    below = {form: algebra.read(tensor("opaque", "below", "i1", ()), ()) for form in windows}
    held = [a for mono, _ in p.items for a in guards.guards_of(mono) if a.form in windows]
    truths = {a: _truth_of(a, w := windows[a.form], w is inside, below[w.form]) for a in held}
    if None in truths.values():
        return None
    result = algebra.with_atoms(p, truths.get)
    unknown = {read.tensor for p in below.values() for read in reads(p)}
    return None if any(read.tensor in unknown for read in reads(result)) else result


def _truth_of(guard: Guard, window: Guard, inside: bool, below: Poly) -> Poly | None:
    """A guard on a window's form, at places inside of the window or outside; None if it is another condition."""
    if guard is window:
        return ONE if inside else ZERO
    here = dict(zip(guards.complement(window), (below, algebra.logical_not(below)), strict=True))
    side = here.get((guard.lo, guard.hi))
    return ZERO if inside and side is not None else side
