"""Quotients brought to one denominator: `a*b/c + a*d/c - a`, with `b + d` as c, is nothing once all is multiplied by c.

What is left of a comparison is multiplied by denominators that are never 0, whatever the arguments are, or of which the
expected term shows that they are not (`presence.never_zero`). It is 0 if what that gives is. A denominator may hang on
bound variables, as one of each row: `sum r. f(r)/u(r) + g(r)/u(r)**2` is 0 if `f(r)*u(r) + g(r)` is, in every row. So a
softmax does not hang on what is subtracted from its scores, in gradients neither: there each maximum has a factor that
is `1 - sum exp(s)/u`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.equality.labelling import Labelling
from hlo_verify.equality.summands import Summand
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Var
from hlo_verify.limits import allows, limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.term import Apply, Number, Poly, Read, Tensor, indices, make_poly

ROW = "row"
"""What variables are called that stand for one value of a bound one."""


@dataclass(frozen=True, slots=True)
class Denominators:
    """What summands are divided by, as far as it is never 0, whatever the arguments are; `nonzero` are terms of which
    that is known, however they look."""

    nonzero: frozenset[Poly] = frozenset()

    def of(self, summand: Summand) -> dict[Poly, int]:
        """Those of a summand, with powers."""
        return {
            atom.args[0]: n
            for atom, n in summand.product
            if isinstance(atom, Apply) and atom.function == INVERSE and isinstance(n, int) and n > 0
            if not atom.doubt or atom.args[0] in self.nonzero
        }

    def read(self, summands: Sequence[Summand]) -> frozenset[Tensor]:
        """The sums that the denominators of some summands read, and what these are made of by name."""
        todo = [p for summand in summands for p in self.of(summand)]
        found: set[Tensor] = set()
        while todo:
            for mono, _ in todo.pop().items:
                for atom, _ in mono:
                    if isinstance(atom, Read) and atom.tensor.kind in ("sum", "term") and atom.tensor not in found:
                        found.add(atom.tensor)
                        todo += atom.tensor.bodies
        return frozenset(found)

    def cancel(self, summands: Sequence[Summand], labelling: Labelling) -> bool:
        """Whether summands add up to 0, once they are multiplied by what they are divided by.

        Those of each set of rows have to by themselves: what is 0 in every row is a sum of zeros, of as many rows.
        """
        at_rows: dict[frozenset[Var], list[Summand]] = {}
        for summand in summands:
            own, rows = self._by_rows(summand)
            at_rows.setdefault(rows, []).append(own)
        groups = (group for several in at_rows.values() for group in self._in_groups(several))
        return all(self._cancel(group, labelling) for group in groups)

    def _by_rows(self, summand: Summand) -> tuple[Summand, frozenset[Var]]:
        """The summand at one value of each bound variable that a denominator hangs on: variables that are the same for
        all summands, in the order in which the denominators name them; and these."""
        rows: dict[Var, Var] = {}
        for denominator in self.of(summand):
            for v in _variables(denominator):
                if v in summand.bound and v not in rows:
                    rows[v] = expr.var(ROW, -1 - len(rows), v.size)
        there = algebra.substitute(summand.body, {v: expr.of_var(row) for v, row in rows.items()})
        if not rows or len(there.items) != 1:
            return summand, frozenset()
        ((product, times),) = there.items
        bound = tuple(v for v in summand.bound if v not in rows)
        return Summand(bound, product, times * summand.times), frozenset(rows.values())

    def _in_groups(self, summands: Sequence[Summand]) -> list[list[Summand]]:
        """The summands in groups that have no denominator of a row in common."""
        groups: list[tuple[set[Poly], list[Summand]]] = []
        for summand in summands:
            own = {p for p in self.of(summand) if any(v.prefix == ROW for v in p.free)}
            mine = [summand]
            rest = []
            for denominators, others in groups:
                if denominators & own or not (denominators or own):
                    own |= denominators
                    mine += others
                else:
                    rest.append((denominators, others))
            groups = [*rest, (own, mine)]
        return [group for _, group in groups]

    def _cancel(self, summands: Sequence[Summand], labelling: Labelling) -> bool:
        left = _without_opposites(summands, labelling)
        for _ in range(limit_of("turns_apart")):
            common = self._uneven(left)
            if not left or common is None or not allows("joined_terms", len(left)):
                break
            left = _without_opposites(self._multiplied(left, common, labelling), labelling)
        return not left

    def _uneven(self, summands: Sequence[Summand]) -> Poly | None:
        """A denominator that not all summands have to the same power, the one of the greatest, and of the most. It is
        one number for all that any of them is a sum of."""
        powers: dict[Poly, list[int]] = {}
        bound = {v for summand in summands for v in summand.bound}
        for summand in summands:
            for denominator, n in self.of(summand).items():
                if denominator.free.isdisjoint(bound):
                    powers.setdefault(denominator, []).append(n)
        uneven = [p for p, own in powers.items() if len(own) < len(summands) or len(set(own)) > 1]
        return max(uneven, key=lambda p: (max(powers[p]), len(powers[p]), -p.uid), default=None)

    def _multiplied(self, summands: Sequence[Summand], denominator: Poly, labelling: Labelling) -> list[Summand]:
        """The summands multiplied by the greatest power of a denominator that one of them has."""
        own = [self.of(summand).get(denominator, 0) for summand in summands]
        found: list[Summand] = []
        for summand, n in zip(summands, own, strict=True):
            rest = tuple(item for item in summand.product if not _is_inverse_of(item[0], denominator))
            factor = algebra.power_of(denominator, max(own) - n)
            whole = algebra.expanded(make_poly(((rest, summand.times),)), factor)
            found += labelling.unfolding.over(summand.bound, whole)
        return found


@once_a_session
def _variables(p: Poly) -> tuple[Var, ...]:
    """The variables that a term hangs on, in functions too, in the order in which it names them."""
    found: dict[Var, None] = {}
    for mono, _ in p.items:
        for atom, _ in mono:
            for arg in atom.args if isinstance(atom, Apply) else ():
                found |= dict.fromkeys(_variables(arg))
            digits = (part for e in indices(atom) for part, _ in e.items if isinstance(part, Digit))
            found |= dict.fromkeys(digit.var for digit in digits)
    return *found, *sorted(p.free - found.keys(), key=lambda v: v.uid)


def _is_inverse_of(atom: object, denominator: Poly) -> bool:
    return isinstance(atom, Apply) and atom.function == INVERSE and atom.args[0] is denominator


def _without_opposites(summands: Sequence[Summand], labelling: Labelling) -> list[Summand]:
    """The summands whose like do not add up to 0."""
    numbered: list[tuple[Summand, int]] = []
    amounts: dict[int, Number] = {}
    for summand in summands:
        number, times = labelling.of_summand(summand, {})
        amounts[number] = amounts.get(number, 0) + times
        numbered.append((summand, number))
    return [summand for summand, number in numbered if amounts[number]]
