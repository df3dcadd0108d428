"""Sums over equal ranges as one sum: the body that has to vanish for them to cancel.

    sum i. f(i)  -  sum j. g(j)  =  sum i. (f(i) - g(i))
    sum i. [i <= n + 1] f(i)  -  sum i. [i <= n] f(i)  =  f(n + 1)
    c * sum i. f(i)              =  sum i. c*f(i)               where c is no infinity, or each f(i) is positive

Which variable of one is which of another is tried: a wrong way costs time and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod

from hlo_verify.equality.alignment import alignments, frame_of
from hlo_verify.equality.effort import Effort
from hlo_verify.index.expr import Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.certain_poles import at_edges
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INFINITE, is_of_constants
from hlo_verify.terms.functions import INFINITY, INVERSE
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ZERO, Apply, Atom, Monomial, Number, Poly, Read, atoms, of_atom

Part = tuple[Monomial, Number, Read]
"""A product, its coefficient, and the one sum among its factors."""


def sum_of(mono: Monomial) -> Read | None:
    """The one sum among a monomial's factors."""
    sums = [a for a, n in mono if isinstance(a, Read) and a.tensor.kind == "sum" and n == 1]
    return sums[0] if len(sums) == 1 else None


def infinite_beside(mono: Monomial, read: Read) -> Monomial:
    """The factors of a sum that are none of its elements: of elements 2, -1 an infinity makes an infinity of the sum,
    and of themselves two that are no number together. Sums of which all have the same are compared without."""
    infinite = tuple(item for item in mono if item[0] is not read and _may_be_infinite(item[0]))
    return () if infinite and _is_of_positive(read) else infinite


def _may_be_infinite(atom: Atom) -> bool:
    """Whether a factor may be an infinity: of what is divided by, that is so where nothing is left of it for any
    argument, or infinities alone decide what is, and else a program is given no inputs for which it is 0."""
    if not atom.doubt & INFINITE or not isinstance(atom, Apply) or atom.function != INVERSE:
        return bool(atom.doubt & INFINITE)
    return not _adds_numbers(atom.args[0]) or any(left is ZERO for (left,) in at_edges(atom.args))


@once_a_session
def _adds_numbers(p: Poly) -> bool:
    """Whether a term, or sums and names that it is a multiple of, have an addend that is no constant and in which no
    infinity is written: `exp(s - m)`, beside `exp(-inf - m)`."""
    return not is_of_constants(p) and any(
        all(map(_is_of_numbers, (atom for atom, _ in mono))) for mono, _ in p.items if mono
    )


def _is_of_numbers(atom: Atom) -> bool:
    if isinstance(atom, Read) and atom.tensor.kind in ("sum", "term"):
        return any(map(_adds_numbers, atom.tensor.bodies))
    return not any(isinstance(each, Apply) and each.function == INFINITY for each in atoms(of_atom(atom)))


def _is_of_positive(read: Read) -> bool:
    """Whether a sum is of positive numbers, one at least, that no condition leaves out."""
    source = read.tensor
    of_numbers = not any(body.doubt & INFINITE for body in source.bodies)
    return (
        of_numbers and all(v.size for v in source.bound) and all(signs.of(p) == signs.POSITIVE for p in source.bodies)
    )


def as_one_sum(parts: list[Part], effort: Effort) -> Iterator[tuple[Sequence[Var], Poly]]:
    """The sum that has to vanish, by its variables and its body, for every way of aligning bound variables with those
    of the finest, while there is effort left. The parts are without the infinite factors that all of them have
    (`infinite_beside`)."""
    ways = effort.session.limits.alignments
    first = max(range(len(parts)), key=lambda n: len(parts[n][2].tensor.bound))
    variables, (body, *_) = unfold(parts[first][2])
    frame = frame_of(body, variables)
    most = 1 if len(parts) > 4 else ways
    choices = [
        [body] if n == first else list(islice(alignments(read, frame), most)) for n, (_, _, read) in enumerate(parts)
    ]
    if prod(map(len, choices)) > ways * ways:
        effort.session.reached("alignments")
    for bodies in islice(product(*choices), ways * ways):
        if effort.left <= 0:
            return
        total = ZERO
        for (mono, c, read), own in zip(parts, bodies, strict=True):
            total = algebra.add(total, algebra.scale(algebra.product_with(mono, {read: own}.get), c))
        yield variables, total


def few_left(parts: list[Part], effort: Effort) -> Iterator[Poly]:
    """The few elements of sums that are left, where others are in one and the other: of `sum k. [k <= j + 1] f(k)` and
    `-sum k. [k <= j] f(k)` it is `f(j + 1)`. The elements have to be numbers."""
    for bound, body in as_one_sum(parts, effort):
        left = reduce_sum(bound, body)
        if not any(sum_of(mono) for mono, _ in left.items):
            yield left
