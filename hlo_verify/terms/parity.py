"""Of an argument and its negative, the one that stands for both in an even or odd function of real numbers.

f(-x) = f(x)     for an even function
f(-x) = -f(x)    for an odd one, so that f(0) = 0
"""

from __future__ import annotations

from itertools import groupby

from hlo_verify.terms.term import Number, Poly, monomial_skey


def direction(p: Poly) -> int:
    """1 or -1, another one of p than of -p; 0 where nothing tells the two apart.

    It depends on the tensors and functions that p is made of and not on where they are read, so that it is the same of
    a term and of its definition: that of `x[i] - x[j]` is 0.
    """
    coefficients = sorted((monomial_skey(mono), c) for mono, c in p.items)
    totals: list[Number] = [sum(c for _, c in group) for _, group in groupby(coefficients, key=lambda item: item[0])]
    leading = next((total for total in totals if total), 0)
    return (leading > 0) - (leading < 0)
