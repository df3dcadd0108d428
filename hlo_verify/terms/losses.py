"""What additions and multiplications must not lose: `0 * t` is 0 only where t is a number.

A term is a sum of products, each with conditions (guards and truth values) as factors. A condition selects: where it
does not hold, the product is not computed, and it does not matter whether its other factors are numbers. What has a
coefficient of 0 once the conditions are decided is not computed either: `x - c*x` is not, where c holds.

So laws of polynomials, where they make something vanish, change what is computed: `t - t` and `0 * t` are 0 for a
number, and no number otherwise. `checked` compares what operands compute with what their sum or product does, case by
case of the conditions, and adds `zero_times(t)`, 0 for a number and undefined otherwise, for each t that went missing.
It is left out where what remains is undefined wherever t is: the maximum of x cancels from a softmax, but a sum over
all x is still there (`poles`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build
from hlo_verify.terms.conditions import Case, Conditions, Split, by_numbers, numbers_of, split
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import ZERO_TIMES
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.poles import are_implied
from hlo_verify.terms.term import (
    ZERO,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    make_apply,
    make_poly,
    make_read,
    of_atom,
    tensor,
)
from hlo_verify.terms.used import used


def checked(result: Poly, *operands: Poly, added: bool = False) -> Poly:
    """The sum (`added`) or product of terms that polynomials have as their result, and `0 * t` for all that it lost."""
    if not (added and result.doubt & INFINITE) and _keeps_all(result, operands):
        return result
    parts = [_computed(p) for p in operands]
    kept = [(mono, c) for mono, c in _computed(result) if not any(_is_zero_times(a) for a, _ in mono)]
    conditions = Conditions.of([mono for part in (*parts, kept) for mono, _ in part])
    if not allows("told_apart", conditions.count):
        return _unknown(result)
    lost: dict[Atom, list[Case]] = {}
    before, after = [split(part) for part in parts], split(kept)
    for case in conditions.cases():
        for atom in _lost(before, after, case, added):
            lost.setdefault(atom, []).append(case)
    if not lost and len(kept) == sum(1 for _ in _computed(result)):
        return result
    return _with_zeros(result, lost)


def separated(p: Poly) -> list[tuple[Monomial, Number]]:
    """The products that a term is the sum of, so that those of numbers that may be none are under conditions that
    exclude one another: `x - c*x` is `[c = 0]*x`. Each can then be looked at apart from the others."""
    if not p.doubt:
        return list(p.items)
    found: list[tuple[Monomial, Number]] = []
    for numbers, under in by_numbers(p).items():
        apart = _exclusive(under) if len(under) > 1 and any(atom.doubt for atom, _ in numbers) else under
        found += [(tuple(sorted((*held, *numbers), key=lambda item: item[0].uid)), c) for held, c in apart.items()]
    return found


def selected_by(p: Poly, bound: Collection[Var] | None = None, among: Collection[Atom] | None = None) -> set[Atom]:
    """What may be no number and is computed for some values of the bound variables only, as conditions on them say; if
    none are given, what is computed under some conditions only. Of `among` alone, where that is given."""
    items = _computed(p)
    held = [[item for item in mono if item[0].boolean] for mono, _ in items]
    within = [[item for item in mono if bound is None or not item[0].free.isdisjoint(bound)] for mono in held]
    inner = Conditions.of(within)
    outer = Conditions.of([item for item in mono if item not in own] for mono, own in zip(held, within, strict=True))
    if not allows("told_apart", outer.count * inner.count):
        return doubtful(p) if among is None else doubtful(p).intersection(among)
    found: set[Atom] = set()
    products = split(items)
    for around in outer.cases():
        seen = []
        for case in inner.cases():
            both = Case({**around.pieces, **case.pieces}, {**around.truths, **case.truths})
            seen.append({atom for mono in both.computed(products) for atom in _doubtful(mono)})
        every = set[Atom]().union(*seen)
        asked = every - found if among is None else every.intersection(among) - found
        for here in seen:
            found |= {atom for atom in _by_age(asked - here - found) if not _is_implied(atom, here)}
    return found


def doubtful(p: Poly) -> set[Atom]:
    """What may be no number of what a term computes, under whichever conditions."""
    return {atom for mono, _ in _computed(p) for atom in _doubtful(mono)}


def _exclusive(under: dict[Monomial, Number]) -> dict[Monomial, Number]:
    """Coefficients under conditions, as such under conditions that exclude one another: one is decided after the other,
    as far as it makes a difference."""
    first = min((a for mono in under for a in guards.guards_of(mono)), key=guards.order, default=None)
    atom = first or next((a for mono in under for a, _ in mono), None)
    if atom is None or len(under) == 1:
        return under
    form = first.form if first else as_index(of_atom(atom), 0, 1)
    result: dict[Monomial, Number] = {}
    conditions = Conditions.of([mono for mono in under if first] or [((atom, 1),)])
    for lo, hi in conditions.forms[form] if first else [(0, 0), (1, 1)]:
        case = Case({form: (lo, hi)}, {atom: lo == 1})
        here: dict[Monomial, Number] = {}
        for mono, c in under.items():
            own = [a for a, _ in mono if a is atom or (first and isinstance(a, Guard) and a.form is form)]
            if all(map(case.holds, own)):
                rest = tuple(item for item in mono if item[0] not in own)
                here[rest] = here.get(rest, 0) + c
        for rest, c in _exclusive({mono: c for mono, c in here.items() if c}).items():
            held = guards.with_guard(rest, guards.interval_atom(form, lo, hi))
            if held is not None:
                result[held] = result.get(held, 0) + c
    return dict(build(result).items)


def is_one_product(p: Poly) -> bool:
    """Whether one product at most is computed, whatever the conditions are."""
    if len(p.items) <= 1:
        return True
    conditions = Conditions.of([[item for item in mono if item[0].boolean] for mono, _ in p.items])
    return allows("told_apart", conditions.count) and all(
        len(case.coefficients(p.items)) <= 1 for case in conditions.cases()
    )


def zero_times(p: Poly) -> Poly:
    """`0 * p`."""
    return checked(ZERO, p) if p.doubt else ZERO


def tidied(p: Poly) -> Poly:
    """A term less what is 0 wherever the rest of it is a number."""
    return checked(p, p) if any(_is_zero_times(atom) for mono, _ in p.items for atom, _ in mono) else p


def without_zeros(p: Poly) -> Poly:
    """A term less its addends that are 0 or no number."""
    if not p.doubt:
        return p
    return make_poly(tuple(item for item in p.items if not any(_is_zero_times(a) for a, _ in item[0])))


def _is_zero_times(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.function == ZERO_TIMES


def _doubtful(mono: Monomial) -> Iterator[Atom]:
    """The factors that may be no number; of `0 * t` that is t."""
    for atom, _ in mono:
        if atom.doubt:
            inner = atom.args[0].atom if isinstance(atom, Apply) and atom.function == ZERO_TIMES else atom
            assert inner is not None
            yield inner


def _computed(p: Poly) -> list[tuple[Monomial, Number]]:
    return [(mono, c) for mono, c in p.items if any(atom.doubt for atom, _ in mono)]


def _keeps_all(result: Poly, operands: Sequence[Poly]) -> bool:
    """Whether the result plainly computes with all that the operands do, whatever the conditions are."""
    safe: dict[Monomial, bool] = {}
    for mono, _ in result.items:
        if any(_is_zero_times(a) for a, _ in mono):
            return False
        numbers = numbers_of(mono)
        safe[numbers] = numbers not in safe and len(numbers) == len(mono)
    always = {atom for numbers, alone in safe.items() if alone for atom, _ in numbers}
    return all(atom in always for p in operands for mono, _ in p.items for atom in _doubtful(mono))


def _lost(
    parts: Sequence[Sequence[Split]],
    kept: Sequence[Split],
    case: Case,
    added: bool,
) -> set[Atom]:
    """What the operands compute with in a case, may be no number, and is not seen to be one if the result is."""
    before = [case.computed(part) for part in parts]
    after = case.computed(kept)
    there = {atom for mono in after for atom in _doubtful(mono)}
    gone = {atom for part in before for mono in part for atom in _doubtful(mono)} - there
    gone |= {
        atom for part in before for mono in part if any(map(_is_zero_times, dict(mono))) for atom in _infinite(mono)
    }
    if added:
        gone |= _of_both_signs(before)
    return {atom for atom in _by_age(gone) if not _is_implied(atom, there)}


def _of_both_signs(parts: Sequence[dict[Monomial, Number]]) -> set[Atom]:
    """What may be infinite and is both added and subtracted: `3*t - t` is not `2*t`."""
    found: set[Atom] = set()
    for mono in {mono for part in parts for mono in part if any(a.doubt & INFINITE for a, _ in mono)}:
        coefficients = [part[mono] for part in parts if mono in part]
        if min(coefficients) < 0 < max(coefficients):
            found |= _infinite(mono)
    return found


def _infinite(mono: Monomial) -> set[Atom]:
    return {atom for atom in _doubtful(mono) if atom.doubt & INFINITE}


def _by_age(atoms: Collection[Atom]) -> list[Atom]:
    """In an order that does not depend on where they lie in memory: terms are made of them on the way."""
    return sorted(atoms, key=lambda atom: atom.uid)


def _is_implied(atom: Atom, others: Collection[Atom]) -> bool:
    return not atom.doubt & INFINITE and are_implied(atom, _by_age(others))


def _with_zeros(result: Poly, lost: dict[Atom, list[Case]]) -> Poly:
    if lost:
        used("what vanishes is a number")
    terms: dict[Monomial, Number] = dict(without_zeros(result).items)
    for atom in sorted(lost, key=lambda atom: atom.uid):
        zero = make_apply(ZERO_TIMES, (of_atom(atom),))
        where: dict[Monomial, Number] = {}
        for case in lost[atom]:
            for mono, c in case.condition().items:
                where[mono] = where.get(mono, 0) + c
        for mono, c in build(where).items:
            with_zero = tuple(sorted((*mono, (zero, 1)), key=lambda item: item[0].uid))
            terms[with_zero] = terms.get(with_zero, 0) + c
    return build(terms)


def _unknown(result: Poly) -> Poly:
    """The result, and something that nothing is known of."""
    read = make_read(tensor("opaque", "a sum or product under too many conditions", "", ()), ())
    return build({**dict(result.items), ((read, 1),): 1})
