"""What people clip by: the least of a number and an inverse, on which side of a bound a root is, and the greatest size.

    minimum(1, 1/n)  =  1/maximum(1, n)      [sqrt(s) > 2]  =  [s > 4]      maximum(max x, max -x)  =  max |x|

Laws of the table in `laws`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hlo_verify.limits import allows
from hlo_verify.terms import signs
from hlo_verify.terms.addition import plain, scale
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.factors import is_never_negative
from hlo_verify.terms.functions import ABS, INVERSE, IS_ZERO, MAXIMUM, POSITIVE, SQRT, Function
from hlo_verify.terms.losses import checked
from hlo_verify.terms.products import add, expanded, subtract
from hlo_verify.terms.term import Apply, Monomial, Number, Poly, Read, make_poly, number
from hlo_verify.terms.used import used

LEAST_INVERSE = "least of a number and an inverse"
BEYOND_ROOT = "a root is beyond a number"
WITHIN_ROOT = "a root is below a number"
AT_ROOT = "a root is a number"
POSITIVE_ROOT = "a root is positive"
ZERO_ROOT = "a root is zero"


def least_of_inverses(args: Sequence[Poly]) -> Poly | None:
    """`minimum(k, 1/a)` as `1/maximum(1/k, a)`, where a is not negative and k is positive."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    bottoms = [_bottom(p) for p in args]
    if len(args) < 2 or None in bottoms:
        return None
    used(LEAST_INVERSE)
    greatest = _greatest([p for p in bottoms if p is not None])
    return checked(apply(INVERSE, (greatest,)), *(p for p in args if not _is_unsigned(p)))


def _greatest(terms: Sequence[Poly]) -> Poly:
    """The greatest of some terms; of a number and a sum, with the numbers in the sum outside: `maximum(k, c*a + m)` as
    `c*maximum((k - m)/c, a) + m`, as it comes of a root that is bounded."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    bounds, sums = [p for p in terms if p.constant is not None], [p for p in terms if p.constant is None]
    if len(bounds) != 1 or len(sums) != 1:
        return apply(MAXIMUM, tuple(terms))
    m = number(next((c for mono, c in sums[0].items if not mono), 0))
    rest = subtract(sums[0], m)
    c = Fraction(rest.items[0][1])
    if c < 0:
        return apply(MAXIMUM, tuple(terms))
    bounded = apply(MAXIMUM, (scale(subtract(bounds[0], m), 1 / c), scale(rest, 1 / c)))
    return add(scale(bounded, plain(c)), m)


def _bottom(p: Poly) -> Poly | None:
    """What a positive number, or a multiple of inverses of what is not negative, is the inverse of."""
    if len(p.items) != 1 or p.items[0][1] <= 0 or p.doubt & INFINITE:
        return None
    mono, c = p.items[0]
    bottom = number(plain(1 / Fraction(c)))
    for atom, n in mono:
        if not isinstance(atom, Apply) or atom.function != INVERSE or not isinstance(n, int) or n < 1:
            return None
        inner = atom.args[0].atom
        if inner is None and signs.of(atom.args[0]) & (signs.NEGATIVE | signs.BEYOND):
            return None
        if inner is not None and not is_never_negative(inner):
            return None
        for _ in range(n):
            bottom = expanded(bottom, atom.args[0])
    return bottom


def _is_unsigned(p: Poly) -> bool:
    """Whether a term is plus infinity where it is divided by 0: what it is divided by is no -0, which is no sum of
    squares and no root of one."""
    return all(isinstance(a, Apply) and _is_no_minus_zero(a.args[0]) for mono, _ in p.items for a, _ in mono)


def _is_no_minus_zero(p: Poly) -> bool:
    if p.doubt or any(c < 0 for _, c in p.items):
        return False
    return all(_is_unsigned_product(mono) for mono, _ in p.items)


def _is_unsigned_product(mono: Monomial) -> bool:
    for atom, n in mono:
        if isinstance(n, int) and n % 2 == 0:
            continue
        if isinstance(atom, Apply) and atom.function == SQRT and _is_no_minus_zero(atom.args[0]):
            continue
        if isinstance(atom, Apply) and atom.function == ABS:
            continue
        if isinstance(atom, Read) and atom.tensor.kind == "sum" and _is_no_minus_zero(atom.tensor.bodies[0]):
            continue
        return False
    return True


def without_opposites(function: Function, args: tuple[Poly, ...]) -> tuple[Poly, ...]:
    """The terms that an extremum is of, with the greatest size of elements in the place of the greatest of these and
    the greatest of their opposites: `max |x|` of `max x` and `max -x`."""
    from hlo_verify.terms.definitions import unfold  # made of terms
    from hlo_verify.terms.extrema import reduce_extremum
    from hlo_verify.terms.laws import apply

    sign = 1 if function == MAXIMUM else -1
    greatest = {p: scaled for p in args if (scaled := _is_greatest(scale(p, sign))) is not None}
    factors = {_factors(*scaled) for scaled in greatest.values()}
    for p, (read, own) in greatest.items():
        if len(greatest) < 2 or _factors(read, -own) not in factors:  # which is seen soon, and made of each is not
            continue
        bound, (body,) = unfold(read)
        t = scale(body, own)
        for other in (reduce_extremum("max", bound, scale(t, -1)), scale(reduce_extremum("min", bound, t), -1)):
            q = scale(other, sign)
            if q is not p and q in greatest:
                used("greatest of elements and of their opposites")
                size = scale(reduce_extremum("max", bound, apply(ABS, (t,))), sign)
                rest = tuple(each for each in args if each not in (p, q))
                return tuple(sorted({size, *rest}, key=lambda each: each.uid))
    return args


def _is_greatest(p: Poly) -> tuple[Read, int] | None:
    """The greatest of elements, or of their opposites, as the read and the sign that it is: `-min x` is `max -x`."""
    if len(p.items) != 1 or len(p.items[0][0]) != 1:
        return None
    ((((atom, n),), c),) = p.items
    if n != 1 or not isinstance(atom, Read) or abs(c) != 1:
        return None
    return (atom, int(c)) if atom.tensor.kind == ("max" if c > 0 else "min") else None


def _factors(read: Read, own: int) -> tuple[Number, ...]:
    """The factors of the products that an extremum is of, with a sign."""
    return tuple(sorted(own * c for _, c in read.tensor.bodies[0].items))


def sign_of_root(function: Function, args: Sequence[Poly]) -> Poly | None:
    """`[sqrt(a) > 0]` as `[a > 0]`, and the same of `= 0`: of what is negative, neither holds."""
    from hlo_verify.terms.laws import apply  # whose table has these laws

    atom = args[0].atom
    if not isinstance(atom, Apply) or atom.function != SQRT:
        return None
    used(POSITIVE_ROOT if function == POSITIVE else ZERO_ROOT)
    return apply(function, atom.args)


def by_squares(function: Function, args: Sequence[Poly]) -> Poly | None:
    """`[sqrt(a) - k > 0]` as `[a - k**2 > 0]`, and the same of `= 0`, where a and k are not negative."""
    from hlo_verify.terms.laws import apply  # whose table has these laws

    squares = difference_of_squares(args[0])
    if squares is None:
        return None
    (one, c), (other, _) = args[0].items
    used(AT_ROOT if function == IS_ZERO else BEYOND_ROOT if _is_root(one if c > 0 else other) else WITHIN_ROOT)
    return apply(function, (squares,))


def difference_of_squares(p: Poly) -> Poly | None:
    """Of a root less a number that is not negative, `sqrt(a) - k`, or the other way round, what has the same sign, and
    is 0 where that is: `a - k**2`."""
    if len(p.items) != 2 or p.doubt:
        return None
    (one, c), (other, k) = p.items
    if (c > 0) == (k > 0) or not any(_is_root(mono) for mono in (one, other)):
        return None
    squares = [_squared(mono, coefficient) for mono, coefficient in p.items]
    if squares[0] is None or squares[1] is None:
        return None
    more, less = squares if c > 0 else squares[::-1]
    assert more is not None and less is not None
    return subtract(more, less)


def _is_root(mono: Monomial) -> bool:
    return any(isinstance(a, Apply) and a.function == SQRT for a, _ in mono)


def _squared(mono: Monomial, c: Number) -> Poly | None:
    """The square of a multiple of roots and of others that are not negative, without a root."""
    result = make_poly((((), plain(Fraction(c) ** 2)),))
    for atom, n in mono:
        if atom.boolean or not isinstance(n, int) or n < 1 or not is_never_negative(atom):
            return None
        is_root = isinstance(atom, Apply) and atom.function == SQRT
        square = atom.args[0] if is_root and isinstance(atom, Apply) else make_poly(((((atom, 2),), 1),))
        if not allows("expanded_terms", len(result.items) * len(square.items) ** n):
            return None
        for _ in range(n):
            result = expanded(result, square)
    return result
