"""Exponentials as factors, and what is divided by them: laws of the table in `laws`.

An exponential of a number is a factor that its inverse cancels. That of an infinity must not be: `exp(x - inf)` is 0,
and `exp(x + inf) / exp(y + inf)` is no number. What may be infinite, or is selected and may be undefined, has an
exponential that is known by name alone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from hlo_verify.index.expr import Index
from hlo_verify.limits import allows
from hlo_verify.terms.addition import build, plain
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.factoring import cases_of_name, in_factors
from hlo_verify.terms.factors import apart, in_one_quotient, inverse, is_exponential, is_positive, product
from hlo_verify.terms.functions import EXPONENTIAL, INFINITE_EXPONENTIAL, INFINITY, INVERSE, Function
from hlo_verify.terms.guards import Bound, about, guards_of, halves, interval, left_between
from hlo_verify.terms.losses import zero_times
from hlo_verify.terms.products import add, expanded, mapped, multiply, power, power_of, subtract, times
from hlo_verify.terms.root_laws import without_logarithms
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    make_apply,
    make_poly,
    number,
    of_atom,
)

Arguments = tuple[Poly, ...]


def is_factor(p: Poly) -> bool:
    """Whether the exponential of a term is a number wherever the term is one, so that its inverse cancels it."""
    return not (p.doubt & INFINITE or _is_selected(p))


def may_be_none(p: Poly) -> bool:
    """Whether it may not be."""
    return not is_factor(p)


def may_be_subtracted(p: Poly, q: Poly) -> bool:
    """Whether two terms are equal where their difference is 0: not two infinities, whose difference is no number."""
    return not p.doubt & q.doubt & INFINITE


def vanishes(p: Poly) -> bool:
    """Whether a term is minus infinity and something else that is no infinity: `-inf + inf` is no number."""
    return _infinite(p) < 0 and not _less_infinity(p).doubt & INFINITE


def infinity_is_not_zero(function: Function, args: Arguments) -> Poly | None:
    """`[a = 0]` of an infinity and something else that is a number."""
    return ZERO if _infinite(args[0]) and not _less_infinity(args[0]).doubt else None


def is_plain(p: Poly) -> bool:
    """Whether the exponential of a term, which was known by name, need not be: infinities may have gone since."""
    return vanishes(p) or is_factor(p)


def _infinite(p: Poly) -> Number:
    """The coefficient of infinity where it is one of the addends and occurs in no other; else 0.

    As a factor, exp of it would cancel against its inverse: `exp(x + inf) / exp(y + inf)` is no number.
    """
    found = [(mono, c) for mono, c in p.items if any(_is_infinity(atom) for atom, _ in mono)]
    return found[0][1] if len(found) == 1 and len(found[0][0]) == 1 and found[0][0][0][1] == 1 else 0


def _is_infinity(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.function == INFINITY


def _is_selected(p: Poly) -> bool:
    """Whether what may be no number is selected by conditions: its exponential is, but would be no more as a factor."""
    return any(any(a.doubt for a, _ in mono) and any(a.boolean for a, _ in mono) for mono, _ in p.items)


def of_minus_infinity(function: Function, args: Arguments) -> Poly:
    """`exp(a - infinity)` is 0, where a is a number."""
    return zero_times(_less_infinity(args[0]))


def _less_infinity(p: Poly) -> Poly:
    return build({mono: c for mono, c in p.items if not any(_is_infinity(atom) for atom, _ in mono)})


def of_logarithms(function: Function, args: Arguments) -> Poly | None:
    """`exp(a + log(b))` as `exp(a) * b`, where b is positive."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    if not is_factor(args[0]):
        return None
    outside, rest = without_logarithms(args[0])
    return None if outside is ONE else expanded(outside, apply(EXPONENTIAL, (rest,)))


def product_of_exponentials(function: Function, args: Arguments) -> Poly | None:
    """`exp(a + k*b)` as `exp(a) * exp(b)**k`."""
    p = args[0]
    if not allows("expanded_terms", len(p.items)):
        return None
    factors: dict[Apply, Number] = {}
    for mono, c in p.items:
        atom = make_apply(EXPONENTIAL, (make_poly(((mono, 1),)),))
        factors[atom] = c
    mono_out: Monomial = tuple(sorted(factors.items(), key=lambda item: item[0].uid))
    return make_poly(((mono_out, 1),))


def by_cases(function: Function, args: Arguments) -> Poly | None:
    """The exponential where a truth value holds that selects what may be no number, and where it does not."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    p = args[0]
    truths = {a for mono, _ in p.items if any(atom.doubt for atom, _ in mono) for a, _ in mono if a.boolean}
    if not (truths and allows("step_pieces", len(truths)) and allows("expanded_terms", len(p.items))):
        return None
    truth = min(truths, key=lambda a: a.uid)
    if isinstance(truth, Guard):
        form, *sides = halves(truth)
        return add(*(multiply(interval(form, *at), apply(EXPONENTIAL, (_between(p, form, *at),))) for at in sides))
    on = of_atom(truth)
    off = build({mono: c for mono, c in p.items if (truth, 1) not in mono})
    holding: dict[Monomial, Number] = {}
    for mono, c in p.items:
        rest = tuple(item for item in mono if item[0] is not truth)
        holding[rest] = holding.get(rest, 0) + c
    return add(
        multiply(on, apply(EXPONENTIAL, (build(holding),))),
        multiply(subtract(ONE, on), apply(EXPONENTIAL, (off,))),
    )


def _between(p: Poly, form: Index, lo: Bound, hi: Bound) -> Poly:
    """A term where a form lies between two bounds. All that is asked of it is decided at once: with one condition of
    `[n >= 5]*a + [n <= 4]*b` replaced by 1, that is `[n >= 5] + [n <= 4]` again."""

    def image(mono: Monomial) -> Poly:
        alike = [g for g in guards_of(mono) if about(g) is form]
        left = [left_between(g, lo, hi) for g in alike]
        if ZERO in left:
            return ZERO
        rest = make_poly(((tuple(item for item in mono if item[0] not in alike), 1),))
        return reduce(multiply, (each for each in left if each is not ONE), rest)

    return mapped(p, image)


def known_by_name(function: Function, args: Arguments) -> Poly:
    """The exponential that is no factor."""
    return of_atom(make_apply(INFINITE_EXPONENTIAL, args))


def power_of_exponentials(function: Function, args: Arguments) -> Poly | None:
    """`exp(a)**k` as `exp(k*a)`, where the exponential was known by name, and its power too, and need not be now."""
    base, exponent = args
    k = exponent.constant
    if k is None or base.doubt & INFINITE or (isinstance(k, int) and k >= 0):
        return None
    found = power_of(base, k)
    return None if found is of_atom(make_apply(function, args)) else found


def inverse_of_product(function: Function, args: Arguments) -> Poly | None:
    """`1/(k*a*exp(b))` as `1/k * 1/a * exp(-b)`; `1/a` stays a function, so that 0/0 never cancels."""
    p = args[0]
    if len(p.items) != 1:
        return None
    mono, c = p.items[0]
    result = number(Fraction(1) / Fraction(c))
    for atom, n in mono:
        if is_exponential(atom):
            factor = make_poly(((((atom, plain(-Fraction(n))),), 1),))
        elif is_positive(atom):
            factor = inverse(atom, int(n))
        else:
            own = None if mono == ((atom, 1),) and c == 1 else inverse_of_sums(function, (of_atom(atom),))
            known = make_poly(((((make_apply(INVERSE, (of_atom(atom),)), n),), 1),))
            factor = known if own is None or not isinstance(n, int) else power(own, n)
        result = multiply(result, factor)
    return None if result is of_atom(make_apply(INVERSE, args)) else result


def inverse_of_common(function: Function, args: Arguments) -> Poly | None:
    """`1/(a*exp(c) + b*exp(c))` as `exp(-c) * 1/(a + b)`."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    factors, rest = apart(args[0])
    return times(apply(INVERSE, (rest,)), product(factors, -1)) if factors else None


def inverse_of_quotients(function: Function, args: Arguments) -> Poly | None:
    """`1/(a + b/c)` as `c * 1/(a*c + b)`, where c is positive."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    divided, whole = in_one_quotient(args[0])
    return None if divided is ONE else times(apply(INVERSE, (whole,)), divided)


def inverse_of_sums(function: Function, args: Arguments) -> Poly | None:
    """`1/(a*b + a*c + d*b + d*c)` as `1/(a + d) * 1/(b + c)`; of a term known by name, in each of its cases."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    factors = in_factors(args[0])
    if factors is not None:
        return times(*(apply(INVERSE, (factor,)) for factor in factors))
    cases = cases_of_name(args[0])
    return add(*(multiply(on, apply(INVERSE, (term,))) for on, term in cases)) if cases else None
