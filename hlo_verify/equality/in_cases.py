"""Cases of a term of real numbers: what decides them, and what the term is in one.

[n >= 5]*a + [n <= 4]*b    is a where    n > 4
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.clipping_laws import difference_of_squares
from hlo_verify.terms.doubts import INTEGRAL
from hlo_verify.terms.functions import ABS, EXPONENTIAL, EXTREMA, MAXIMUM, POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.quotient_signs import numerator
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Monomial, Number, Poly, Read, of_atom


def is_whole(e: Index) -> bool:
    """Whether an index expression is of integers that are what the machine holds as they stand."""
    for part, _ in e.items:
        atom = own_value(part)
        if atom is None or not INTEGRAL.fullmatch(atom.tensor.dtype) or atom.tensor.bodies:
            return False
    return True


def tested(condition: Apply | Guard) -> Poly:
    """The term whose sign decides what a condition or a function is."""
    if isinstance(condition, Guard):
        end = condition.hi if condition.lo is None else condition.lo - 1
        assert end is not None
        return algebra.of_index(expr.shift(condition.form, -end))
    if condition.function in EXTREMA.values():
        return _of_one_sign(algebra.subtract(condition.args[0], condition.args[1]))
    return _of_one_sign(condition.args[0])


def _of_one_sign(p: Poly) -> Poly:
    """A term that has the sign of another, and is 0 where that is: of `1 - 1/n`, for a positive n, `n - 1`; of
    `exp(a) - exp(b)`, `a - b`; of `sqrt(a) - 2`, `a - 4`."""
    top = numerator(p)
    while top is not None:
        p, top = top, numerator(top)
    p = difference_of_squares(p) or p
    if len(p.items) != 2 or p.items[0][1] != -p.items[1][1]:
        return p
    difference = ZERO
    for mono, c in p.items:
        exponents = [(a.args[0], n) for a, n in mono if isinstance(a, Apply) and a.function == EXPONENTIAL]
        if len(exponents) < len(mono):
            return p
        difference = algebra.add(difference, *(algebra.scale(arg, n * c) for arg, n in exponents))
    return difference


def decided(p: Poly, condition: Apply | Guard, is_positive: bool) -> Poly:
    """The term where what is asked for is positive, or where it is not. All that it asks of the same integer is
    decided with it: of `[n >= 5] + [n <= 4]`, left as one condition of two, the other case would be the same term."""
    if isinstance(condition, Guard):
        form, above, below = guards.halves(condition)
        side = above if is_positive else below
        return replaced(p, {g: guards.left_between(g, *side) for g in _guards(p) if guards.about(g) is form})
    args = condition.args
    if condition.function == POSITIVE:
        there = ONE if is_positive else ZERO
    elif condition.function == ABS:
        there = args[0] if is_positive else algebra.scale(args[0], -1)
    else:
        chosen = args[0] if is_positive == (condition.function == MAXIMUM) else args[1]
        there = apply(condition.function, (chosen, *args[2:])) if args[2:] else chosen
    return replaced(p, {condition: there})


def _guards(p: Poly) -> Iterator[Guard]:
    """The conditions on integers in a term, those in arguments too."""
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Guard):
                yield atom
            elif isinstance(atom, Apply):
                for arg in atom.args:
                    yield from _guards(arg)


def where(p: Poly, tested: Poly, sign: int) -> Poly:
    """The term where another one has a sign, or is 0: then an atom of that is what the others make of it."""
    if sign:
        return p
    for mono, c in tested.items:
        ((atom, n), *others) = mono or ((None, 0),)
        rest = algebra.build({other: k for other, k in tested.items if other != mono})
        if n == 1 and not others and isinstance(atom, Read) and all(atom is not a for m, _ in rest.items for a, _ in m):
            return replaced(p, {atom: algebra.scale(rest, -1 / Fraction(c))})
    return p


def replaced(p: Poly, images: dict[Atom, Poly]) -> Poly:
    """The term with functions replaced, in arguments too, and multiplied out."""
    return algebra.add(*(algebra.scale(_product(mono, images), c) for mono, c in p.items))


def _product(mono: Monomial, images: dict[Atom, Poly]) -> Poly:
    total = ONE
    for atom, n in mono:
        if isinstance(atom, Apply) and atom not in images:
            args = tuple(replaced(arg, images) for arg in atom.args)
            images[atom] = apply(atom.function, args) if args != atom.args else of_atom(atom)
        total = algebra.expanded(total, power(images.get(atom, of_atom(atom)), n))
    return total


def power(p: Poly, n: Number) -> Poly:
    if not isinstance(n, int) or n < 0 or len(p.items) <= 1:
        return algebra.power_of(p, n)
    total = ONE
    for _ in range(n):
        total = algebra.expanded(total, p)
    return total
