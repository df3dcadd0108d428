"""The greatest or the least of what conditions choose from few integers, as whether any of these conditions holds; and
conditions on counts that ask the same.

    max v<16. (p(v) where v <= i, else -128)      =  -128 + 128*[i >= 0] + max v. p(v) [v <= i]
    [i + 1 - sum v. p(v) [v <= i] >= 1]           =  max v. (1 - p(v)) [v <= i]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product

from hlo_verify.equality import of_integers
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import Conditions
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.extrema import reduce_boolean
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Atom, Guard, Poly, Read, atoms, number, of_atom
from hlo_verify.terms.truths import is_truth


def in_steps(p: Poly) -> Poly | None:
    """A term with whether any condition holds in the place of its extrema of few integers; None where it has none."""
    images: dict[Atom, Poly] = {read: found for read in _extrema(p) if (found := _steps(read)) is not None}
    return rebuilt(p, images, {}) if images else None


def _extrema(p: Poly) -> list[Read]:
    found = dict.fromkeys(a for a in atoms(p) if isinstance(a, Read) and a.tensor.kind in ("max", "min"))
    return [read for read in found if read.tensor.seal is None and not read.doubt]


def _steps(read: Read) -> Poly | None:
    """An extremum as the first of its integers, and steps to the next where any of the conditions hold that choose
    one beyond."""
    bound, (body,) = unfold(read)
    conditions = Conditions.of(mono for mono, _ in body.items)
    if not all(atom.boolean for mono, _ in body.items for atom, _ in mono) or not all(v.size for v in bound):
        return None
    if is_truth(body) or not allows("sign_cases", conditions.count):
        return None
    cases = [(sum(case.coefficients(body.items).values()), case) for case in conditions.cases()]
    values = sorted({value for value, _ in cases}, reverse=read.tensor.kind == "min")
    if not all(isinstance(value, int) for value in values) or not allows("step_pieces", len(values)):
        return None
    result = number(values[0])
    for n, (before, value) in enumerate(pairwise(values), start=1):
        beyond = algebra.add(*(case.condition() for found, case in cases if found in values[n:]))
        result = algebra.add(result, algebra.scale(reduce_boolean("or", bound, beyond), value - before))
    return result


def with_truths_for_counts(p: Poly, is_zero: Callable[[Poly], bool]) -> Poly | None:
    """A term with an extremum of truth values in the place of a condition on counts that says the same; None where no
    condition is seen to."""
    asked = [a for a in dict.fromkeys(atoms(p)) if isinstance(a, Guard) and (None in (a.lo, a.hi) or a.lo == a.hi)]
    extrema = [known for read in _extrema(p) if (known := _count(read)) is not None]
    if not asked or max(len(asked), len(extrema)) > of_integers.MOST:
        return None
    for guard, (count, none) in product(asked, extrema):
        for found, image in _questions(guard, none):
            if any(is_zero(each) for each in _spelled(algebra.subtract(found, count))):
                return rebuilt(p, {guard: image}, {})
    return None


def _count(read: Read) -> tuple[Poly, Poly] | None:
    """How many conditions hold of those by which an extremum is not what it is where none does, and whether none
    does."""
    bound, (body,) = unfold(read)
    if not is_truth(body) or not all(v.size for v in bound):
        return None
    if read.tensor.kind == "max":
        return reduce_sum(bound, body), algebra.subtract(ONE, of_atom(read))
    return reduce_sum(bound, algebra.subtract(ONE, body)), of_atom(read)


def _questions(guard: Guard, none: Poly) -> Iterator[tuple[Poly, Poly]]:
    """What a condition asks to be 1 or more, 0 or less, or 0, and what it is where that is the count."""
    form, some = of_integers.counted(guard.form), algebra.subtract(ONE, none)
    if form is None:
        return
    form = algebra.add(form, number(guard.form.const))
    if guard.lo == guard.hi and guard.lo is not None:
        for sign in (1, -1):
            yield algebra.scale(algebra.subtract(form, number(guard.lo)), sign), none
        return
    if guard.lo is not None:
        yield algebra.add(form, number(1 - guard.lo)), some
        yield algebra.subtract(number(guard.lo), form), none
    if guard.hi is not None:
        yield algebra.subtract(form, number(guard.hi)), none
        yield algebra.subtract(number(guard.hi + 1), form), some


def _spelled(p: Poly) -> Iterator[Poly]:
    """A term, and with its sums up to a place written part by part."""
    yield p
    parts = by_parts(p)
    if parts is not None:
        yield parts
