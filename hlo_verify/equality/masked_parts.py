"""Extrema of masked parts, as a choice between a number and an infinity by whether anything is left of the part.

    max k<4. (b[4*d + k] ? s[4*d + k] : -inf)    is    any[d] ? f[d] : -inf    with    any[d] = max k<4. b[4*d + k]

where f[d] is a number. Sums in units of exp(f[d]) are then sums of factors that cancel: attention that is merged from
parts, each by its own maximum, some of which may be masked altogether. Whether anything is left of a part need not be
asked where a condition says it, as b[4*d + k] does (`implied`).

A maximum that infinities mask has been an infinity for all laws that a term went through. A logarithm has not: where it
is one of nothing, `3*t - 2*t` is no number, and has become t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from hlo_verify.equality.implied import Held, absorbed, where_positive
from hlo_verify.equality.opening import opened
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.equality.where_numbers import MASKS, where_number
from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import by_numbers
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import (
    ABS,
    EQUAL,
    EXPONENTIAL,
    FINITE_PART,
    INFINITE_EXPONENTIAL,
    INFINITY,
    IS_FINITE,
    IS_ZERO,
    MULTIPLY,
    POSITIVE,
)
from hlo_verify.terms.guards import interval
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import occurs_in
from hlo_verify.terms.places import with_values
from hlo_verify.terms.products import total
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Guard,
    Monomial,
    Poly,
    Read,
    of_atom,
)


def in_choices(p: Poly, held: Held = ()) -> Poly:
    """A term in which extrema of masked parts are choices between numbers and infinities, where some conditions hold;
    as it is where that takes more steps than there may be, half of those of questions."""
    try:
        return _Parts(Steps(limit_of("question_parts") // 2)).anew(opened(p), held)
    except SpentError:
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
            product = algebra.product_with(numbers, partial(self._image, held=within))
            gone = frozenset(_vanishing_at_infinity(numbers))
            where = algebra.add(*(algebra.scale(self._where(each, held, gone), c) for each, c in selected.items()))
            parts.append(algebra.expanded(where, product))
        whole = total(*parts) if occurs_in(p) else algebra.add(*parts)
        return absorbed(whole, held)

    def _where(self, mono: Monomial, held: Held, gone: frozenset[Atom]) -> Poly:
        """Conditions anew, where others hold, on what is 0 where some extrema are infinite."""
        return algebra.product_with(mono, lambda atom: self._condition(atom, held, gone))

    def _condition(self, atom: Atom, held: Held, gone: frozenset[Atom]) -> Poly | None:
        if isinstance(atom, Guard):
            form = with_values(atom.form, partial(self._value, held=held, gone=gone))
            return None if form is atom.form else interval(form, atom.lo, atom.hi)
        if not isinstance(atom, Apply):
            return None
        self.steps.take()
        if atom.function in (IS_ZERO, POSITIVE):
            where = where_positive(self.anew(atom.args[0], held))
            if where is not None:
                return absorbed(where if atom.function == POSITIVE else algebra.logical_not(where), held)
        asked, of_infinity = _asked_of(atom)
        known = self._choice(asked) if asked is not None and asked in gone else None
        if known is None:
            return self._image(atom, held)
        return absorbed(algebra.logical_not(known[0]) if of_infinity else known[0], held)

    def _value(self, p: Poly, held: Held, gone: frozenset[Atom]) -> Poly:
        """What a guard takes for an integer: a condition, or a number."""
        if p.atom is None:
            return self.anew(p, held)
        return self._condition(p.atom, held, gone) or p

    def _image(self, atom: Atom, held: Held) -> Poly | None:
        """What a factor is where some conditions hold; None where that is the factor."""
        self.steps.take()
        if isinstance(atom, Apply) and atom.function != FINITE_PART:
            return self._chosen(atom, held) or self._function(atom, held)
        if not isinstance(atom, Read) or atom.tensor.seal is not None:
            return None
        kind = atom.tensor.kind
        if kind in MASKS:
            return self._chosen(atom, held)
        if kind not in ("sum", "term"):
            return None
        bound, (body,) = unfold(atom)
        inside = self.anew(opened(body), held) if allows("opened_weight", body.weight) else body
        return None if inside is body else reduce_sum(bound, inside)

    def _function(self, atom: Apply, held: Held) -> Poly | None:
        args = tuple(self.anew(arg, held) for arg in atom.args)
        function = EXPONENTIAL if atom.function == INFINITE_EXPONENTIAL else atom.function
        return None if args == atom.args else apply(function, args)

    def _chosen(self, atom: Atom, held: Held) -> Poly | None:
        """An extremum that infinities mask as a choice; None of other atoms."""
        known = self._choice(atom) if atom.doubt & INFINITE else None
        if known is None:
            return None
        where, infinity = known
        return algebra.select(absorbed(where, held), apply(FINITE_PART, (of_atom(atom),)), infinity)

    def _choice(self, atom: Atom) -> tuple[Poly, Poly] | None:
        """Where an extremum is a number, and the infinity that it is anywhere else; None of other atoms."""
        if atom not in self._known:
            found = where_number(of_atom(atom))
            self._known[atom] = None if found is None else (found[0], algebra.scale(apply(INFINITY, ()), found[1]))
        return self._known[atom]


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


def _asked_of(atom: Apply) -> tuple[Atom | None, bool]:
    """The extremum of which a condition asks whether it is the infinity that masks, and whether it holds where it is;
    None of other conditions."""
    if atom.function == IS_FINITE:
        return atom.args[0].atom, False
    infinity = apply(INFINITY, ())
    for one, other in (atom.args, atom.args[::-1]) if atom.function == EQUAL else ():
        asked = other.atom
        if isinstance(asked, Apply) and asked.function == ABS and one is infinity:
            return asked.args[0].atom, True
        if isinstance(asked, Read) and one is algebra.scale(infinity, MASKS.get(asked.tensor.kind, 0)):
            return asked, True
    return None, False
