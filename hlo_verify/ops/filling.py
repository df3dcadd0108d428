"""What a loop fills window by window: every iteration writes to some places, and no two write to the same.

    after[p] = v_i(t) where p is in window i of iteration t, and before[p] where it is in none

If the windows of all iterations together cover every place once (their guards add up to 1), what the loop gives is
`sum over t and i. [p in window i of iteration t] * v_i(t)`, whatever it began with. A value v that is the same in all
iterations is selected by all its windows together, `(sum over t and i. [p in window i of iteration t]) * v`: whether v
is a number is not asked where none of them is.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, guards, rotations
from hlo_verify.terms.products import is_condition
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Guard, Poly, of_atom, reads, tensor


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
    result = algebra.mapped(p, lambda mono: algebra.product_with(mono, truths.get))
    unknown = {read.tensor for p in below.values() for read in reads(p)}
    return None if any(read.tensor in unknown for read in reads(result)) else result


def _truth_of(guard: Guard, window: Guard, inside: bool, below: Poly) -> Poly | None:
    """A guard on a window's form, at places inside of the window or outside; None if it is another condition."""
    if guard is window:
        return ONE if inside else ZERO
    here = dict(zip(guards.complement(window), (below, algebra.logical_not(below)), strict=True))
    side = here.get((guard.lo, guard.hi))
    return ZERO if inside and side is not None else side
