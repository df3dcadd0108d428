"""The laws of the signs that sums may have, as those of `structure`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A law, where it holds, and the function of `terms` that uses it."""

    name: str
    left: str
    right: str
    by: str
    when: str = ""


SIGNS = (
    Rewriting(
        "sign by bounds",
        "1 + tanh(f) > 0",
        "1",
        "quotient_signs.narrowed",
        "the least that the sum may be is positive, or 0 and not attained",
    ),
    Rewriting(
        "sign of a difference of exponentials",
        "c*k*exp(f) - c*exp(g) > 0",
        "c > 0",
        "quotient_signs.narrowed",
        "f - g is not negative, and k is no less than 1; f - g is positive, or k more than 1",
    ),
    Rewriting("sign of a numerator", "g - inverse(f) > 0", "g * f - 1 > 0", "quotient_signs.narrowed", "f is positive"),
    Rewriting(
        "sign of a variance",
        "sum v<n. f(v)**2 - 1/n * (sum v<n. f(v))**2 < 0",
        "0",
        "variances.narrowed",
        "both sums are over the same elements, and no greater multiple of the square is subtracted",
    ),
    Rewriting(
        "sums that are positive together",
        "c * sum v. [p(v)] + sum v. [not p(v)] f(v) > 0",
        "1",
        "shared_sums.is_positive_together",
        "c and f are positive, or what they are chosen from is, at one of the elements at the ends at least",
    ),
    Rewriting(
        "sums that are positive somewhere",
        "sum v. [p(v)] f(v) > 0",
        "1",
        "somewhere.is_positive_somewhere",
        "f is nowhere negative, and at one of those at an end, or where p begins to hold, p holds and f is positive",
    ),
    Rewriting(
        "sums that have a sign together",
        "sum v. f(v) - sum v. [p(v)] f(v) < 0",
        "0",
        "shared_sums.signs_together",
        "f is not negative",
    ),
)
