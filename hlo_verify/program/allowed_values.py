"""The values that a user allows an argument's elements to have: a range, an order, what divides them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from hlo_verify.program.element_types import INTEGER_RANGES

Number = int | Fraction
"""An exact number."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values that an argument's elements may have: those from `least` to `greatest`; None is no bound.

    A bound that is `excluded` is no such value itself. Those of an integer type are half-open, as ranges are: [0, 64).
    """

    least: Number | None = None
    greatest: Number | None = None
    excluded: tuple[bool, bool] = (False, False)
    multiple: int = 1
    """The elements are integers, and multiples of this."""
    ascending: bool = False
    """Along the last dimension, no element is less than the one before."""
    distinct: bool = False
    """Along the last dimension, no two elements are equal."""
    permutation: bool = False
    """Along the last dimension, elements are 0, 1, ... up to its size, in some order; once a type is known, this is in
    the range and in `distinct` too."""

    def __str__(self) -> str:
        words = [f"a multiple of {self.multiple}"] * (self.multiple != 1) + ["sorted"] * self.ascending
        words += ["a permutation"] if self.permutation else ["distinct"] * self.distinct
        interval = "" if words and self.least is None and self.greatest is None else self._interval()
        said = " and ".join(words)
        return f"{interval} and {said}" if interval and said else interval or f"is {said}"

    def _interval(self) -> str:
        if self.greatest is None and self.least == 0:
            return "is positive" if self.excluded[0] else "is nonnegative"
        opening = "(" if self.excluded[0] or self.least is None else "["
        least, greatest = (_said(bound, end) for bound, end in ((self.least, "-inf"), (self.greatest, "inf")))
        closing = ")" if self.excluded[1] or self.greatest is None else "]"
        return f"in {opening}{least}, {greatest}{closing}"

    @property
    def integers(self) -> tuple[int, int]:
        """The least and the greatest, of integers."""
        assert isinstance(self.least, int) and isinstance(self.greatest, int)
        return self.least, self.greatest - 1

    def admits(self, least: float, greatest: float) -> bool:
        """Whether all numbers between two that are values of an argument may be values of this one."""
        low, high = (Fraction(x) if math.isfinite(x) else None for x in (least, greatest))
        if low is None or high is None:
            return False
        above = self.least is None or low > self.least or (low == self.least and not self.excluded[0])
        below = self.greatest is None or high < self.greatest or (high == self.greatest and not self.excluded[1])
        return above and below

    @property
    def says_more(self) -> bool:
        """Whether it says of elements more than between which numbers each of them is."""
        return self.multiple != 1 or self.ascending or self.distinct or self.permutation

    def both(self, other: Values) -> Values:
        """The values that both allow."""
        least, no_least = _tighter((self.least, self.excluded[0]), (other.least, other.excluded[0]), 1)
        greatest, no_greatest = _tighter((self.greatest, self.excluded[1]), (other.greatest, other.excluded[1]), -1)
        return Values(
            least,
            greatest,
            (no_least, no_greatest),
            math.lcm(self.multiple, other.multiple),
            self.ascending or other.ascending,
            self.distinct or other.distinct,
            self.permutation or other.permutation,
        )

    def of_type(self, dtype: str) -> Values:
        """Those that are values of an element type."""
        if dtype not in INTEGER_RANGES:
            return self
        low, high = INTEGER_RANGES[dtype]
        least = low if self.least is None else math.ceil(self.least)
        greatest = high if self.greatest is None else math.floor(self.greatest)
        least += self.excluded[0] and least == self.least
        greatest -= self.excluded[1] and greatest == self.greatest
        least, greatest = (
            k * self.multiple for k in (-(-max(least, low) // self.multiple), min(greatest, high) // self.multiple)
        )
        return replace(self, least=least, greatest=greatest + 1, excluded=(False, True))

    def of_dimension(self, size: int | None) -> Values:
        """Those of integers along a last dimension of that size; None where there is none."""
        if not self.permutation:
            return self
        return replace(self.both(Values(0, size or 0, (False, True))), distinct=True)

    def has_enough(self, size: int, dtype: str) -> bool:
        """Whether there are enough numbers of an element type for so many different ones."""
        if not self.distinct or self.least is None or self.greatest is None:
            return True
        if dtype not in INTEGER_RANGES:
            return size < 2 or self.least < self.greatest
        least, greatest = self.integers
        return (greatest - least) // self.multiple + 1 >= size

    @property
    def of_each(self) -> Values:
        """What it says of each element by itself."""
        return replace(self, ascending=False, distinct=False, permutation=False)

    @property
    def is_empty(self) -> bool:
        """Whether there are no such values."""
        if self.least is None or self.greatest is None:
            return False
        return self.least > self.greatest or (self.least == self.greatest and any(self.excluded))


def _said(bound: Number | None, otherwise: str) -> str:
    return otherwise if bound is None else str(bound) if isinstance(bound, int) else f"{float(bound):g}"


def _tighter(a: tuple[Number | None, bool], b: tuple[Number | None, bool], sign: int) -> tuple[Number | None, bool]:
    """The bound that leaves fewer values; with `sign` 1 the greater one."""
    if a[0] is None or b[0] is None:
        return b if a[0] is None else a
    return max(a, b, key=lambda bound: (sign * (bound[0] or 0), bound[1]))
