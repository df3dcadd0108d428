"""What is known of terms in a case: those that are positive, and those that are not.

    1 - sqrt(s) > 0 is not so    implies    sqrt(s) is not 0
    a > 0 and r - 2 > 0          implies    a*r - 2*a > 0

Products of atoms are taken for any numbers, but for what is the product of two terms of which something is known: so a
case may be thought to exist that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product

import z3

from hlo_verify.equality.effort import Effort, z3_context
from hlo_verify.equality.sides import FOUND, is_of
from hlo_verify.equality.z3_limits import limit, satisfiable
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.doubts import INTEGRAL, UNDEFINED
from hlo_verify.terms.factors import apart
from hlo_verify.terms.functions import INVERSE, LOG, POSITIVE, SQRT
from hlo_verify.terms.term import Apply, Atom, Ix, Monomial, Number, Poly, Read, make_poly


@dataclass(slots=True)
class Region:
    """What is known of terms in a case: those that are positive, and those that are not."""

    effort: Effort
    known: list[tuple[Poly, bool]] = field(default_factory=list)

    def exists(self, *more: tuple[Poly, bool]) -> bool:
        """Whether the case may exist, and more be known in it. Raises `TimeUpError` where the session's time is up."""
        self.effort.session.check()
        context = z3_context()
        solver = z3.SolverFor("QF_LRA", ctx=context)
        limits = self.effort.limits
        limit(solver, limits)
        facts = [_signed(*fact) for fact in dict.fromkeys((*self.known, *more))]
        solver.add(*(_condition(*fact, context) for fact in (*facts, *_by_signs(facts))))
        if satisfiable(solver, limits) is False:
            return False
        products = _products(facts)
        solver.add(*(_condition(*fact, context) for fact in products))
        return not products or satisfiable(solver, limits) is not False

    def excludes(self, p: Poly, *found: int) -> bool:
        """Whether a term has none of some signs in this case."""
        if signs.of(p) & signs.BEYOND:
            return False
        square = _of_root(p)
        return all(self._excludes(p, sign) or (square is not None and self._excludes(square, sign)) for sign in found)

    def _excludes(self, p: Poly, sign: int) -> bool:
        opposite = algebra.scale(p, -1)
        told = {
            signs.POSITIVE: [(p, True)],
            signs.NEGATIVE: [(opposite, True)],
            signs.ZERO: [(p, False), (opposite, False)],
        }
        return not signs.of(p) & sign or not self.exists(*told[sign])

    def shows_zero(self, p: Poly) -> bool:
        """Whether a term is 0 in this case, as neither it nor its opposite can be positive."""
        if not self.known or any(signs.of_atom(a) & signs.BEYOND for mono, _ in p.items for a, _ in mono):
            return False
        return not any(self.exists((algebra.scale(p, sign), True)) for sign in (1, -1))


def _of_root(p: Poly) -> Poly | None:
    """What a root is of, which has the same sign where it is not negative: `sqrt(s)` is not 0 where s is not."""
    atom = p.atom
    if not isinstance(atom, Apply) or atom.function != SQRT or signs.of(atom.args[0]) & (signs.NEGATIVE | signs.BEYOND):
        return None
    return None if atom.args[0].doubt else atom.args[0]


def _is_integer(p: Poly) -> bool:
    """Whether a term is a sum of integers."""
    atoms = (a for mono, _ in p.items for a, _ in mono)
    return all(isinstance(c, int) for _, c in p.items) and all(
        isinstance(a, Ix) or (isinstance(a, Read) and INTEGRAL.fullmatch(a.tensor.dtype)) for a in atoms
    )


Signed = tuple[Poly, bool]
"""A term that is not negative, and whether it is positive."""


def _signed(p: Poly, is_positive: bool) -> Signed:
    """What is known of a term, without the positive factors that all of its products have."""
    rest = p if p.doubt else apart(p)[1]
    return (rest if is_positive else algebra.scale(rest, -1)), is_positive


def _by_signs(facts: Sequence[Signed]) -> list[Signed]:
    """The products of atoms that facts are made of and that have a sign whatever the case is, as squares have."""
    products = dict.fromkeys(mono for p, _ in facts for mono, _ in p.items if mono)
    return [fact for mono in products if (fact := _by_sign(mono)) is not None]


def _by_sign(mono: Monomial) -> Signed | None:
    sign = signs.of_product(mono)
    if not sign & (signs.NEGATIVE | signs.BEYOND):
        return make_poly(((mono, 1),)), sign == signs.POSITIVE
    if not sign & (signs.POSITIVE | signs.BEYOND):
        return make_poly(((mono, -1),)), sign == signs.NEGATIVE
    return None


def _products(facts: Sequence[Signed]) -> list[Signed]:
    """The products of two terms of which something is known, atoms among them: where something is known of products,
    and not of many terms."""
    if not any(_is_of_products(p) for p, _ in facts):
        return []
    atoms = dict.fromkeys(a for p, _ in facts for mono, _ in p.items for a, _ in mono if len(p.items) > 1)
    told = [fact for a in atoms if (fact := _by_sign(((a, 1),))) is not None]
    known = [fact for fact in dict.fromkeys((*facts, *told)) if not fact[0].doubt]
    if not allows("multiplied_facts", len(known)):
        return []
    return [
        (algebra.expanded(one, other), is_positive and is_more)
        for (one, is_positive), (other, is_more) in combinations(known, 2)
        if allows("question_terms", len(one.items) * len(other.items))
    ]


def _is_of_products(p: Poly) -> bool:
    return any(len(mono) > 1 or any(n != 1 for _, n in mono) for mono, _ in p.items)


def _condition(p: Poly, is_positive: bool, context: z3.Context) -> z3.BoolRef:
    """What a term's sign says of its products of atoms, each of which is some number."""
    total = z3.RealVal(0, context)
    for mono, c in p.items:
        value = z3.RealVal(str(Fraction(c)), context)
        total = total + (value * _variable(mono, context) if mono else value)
    if not is_positive:
        return total >= 0
    return total >= 1 if _is_integer(p) else total > 0


def _variable(mono: Monomial, context: z3.Context) -> z3.ArithRef:
    return z3.Real("*".join(f"{atom.uid}^{n}" for atom, n in mono), context)


Excludes = Callable[[Poly, Region, Sequence[int]], bool]
"""Whether a term has none of some signs in a case."""


def are_defined(p: Poly, effort: Effort, excludes: Excludes) -> bool:
    """Whether all that the found side of a comparison computes is a number, in each case in which it is computed: `1/n`
    where `n >= 1` is. Not of what functions are taken of."""
    groups: dict[Monomial, list[tuple[Monomial, Number]]] = {}
    for mono, c in p.items:
        numbers = numbers_of(mono)
        if is_of(mono, FOUND) and any(atom.doubt for atom, _ in numbers):
            held = tuple(item for item in mono if item[0].boolean and not is_of((item,), FOUND))
            groups.setdefault(numbers, []).append((held, c))
    return all(_is_defined(numbers, under, effort, excludes) for numbers, under in groups.items())


def _is_defined(numbers: Monomial, under: list[tuple[Monomial, Number]], effort: Effort, excludes: Excludes) -> bool:
    conditions = list(dict.fromkeys(atom for held, _ in under for atom, _ in held))
    if not allows("sign_cases", 2 ** len(conditions)):
        return False
    tested = [a.args[0] for a in conditions if isinstance(a, Apply) and a.function == POSITIVE and not a.args[0].doubt]
    if len(tested) < len(conditions):
        return False
    for truths in product((True, False), repeat=len(conditions)):
        true = dict(zip(conditions, truths, strict=True))
        region = Region(effort, list(zip(tested, truths, strict=True)))
        if sum(c for held, c in under if all(true[atom] for atom, _ in held)) and region.exists():
            effort.left -= 1
            if not all(_has_value(atom, region, excludes) for atom, _ in numbers if atom.doubt):
                return False
    return True


def _has_value(atom: Atom, region: Region, excludes: Excludes) -> bool:
    """Whether a function of a number has a value in a case."""
    if not isinstance(atom, Apply) or atom.doubt != UNDEFINED or any(arg.doubt for arg in atom.args):
        return False
    excluded = _EXCLUDED.get(atom.function)
    return excluded is not None and excludes(atom.args[0], region, excluded)


_EXCLUDED = {
    INVERSE: (signs.ZERO,),
    LOG: (signs.ZERO, signs.NEGATIVE),
    SQRT: (signs.NEGATIVE,),
}
"""The signs of what functions have no value."""
