"""Extrema of masked parts, as a choice between a number and an infinity by whether anything is left of the part.

    max k<4. (b[4*d + k] ? s[4*d + k] : -inf)    is    any[d] ? f[d] : -inf    with    any[d] = max k<4. b[4*d + k]

where f[d] is a number, and likewise the logarithm of a sum of positive numbers under conditions. Sums in units of
exp(f[d]) are then sums of factors that cancel: attention that is merged from parts, each by its own maximum, some of
which may be masked altogether. Whether anything is left of a part need not be asked where a condition says it, as
b[4*d + k] does (`implied`).

All laws that a term went through have taken what is chosen here for what may be an infinity. They have not where the
logarithm is of numbers alone: `3*t - 2*t`, which is NaN where t is minus infinity, has become t.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from hlo_verify.equality.implied import (
    Held,
    absorbed,
    conditions_of,
    is_sum_under,
    is_surely,
    vanishes_without,
    where_positive,
)
from hlo_verify.equality.opening import is_open_sum, opened
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.equality.where_numbers import MASKS, where_number
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import by_numbers, numbers_of
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import (
    EQUAL,
    EXPONENTIAL,
    FINITE_PART,
    INFINITE_EXPONENTIAL,
    INVERSE,
    IS_FINITE,
    IS_ZERO,
    LOG,
    MULTIPLY,
    POSITIVE,
)
from hlo_verify.terms.guards import interval
from hlo_verify.terms.idle import answer
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity, occurs_in, with_nan
from hlo_verify.terms.places import with_values
from hlo_verify.terms.products import total
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    Read,
    make_poly,
    of_atom,
)


def in_choices(p: Poly, held: Held = ()) -> Poly:
    """A term in which extrema of masked parts are choices between numbers and infinities, where some conditions hold;
    as it is where that takes more steps than there may be."""
    steps = Steps(limit_of("question_parts"))
    try:
        return _Parts(steps).anew(opened(p), held)
    except SpentError:
        if steps.left < 0:
            allows("question_parts", limit_of("question_parts") + 1)  # which is noted
        return p


@dataclass(slots=True)
class _Parts:
    """Makes terms anew."""

    steps: Steps
    _known: dict[Atom, tuple[Poly, Poly] | None] = field(default_factory=dict)

    def anew(self, p: Poly, held: Held) -> Poly:
        """A term where some conditions hold. A product is made anew where its own conditions hold, if all that have the
        same numbers are under them: what several select may cancel."""
        parts = []
        for numbers, selected in by_numbers(p).items():
            for each in selected:
                self.steps.take(len(numbers) + len(each))
            first = next(iter(selected))
            within = (*held, *(atom for atom, _ in first if all((atom, 1) in each for each in selected)))
            needed = _needed(numbers, within)
            product = algebra.product_with(numbers, partial(self._image, held=(*within, *needed)))
            gone = frozenset(_vanishing_at_infinity(numbers))
            where = algebra.add(*(algebra.scale(self._where(each, held, gone), c) for each, c in selected.items()))
            if needed:
                where = algebra.multiply(where, make_poly(((tuple((atom, 1) for atom in needed), 1),)))
            parts.append(algebra.expanded(where, product))
        parts = list(map(with_nan, parts))
        whole = total(*parts) if any(map(occurs_in, (p, *parts))) else algebra.add(*parts)
        if not allows("chosen_weight", whole.weight):
            raise SpentError
        return absorbed(_less_logarithms(whole, held), held)

    def _where(self, mono: Monomial, held: Held, gone: frozenset[Atom]) -> Poly:
        """Conditions anew, where others hold, and those beside them that stay, on what is 0 where some extrema are
        infinite."""
        beside = (atom for atom, _ in mono if not isinstance(atom, Apply) and self._condition(atom, held, gone) is None)
        return algebra.product_with(mono, partial(self._condition, held=(*held, *beside), gone=gone))

    def _condition(self, atom: Atom, held: Held, gone: frozenset[Atom]) -> Poly | None:
        if isinstance(atom, Guard):
            form = with_values(atom.form, partial(self._value, held=held, gone=gone))
            return None if form is atom.form else interval(form, atom.lo, atom.hi)
        if isinstance(atom, Read) and atom.tensor.kind == "term" and atom.tensor.seal is None:
            return self.anew(opened(unfold(atom)[1][0]), held)
        if not isinstance(atom, Apply):
            return None
        self.steps.take()
        if atom.function in (IS_ZERO, POSITIVE):
            where = where_positive(self.anew(atom.args[0], held))
            if where is not None:
                return absorbed(where if atom.function == POSITIVE else algebra.logical_not(where), held)
        asked = atom.args[0].atom if atom.function == IS_FINITE else None
        known = self._choice(asked) if asked is not None and asked in gone else None
        return self._image(atom, held) if known is None else absorbed(known[0], held)

    def _value(self, p: Poly, held: Held, gone: frozenset[Atom]) -> Poly:
        """What a guard takes for an integer: a condition, or a number."""
        if p.atom is None:
            return self.anew(p, held)
        return self._condition(p.atom, held, gone) or p

    def _image(self, atom: Atom, held: Held) -> Poly | None:
        """What a factor is where some conditions hold; None where that is the factor."""
        self.steps.take()
        if isinstance(atom, Apply):
            if atom.function == FINITE_PART:
                return _finite_part(atom, held)
            return self._chosen(atom, held) or self._function(atom, held)
        if not isinstance(atom, Read) or atom.tensor.seal is not None:
            return None
        kind = atom.tensor.kind
        if kind in MASKS and atom.doubt & INFINITE:
            return self._extremum(atom, held)
        if kind not in ("sum", "term"):
            return None
        bound, (body,) = unfold(atom)
        inside = self.anew(opened(body), held) if allows("opened_weight", body.weight) else body
        divided, rest = _divided_by_sums(bound, inside, held)
        if rest is body is not ZERO:
            return None
        return algebra.times(divided, reduce_sum(bound, rest))

    def _function(self, atom: Apply, held: Held) -> Poly | None:
        args = tuple(self.anew(arg, held) for arg in atom.args)
        if atom.function == LOG and atom.doubt & INFINITE and atom.args[0] is not ZERO:
            return algebra.with_atoms(apply(LOG, args), lambda each: _logarithm(each, held))
        if atom.function == INVERSE:
            by_cases = _inverse_by_cases(args[0], held)
            if by_cases is not None:
                return by_cases
        if atom.function == EQUAL:
            for one, other in (args, args[::-1]):
                told = _equal(one, other)
                if told is not None:
                    return absorbed(told, held)
        function = EXPONENTIAL if atom.function == INFINITE_EXPONENTIAL else atom.function
        return None if args == atom.args else apply(function, args)

    def _extremum(self, atom: Read, held: Held) -> Poly | None:
        """An extremum of what may be a logarithm of nothing, and is an infinity then, or of what infinities mask."""
        bound, (body,) = unfold(atom)
        inside = self.anew(_told(opened(body), held, atom), held)
        if inside is body:
            return self._chosen(atom, held)
        whole = reduce_extremum(atom.tensor.kind, bound, inside)
        return algebra.with_atoms(whole, lambda each: self._chosen(each, held))

    def _chosen(self, atom: Atom, held: Held) -> Poly | None:
        """An extremum that infinities mask as a choice; None of other atoms."""
        known = self._choice(atom) if atom.doubt & INFINITE else None
        if known is None:
            return None
        where, otherwise = known
        return algebra.select(absorbed(where, held), apply(FINITE_PART, (of_atom(atom),)), otherwise)

    def _choice(self, atom: Atom) -> tuple[Poly, Poly] | None:
        """Where an extremum is a number, and the infinity that it is anywhere else; None of other atoms."""
        if atom not in self._known:
            found = where_number(of_atom(atom))
            self._known[atom] = None if found is None else (found[0], infinity(found[1]))
        return self._known[atom]


def _finite_part(atom: Apply, held: Held) -> Poly | None:
    """The finite part of an extremum of what is left of its elements where some conditions hold; None where that is the
    same."""
    of = atom.args[0].atom
    if not isinstance(of, Read) or of.tensor.kind not in MASKS or of.tensor.seal is not None:
        return None
    bound, (body,) = unfold(of)
    left = _told(body, held, of)
    return None if left is body else apply(FINITE_PART, (reduce_extremum(of.tensor.kind, bound, left),))


def _told(p: Poly, held: Held, element: Read) -> Poly:
    """What an element is made of, without the guards that are told by conditions on its place alone."""
    known = [each for each in held if isinstance(each, Guard) and each.free <= element.free]

    def image(atom: Atom) -> Poly | None:
        asked = (answer(atom, each) for each in known) if isinstance(atom, Guard) else ()
        told = next((found for found in asked if found is not None), None)
        return None if told is None else ONE if told else ZERO

    return algebra.with_atoms(p, image) if known else p


def _logarithm(atom: Atom, held: Held) -> Poly | None:
    """The logarithm of a sum of positive numbers under conditions: minus infinity where none of them holds."""
    if not isinstance(atom, Apply) or atom.function != LOG:
        return None
    if atom.args[0] is ZERO:
        return infinity(-1)
    where = where_positive(atom.args[0])
    if where is None:
        return None
    of = absorbed(atom.args[0], (*held, *conditions_of(where)))
    return algebra.select(absorbed(where, held), apply(FINITE_PART, (apply(LOG, (of,)),)), infinity(-1))


def _equal(one: Poly, other: Poly) -> Poly | None:
    """Whether an infinity and a choice between a number and one are equal; None of other terms."""
    sign = next((k for k in (-1, 1) if one is infinity(k)), None)
    found = None if sign is None else where_number(other)
    if found is None:
        return None
    return algebra.logical_not(found[0]) if found[1] == sign else ZERO


def _divided_by_sums(bound: Sequence[Var], p: Poly, held: Held) -> tuple[Poly, Poly]:
    """What all products of a term are divided by, sums of something that hang on none of some variables, and the term
    less that."""
    common = [
        item
        for item in (p.items[0][0] if p.items else ())
        if all(item in mono for mono, _ in p.items)
        and isinstance(item[0], Apply)
        and item[0].function == INVERSE
        and item[0].free.isdisjoint(bound)
        and _is_of_anything(item[0].args[0], held)
    ]
    if not common:
        return ONE, p
    rest = algebra.build({tuple(i for i in mono if i not in common): c for mono, c in p.items})
    return make_poly(((tuple(common), 1),)), rest


def _inverse_by_cases(p: Poly, held: Held) -> Poly | None:
    """The inverse of a term where a sum in it is of anything, and where it is of nothing, as conditions beside it ask:
    of `s + (1 - some)` that of s, or 1."""
    asked = {atom for mono, _ in p.items for atom, _ in mono if atom.boolean}
    for atom in dict.fromkeys(a for mono, _ in p.items for a, _ in mono if is_open_sum(a)):
        where = where_positive(of_atom(atom))
        some = None if where is None else where.atom
        if where is None or some is None:
            continue
        none = algebra.logical_not(where)
        if some not in asked and none.atom not in asked:
            continue
        there: dict[Atom, Poly] = {a: ZERO for mono, _ in p.items for a, _ in mono if is_sum_under(a, some)}
        there |= {some: ZERO} if none.atom is None else {some: ZERO, none.atom: ONE}
        of_some, of_none = absorbed(p, (*held, some)), algebra.with_atoms(p, there.get)
        return algebra.select(where, apply(INVERSE, (of_some,)), apply(INVERSE, (of_none,)))
    return None


def _less_logarithms(p: Poly, held: Held) -> Poly:
    """A term with sums in the place of the exponentials of their logarithms, and less what is divided by itself, where
    these are sums of anything."""
    images = [(_less_logarithms_of(mono, held), mono, c) for mono, c in p.items]
    if all(image is None for image, _, _ in images):
        return p
    made = (make_poly(((mono, c),)) if image is None else algebra.scale(image, c) for image, mono, c in images)
    return _less_logarithms(algebra.either(*made), held)


def _less_logarithms_of(mono: Monomial, held: Held) -> Poly | None:
    """The same of a product; None where that is as it is. What its conditions select stays selected."""
    conditions = tuple(item for item in mono if item[0].boolean)
    within = (*held, *(atom for atom, _ in conditions))
    powers = dict(numbers_of(mono))
    for atom, n in powers.items():
        divisor = atom.args[0].atom if isinstance(atom, Apply) and atom.function == INVERSE else None
        if divisor in powers and powers[divisor] > 0 and _is_of_anything(of_atom(divisor), within):
            both = min(n, powers[divisor])
            rest = _product({**powers, atom: n - both, divisor: powers[divisor] - both})
            return algebra.expanded(make_poly(((conditions, 1),)), rest)
        of = _exponential_of_logarithm(atom)
        if of is not None and isinstance(n, int) and _is_of_anything(of, within):
            factor = algebra.power_of(of if n > 0 else apply(INVERSE, (of,)), abs(n))
            rest = algebra.multiply(_product({**powers, atom: 0}), factor)
            return algebra.expanded(make_poly(((conditions, 1),)), rest)
    return None


def _product(powers: dict[Atom, Number]) -> Poly:
    return make_poly(((tuple((atom, n) for atom, n in powers.items() if n), 1),))


def _is_of_anything(p: Poly, held: Held) -> bool:
    where = where_positive(p)
    return where is not None and is_surely(where, held)


def _exponential_of_logarithm(atom: Atom) -> Poly | None:
    """What an atom is the exponential of the logarithm of, taken for a number; None of other atoms."""
    for function in (EXPONENTIAL, FINITE_PART, LOG):
        if not isinstance(atom, Apply) or atom.function != function:
            return None
        (arg,) = atom.args
        if function == LOG:
            return arg
        if arg.atom is None:
            return None
        atom = arg.atom
    return None


def _needed(numbers: Monomial, held: Held) -> Held:
    """Conditions without which a product of numbers, of which some may be none, is 0: those under which a sum in it is
    of anything."""
    if not any(atom.doubt for atom, _ in numbers):
        return ()
    sums = (where_positive(of_atom(atom)) for atom, _ in numbers if is_open_sum(atom))
    asked = dict.fromkeys(atom for where in sums if where is not None for atom in conditions_of(where))
    return tuple(atom for atom in asked if atom not in held and vanishes_without(numbers, atom, held))


def _vanishing_at_infinity(numbers: Monomial) -> Iterator[Atom]:
    """The extrema of which a product has an exponential as a factor that is 0 where these are infinite: so it is where
    scores are too large for their type, whatever a condition says of that."""
    for atom, n in numbers:
        if not isinstance(atom, Apply) or n <= 0:
            continue
        if atom.function == MULTIPLY:
            for arg in atom.args:
                yield from _vanishing_at_infinity(arg.items[0][0]) if len(arg.items) == 1 else ()
        elif atom.function in (EXPONENTIAL, INFINITE_EXPONENTIAL):
            for mono, c in atom.args[0].items:
                extremum = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 else None
                if isinstance(extremum, Read) and c * MASKS.get(extremum.tensor.kind, 0) < 0:
                    yield extremum
