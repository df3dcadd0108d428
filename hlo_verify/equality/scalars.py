"""Functions of real numbers that are spelled otherwise: by cases of what is compared, over a common denominator.

    1 - 1/(1 + exp(-x)) = 1/(1 + exp(x))        log(1 + exp(x)) = maximum(x, 0) + log(1 + exp(-abs(x)))
    tanh(x) = 1 - 2/(exp(2x) + 1)               maximum(a, b) + minimum(a, b) = a + b
    log(1 - 1/(1 + exp(x))) = x - log(1 + exp(x))                   sign(x)*x = abs(x)
    cos(x - y) = cos(x) cos(y) + sin(x) sin(y)                      sin(x)**2 + cos(x)**2 = 1

A term is 0 if it is in each case that exists: where `t > 0` and where `t <= 0`, a maximum, an absolute value or a
condition on t is one of its parts; where its sign is asked for, or whether it is 0, `t = 0` is a case of its own.
Without these, hyperbolic functions are quotients of exponentials, and sines and cosines those of parts of angles. What
logarithms add up to is 0 where the product of what they are of is 1, and a sum of quotients of denominators that are
not 0 is 0 where its multiple by these is. Every step is exact, and none is taken with what may be no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from hlo_verify.equality import angles, in_cases
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.known_choices import by_choices
from hlo_verify.equality.known_signs import Region, are_defined
from hlo_verify.equality.opening import opened
from hlo_verify.equality.scalar_values import is_far
from hlo_verify.equality.sides import EXPECTED, FOUND, is_of, together
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import (
    ABS,
    EXPONENTIAL,
    INVERSE,
    IS_ZERO,
    LOG,
    MAXIMUM,
    MINIMUM,
    POSITIVE,
    ZERO_TIMES,
    real,
)
from hlo_verify.terms.laws import apply
from hlo_verify.terms.losses import without_zeros
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    make_poly,
    number,
)

TANH, SINH, COSH, SIGN = real("tanh"), real("sinh"), real("cosh"), real("sign")
CONDITIONS = (MAXIMUM, MINIMUM, ABS, POSITIVE)
AT_ZERO = (IS_ZERO, SIGN)
"""What differs where something is 0 from where it is on either side."""
ALGEBRAIC = (*CONDITIONS, *AT_ZERO, *angles.OF_ANGLES, INVERSE, LOG, TANH, SINH, COSH)


def is_zero(p: Poly, effort: Effort) -> bool:
    """Whether a term of real numbers is 0 whatever its atoms are."""
    if _depends_on_place(p) or not any(a.function in ALGEBRAIC for a in _applied(p)):
        return False
    if effort.always is None and _hides_doubt(p):
        return False
    try:
        p = _unnamed(p, {})
    except _TooManyError:
        return False
    if not allows("question_terms", len(p.items)):
        return False
    if _hides_doubt(p):
        return _is_zero_either_way(p, effort)
    if p.doubt and not are_defined(p, effort, _excludes):
        return False
    p = without_zeros(together(p))
    return not is_far(p) and _holds(p, Region(effort))


def _is_zero_either_way(p: Poly, effort: Effort) -> bool:
    """Whether a term is 0 however a choice by what may be no number is made, which the expected term makes too."""
    effort.left -= 1
    if effort.left <= 0 or effort.always is None:
        return False
    ways = by_choices(p, list(_applied(p)), effort.always)
    return ways is not None and all(together(way) is ZERO or is_zero(way, effort) for way in ways)


def _hides_doubt(p: Poly) -> bool:
    """Whether what a term compares, or is a function of, may be no number: a truth value of it is one, and hides that.
    Of a side of a comparison, it is seen where it is computed."""
    is_apart = any(is_of(mono, FOUND) or is_of(mono, EXPECTED) for mono, _ in p.items)
    is_hidden = any(arg.doubt for a in _applied(p) if a.function != ZERO_TIMES for arg in a.args)
    return is_hidden or bool(p.doubt & INFINITE) or (bool(p.doubt) and not is_apart)


def _depends_on_place(p: Poly) -> bool:
    """Whether a term has conditions on where it is: such cases are taken apart before."""
    return any(isinstance(a, Guard) and not in_cases.is_whole(a.form) for mono, _ in p.items for a, _ in mono)


def _applied(p: Poly, seen: set[Apply] | None = None) -> Iterator[Apply]:
    """The functions in a term, each once, those in their arguments before them."""
    seen = set() if seen is None else seen
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Apply) and atom not in seen:
                seen.add(atom)
                for arg in atom.args:
                    yield from _applied(arg, seen)
                yield atom


class _TooManyError(Exception):
    """A term has more functions inside of one another than are looked at: a layer of a network, not a formula."""


def _unnamed(p: Poly, known: dict[Poly, Poly]) -> Poly:
    """The term with no named terms on its surface, nor on that of functions' arguments. Raises `_TooManyError`."""
    found = known.get(p)
    if found is None:
        if not allows("formula_terms", len(known)):
            raise _TooManyError
        whole = opened(p)
        images: dict[Atom, Poly] = {}
        for atom in dict.fromkeys(a for mono, _ in whole.items for a, _ in mono if isinstance(a, Apply)):
            args = tuple(_unnamed(arg, known) for arg in atom.args)
            if args != atom.args:
                images[atom] = apply(atom.function, args)
        found = known[p] = opened(rebuilt(whole, images, {})) if images else whole
    return found


# Cases


def _holds(p: Poly, region: Region) -> bool:
    if p is ZERO:
        return True
    effort = region.effort
    effort.left -= 1
    if effort.left <= 0 or not allows("question_terms", len(p.items)):
        return False
    condition = _first_condition(p)
    if condition is None:
        return _vanishes(p, region) or region.shows_zero(p) or _vanishes_between(p, region)
    tested = in_cases.tested(condition)
    if isinstance(condition, Apply) and condition.function in AT_ZERO:
        return all(_holds_beside(p, condition, sign, region) for sign in (1, -1, 0))
    if isinstance(condition, Apply) and condition.function != POSITIVE:  # where the sides are equal, either will do
        for is_positive, other in ((True, algebra.scale(tested, -1)), (False, tested)):
            if not region.exists((other, True)):
                return _holds(in_cases.decided(p, condition, is_positive), region)
    for is_positive in (True, False):
        region.known.append((tested, is_positive))
        holds = not region.exists() or _holds(in_cases.decided(p, condition, is_positive), region)
        region.known.pop()
        if not holds:
            return False
    return True


def _vanishes_between(p: Poly, region: Region) -> bool:
    """Whether a term is 0 where conditions leave one value of an atom alone: neither `s < 1` nor `s > 1`."""
    for tested, is_positive in region.known:
        if not is_positive and not region.exists((algebra.scale(tested, -1), True)):
            there = in_cases.where(p, tested, 0)
            if there is not p and _vanishes(there, region):
                return True
    return False


def _excludes(p: Poly, region: Region, excluded: Sequence[int]) -> bool:
    """Whether a term has none of some signs in a case, nor in those that its conditions make of it."""
    effort = region.effort
    effort.left -= 1
    if effort.left <= 0:
        return False
    condition = next((a for a in _conditions(p) if not isinstance(a, Apply) or a.function not in AT_ZERO), None)
    if condition is None:
        return region.excludes(p, *excluded)
    tested = in_cases.tested(condition)
    for is_positive in (True, False):
        region.known.append((tested, is_positive))
        holds = not region.exists() or _excludes(in_cases.decided(p, condition, is_positive), region, excluded)
        region.known.pop()
        if not holds:
            return False
    return True


def _holds_beside(p: Poly, condition: Apply, sign: int, region: Region) -> bool:
    """Whether a term is 0 where what a condition asks to be 0 has a sign, or (sign 0) is 0."""
    tested = in_cases.tested(condition)
    opposite = algebra.scale(tested, -1)
    before = len(region.known)
    region.known += [(tested, sign > 0), (opposite, sign < 0)]
    value = number(sign if condition.function == SIGN else int(not sign))
    holds = not region.exists() or _holds(
        in_cases.where(in_cases.replaced(p, {condition: value}), tested, sign), region
    )
    del region.known[before:]
    return holds


def _first_condition(p: Poly) -> Apply | Guard | None:
    """The condition that cases are told by first: one that has none inside. The greater of two is told after what is
    asked of them, as it does not matter where they are equal: `[n > 1]/n + [n <= 1]` is `1/maximum(n, 1)`."""
    first: Apply | Guard | None = None
    for condition in _conditions(p):
        first = first or condition
        asked = condition.args[0] if isinstance(condition, Apply) and condition.function == POSITIVE else None
        if asked is not None and next(_conditions(asked), None) is None:
            return condition
    return first


def _conditions(p: Poly) -> Iterator[Apply | Guard]:
    """What a term is made of that the sign of something decides, the innermost first."""
    yield from (a for a in _applied(p) if a.function in CONDITIONS or a.function in AT_ZERO)
    yield from (a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard) and in_cases.is_whole(a.form))


# Logarithms and quotients


def _vanishes(p: Poly, region: Region) -> bool:
    spelled: dict[Atom, Poly] = {a: _of_exponentials(a) for a in _applied(p) if a.function in (TANH, SINH, COSH)}
    spelled |= angles.images(_applied(p))
    p = angles.reduced(in_cases.replaced(p, spelled)) if spelled else p
    rest = _without_logarithms(without_zeros(p), region)
    return rest is not None and _is_zero_quotient(rest, region)


def _of_exponentials(a: Apply) -> Poly:
    up, down = (apply(EXPONENTIAL, (algebra.scale(a.args[0], sign),)) for sign in (1, -1))
    if a.function == TANH:
        square = apply(EXPONENTIAL, (algebra.scale(a.args[0], 2),))
        return algebra.subtract(ONE, algebra.scale(apply(INVERSE, (algebra.add(ONE, square),)), 2))
    both = algebra.add(up, down) if a.function == COSH else algebra.subtract(up, down)
    return algebra.scale(both, Fraction(1, 2))


def _without_logarithms(p: Poly, region: Region) -> Poly | None:
    """What is left of a term without logarithms that add up to 0, each with the same other factors; None where some are
    left."""
    groups: dict[Monomial, list[tuple[Poly, Number]]] = {}
    left: dict[Monomial, Number] = {}
    for mono, c in p.items:
        logarithms = [a for a, _ in mono if isinstance(a, Apply) and a.function == LOG]
        if not logarithms:
            left[mono] = c
        elif len(logarithms) > 1 or (logarithms[0], 1) not in mono:
            return None
        else:
            others = tuple(item for item in mono if item[0] is not logarithms[0])
            groups.setdefault(others, []).append((logarithms[0].args[0], c))
    for others, added in sorted(groups.items(), key=lambda group: -len(group[0])):
        beside = [mono for mono in left if all(item in mono for item in others)]
        rest = algebra.build({tuple(i for i in mono if i not in others): left.pop(mono) for mono in beside})
        if not _is_one(added, rest, region):
            return None
    return algebra.build(left)


def _is_one(added: Sequence[tuple[Poly, Number]], rest: Poly, region: Region) -> bool:
    """Whether a sum of multiples of logarithms and a rest is 0, as the product of powers is 1."""
    common = math.lcm(*(Fraction(c).denominator for _, c in added))
    if signs.of(rest) & signs.BEYOND:
        return False
    above, below = apply(EXPONENTIAL, (algebra.scale(rest, common),)), ONE
    for of, c in added:
        n = int(c * common)
        if signs.of(of) != signs.POSITIVE or not _is_multiplied_out(of, abs(n)):
            return False
        if n > 0:
            above = algebra.expanded(above, in_cases.power(of, n))
        else:
            below = algebra.expanded(below, in_cases.power(of, -n))
    return _is_zero_quotient(algebra.subtract(above, below), region)


def _is_multiplied_out(p: Poly, n: int) -> bool:
    """Whether a power is short enough to be multiplied out; of a number to the 1e8, the digits alone are not."""
    if len(p.items) == 1 and p.items[0][1] == 1:
        return True
    return allows("expanded_power", n) and allows("question_terms", len(p.items) ** n)


def _is_zero_quotient(p: Poly, region: Region) -> bool:
    """Whether a term is 0, multiplied by its denominators, which are not 0 as the term is a number."""
    while allows("question_terms", len(p.items)):
        inverses = {a: 0 for mono, _ in p.items for a, _ in mono if isinstance(a, Apply) and a.function == INVERSE}
        if not inverses:
            break
        inverse = max(inverses, key=lambda a: a.uid)
        powers = [next((n for a, n in mono if a is inverse), 0) for mono, _ in p.items]
        if any(not isinstance(n, int) or n < 0 for n in powers) or not region.excludes(inverse.args[0], signs.ZERO):
            return False
        most = max(powers)
        p = algebra.add(
            *(
                algebra.expanded(
                    make_poly(((tuple(item for item in mono if item[0] is not inverse), c),)),
                    in_cases.power(inverse.args[0], most - n),
                )
                for (mono, c), n in zip(p.items, powers, strict=True)
            )
        )
        p = angles.reduced(without_zeros(p))
    return p is ZERO
