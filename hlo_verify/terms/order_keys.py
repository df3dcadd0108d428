"""What elements are ordered by: a term less all that is done to it in the same way for each element.

    argmax v. exp(x(v)) / s      is  argmax v. x(v),        for s > 0
    argmin v. a - 2*x(v)         is  argmax v. x(v)
    sort v. log(x(v)) at r       is  log(sort v. x(v) at r)

The functions are strictly monotone, of all numbers that they have a value for, and what is added or multiplied is a
number, the same for each element: elements are equal by one term where they are by the other, so that of equal ones
the first is the same. The terms are looked at only where all parts of them are numbers (`doubts`), and finite; of
what may be undefined, the opposite, multiples, and sums with numbers are. Real numbers are meant: in floating point
`exp` makes some equal that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Apply, Atom, Monomial, Number, Poly, Read, make_poly, monomial_skey, of_atom

Values = Callable[[Poly], Poly]


@dataclass(frozen=True, slots=True)
class Key:
    """What elements are ordered by, in place of a term."""

    term: Poly
    ascending: bool = True
    """Whether a greater key is of a greater element; otherwise it is of a lesser one."""
    again: Values = lambda p: p
    """The term of a key. It is the same function for all elements."""

    @property
    def upwards(self) -> Poly:
        """The key, or its opposite: greater of greater elements."""
        return self.term if self.ascending else algebra.scale(self.term, -1)


def key_of(p: Poly, bound: Iterable[Var], *further: Rule) -> Key:
    """What elements are ordered by over variables, for a term; the term itself where that is all that is known.

    It has whole coefficients without a common factor, the first of which is positive where one is the first. Some
    further rules may be given, for where no other one is of use.
    """
    live = {v for v in bound if v in p.free}
    key = Key(p)
    if not live or p.doubt & INFINITE:
        return key
    rules = (_less_numbers, _less_multiple, _of_name) if p.doubt else (*RULES, *further)
    while (step := _step(key.term, live, rules)) is not None:
        key = Key(step.term, key.ascending == step.ascending, _after(step.again, key.again))
    return key


Rule = Callable[[Poly, Collection[Var]], Key | None]


def _after(inner: Values, outer: Values) -> Values:
    return lambda p: outer(inner(p))


def outside(p: Poly, bound: Iterable[Var]) -> Key:
    """The key of a term where the greatest element is that of the greatest key: no more is taken apart than what is
    added, positive factors and exponentials."""
    live = {v for v in bound if v in p.free}
    key = Key(p)
    if not live or p.doubt:
        return key
    while (step := _step(key.term, live, OUTSIDE)) is not None and step.ascending:
        key = Key(step.term, again=_after(step.again, key.again))
    return key


def _step(p: Poly, live: Collection[Var], rules: Sequence[Rule]) -> Key | None:
    for rule in rules:
        step = rule(p, live)
        if step is not None and not step.term.free.isdisjoint(live):
            return step
    return None


def is_increasing(function: Function) -> bool:
    """Whether a function of one real number is greater of greater ones, wherever it has a value."""
    return (function.is_real or function.is_name) and function.properties.increasing


def _hangs(atom: Atom, live: Collection[Var]) -> bool:
    return not atom.free.isdisjoint(live)


def _apart(p: Poly, live: Collection[Var]) -> tuple[Poly, Poly]:
    """The addends that hang on the elements, and the others."""
    own = {mono: c for mono, c in p.items if any(_hangs(a, live) for a, _ in mono)}
    return algebra.build(own), algebra.build({mono: c for mono, c in p.items if mono not in own})


def less_addends(p: Poly, live: Collection[Var]) -> Key | None:
    """`x(v) + a` by `x(v)`."""
    own, rest = _apart(p, live)
    return Key(own, ascending=True, again=lambda q: algebra.add(q, rest)) if rest.items else None


def _less_numbers(p: Poly, live: Collection[Var]) -> Key | None:
    """`x(v) + a` by `x(v)`, for what is surely a number: what is undefined stays so, and an infinity that it is."""
    return None if _apart(p, live)[1].doubt else less_addends(p, live)


def _less_multiple(p: Poly, live: Collection[Var]) -> Key | None:
    """`c*x(v)` by `x(v)`, for a number c."""
    c: Number = algebra.content(p)
    keys = sorted((monomial_skey(mono), k > 0) for mono, k in p.items)
    if not keys[0][1] and (len(keys) == 1 or keys[0][0] != keys[1][0]):
        c = -c
    if c == 1:
        return None
    return Key(_divided(p, c), ascending=c > 0, again=lambda q: algebra.scale(q, c))


def _divided(p: Poly, c: Number) -> Poly:
    return algebra.scale(p, 1 / Fraction(c))


def _less_factors(p: Poly, live: Collection[Var]) -> Key | None:
    """`a*x(v)` by `x(v)`, where a is known to be positive, or negative."""
    first, *others = [dict(mono) for mono, _ in p.items]
    common: dict[Atom, Number] = {}
    for atom, n in first.items():
        if _hangs(atom, live) or signs.of_atom(atom) not in (signs.POSITIVE, signs.NEGATIVE):
            continue
        if all(other.get(atom) == n for other in others):
            common[atom] = n
    if not common:
        return None
    factor = make_poly(((_monomial(common), 1),))
    own = algebra.build({_monomial({a: n for a, n in mono if a not in common}): c for mono, c in p.items})
    ascending = signs.of(factor) == signs.POSITIVE
    return Key(own, ascending, lambda q: algebra.multiply(q, factor))


def _monomial(powers: dict[Atom, Number]) -> Monomial:
    return tuple(sorted(powers.items(), key=lambda item: item[0].uid))


def _one_product(p: Poly) -> Monomial:
    """The factors of a term that is one product of several; none of any other."""
    return p.items[0][0] if len(p.items) == 1 and p.items[0][1] == 1 else ()


def _is_exponential(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.function == EXPONENTIAL


def _exponent(powers: Iterable[tuple[Atom, Number]]) -> Poly:
    return algebra.add(*(algebra.scale(atom.args[0], n) for atom, n in powers if isinstance(atom, Apply)))


def _of_exponentials(p: Poly, live: Collection[Var]) -> Key | None:
    """`exp(x(v)) * exp(y(v))**n` by `x(v) + n*y(v)`."""
    mono = _one_product(p)
    if not mono or not all(_is_exponential(atom) for atom, _ in mono):
        return None
    return Key(_exponent(mono), ascending=True, again=lambda q: apply(EXPONENTIAL, (q,)))


def _of_quotient(p: Poly, live: Collection[Var]) -> Key | None:
    """`exp(x(v)) / d(v)`, for a positive d, by `d(v) * exp(-x(v))`, where that has less to do with the elements: the
    logistic function `exp(x)/(1 + exp(x))` by `exp(-x) + 1`."""
    mono = _one_product(p)
    inverses = [a for a, n in mono if isinstance(a, Apply) and a.function == INVERSE and n == 1]
    exponentials = [(a, n) for a, n in mono if _is_exponential(a)]
    if len(inverses) != 1 or len(exponentials) + 1 != len(mono):
        return None
    divisor = inverses[0].args[0]
    if signs.of(divisor) not in (signs.POSITIVE, signs.NEGATIVE):
        return None
    turned = divisor
    if exponentials:
        if not allows("expanded_terms", len(divisor.items)):
            return None
        less = apply(EXPONENTIAL, (algebra.scale(_exponent(exponentials), -1),))
        turned = algebra.expanded(divisor, less)
        if _count(turned, live) >= _count(divisor, live) + 1:
            return None
    return Key(turned, ascending=False, again=lambda q: apply(INVERSE, (q,)))


def _count(p: Poly, live: Collection[Var]) -> int:
    """How many addends there are that hang on the elements."""
    return sum(1 for mono, _ in p.items if any(_hangs(a, live) for a, _ in mono))


def _of_one(p: Poly, live: Collection[Var]) -> Key | None:
    """`f(x(v))` by `x(v)` for an increasing function, and odd powers, and even ones of what is never negative."""
    mono = _one_product(p)
    if len(mono) != 1:
        return None
    ((atom, n),) = mono
    if n != 1:
        if not isinstance(n, int) or n < 1 or (n % 2 == 0 and signs.of_atom(atom) & (signs.NEGATIVE | signs.BEYOND)):
            return None
        power = n
        return Key(of_atom(atom), ascending=True, again=lambda q: reduce(algebra.multiply, [q] * power, ONE))
    if not isinstance(atom, Apply) or not is_increasing(atom.function):
        return None
    function: Function = atom.function
    return Key(atom.args[0], ascending=True, again=lambda q: apply(function, (q,)))


def _of_positive(p: Poly, live: Collection[Var]) -> Key | None:
    """`x(v) * y(v)` by `log(x(v)) + log(y(v))`, where both are positive."""
    mono = _one_product(p)
    if len(mono) < 2 or any(signs.of_atom(atom) != signs.POSITIVE for atom, _ in mono):
        return None
    summed = apply(LOG, (p,))
    return Key(summed, ascending=True, again=lambda q: apply(EXPONENTIAL, (q,))) if len(summed.items) > 1 else None


def _of_name(p: Poly, live: Collection[Var]) -> Key | None:
    """A named term by what it names."""
    atom = p.atom
    if not isinstance(atom, Read) or atom.tensor.kind != "term":
        return None
    _, (body,) = unfold(atom)
    return Key(body, ascending=True, again=lambda q: q)


RULES = (
    less_addends,
    _less_multiple,
    _less_factors,
    _of_exponentials,
    _of_quotient,
    _of_one,
    _of_positive,
    _of_name,
)

OUTSIDE = (less_addends, _less_factors, _of_exponentials)
