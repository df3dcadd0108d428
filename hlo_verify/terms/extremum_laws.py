"""The greatest and the least of some terms: laws of the table in `laws`.

Associative, commutative, idempotent; constants fold, and bound integers; what never is beyond another is dropped.
"""

from __future__ import annotations

from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import assumed_bounds, doubts, signs
from hlo_verify.terms.addition import content, of_index, plain, scale
from hlo_verify.terms.assumed_bounds import are_never_above
from hlo_verify.terms.clipping_laws import least_of_inverses, without_opposites
from hlo_verify.terms.counts import range_of_count
from hlo_verify.terms.functions import ABS, INFINITY, MAXIMUM, MINIMUM, Function
from hlo_verify.terms.losses import checked
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.no_number import is_nan
from hlo_verify.terms.products import add
from hlo_verify.terms.term import Apply, Atom, Ix, Number, Poly, Read, make_apply, number, of_atom, value_of
from hlo_verify.terms.truths import joined
from hlo_verify.terms.used import used
from hlo_verify.terms.whole import bounds_of_number, range_of_whole

NESTED = "extremum of extrema"
REPEATED = "extremum of a term and itself"
NUMBERS = "extremum of numbers"
INTEGER = "extremum of an integer and a number"
EXCEEDED = "extremum of what is never beyond another"
INFINITE = "extremum with an infinity"
NEUTRAL = "extremum with the other infinity"
NO_NUMBER = "extremum with no number"
OPPOSITE = "extremum of a term and its opposite"
CLAMPED = "least of a clamp"


def extremum(function: Function, args: tuple[Poly, ...]) -> Poly:
    """The greatest or least of some terms: one list of them, whatever the nesting."""
    terms, constants = _listed(function, args)
    none = next(filter(is_nan, terms), None)
    if none is not None:
        used(NO_NUMBER)
        return none
    terms = joined(function, terms)
    if constants:
        terms = _with_number(function, terms, max(constants) if function == MAXIMUM else min(constants))
    kept = _not_exceeded(function, _within(function, terms))
    if len(kept) < len(terms):
        used(EXCEEDED)
    best = [p for p in kept if _infinite(p) and (_infinite(p) > 0) == (function == MAXIMUM)]
    others = [p for p in kept if not _infinite(p)]
    if best and not any(p.doubt & doubts.INFINITE for p in others):
        used(INFINITE)
        return checked(best[0], *args)
    finite = [*best, *others] or kept[-1:]
    if len(finite) < len(kept):
        used(NEUTRAL)
    ordered = tuple(sorted(finite, key=lambda p: p.uid))
    absolute = _absolute(function, ordered)
    if absolute is not None:
        used(OPPOSITE)
        return absolute
    ordered = without_opposites(function, ordered)
    clamped = _clamped(ordered) if function == MAXIMUM else None
    if clamped is not None:
        used(CLAMPED)
        return clamped
    inverse = least_of_inverses(ordered) if function == MINIMUM else None
    if inverse is not None:
        return inverse
    return ordered[0] if len(ordered) == 1 else of_atom(make_apply(function, ordered))


def _absolute(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """The greatest of a number and its opposite."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    if len(args) != 2 or args[0] is not scale(args[1], -1):
        return None
    absolute = apply(ABS, (args[0],))
    return absolute if function == MAXIMUM else scale(absolute, -1)


def _clamped(args: tuple[Poly, ...]) -> Poly | None:
    """The greatest of a number and of the least of a greater one and others: what is clamped, and clamped again, is
    bounded from below first."""
    from hlo_verify.terms.laws import apply  # whose table has this law

    low, atom = args[0].constant, args[-1].atom
    if len(args) == 2 and low is None:
        low, atom = args[1].constant, args[0].atom
    if len(args) != 2 or low is None or not isinstance(atom, Apply) or atom.function != MINIMUM:
        return None
    high = next((p for p in atom.args if p.constant is not None), None)
    if high is None or high.constant is None or high.constant < low:
        return None
    others = tuple(p for p in atom.args if p is not high)
    inner = apply(MINIMUM, others) if len(others) > 1 else others[0]
    return apply(MINIMUM, (high, apply(MAXIMUM, (number(low), inner))))


def _listed(function: Function, args: tuple[Poly, ...]) -> tuple[list[Poly], list[Number]]:
    """The terms that an extremum is of, each once, and the numbers, those in inner extrema too."""
    terms: dict[Poly, None] = {}
    constants: list[Number] = []
    todo = list(args)
    while todo:
        p = todo.pop()
        atom = p.atom
        if isinstance(atom, Apply) and atom.function == function:
            used(NESTED)
            todo.extend(atom.args)
        elif p.constant is not None:
            constants.append(p.constant)
        elif (parts := _unbounded(function, p)) is not None:
            todo.extend(parts)
        elif p in terms:
            used(REPEATED)
        else:
            terms[p] = None
    if len(constants) > 1:
        used(NUMBERS)
    return list(terms), constants


def _with_number(function: Function, terms: list[Poly], k: Number) -> list[Poly]:
    """The terms with a number among them, which bounds the integers."""
    bounded = [_bounded(function, p, k) for p in terms]
    if all(integer is None for integer in bounded):
        return [*terms, number(k)]
    used(INTEGER)
    found = [p if integer is None else integer for p, integer in zip(terms, bounded, strict=True)]
    return list(dict.fromkeys(found))


def _within(function: Function, terms: list[Poly]) -> list[Poly]:
    """A term without the number that it is never beyond: `clip(round(127*x / max|x|), -127, 127)` clips nothing, and is
    no number where the quotient is none."""
    numbers = [p for p in terms if p.constant is not None]
    if len(terms) != 2 or len(numbers) != 1:
        return terms
    (p,) = (p for p in terms if p.constant is None)
    known, k = bounds_of_number(p), numbers[0].constant
    end = known[0 if function == MAXIMUM else 1]
    if end is None or k is None or (end < k if function == MAXIMUM else end > k):
        return terms
    return [p]


def _infinite(p: Poly) -> Number:
    """The coefficient of a term that is a multiple of infinity; 0 of others."""
    atom = p.items[0][0][0][0] if len(p.items) == 1 and len(p.items[0][0]) == 1 else None
    is_one = isinstance(atom, Apply) and atom.function == INFINITY and p.items[0][0][0][1] == 1
    return p.items[0][1] if is_one else 0


def _not_exceeded(function: Function, terms: list[Poly]) -> list[Poly]:
    """The terms without those that are never beyond another one, whatever their values are: integers, and floats of
    which the user says where they lie."""
    ranges = {p: e for p in terms if (e := _integer(p)) is not None}
    kept = list(terms)
    for p, e in ranges.items():
        others = [ranges[q] for q in kept if q is not p and q in ranges]
        if any(other.lo >= e.hi if function == MAXIMUM else other.hi <= e.lo for other in others):
            kept.remove(p)
    kept = _without_signs(function, kept)
    known = {p: values for p in kept if (values := assumed_bounds.of_sum(p)) is not None}
    for p, values in known.items() if len(known) > 1 else ():
        others_known = (known[q] for q in kept if q is not p and q in known)
        if any(are_never_above(*_ordered(function, values, other)) for other in others_known):
            kept.remove(p)
    return kept


def _without_signs(function: Function, terms: list[Poly]) -> list[Poly]:
    """The terms without a number, or without those beside it, where a sign shows which is never beyond."""
    k = next((p for p in terms if p.constant is not None), None)
    if k is None:
        return terms
    below = signs.NEGATIVE if function == MAXIMUM else signs.POSITIVE
    reached = set()
    for p in terms:
        if p is k or p.doubt & doubts.INFINITE:
            continue
        found = signs.of(add(p, scale(k, -1)))
        if not found & (below | signs.BEYOND):  # an extremum of what is undefined is undefined, as it is itself
            return [each for each in terms if each is not k]
        if not p.doubt and not found & ~(below | signs.ZERO):
            reached.add(p)
    return [p for p in terms if p not in reached]


def _ordered(function: Function, values: Values, other: Values) -> tuple[Values, Values]:
    return (values, other) if function == MAXIMUM else (other, values)


def _bounded(function: Function, p: Poly, k: Number) -> Poly | None:
    """The extremum of a multiple of an integer term and a constant that is a multiple by the same; None of others."""
    e, by = _multiple(p)
    bound = plain(Fraction(k) / Fraction(by))
    if e is None or not isinstance(bound, int):
        return None
    ends = (bound, max(bound, e.hi)) if function == MAXIMUM else (min(bound, e.lo), bound)
    return scale(of_index(expr.clamp(e, *ends)), by)


def _unbounded(function: Function, p: Poly) -> tuple[Poly, Poly] | None:
    """What `_bounded` made p of: the constant, and the integer term. Not of a value that may have wrapped: outside of
    an index expression it is a polynomial, which equals it modulo 2^n alone."""
    e, by = _multiple(p)
    atom = e.items[0][0] if e is not None and len(e.items) == 1 else None
    if e is None or not isinstance(atom, Opaque) or atom.operator != "clamp" or e is not expr.of_atom(atom):
        return None
    (inner,), (lo, hi) = atom.exprs, atom.args
    if not all(_is_whole(each) for each in _values(inner)):
        return None
    if (hi != inner.hi) if function == MAXIMUM else (lo != inner.lo):
        return None
    return number(plain((lo if function == MAXIMUM else hi) * by)), scale(of_index(inner), by)


def _multiple(p: Poly) -> tuple[Index | None, Number]:
    """A term as a multiple of an integer, which is written as an index expression, and by what."""
    by = 1 if not p.items or all(isinstance(c, int) for _, c in p.items) else content(p)
    return _integer(scale(p, plain(1 / Fraction(by)))), by


def _values(e: Index) -> list[Atom | None]:
    """The integers that an index expression adds up, None for those that are no atom."""
    return [value_of(part).atom for part, _ in e.items if isinstance(part, Opaque) and part.operator == "value"]


def _integer(p: Poly) -> Index | None:
    """A term that is made of whole numbers, as an index expression."""
    plain_ones = all(
        isinstance(c, int)
        and (all(a.boolean for a, _ in mono) or (len(mono) == 1 and mono[0][1] == 1 and _is_whole(mono[0][0])))
        for mono, c in p.items
    )
    return as_index(p, -expr.UNBOUNDED, expr.UNBOUNDED) if plain_ones else None


def _is_whole(atom: Atom | None) -> bool:
    """Whether it is an integer of known range."""
    if isinstance(atom, Read):
        is_plain = not atom.tensor.bodies or atom.tensor.kind in ("argmax", "argmin")
        return (atom.tensor.dtype in INTEGER_RANGES and is_plain) or range_of_count(atom) is not None
    return isinstance(atom, Ix) or (isinstance(atom, Apply) and range_of_whole(atom) is not None)
