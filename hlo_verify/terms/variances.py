"""Signs of sums of squares from which the square of a sum is subtracted, as variances are written in one pass.

    1/n * (sum k<n. x(k)**2) - (1/n * sum k<n. x(k))**2   >=   0

Of `n` numbers `t(k)` the square of their sum is at most `n` times the sum of their squares (Cauchy and Schwarz). So
`sum k<n. f(k) - c*(sum k<n. t(k))**2` is not negative where `f(k) - c*n*t(k)**2` is not, for each `k`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import signs
from hlo_verify.terms.addition import build, scale
from hlo_verify.terms.term import Atom, Monomial, Number, Poly, Read
from hlo_verify.terms.used import used

Item = tuple[Monomial, Number]


def narrowed(p: Poly, found: int) -> int:
    """Those signs, of a sum, that it may have if squares of sums are subtracted from sums of squares in it, or the
    other way round: a derivative divides by what is less a variance."""
    own = _of_variance(p, found)
    if own != found or not any(c > 0 and _squared(mono) is not None for mono, c in p.items):
        return own
    opposite = signs.MULTIPLIED[signs.NEGATIVE]
    return opposite[_of_variance(scale(p, -1), opposite[found])]


def _of_variance(p: Poly, found: int) -> int:
    """The same where they are subtracted."""
    squares = [(mono, c) for mono, c in p.items if c < 0 and _squared(mono) is not None]
    if not squares or not allows("sign_terms", len(p.items)):
        return found
    lead = min(squares, key=lambda item: item[0][0][0].uid)
    taken = _square_of_sum(p, lead)
    if taken is None:
        return found
    parts, least = taken
    rest = [item for item in p.items if item[0] not in least]
    bound = parts[0][0].tensor.bound
    sums = [(mono, c) for mono, c in rest if c and _summed(mono, bound) is not None]
    if not sums:
        return found
    over = tuple(expr.fresh("v", v.size) for v in bound)
    element = _over([(_summed(mono, bound), c) for mono, c in sums], over)
    each = _over(parts, over)
    count = prod(v.size for v in bound)
    if element is None or each is None:
        return found
    from hlo_verify.terms.products import expanded, subtract  # made of terms, whose signs are asked for

    spread = subtract(element, scale(expanded(each, each), -Fraction(lead[1]) * count))
    if signs.of(spread) & ~(signs.ZERO | signs.POSITIVE):
        return found
    within = signs.ADDED[signs.ZERO | signs.POSITIVE][signs.of(build(dict(i for i in rest if i not in sums)))]
    if found & within != found:
        used("sign of a variance")
    return found & within


def _squared(mono: Monomial) -> Read | None:
    """The sum that a product is the square of."""
    if len(mono) != 1:
        return None
    ((atom, n),) = mono
    return atom if n == 2 and _is_sum(atom) and isinstance(atom, Read) else None


def _is_sum(atom: Atom) -> bool:
    return isinstance(atom, Read) and atom.tensor.kind == "sum" and bool(atom.tensor.bound) and not atom.doubt


def _summed(mono: Monomial, bound: Sequence[Var]) -> Read | None:
    """The sum that a product is, if it has so many elements as another one."""
    if len(mono) != 1 or mono[0][1] != 1 or not _is_sum(mono[0][0]):
        return None
    (atom, _) = mono[0]
    assert isinstance(atom, Read)
    return atom if [v.size for v in atom.tensor.bound] == [v.size for v in bound] else None


def _square_of_sum(p: Poly, lead: Item) -> tuple[list[tuple[Read, Number]], dict[Monomial, Number]] | None:
    """A sum of multiples of sums, the first of which is that of `lead`, whose square is subtracted; and what of
    the term that square is. None if only a part of it is there."""
    first = _squared(lead[0])
    assert first is not None
    parts: list[tuple[Read, Number]] = [(first, 1)]
    for mono, c in p.items:
        other = _beside(mono, first)
        if other is not None:
            parts.append((other, Fraction(c) / (2 * lead[1])))
    terms: dict[Monomial, Number] = {}
    for a, m in parts:
        for b, n in parts:
            mono = ((a, 2),) if a is b else tuple(sorted(((a, 1), (b, 1)), key=lambda item: item[0].uid))
            terms[mono] = terms.get(mono, 0) + m * n * lead[1]
    given = dict(p.items)
    return (parts, terms) if all(given.get(mono) == c for mono, c in terms.items()) else None


def _beside(mono: Monomial, first: Read) -> Read | None:
    """The other sum of a product of two."""
    if len(mono) != 2 or any(n != 1 for _, n in mono) or not any(atom is first for atom, _ in mono):
        return None
    (other,) = (atom for atom, _ in mono if atom is not first)
    same = _summed(((other, 1),), first.tensor.bound)
    return same


def _over(sums: Sequence[tuple[Read | None, Number]], bound: Sequence[Var]) -> Poly | None:
    """What sums add up, with their coefficients, for one value of the variables that all of them bind."""
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for
    from hlo_verify.terms.substitution import substitute

    total: dict[Monomial, Number] = {}
    for atom, c in sums:
        assert atom is not None
        own, (body,) = unfold(atom)
        there = substitute(body, {v: expr.of_var(w) for v, w in zip(own, bound, strict=True)})
        for product, k in there.items:
            total[product] = total.get(product, 0) + k * c
    return build(total) if allows("sign_terms", len(total)) else None
