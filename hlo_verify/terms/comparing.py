"""Choices by comparing what is chosen from: they are extrema.

[a > b] a + [not a > b] b  =  maximum(a, b)        [a > b] 1/a + [not a > b] 1/b  =  1/maximum(a, b)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import counts, signs
from hlo_verify.terms.addition import difference, of_index, scale
from hlo_verify.terms.bounds import within
from hlo_verify.terms.functions import INVERSE, MAXIMUM, MINIMUM, POSITIVE
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.patterns import leading
from hlo_verify.terms.products import multiply, with_atoms
from hlo_verify.terms.substitution import substitute
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Number, Poly, Read, make_poly, number
from hlo_verify.terms.truths import what_is_counted
from hlo_verify.terms.used import used
from hlo_verify.terms.wrapping import wrapped_choice


def chosen(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`condition ? a : b` as an extremum of real numbers; None where it is none."""
    from hlo_verify.terms.laws import apply  # laws are made of products, as is what is chosen

    asked = compared(condition)
    if asked is None or a.doubt or b.doubt:
        return None if asked is None else _inverse(condition, a, b)
    q, holds = asked
    first, second = (a, b) if holds else (b, a)
    k = ratio(difference(first, second), q)
    if k is None:
        return _inverse(condition, a, b)
    used("choice by comparison")
    return apply(MAXIMUM if k > 0 else MINIMUM, (a, b))


def compared(condition: Poly) -> tuple[Poly, bool] | None:
    """The number that a condition asks to be positive, or (False) not to be."""
    atom, holds = condition.atom, True
    if atom is None:
        atom, holds = difference(ONE, condition).atom, False
    if not isinstance(atom, Apply) or atom.function != POSITIVE or atom.args[0].doubt:
        return None
    return atom.args[0], holds


def ratio(p: Poly, q: Poly) -> Number | None:
    """The number that p is a multiple of q by; None if it is none."""
    if not p.items or not q.items or len(p.items) != len(q.items):
        return None
    k = Fraction(leading(p)) / Fraction(leading(q))
    return k if scale(q, k) is p else None


def _inverse(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """A choice of inverses as the inverse of a choice, if that is an extremum that is never 0."""
    from hlo_verify.terms.laws import apply

    tops = [_inverted(p) for p in (a, b)]
    if None in tops or all(p.constant is not None for p in (a, b)):
        return None
    x, y = (p for p in tops if p is not None)
    found = None if x.doubt or y.doubt else chosen(condition, x, y)
    if found is None or found.doubt or signs.of(found) & signs.ZERO:
        return None
    return apply(INVERSE, (found,))


def _inverted(p: Poly) -> Poly | None:
    """What a number, or a multiple of an inverse, is the inverse of."""
    c = p.constant
    if c is not None:
        return number(1 / Fraction(c)) if c else None
    if len(p.items) != 1 or len(p.items[0][0]) != 1:
        return None
    ((atom, n),), k = p.items[0]
    if n != 1 or not isinstance(atom, Apply) or atom.function != INVERSE:
        return None
    return scale(atom.args[0], 1 / Fraction(k))


def chosen_integer(condition: Poly, a: Index, b: Index) -> Index | None:
    """`condition ? a : b` where one is a number and the other an integer that is compared, or its clamp: a clamp.

    `e <= t ? n : e` is `max(e, n)` where t <= n <= t + 1, and `e <= t ? n : clamp(e, lo, hi)` is the greater of the two
    where n lies between the clamps of t and t + 1.
    """
    asked = _asked(condition)
    if asked is None or (asked[1] is None) == (asked[2] is None):
        return None
    form, lo, hi = asked
    found = _chosen(form, lo, hi, a, b)
    if found is not None:
        return found
    return _chosen(expr.scale(form, -1), None if hi is None else -hi, None if lo is None else -lo, a, b)


def chosen_of_integers(condition: Poly, a: Index, b: Index) -> Poly | None:
    """`condition ? a : b` of integers as a clamp, a remainder or an extremum; None where it is none."""
    for law in (chosen_integer, wrapped_choice):
        found = law(condition, a, b)
        if found is not None:
            return of_index(found)
    return chosen_extremum(condition, a, b)


def chosen_extremum(condition: Poly, a: Index, b: Index) -> Poly | None:
    """`condition ? a : b` of integers where the condition compares these, as the least or the greatest: `a < b ? a : b`
    and `a <= b ? a : b` are `minimum(a, b)`."""
    from hlo_verify.terms.laws import apply  # laws are made of products, as is what is chosen

    guard = condition.atom
    if not isinstance(guard, Guard) or (guard.lo is None) == (guard.hi is None):
        return None
    form, difference_, is_below = guard.form, expr.subtract(a, b), guard.lo is None
    end = guard.hi if guard.lo is None else guard.lo
    for sign in (1, -1):
        beyond = expr.subtract(difference_, expr.scale(form, sign))
        if beyond.items or end is None:
            continue
        last, below = sign * end + beyond.const, is_below == (sign > 0)  # a - b <= last, or a - b >= last
        if last not in ((-1, 0) if below else (0, 1)):
            return None
        used("choice by comparison")
        return apply(MINIMUM if below else MAXIMUM, (of_index(a), of_index(b)))
    return None


def _asked(condition: Poly) -> tuple[Index, int | None, int | None] | None:
    """The integer that a condition asks of, and its bounds; of whether anything holds, the count of what does."""
    guard = condition.atom
    if isinstance(guard, Guard):
        return guard.form, guard.lo, guard.hi
    for p, lo, hi in ((condition, 1, None), (difference(ONE, condition), None, 0)):
        asked = counts.any_of(p.atom) if p.atom is not None else None
        if asked is not None:
            return as_index(asked, *INTEGER_RANGES["i64"]), lo, hi
    return None


def chosen_count(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`condition ? a : b` of real numbers that are counts and integers, likewise."""
    if counts.integers_of(a) is None or counts.integers_of(b) is None:
        return None
    lo, hi = INTEGER_RANGES["i64"]
    if not all(within(p, lo, hi) for p in (a, b)):
        return None
    found = chosen_integer(condition, as_index(a, lo, hi), as_index(b, lo, hi))
    return None if found is None else of_index(found)


def chosen_total(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`condition ? a : b` of a total over what is counted, which is 0 where nothing is, as that total.

    `[n > 0] s / n` is `s / maximum(n, 1)` for `n = sum v. p(v)` and `s = sum v. p(v) f(v)`.
    """
    if b is not ZERO:
        condition, a, b = difference(ONE, condition), b, a
    asked = _asked(condition) if b is ZERO and a.items else None
    if asked is None or asked[1:] != (1, None) or asked[0].lo < 0:
        return None
    n = of_index(asked[0])
    counted = [what_is_counted(mono[0][0]) if c == 1 and len(mono) == 1 else None for mono, c in n.items]
    over = [each for each in counted if each is not None]
    if len(over) < len(counted):
        return None
    found = _with_one(a, n)
    if found.doubt or not all(any(k > 0 and is_over(atom, over) for atom, k in mono) for mono, _ in found.items):
        return None
    used("total of what may be nothing")
    return found


def _with_one(p: Poly, n: Poly) -> Poly:
    """A term with 1 in the place of a count that is 0, where it divides by that."""
    from hlo_verify.terms.laws import apply

    def image(atom: Atom) -> Poly | None:
        divides = isinstance(atom, Apply) and atom.function == INVERSE and atom.args[0] is n
        return apply(INVERSE, (apply(MAXIMUM, (n, ONE)),)) if divides else None

    return with_atoms(p, image)


def is_over(atom: Atom, conditions: Sequence[tuple[tuple[Var, ...], Poly]]) -> bool:
    """Whether a sum is over those values of variables alone for which one of some conditions holds."""
    from hlo_verify.terms.definitions import unfold  # made of laws, as what is chosen is

    if not isinstance(atom, Read) or atom.tensor.kind != "sum":
        return False
    own, (body,) = unfold(atom)
    held = []
    for bound, p in conditions:
        if [v.size for v in own] == [v.size for v in bound]:
            held.append(substitute(p, {v: expr.of_var(w) for v, w in zip(bound, own, strict=True)}))
    parts = [make_poly((item,)) for item in body.items]
    return all(any(multiply(p, part) is part for p in held) for part in parts)


def _chosen(form: Index, lo: int | None, hi: int | None, a: Index, b: Index) -> Index | None:
    """The same, of a condition that a form is at least `lo`, or at most `hi`."""
    below, above = (a, b) if lo is None else (b, a)
    last = hi if lo is None else lo - 1
    whole, n = (above, below) if not below.items else (below, above)
    bounds = _clamped(whole, form)
    if n.items or last is None or bounds is None:
        return None
    low, high = (min(max(e, bounds[0]), bounds[1]) for e in (last, last + 1))
    if not low <= n.const <= high:
        return None
    used("choice between an integer and a bound")
    return expr.clamp(whole, n.const, whole.hi) if n is below else expr.clamp(whole, whole.lo, n.const)


def _clamped(e: Index, form: Index) -> tuple[int, int] | None:
    """The bounds between which an integer is the one that a condition asks of."""
    if e is form:
        return form.lo, form.hi
    ((part, c),) = e.items if len(e.items) == 1 else ((None, 0),)
    if e.const or c != 1 or not isinstance(part, Opaque) or part.operator != "clamp" or part.exprs[0] is not form:
        return None
    low, high = part.args
    return low, high
