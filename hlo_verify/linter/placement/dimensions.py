"""How dimensions are spread over devices, through what moves elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.placement.values import FREE, Dimension


def reshaped(
    dimensions: Sequence[Dimension], given: Sequence[int], wanted: Sequence[int]
) -> tuple[tuple[Dimension, ...], frozenset[int]]:
    """The dimensions of a reshape of local sizes `given` to `wanted`, and the labels of those that vanish: of size one
    on each device, and spread.

    Dimensions that become one are spread by all their labels; one that is split, in its outermost part.
    """
    found: list[Dimension] = [FREE if size == 1 else None for size in wanted]
    lost: set[int] = set()
    for before, after in _runs(given, wanted):
        inside = [dimensions[k] for k in before if given[k] != 1]
        outside = [k for k in after if wanted[k] != 1]
        ones_after = [k for k in after if wanted[k] == 1]
        for k in before:
            dimension = dimensions[k]
            if given[k] == 1 and dimension:
                spare = _place_of_one(k, before, ones_after, given, wanted)
                if spare is not None:
                    found[spare] = dimension
                    ones_after.remove(spare)
                else:
                    lost |= dimension - {-1}
        if not outside:
            continue
        merged = _together(inside)
        found[outside[0]] = merged
        for k in outside[1:]:
            found[k] = None if merged is None or (len(inside) > 1 and merged) else frozenset()
    return tuple(found), frozenset(lost)


def _place_of_one(
    k: int, before: Sequence[int], ones: Sequence[int], given: Sequence[int], wanted: Sequence[int]
) -> int | None:
    """Which dimension of size one of the result is this one of the operand: of as many, the one in its turn."""
    before_ones = [j for j in before if given[j] == 1]
    return ones[0] if ones and len(before_ones) <= len(ones) + before_ones.index(k) else None


def _together(dimensions: Sequence[Dimension]) -> Dimension:
    """How the product of dimensions is spread."""
    known: set[int] = set()
    for dimension in dimensions:
        if dimension is None:
            return None
        known |= dimension
    return FREE if known == {-1} else frozenset(known - {-1})


def _runs(given: Sequence[int], wanted: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Dimensions of both sides, from the outermost, that have one product."""
    i = j = 0
    while i < len(given) or j < len(wanted):
        before: list[int] = []
        after: list[int] = []
        left = right = 1
        while True:
            if left == right and before and after and left != 1:
                break
            if i < len(given) and (left <= right or j >= len(wanted)):
                before.append(i)
                left *= given[i]
                i += 1
            elif j < len(wanted):
                after.append(j)
                right *= wanted[j]
                j += 1
            else:
                break
        yield before, after


def recast(
    dimensions: Sequence[Dimension], given: Array, wanted: Array
) -> tuple[tuple[Dimension, ...], frozenset[int]]:
    """The same of a bitcast: of the elements in the order in which they lie in memory."""
    first = _outermost_first(given)
    last = _outermost_first(wanted)
    physical, lost = reshaped(
        [dimensions[k] for k in first], [given.sizes[k] for k in first], [wanted.sizes[k] for k in last]
    )
    found: list[Dimension] = [None] * len(last)
    for place, k in enumerate(last):
        found[k] = physical[place]
    return tuple(found), lost


def _outermost_first(shape: Array) -> list[int]:
    order = shape.order if shape.order is not None else range(len(shape.sizes) - 1, -1, -1)
    return list(reversed(tuple(order)))
