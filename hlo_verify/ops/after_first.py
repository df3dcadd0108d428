"""Loops whose running maxima are numbers in all turns but perhaps the first, closed as if they were in all of them.

    m = -inf, s = 0
    for turn in turns:
        for chunk in chunks:            of what turn `turn` has
            m' = max(m, seen)
            s, m = s * exp(m - m') + added, m'

A sum in units of exp(m) closes where m is a number, or where it starts from minus infinity and sees a number at once.
Inside of a turn that is not known: chunks may be masked, and what the turn starts from is an arbitrary value. But it is
a number if the loop starts from one and no turn sees infinity; and if it starts from minus infinity and sees a number
in its first turn, then in all turns after that. What is said of the first turn is compared with that turn itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from hlo_verify.equality.briefly import equal_briefly
from hlo_verify.index import expr
from hlo_verify.ops.running import Closing
from hlo_verify.ops.values import Value
from hlo_verify.program.ir import Op
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.finite import if_unknown_may_be
from hlo_verify.terms.functions import EXPONENTIAL, MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import ONE, Poly

Ends = dict[int, Value]


def last_values(
    op: Op,
    closing: Callable[[Collection[int]], Closing],
    maxima: Collection[int],
    first: Callable[[], Sequence[Value]],
    session: Session,
) -> Ends | None:
    """The last values of what a loop carries, of which those maxima are taken for numbers before every turn. `closing`
    closes the loop with components that are taken for such, and `first` is what the first turn leaves. None if some
    component has no closed form, if the maxima may be no numbers, or the first turn leaves what the forms do not."""
    if not maxima:
        return None
    finite, passed = if_unknown_may_be(), _passed_on(op)
    found = closing([*maxima, *passed])
    ends = found.last_values()
    if ends is None or not found.seen.keys() >= set(maxima):
        return None
    turned = found.turned_before()
    if not turned.keys() >= set(passed) or not all(finite.surely(found.initial[k].term) for k in passed):
        return None
    if not all(finite.never_above(found.seen[m]) for m in maxima):
        return None
    later = [m for m in maxima if not finite.surely(found.initial[m].term)]
    if not later:
        return ends
    at_first = {found.t: expr.constant(0)}
    if not all(
        found.initial[m].term is infinity(-1) and finite.surely(algebra.substitute(found.seen[m], at_first))
        for m in later
    ):
        return None
    left = first()
    for k in ends:
        said = _after_first(k, found, turned)
        if said is None or not (said is left[k].term or equal_briefly(left[k].term, said, ONE, session)):
            return None
    return ends


def _passed_on(op: Op) -> list[int]:
    """The components that a loop seems to hand on as they are, from device to device."""
    body = op.regions[1]
    moved = {inner.results[0]: inner.operands[0] for inner in body.ops if inner.name == "collective_permute"}
    return [k for k, (own, then) in enumerate(zip(body.arguments, body.results, strict=True)) if moved.get(then) == own]


def _after_first(k: int, found: Closing, turned: Mapping[int, Value]) -> Poly | None:
    """What a component is after the first turn, by its closed form."""
    at_first, initial = {found.t: expr.constant(0)}, found.initial[k].term
    if k in turned:
        return algebra.substitute(turned[k].term, {found.t: expr.constant(1)})
    if k in found.sums:
        return algebra.add(initial, algebra.substitute(found.sums[k], at_first))
    if k in found.seen:
        return apply(MAXIMUM, (initial, algebra.substitute(found.seen[k], at_first)))
    if k not in found.scaled:
        return None
    scaled = found.scaled[k]
    greatest = _after_first(scaled.maximum, found, turned)
    if greatest is None:
        return None
    unit = apply(EXPONENTIAL, (Value(found.initial[scaled.maximum].type, greatest).at(scaled.place),))
    total = algebra.add(scaled.initial, algebra.substitute(scaled.added, at_first))
    return algebra.times(total, algebra.power_of(unit, -1))
