"""Which bound variables of one sum are those of another: candidates for the matcher, to be checked by it.

Sums over the same elements may name them differently: in another order, or one with a variable where the other has
several digits (a device's part of a dimension and the rest of it). The sum with more variables is the frame that the
others are written in. A wrong candidate costs time and proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.places import index_expressions
from hlo_verify.terms.term import Poly, Read, atoms, indices

Uses = dict[Var, Counter[Hashable]]
"""For each variable, how often it occurs with which coefficient in which argument of a tensor, or in a guard."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The variables of one sum, with which those of others are aligned.

    `following` has for each those that go on where it ends: `x + size*y` occurs, or a multiple of it.
    """

    variables: tuple[Var, ...]
    following: Mapping[Var, Sequence[Var]]
    uses: Uses


def frame_of(body: Poly, variables: Sequence[Var]) -> Frame:
    """The variables of a sum with that body."""
    following: dict[Var, list[Var]] = {v: [] for v in variables}
    for e in index_expressions(body):
        coefficients = {
            a.var: c for a, c in e.items if isinstance(a, Digit) and a.low == 1 and a.top and a.var in following
        }
        for x, c in coefficients.items():
            for y, k in coefficients.items():
                if x is not y and k == c * x.size and y not in following[x]:
                    following[x].append(y)
    return Frame(tuple(variables), following, _uses(body, variables))


def alignments(read: Read, frame: Frame) -> Iterator[Poly]:
    """The body of a sum over the frame's variables, in every way that fits their sizes.

    Each variable in turn is first tried as the one, or as the run that begins with the one, which is used most like it.
    """
    fresh, (body, *_) = unfold(read)
    for mapping in _assign(list(fresh), list(frame.variables), frame, _uses(body, fresh)):
        yield algebra.substitute(body, mapping)


def _uses(body: Poly, variables: Sequence[Var]) -> Uses:
    found: Uses = {v: Counter() for v in variables}
    for atom in atoms(body):
        whose = atom.tensor if isinstance(atom, Read) else type(atom)
        for n, e in enumerate(indices(atom)):
            for part, c in e.items:
                if isinstance(part, Digit) and part.var in found:
                    found[part.var][whose, n, c] += 1
    return found


def _assign(variables: list[Var], free: list[Var], frame: Frame, uses: Uses) -> Iterator[dict[Var, Index]]:
    """Every way of making each variable one that is free, or several that go on from each other; none is left."""
    if not variables:
        if not free:
            yield {}
        return
    v, *others = variables
    chains = _chains(v.size, free, frame.following)
    for chain in sorted(chains, key=lambda chain: -(uses[v] & frame.uses[chain[0]]).total()):
        value, scale = expr.constant(0), 1
        for digit in chain:
            value = expr.add(value, expr.scale(expr.of_var(digit), scale))
            scale *= digit.size
        left = [w for w in free if w not in chain]
        for mapping in _assign(others, left, frame, uses):
            yield {v: value, **mapping}


def _chains(size: int, free: list[Var], following: Mapping[Var, Sequence[Var]]) -> Iterator[list[Var]]:
    """Free variables, or runs of them, with that many values together."""
    for start in free:
        if start.size == size:
            yield [start]
    for start in free:
        if start.size < size:
            yield from _runs([start], start.size, size, free, following)


def _runs(
    run: list[Var], product: int, size: int, free: list[Var], following: Mapping[Var, Sequence[Var]]
) -> Iterator[list[Var]]:
    for after in following[run[-1]]:
        if after in free and after not in run:
            longer = product * after.size
            if longer == size:
                yield [*run, after]
            elif size % longer == 0:
                yield from _runs([*run, after], longer, size, free, following)
