"""Conditions of one addend widened by those of another one.

    [0 <= e < 4] [f < k] t  +  [e < 0] t   =   [e < 4] [f < k] t          where e < 0 implies f < k

    [f = k] [e < 0] t  +  [f = k] [e >= 4] t   =   [f = k] t          where f = k excludes 0 <= e < 4

A device that writes what it owns keeps the rest where the place is another's, and elsewhere in its own part: together
that is everywhere but at the place.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.index.expr import Index
from hlo_verify.terms import guards
from hlo_verify.terms.term import Guard, Monomial, Number
from hlo_verify.terms.used import used

Found = tuple[Monomial, Monomial, Monomial | None]
"""Two addends, and what takes their place."""


def widened(terms: dict[Monomial, Number]) -> dict[Monomial, Number]:
    """The addends with pairs of them joined where the condition of one implies one that the other has besides."""
    counts = {mono: sum(isinstance(a, Guard) for a, _ in mono) for mono in terms}
    if max(counts.values(), default=0) < 2:
        return terms
    while True:
        found = next(_pairs(terms), None)
        if found is None:
            return terms
        first, second, both = found
        c = terms[first]
        terms = {mono: k for mono, k in terms.items() if mono not in (first, second)}
        if both is not None:
            terms[both] = terms.get(both, 0) + c
            if not terms[both]:
                del terms[both]


Alike = dict[tuple[Index, Monomial], list[tuple[Guard, Monomial]]]
"""Addends with a condition on one expression that are the same but for it, each with that condition."""


def _pairs(terms: dict[Monomial, Number]) -> Iterator[Found]:
    by_form: Alike = {}
    for mono in terms:
        for g in guards.guards_of(mono):
            by_form.setdefault((guards.about(g), guards.without(mono, g)), []).append((g, mono))
    yield from _beside_gaps(terms, by_form)
    if len(terms) < 3 or len({sum(isinstance(a, Guard) for a, _ in mono) for mono in terms}) < 2:
        return
    for mono in terms:
        own = guards.guards_of(mono)
        for a in own:
            for b in own:
                if a is b or a.free.isdisjoint(b.free):
                    continue
                rest = guards.without(guards.without(mono, a), b)
                for other, second in by_form.get((guards.about(a), rest), ()):
                    both = _joined(a, b, other, rest) if terms[second] == terms[mono] else None
                    if both:
                        used("condition widened")
                        yield mono, second, both[0]


def _beside_gaps(terms: dict[Monomial, Number], by_form: Alike) -> Iterator[Found]:
    """Addends on both sides of an interval that another condition of theirs excludes."""
    from hlo_verify.terms.idle import needless  # which is built on sums

    for (form, rest), alike in by_form.items():
        held = [b for b in guards.guards_of(rest) if not b.free.isdisjoint(form.free)] if len(alike) > 1 else ()
        if not held:
            continue
        sides = [(*guards.on_whole_variable(g)[1:], mono) for g, mono in alike]
        for lo, before, below in sides:
            for after, hi, above in sides:
                if before is None or after is None or before >= after or terms[below] != terms[above]:
                    continue
                gap = guards.interval_atom(form, before + 1, after - 1)
                if isinstance(gap, Guard) and any(needless([b, gap]) is False for b in held):
                    used("pieces beside a gap")
                    yield below, above, guards.with_guard(rest, guards.interval_atom(form, lo, hi))


def _joined(a: Guard, b: Guard, other: Guard, rest: Monomial) -> tuple[Monomial | None] | None:
    """`[a or other] [b] rest`, if `other` implies b and lies beside a."""
    from hlo_verify.terms.idle import needless  # which is built on sums
    from hlo_verify.terms.products import simplify_under_guards

    if needless([other, b]) is not b:
        return None
    form, *bounds = guards.on_whole_variable(a)
    _, *more = guards.on_whole_variable(other)
    whole = guards.steps_of([(bounds[0], bounds[1], 1), (more[0], more[1], 1)])
    if len(whole) != 1 or whole[0][2] != 1:
        return None
    held = guards.with_guard(guards.with_guard(rest, b) or (), guards.interval_atom(form, *whole[0][:2]))
    return (None if held is None else simplify_under_guards(held),)
