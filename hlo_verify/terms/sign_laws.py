"""What signs decide: absolute values, and whether a term is positive or zero. Laws of the table in `laws`."""

from __future__ import annotations

from functools import reduce

from hlo_verify.limits import allows
from hlo_verify.terms import signs
from hlo_verify.terms.addition import build, scale
from hlo_verify.terms.conditions import Conditions
from hlo_verify.terms.factors import apart, in_one_quotient
from hlo_verify.terms.functions import ABS, IS_ZERO, MAXIMUM, MINIMUM, POSITIVE, Function
from hlo_verify.terms.products import add, multiply, subtract
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Monomial, Number, Poly, make_apply, make_poly, of_atom
from hlo_verify.terms.used import used

Arguments = tuple[Poly, ...]

POSITIVE_COMMON = "positive factor of a sum that is positive"
ZERO_COMMON = "positive factor of a sum that is zero"
POSITIVE_QUOTIENTS = "a sum of quotients is positive"
ZERO_QUOTIENTS = "a sum of quotients is zero"
POSITIVE_CHOICE = "a choice of numbers is positive"
ZERO_CHOICE = "a choice of numbers is zero"
ABSOLUTE_CHOICE = "absolute value of a choice"
POSITIVE_MAXIMUM = "a maximum is positive"
POSITIVE_MINIMUM = "a minimum is positive"


def never_negative(p: Poly) -> bool:
    """Whether a term is never less than 0."""
    return not signs.of(p) & (signs.NEGATIVE | signs.BEYOND)


def is_decided(p: Poly) -> bool:
    """Whether a term is a number that is always positive, or never."""
    found = signs.of(p)
    return not p.doubt and (found == signs.POSITIVE or not found & (signs.POSITIVE | signs.BEYOND))


def is_told(p: Poly) -> bool:
    """Whether a term is a number that is always 0, or never."""
    return not p.doubt and (signs.of(p) == signs.ZERO or not signs.of(p) & signs.ZERO)


def decided(function: Function, args: Arguments) -> Poly:
    """`[a > 0]` of what always is, or never."""
    return ONE if signs.of(args[0]) == signs.POSITIVE else ZERO


def told(function: Function, args: Arguments) -> Poly:
    """`[a = 0]` of what always is, or never."""
    return ONE if signs.of(args[0]) == signs.ZERO else ZERO


def _one(p: Poly) -> tuple[Monomial, Number] | None:
    return p.items[0] if len(p.items) == 1 and p.items[0][0] else None


def of_truths(function: Function, args: Arguments) -> Poly | None:
    """`[k*p + m > 0]` of a truth value p as `[k + m > 0]` where it holds, and `[m > 0]` where it does not; and the same
    of `= 0`, and of products of truth values."""
    p = args[0]
    if p.doubt or p.constant is not None or not all(atom.boolean for mono, _ in p.items for atom, _ in mono):
        return None
    conditions = Conditions.of(mono for mono, _ in p.items)
    if conditions.forms or not allows("sign_cases", conditions.count):
        return None
    used(POSITIVE_CHOICE if function == POSITIVE else ZERO_CHOICE)
    values = ((case, sum(case.coefficients(p.items).values())) for case in conditions.cases())
    return add(*(case.condition() for case, x in values if (x > 0 if function == POSITIVE else x == 0)))


def absolute_of_product(function: Function, args: Arguments) -> Poly | None:
    """`abs(k * a * b**2)` as `abs(k) * abs(a) * b**2`."""
    found = _one(args[0])
    if found is None:
        return None
    mono, c = found
    if any(a.boolean or not isinstance(n, int) for a, n in mono) or signs.of(args[0]) & signs.BEYOND:
        return None
    result = _absolute_power(*mono[0])
    for atom, n in mono[1:]:
        result = multiply(result, _absolute_power(atom, n))
    result = scale(result, c if c > 0 else -c)
    return None if result is of_atom(make_apply(ABS, args)) else result


def _absolute_power(atom: Atom, n: Number) -> Poly:
    own = make_poly(((((atom, n),), 1),))
    if n % 2 == 0 or never_negative(of_atom(atom)):
        return own
    absolute: Atom = make_apply(ABS, (of_atom(atom),))
    return make_poly(
        (((tuple(sorted(((absolute, 1), (atom, n - 1))[: 1 + (n > 1)], key=lambda item: item[0].uid))), 1),)
    )


def absolute_of_choice(function: Function, args: Arguments) -> Poly | None:
    """`abs(t - p)` of a truth value p and a t in [0, 1] as `1 - t` where p holds, and t elsewhere: what is chosen has a
    known sign, whichever conditions hold."""
    p = args[0]
    conditions = Conditions.of(mono for mono, _ in p.items)
    if p.doubt or not (conditions.truths or conditions.forms) or not allows("sign_cases", conditions.count):
        return None
    parts: list[Poly] = []
    for case in conditions.cases():
        here = build(case.coefficients(p.items))
        sized = here if never_negative(here) else scale(here, -1)
        if not never_negative(sized):
            return None
        parts.append(multiply(case.condition(), sized))
    used(ABSOLUTE_CHOICE)
    return add(*parts)


def positive_of_product(function: Function, args: Arguments) -> Poly | None:
    """`[k * a * b > 0]` as `[k * b > 0]`, where a is a positive number."""
    return _without_positive(POSITIVE, args[0])


def zero_of_product(function: Function, args: Arguments) -> Poly | None:
    """`[k * a * b = 0]` as `[b = 0]`, where a is a positive number."""
    return _without_positive(IS_ZERO, args[0])


def _without_positive(function: Function, p: Poly) -> Poly | None:
    from hlo_verify.terms.laws import apply  # whose table has these laws

    found = _one(p)
    if found is None or p.doubt:
        return None
    mono, c = found
    rest = tuple((a, n) for a, n in mono if signs.of_product(((a, n),)) != signs.POSITIVE)
    return apply(function, (make_poly(((rest, c),)),)) if len(rest) < len(mono) else None


def positive_of_common(function: Function, args: Arguments) -> Poly | None:
    """`[a*b + a*c > 0]` as `[b + c > 0]`, and the same of `= 0`, where a is a positive number: `[exp(b - a) < 1/2]` is
    `[exp(b) < exp(a)/2]`."""
    from hlo_verify.terms.laws import apply

    factors, rest = apart(args[0]) if len(args[0].items) > 1 and not args[0].doubt else ({}, args[0])
    if not factors:
        return None
    used(POSITIVE_COMMON if function == POSITIVE else ZERO_COMMON)
    return apply(function, (rest,))


def positive_of_quotients(function: Function, args: Arguments) -> Poly | None:
    """`[a + b/c > 0]` as `[a*c + b > 0]`, and the same of `= 0`, where c is a positive number."""
    from hlo_verify.terms.laws import apply

    divided, rest = (ONE, args[0]) if args[0].doubt else in_one_quotient(args[0])
    if divided is ONE:
        return None
    used(POSITIVE_QUOTIENTS if function == POSITIVE else ZERO_QUOTIENTS)
    return apply(function, (rest,))


def positive_of_extremum(function: Function, args: Arguments) -> Poly | None:
    """`[maximum(a, b) > 0]` as `[a > 0] or [b > 0]`, and `[minimum(a, b) > 0]` as `[a > 0] [b > 0]`."""
    from hlo_verify.terms.laws import apply

    atom = args[0].atom
    if not isinstance(atom, Apply) or atom.function not in (MAXIMUM, MINIMUM) or atom.doubt:
        return None
    parts = [apply(POSITIVE, (arg,)) for arg in atom.args]
    if not allows("expanded_terms", len(parts)):
        return None
    used(POSITIVE_MINIMUM if atom.function == MINIMUM else POSITIVE_MAXIMUM)
    if atom.function == MINIMUM:
        return reduce(multiply, parts, ONE)
    none = reduce(multiply, (subtract(ONE, part) for part in parts if part is not ZERO), ONE)
    return subtract(ONE, none)


def positive_of_absolute(function: Function, args: Arguments) -> Poly | None:
    """`[abs(a) > 0]` and `[a**2 > 0]` as `1 - [a = 0]`."""
    from hlo_verify.terms.laws import apply

    root = _absolute(args[0])
    return None if root is None else subtract(ONE, apply(IS_ZERO, (root,)))


def zero_of_absolute(function: Function, args: Arguments) -> Poly | None:
    """`[abs(a) = 0]` and `[a**2 = 0]` as `[a = 0]`."""
    from hlo_verify.terms.laws import apply

    root = _absolute(args[0])
    return None if root is None else apply(IS_ZERO, (root,))


def _absolute(p: Poly) -> Poly | None:
    """What a term is the absolute value, or an even power, of."""
    found = _one(p)
    if found is None or p.doubt or found[1] < 0 or len(found[0]) != 1:
        return None
    atom, n = found[0][0]
    if n == 1 and isinstance(atom, Apply) and atom.function == ABS:
        return atom.args[0]
    return of_atom(atom) if isinstance(n, int) and n > 0 and n % 2 == 0 and not atom.boolean else None
