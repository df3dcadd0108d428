"""Arithmetic of terms: every function here gives a normalised polynomial.

Real arithmetic is assumed. Booleans are 0 and 1, so their powers are idempotent. `exp` turns sums
into products; what cannot be expressed stays an uninterpreted function (`laws`).
"""

from __future__ import annotations

from hlo_verify.terms import guards
from hlo_verify.terms.addition import build, content, difference, either, multiple_of_one, of_index, scale, up_to_scale
from hlo_verify.terms.machine import as_index, split_affine
from hlo_verify.terms.products import (
    add,
    expanded,
    multiply,
    multiply_monomials,
    power,
    power_of,
    product_with,
    read,
    subtract,
    times,
    with_atoms,
)
from hlo_verify.terms.substitution import Substitution, substitute
from hlo_verify.terms.term import ONE, ZERO, Atom, Guard, Number, Poly, of_atom

__all__ = [
    "Substitution",
    "add",
    "as_index",
    "build",
    "content",
    "difference",
    "either",
    "expanded",
    "linear",
    "logical_not",
    "multiple_of_one",
    "multiply",
    "multiply_monomials",
    "of_index",
    "power",
    "power_of",
    "product_with",
    "read",
    "scale",
    "select",
    "split_affine",
    "substitute",
    "subtract",
    "times",
    "up_to_scale",
    "with_atoms",
]


def logical_not(p: Poly) -> Poly:
    """`1 - p` for a boolean; the complement of a guard is a sum of guards."""
    if len(p.items) == 1 and p.items[0][1] == 1 and all(isinstance(a, Guard) for a, _ in p.items[0][0]):
        # not (a and b) = not a, or a and not b, in an order that does not depend on where the condition is asked
        result, held = ZERO, ONE
        for atom in sorted(guards.guards_of(p.items[0][0]), key=guards.order):
            outside = add(*(guards.interval(atom.form, lo, hi) for lo, hi in guards.complement(atom)))
            result = add(result, multiply(held, outside))
            held = multiply(held, of_atom(atom))
        return result
    return subtract(ONE, p)


def select(condition: Poly, a: Poly, b: Poly) -> Poly:
    """`condition ? a : b`."""
    if a is b or condition is ONE:
        return a
    if condition is ZERO:
        return b
    return add(multiply(condition, a), multiply(logical_not(condition), b))


def linear(p: Poly) -> tuple[Number, list[tuple[Atom, Number]]] | None:
    """The constant and the coefficients of a polynomial of degree one, else None."""
    const: Number = 0
    items = []
    for mono, c in p.items:
        if not mono:
            const = c
        elif len(mono) == 1 and mono[0][1] == 1:
            items.append((mono[0][0], c))
        else:
            return None
    return const, items
