"""The logarithm of a sum of two exponentials, as libraries write it, so that no exponential overflows.

    maximum(a, b) + log(1 + exp(-abs(a - b)))  =  log(exp(a) + exp(b))

So the sums of exponentials that are merged two at a time are the sum of all: with logarithms as `a` and `b`, the
exponentials of these are what they are of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlo_verify.terms import signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import ABS, EXPONENTIAL, LOG, MAXIMUM, MINIMUM
from hlo_verify.terms.used import used

if TYPE_CHECKING:
    from hlo_verify.terms.term import Apply, Monomial, Number, Poly

Terms = dict["Monomial", "Number"]


def joined(terms: Terms) -> Terms:
    """The products of a sum, with logarithms of sums of two exponentials each as one."""
    logarithms = [
        mono for mono in terms if len(mono) == 1 and mono[0][1] == 1 and getattr(mono[0][0], "function", None) == LOG
    ]
    for mono in logarithms:
        if mono in terms and (apart := _distance(mono[0][0].args[0])) is not None:  # type: ignore[union-attr]
            terms = _joined_once(terms, mono, *apart)
    return terms


def _distance(p: Poly) -> tuple[Monomial, Number, Poly] | None:
    """Of `1 + exp(k*abs(u))` the product abs(u), k and k*u; None for other terms."""
    if len(p.items) != 2 or p.doubt & INFINITE or dict(p.items).get((), 0) != 1:
        return None
    mono, c = next(item for item in p.items if item[0])
    (power, k), *others = mono
    if c != 1 or others or k <= 0 or getattr(power, "function", None) != EXPONENTIAL:
        return None
    inner: Apply = power  # type: ignore[assignment]
    absolute = inner.args[0].atom
    if absolute is None or getattr(absolute, "function", None) != ABS:
        return None
    from hlo_verify.terms.addition import scale

    u: Poly = absolute.args[0]  # type: ignore[union-attr]
    return None if signs.of(u) & signs.BEYOND else (((absolute, 1),), k, scale(u, k))


def _joined_once(terms: Terms, logarithm: Monomial, absolute: Monomial, k: Number, u: Poly) -> Terms:
    """The same, where the greater of two terms that differ by u, less their distance, or the lesser is an addend."""
    from hlo_verify.terms import rotations
    from hlo_verify.terms.addition import build, difference, plain, scale
    from hlo_verify.terms.laws import apply
    from hlo_verify.terms.products import add

    c = terms[logarithm]
    opposite = scale(u, -1)
    for mono, weight in terms.items():
        extremum = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 else None
        function = getattr(extremum, "function", None)
        if function not in (MAXIMUM, MINIMUM) or weight != c:
            continue
        args = extremum.args  # type: ignore[union-attr]
        if len(args) != 2 or any(arg.doubt & INFINITE for arg in args):
            continue
        if function == MAXIMUM and terms.get(absolute) != plain(-c * k):
            continue
        if difference(*args) not in (u, opposite):
            continue
        used("logarithm of two exponentials")
        rest = {m: n for m, n in terms.items() if m not in (mono, logarithm)}
        if function == MAXIMUM:
            del rest[absolute]
        whole = apply(LOG, (rotations.joined(add(*(apply(EXPONENTIAL, (arg,)) for arg in args))),))
        return dict(add(build(rest), scale(whole, c)).items)
    return terms
