"""Counts of the elements that are the greatest, or the least: there is one at least.

    sum v. [f(v) = m]  +  [g = m]   >=  1          for m = maximum(max v. f(v), g)
    sum v. [v <= a]*[f(v) = m]  +  [g = m] * sum v. [v > a]   >=  1
                                                   for m = max v. (f(v) where v <= a, else g)

So it is where both sides of a comparison are multiplied by what is surely no 0: `[f(v) = m*d(v)]` asks whether
`f(v)/d(v)` is m, for a positive d. The gradient of a maximum is divided by this count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce

from hlo_verify.index.expr import Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import signs
from hlo_verify.terms.addition import difference, scale
from hlo_verify.terms.doubts import INFINITE, UNDEFINED
from hlo_verify.terms.functions import EQUAL, EXTREMA, INVERSE, IS_ZERO, Function
from hlo_verify.terms.term import ONE, Apply, Atom, Monomial, Poly, Read, Tensor, make_poly, of_atom
from hlo_verify.terms.used import used


def counts_the_best(p: Poly, *, of_numbers: bool = False) -> bool:
    """Whether among the addends of a term, none of which is negative, are indicators of all elements that the greatest
    or least one is one of, where these are numbers; which is asked too unless they are taken to be (`of_numbers`)."""
    from hlo_verify.terms.laws import apply  # whose laws ask for signs

    if not _is_never_negative(p):
        return False
    compared: dict[tuple[str, Poly], list[Poly]] = defaultdict(list)
    for mono, c in p.items:
        if c > 0 and len(mono) == 1 and mono[0][1] == 1:
            for extremum, best, element in _compared(mono[0][0], of_numbers):
                compared[extremum, best].append(element)
    found = any(apply(EXTREMA[extremum], tuple(elements)) is best for (extremum, best), elements in compared.items())
    if found:
        used("one is the best")
        return True
    found = any(_counts_each(p, *compared_with) for compared_with in _bests(p))
    if found:
        used("one is the best of what is masked")
    return found


def counts_one_of_numbers(p: Poly) -> bool:
    """Whether a count is of elements one of which is the best, where all that it compares are numbers; masked ones
    too."""
    if not _is_never_negative(p):
        return False
    return counts_the_best(p, of_numbers=True) or any(_counts_each(p, *best, of_numbers=True) for best in _bests(p))


def _counts_each(p: Poly, function: Function, scaled: Poly, *, of_numbers: bool = False) -> bool:
    """Whether among the addends of a term are those that a count of elements is which are the best one, times a number,
    under the conditions under which they are elements: none is left over then that is counted less often."""
    counts = _counts(function, scaled, of_numbers)
    if counts is None:
        return False
    left = reduce(difference, counts, p)
    return _is_never_negative(left)


@once_a_session
def _counts(function: Function, scaled: Poly, of_numbers: bool) -> tuple[Poly, ...] | None:
    """How many elements of a tensor are its best one, times a number, under each condition under which they are
    elements; None where they may be no numbers. It is asked of many terms that are divided by such a count."""
    from hlo_verify.terms.definitions import unfold
    from hlo_verify.terms.laws import apply
    from hlo_verify.terms.products import multiply
    from hlo_verify.terms.sums import reduce_sum

    if scaled.doubt & (0 if of_numbers else UNDEFINED) or (scaled.doubt & INFINITE and function != EQUAL):
        return None
    ((((atom, _),), c),) = scaled.items
    assert isinstance(atom, Read)
    bound, (body,) = unfold(atom)
    counts: list[Poly] = []
    for on, part in _cases(ONE, body):
        if _may_be_nan(part):
            return None
        element = scale(part, c)
        sides = (scaled, element) if function == EQUAL else (difference(scaled, element),)
        counts.append(reduce_sum(bound, multiply(on, apply(function, sides))))
    return tuple(counts)


def _may_be_nan(p: Poly) -> bool:
    """Whether an element that the program makes infinite may be no number, which is not equal to itself."""
    from hlo_verify.terms.finite import as_shown  # which looks at doubts

    finite = as_shown()
    return bool(p.doubt & INFINITE) and not (finite.never_above(p) or finite.never_above(scale(p, -1)))


def _is_never_negative(p: Poly) -> bool:
    return not any(c < 0 or signs.of_product(mono) & (signs.NEGATIVE | signs.BEYOND) for mono, c in p.items)


def _cases(on: Poly, p: Poly) -> Iterator[tuple[Poly, Poly]]:
    """A term by the conditions that say what it is, by name or not."""
    from hlo_verify.terms.definitions import unfold
    from hlo_verify.terms.products import multiply
    from hlo_verify.terms.steps import steps

    while isinstance(p.atom, Read) and p.atom.tensor.kind == "term":
        p = unfold(p.atom)[1][0]
    parts = steps(p)
    if not parts:
        yield on, p
    for here, term in parts:
        yield from _cases(multiply(on, here), term)


def _bests(p: Poly) -> set[tuple[Function, Poly]]:
    """The greatest or least elements of tensors that something is compared with, times numbers, and how; in sums too.
    Infinities are equal to themselves."""
    from hlo_verify.terms.definitions import unfold

    found: set[tuple[Function, Poly]] = set()
    looked_at: set[Atom] = set()
    pending: list[tuple[Poly, frozenset[Var]]] = [(p, frozenset())]
    while pending:
        within, bound = pending.pop()
        for atom in {atom for mono, _ in within.items for atom, _ in mono} - looked_at:
            looked_at.add(atom)
            if isinstance(atom, Apply):
                found.update(best for best in _compared_with(atom) if best[1].free.isdisjoint(bound))
            elif isinstance(atom, Read) and _compares(atom.tensor):
                more, (body,) = unfold(atom)
                pending.append((body, bound.union(more)))
    return found


def _compared_with(atom: Apply) -> Iterator[tuple[Function, Poly]]:
    """What an indicator compares something with, if it is the best one of a tensor."""
    if atom.function == IS_ZERO:
        yield from ((IS_ZERO, of_atom(best)) for mono, _ in atom.args[0].items for best in _best_of(mono))
    elif atom.function == EQUAL:
        alone = (arg for arg in atom.args if len(arg.items) == 1)
        yield from ((EQUAL, arg) for arg in alone if _is_best(arg.items[0][0]))


@once_a_session
def _compares(tensor: Tensor) -> bool:
    """Whether what a sum, or a name, is of holds an indicator that compares something with the best one of a tensor.
    What is of deep definitions is asked for its sign again and again; few of these hold one."""
    if tensor.kind not in ("sum", "term"):
        return False
    inside = {atom for body in tensor.bodies for mono, _ in body.items for atom, _ in mono}
    own = any(isinstance(atom, Apply) and any(_compared_with(atom)) for atom in inside)
    return own or any(_compares(atom.tensor) for atom in inside if isinstance(atom, Read))


def _is_best(mono: Monomial) -> bool:
    return len(mono) == 1 and any(_best_of(mono))


def _best_of(mono: Monomial) -> Iterator[Read]:
    """The best ones of tensors among the factors of a product."""
    for atom, n in mono:
        if n == 1 and isinstance(atom, Read) and atom.tensor.kind in EXTREMA:
            yield atom


def indicated(atom: Atom) -> tuple[tuple[Var, ...], Poly] | None:
    """What an indicator, or the sum of one over some variables, asks to be 0."""
    from hlo_verify.terms.definitions import unfold

    bound: tuple[Var, ...] = ()
    while isinstance(atom, Read) and atom.tensor.kind in ("sum", "term"):
        more, (body,) = unfold(atom)
        inner = body.atom
        if inner is None:
            return None
        bound, atom = (*bound, *more), inner
    return (bound, atom.args[0]) if isinstance(atom, Apply) and atom.function == IS_ZERO else None


def _compared(indicator: Atom, of_numbers: bool) -> Iterator[tuple[str, Poly, Poly]]:
    """What an indicator, or the sum of one, may compare some elements with, and the best one of these."""
    from hlo_verify.terms.extrema import reduce_extremum

    found = indicated(indicator)
    if found is None or found[1].doubt & (INFINITE if of_numbers else INFINITE | UNDEFINED):
        return
    bound, asked = found
    for mono, c in asked.items:
        for atom, n in mono:
            extremum = _extremum(atom) if n == 1 and atom.free.isdisjoint(bound) else None
            divided = _divided(asked, tuple(item for item in mono if item[0] is not atom)) if extremum else None
            if extremum is not None and divided is not None:
                best = of_atom(atom)
                element = difference(best, scale(divided, 1 / Fraction(c)))
                yield extremum, best, reduce_extremum(extremum, bound, element)


def _divided(asked: Poly, by: Monomial) -> Poly | None:
    """What is asked to be 0, divided by a product, which leaves 0 as it is; None where that may be 0, or no number."""
    from hlo_verify.terms.laws import apply
    from hlo_verify.terms.products import multiply

    divisor = make_poly(((by, 1),))
    if divisor is ONE:
        return asked
    if divisor.doubt or signs.of_product(by) not in (signs.POSITIVE, signs.NEGATIVE):
        return None
    return multiply(asked, apply(INVERSE, (divisor,)))


def _extremum(atom: Atom) -> str | None:
    """Whether an atom is a greatest or a least value."""
    if isinstance(atom, Apply):
        return next((extremum for extremum, function in EXTREMA.items() if atom.function == function), None)
    return atom.tensor.kind if isinstance(atom, Read) and atom.tensor.kind in EXTREMA else None
