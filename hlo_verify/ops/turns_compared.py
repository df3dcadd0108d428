"""Whether what a device makes in a turn is what a turn of a logical loop makes of a microbatch."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.equality import cases
from hlo_verify.equality.opening import ingredients
from hlo_verify.equality.without_names import without_names
from hlo_verify.ops.induction import LoopBook
from hlo_verify.ops.lines import Piped
from hlo_verify.ops.turns_before import TurnsBefore
from hlo_verify.terms.in_ranges import in_ranges
from hlo_verify.terms.term import Poly, Tensor


def is_made(made: Poly, expected: Poly, book: LoopBook, piped: Sequence[Piped]) -> bool:
    """Whether two terms are equal, in a comparison in which some components are taken to be made by a pipeline.

    They are looked at in the ranges of what they read definitions at first, where conditions on turns and places are
    decided however deep they are: most are one then. With what turns made in the place of names they are larger, and
    looked at so only where each is made of what the other may be made of."""
    before = TurnsBefore.of([*book.piped, *piped])
    wanted = in_ranges(expected)
    if not before.is_among((each for each in _tensors(wanted) if each.kind == "loop"), made):
        return False
    found = in_ranges(made)
    if found is wanted or without_names(found) is without_names(wanted):
        return True
    if _tensors(found) == _tensors(wanted) and cases.equal(made, expected, total=book.piping):
        return True
    if not book.piped or (wanted.items and not before.is_among(_tensors(found), wanted)):
        return False
    for pair in before.replaced_each((made, expected)):
        found, wanted = (without_names(in_ranges(p)) for p in pair)
        if found is wanted:
            return True
    return _tensors(found) == _tensors(wanted) and cases.equal(found, wanted, total=book.piping)


def is_one(found: Poly, wanted: Poly) -> bool:
    """Whether two terms are one in the ranges of what they read definitions at; what is not made of all arguments that
    the other one is made of is not looked at."""
    if not _arguments(wanted) <= _arguments(found):
        return False
    sides = in_ranges(found), in_ranges(wanted)
    return sides[0] is sides[1] or without_names(sides[0]) is without_names(sides[1])


def names_in(p: Poly) -> set[Tensor]:
    """The names of what loops carry and leave that a term is made of."""
    return {each for each in _tensors(p) if each.kind == "loop"}


def _arguments(p: Poly) -> set[Tensor]:
    return {each for each in _tensors(p) if each.kind == "argument"}


def _tensors(p: Poly) -> set[Tensor]:
    """The tensors that a term is made of in the end: one that is made of others is hardly ever equal to it."""
    return {each for each in ingredients(p) if isinstance(each, Tensor)}
