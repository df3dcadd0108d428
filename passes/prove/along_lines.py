"""Whether two terms of a device in a line are equal: on the first device, on the last, and on any other, each with what
turns made in the place of names of what pipelines carry (`ops.turns_before`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.shifted_sums import shifted, turned_over
from hlo_verify.equality.without_names import without_names
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import limit_of
from hlo_verify.ops.lines import Line, Way
from hlo_verify.ops.turns_before import TurnsBefore
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.in_ranges import in_ranges
from hlo_verify.terms.term import Poly

ROUNDS = 3
"""How often sums are turned round."""


def equal_along(way: Way, before: TurnsBefore, sides: tuple[Poly, Poly], inside: Poly, effort: Effort | None) -> bool:
    """Whether two terms are equal on every device, where an element exists; case by case too with some effort.

    Of a whole tensor, a dimension may be what devices have blocks of; or it is what one device makes, as gradients by
    what only the first one reads."""
    if not any(map(before.are_in, sides)):
        return False
    free = sides[0].free | sides[1].free
    for each in _apart(way, free):
        if all(_equal_at(there, before, sides, inside, effort) for there in each):
            return True
    return _are_one(before, sides)


def _apart(way: Way, free: Collection[Var]) -> Iterator[Iterator[dict[Var, Index]]]:
    """The places of a line as what variables of a result are there: the device, or what devices have blocks of. Where
    microbatches go round several times, each round by itself: a dimension may count rounds, or all places of these."""
    line, rounds = way.line, way.rounds
    places = [expr.constant(0), expr.constant(line.count - 1)]
    if line.count > 2:
        places.append(expr.shift(expr.of_var(expr.fresh("f", line.count - 2)), 1))
    ordered = sorted((v for v in free if v.size != expr.UNBOUNDED), key=str)
    split = [line.device] if line.device in free else [v for v in ordered if v.size % line.count == 0]
    for v in split:
        if rounds == 1:
            yield (each for place in places for each in _there(line, v, place))
            continue
        if v is not line.device and v.size % way.places == 0:
            every = (expr.shift(place, n * line.count) for place in places for n in range(rounds))
            yield (each for place in every for each in _in_blocks(v, place, way.places))
        for w in ordered:
            if w.size == rounds and w is not v:
                its = [{w: expr.constant(n)} for n in range(rounds)]
                yield (each | own for place in places for each in _there(line, v, place) for own in its)


def _there(line: Line, v: Var, place: Index) -> Iterator[dict[Var, Index]]:
    """A place of a line as what a variable is there."""
    if v is line.device:
        yield {v: line.at(place)}
    else:
        yield from _in_blocks(v, place, line.count)


def _in_blocks(v: Var, place: Index, count: int) -> Iterator[dict[Var, Index]]:
    """A variable in one of so many blocks: one element for each turn that the place makes, of a block of no more than
    devices make turns at once."""
    size = v.size // count
    start = expr.scale(place, size)
    if 1 < size <= limit_of("turns_at_once"):
        yield from ({v: expr.shift(start, n)} for n in range(size))
    else:
        yield {v: expr.add(start, expr.of_var(expr.fresh("f", size)))}


def _equal_at(
    there: dict[Var, Index], before: TurnsBefore, sides: tuple[Poly, Poly], inside: Poly, effort: Effort | None
) -> bool:
    found, expected = (algebra.substitute(p, there) for p in sides)
    if _are_one(before, (found, expected)):
        return True
    if effort is None:
        return False
    return cases.equal(before.replaced(found), before.replaced(expected), algebra.substitute(inside, there), effort)


def _are_one(before: TurnsBefore, sides: tuple[Poly, Poly]) -> bool:
    """Whether two terms are one: as they are, which is all that most take, and with what turns made in the place of
    names, which is more of each turn; the latter with names taken apart first, too."""
    sizes = before.turns_outside()
    if _are_turned(*sides, sizes):
        return True
    if before.go_round():
        found, expected = before.alike((in_ranges(_shifted(sides[0])), in_ranges(_shifted(sides[1]))))
        if _are_turned(at_constants(found), at_constants(expected), sizes):
            return True
    for pair in before.replaced_each(sides):
        found, expected = map(at_constants, pair)
        if _are_turned(found, expected, sizes):
            return True
        if _are_turned(without_names(found), without_names(expected), sizes):
            return True
    return False


def _are_turned(found: Poly, expected: Poly, sizes: Collection[int]) -> bool:
    """Whether two terms are one where sums that go down are turned round, what such a sum is made of is read at other
    places then, and made anew; in the ranges of these, and with names taken apart there, too. Where loops around count
    so many turns, microbatches may be summed up in either direction."""
    if found is expected:
        return True
    found, expected = in_ranges(_shifted(found)), in_ranges(_shifted(expected))
    if found is expected:
        return True
    found, expected = without_names(found), without_names(expected)
    if found is expected or not sizes:
        return found is expected
    return turned_over(found, sizes, {}) is turned_over(expected, sizes, {})


def _shifted(p: Poly) -> Poly:
    """The term with sums that go down turned round, as often as that makes another one of it."""
    for _ in range(ROUNDS):
        earlier, p = p, shifted(p, {})
        if p is earlier:
            break
    return p
