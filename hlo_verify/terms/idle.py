"""What a product's guards make idle: other guards, and clamps, quotients and remainders in index expressions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.index.residues import is_never_between
from hlo_verify.index.tables import evaluate
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms.addition import build
from hlo_verify.terms.guards import Bound, Question, on_whole_variable
from hlo_verify.terms.machine import as_index, is_sum, split_value
from hlo_verify.terms.term import Guard, Monomial, Number, Poly, value_of


def needless(held: list[Guard]) -> Guard | Literal[False] | None:
    """A guard that another one implies; False where two of them exclude each other, and no place is left."""
    questions = [(guard, question) for guard in held for question in _questions(guard)]
    for other, asked in questions:
        for guard, own in questions:
            if guard is not other and not guard.free.isdisjoint(other.free):
                implied = _is_implied(own, asked)
                if implied is not None:
                    return guard if implied else False
    return None


def answer(asked: Guard, given: Guard) -> bool | None:
    """What a guard is where another one holds; None where that is open."""
    both = product(_questions(asked), _questions(given))
    return next((found for each in both if (found := _is_implied(*each)) is not None), None)


def _questions(guard: Guard) -> list[Question]:
    """What a guard asks: of the high part of a variable, and so of the variable, which others may be made of."""
    own, whole = (guard.form, guard.lo, guard.hi), on_whole_variable(guard)
    return [own] if whole[0] is own[0] else [own, whole]


def _is_implied(own: Question, other: Question) -> bool | None:
    """Whether a question is answered by yes where another one is, or by no; None where it is open."""
    (form, lo, hi), (given, *ends) = own, other
    for n, m in _multiples(form, given):  # m * form = n * given + rest
        rest = expr.add(expr.scale(form, m), expr.scale(given, -n))
        least, most = ends if n > 0 else reversed(ends)
        least = None if least is None else -((-rest.lo - n * least) // m)
        most = None if most is None else (rest.hi + n * most) // m
        if _is_below(most, lo) or _is_below(hi, least) or _meet_never(own, other, rest, m, n):
            return False
        above = lo is None or (least is not None and least >= lo)
        if above and (hi is None or (most is not None and most <= hi)):
            return True
    return None


def _multiples(e: Index, f: Index) -> Iterator[tuple[int, int]]:
    """Multiples (n, m) for which m*e - n*f is worth a look, m above 0: those that differ by a sign alone, then those
    with which an atom of both cancels.

    Of d and 16*d - p that is (1, 16): where 16*d - p is above 0, for a p of no less than 0, d is too.
    """
    yield 1, 1
    yield -1, 1
    of_other = dict(f.items)
    seen = {(1, 1), (-1, 1)}
    for atom, c in e.items:
        k = of_other.get(atom)
        if k is not None:
            shared = math.gcd(c, k) * (1 if k > 0 else -1)
            n, m = c // shared, k // shared
            if (n, m) not in seen:
                seen.add((n, m))
                yield n, m


def _meet_never(own: Question, other: Question, rest: Index, m: int, n: int) -> bool:
    """Whether no value of `rest`, m times the one form less n times the other, lies where both answers are yes.

    Windows of w places that begin at places w*k and w*l of which k - l is never 0 have no place in common.
    """
    (_, lo, hi), (_, first, last) = own, other
    if lo is None or hi is None or first is None or last is None:
        return False
    least, most = sorted((n * first, n * last))
    least, most = m * lo - most, m * hi - least
    if is_never_between(rest, least, most):
        return True
    return least == most and m == abs(n) == 1 and _never_is(rest, least)


def _is_below(a: Bound, b: Bound) -> bool:
    return a is not None and b is not None and a < b


def _never_is(e: Index, value: int) -> bool:
    """Whether an expression with tables of one variable has that value for none of its values."""
    if len(e.free) != 1 or not any(isinstance(atom, Opaque) for atom, _ in e.items):
        return False
    attained = _attained(e)
    return attained is not None and value not in attained


@once_a_session
def _attained(e: Index) -> frozenset[int] | None:
    """The values of an expression of one variable; None where they are not told."""
    (variable,) = e.free
    values = evaluate(e, variable) if allows("fitted_values", variable.size) else None
    return None if values is None else frozenset(values.tolist())


def is_limited(e: Index) -> bool:
    """Whether a clamp, a quotient, a remainder or the machine value of a sum or of a condition occurs in an index
    expression."""
    return any(
        isinstance(a, Opaque) and (a.operator in ("clamp", "mod", "div") or is_sum(a) or _is_conditional(a))
        for a, _ in e.items
    )


@once_a_session
def _is_conditional(atom: Opaque) -> bool:
    """Whether an opaque integer is a machine value that guards decide about."""
    return atom.operator == "value" and any(isinstance(a, Guard) for mono, _ in value_of(atom).items for a, _ in mono)


def unlimited(e: Index, forms: Mapping[Index, Guard]) -> Index:
    """e with every clamp or remainder replaced by its argument where a guard's interval allows it; `forms` are the
    guards, each by its form."""
    return _unlimited(e, frozenset(forms.values()))


def _unlimited(e: Index, held: frozenset[Guard]) -> Index:
    return _known(e, held) if is_limited(e) else e


@once_a_session
def _known(e: Index, held: frozenset[Guard]) -> Index:
    """That. Many products under the same guards ask for it: those of a ring that is written out, of its offsets."""
    return _freed(e, held)


def _freed(e: Index, held: frozenset[Guard]) -> Index:
    parts = [expr.constant(e.const)]
    for atom, c in e.items:
        new = expr.of_atom(atom)
        decided = _decided(atom, held) if isinstance(atom, Opaque) and _is_conditional(atom) else None
        if decided is not None:
            new = _unlimited(decided, held)
        elif isinstance(atom, Opaque) and is_sum(atom):
            parts_of = split_value(atom)
            if parts_of is not None:
                exact = expr.add(*parts_of)
                lo, hi = _range_under(exact, held)
                new = exact if atom.lo <= lo and hi <= atom.hi else new
        elif isinstance(atom, Opaque) and atom.operator in ("clamp", "mod", "div"):
            inner = _unlimited(atom.exprs[0], held)
            if atom.operator == "clamp":
                lo, hi = _range_under(inner, held)
                fits = lo >= atom.args[0] and hi <= atom.args[1]
                new = inner if fits else expr.clamp(inner, *atom.args)
            else:
                m = atom.args[0]
                high, low = expr.high_and_low(inner, m)
                for above, rest in ((high, low), expr.balanced(high, low, m)):
                    lo, hi = _range_under(rest, held)
                    if lo // m == hi // m:
                        q = lo // m
                        new = expr.shift(above, q) if atom.operator == "div" else expr.shift(rest, -q * m)
                        break
        parts.append(expr.scale(new, c))
    return expr.add(*parts)


def _decided(atom: Opaque, held: frozenset[Guard]) -> Index | None:
    """The machine value of a sum without the guards in it that others decide; None where there are none.

    Of `k + 4*[k <= -1]`, a place counted from the end where it is negative, `0 <= k` leaves k.
    """
    if not held:
        return None
    kept: dict[Monomial, Number] = {}
    for mono, c in value_of(atom).items:
        truths = {a: _truth(a, held) for a, _ in mono if isinstance(a, Guard)}
        if False not in truths.values():
            rest = tuple((a, n) for a, n in mono if not isinstance(a, Guard) or truths[a] is None)
            kept[rest] = kept.get(rest, 0) + c
    found = build(kept)
    # What is left may be told by cases anew, the decided one among them: with no fewer of them it grows for ever.
    if found is atom.term or _cases(found) >= _cases(value_of(atom)):
        return None
    return as_index(found, atom.lo, atom.hi)


@once_a_session
def _cases(p: Poly) -> int:
    """How many guards a machine value is written with, and how many are inside of their forms."""
    guards = [a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard)]
    return len(guards) + sum(_cases_inside(guard.form) for guard in guards)


@once_a_session
def _cases_inside(e: Index) -> int:
    count = 0
    for atom, _ in e.items:
        if isinstance(atom, Opaque):
            count += _cases(value_of(atom)) if atom.operator == "value" else sum(map(_cases_inside, atom.exprs))
    return count


def _truth(guard: Guard, held: frozenset[Guard]) -> bool | None:
    """Whether a guard holds where some others do; None where they do not tell."""
    lo, hi = _range_under(_unlimited(guard.form, held), held)
    if _is_below(hi, guard.lo) or _is_below(guard.hi, lo):
        return False
    return True if not _is_below(lo, guard.lo) and not _is_below(guard.hi, hi) else None


def _range_under(e: Index, held: frozenset[Guard]) -> tuple[int, int]:
    lo, hi = e.lo, e.hi
    base, told = expr.shift(e, -e.const), _told(held)
    for sign, form in ((1, base), (-1, expr.scale(base, -1))):
        if form in told:
            least, most = told[form] if sign == 1 else map(_negate, reversed(told[form]))
            lo = max(lo, least + e.const) if least is not None else lo
            hi = min(hi, most + e.const) if most is not None else hi
    return lo, hi


@once_a_session
def _told(held: frozenset[Guard]) -> dict[Index, tuple[Bound, Bound]]:
    """Between which bounds guards have what they ask about."""
    return {form: (lo, hi) for guard in held for form, lo, hi in _questions(guard)}


def _negate(x: Bound) -> Bound:
    return None if x is None else -x
