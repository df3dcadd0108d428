"""Functions of what some truth values decide, by what they are in each case of these.

`[i < sum of cumulative products]` at i = 1 is `[2 <= a + a*b + a*b*c]`, which holds where a and b do; the least of
`a ? 0 : 2` and `b ? 1 : 2` is `a ? 0 : b ? 1 : 2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hlo_verify.index.expr import Index, Opaque
from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.addition import plain
from hlo_verify.terms.guards import Bound
from hlo_verify.terms.term import ONE, ZERO, Atom, Guard, Monomial, Number, Poly, number, of_atom, value_of

Items = dict[Monomial, Number]


@dataclass(frozen=True, slots=True)
class Table:
    """A function of some terms that truth values decide."""

    terms: tuple[Poly, ...]
    truths: tuple[Atom, ...]
    function: Callable[[Sequence[Number]], Poly]

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return 1 << len(self.truths)

    def written(self) -> Poly:
        """The function as a sum of products of truth values."""
        return self._where([dict(p.items) for p in self.terms], 0)

    def _where(self, terms: list[Items], n: int) -> Poly:
        """The same where all but the truth values from the n-th on are decided."""
        if n == len(self.truths):
            return self.function([sum(items.values()) for items in terms])
        truth = self.truths[n]
        holds, other = (self._where([_decided(t, truth, held) for t in terms], n + 1) for held in (True, False))
        if holds is other:
            return holds
        return algebra.add(other, algebra.multiply(of_atom(truth), algebra.subtract(holds, other)))


def of_guard(form: Index, lo: Bound, hi: Bound) -> Table | None:
    """`lo <= form <= hi`, where truth values alone decide the form; None of other forms, or of too many."""
    whole = number(form.const)
    for atom, c in form.items:
        if not isinstance(atom, Opaque) or atom.operator != "value":
            return None
        value = value_of(atom)
        truths = _truths(value)
        if truths is None or not all(n.denominator == 1 and atom.lo <= n <= atom.hi for n in _values(value, truths)):
            return None  # where its machine value is another
        whole = algebra.add(whole, algebra.scale(value, c))
    truths = _truths(whole)

    def lies_within(values: Sequence[Number]) -> Poly:
        return ONE if (lo is None or lo <= values[0]) and (hi is None or values[0] <= hi) else ZERO

    return Table((whole,), truths, lies_within) if truths else None


def of_extremum(terms: tuple[Poly, ...], is_greatest: bool) -> Table | None:
    """The greatest or the least of terms that truth values alone decide; None of other terms, or of too many."""
    truths = _truths(*terms)
    best = max if is_greatest else min
    return Table(terms, truths, lambda values: number(plain(Fraction(best(values))))) if truths else None


def _truths(*terms: Poly) -> tuple[Atom, ...] | None:
    """The truth values that terms are made of; None where they are made of something else, or of too many."""
    truths = tuple(dict.fromkeys(a for p in terms for mono, _ in p.items for a, _ in mono))
    is_decided = not any(p.doubt for p in terms) and all(a.boolean and not isinstance(a, Guard) for a in truths)
    return truths if is_decided and allows("told_apart", 1 << len(truths)) else None


def _values(p: Poly, truths: Sequence[Atom]) -> Iterator[Fraction]:
    """What a term of truth values is in each of their cases."""
    pending = [(dict(p.items), 0)]
    while pending:
        items, n = pending.pop()
        if n == len(truths):
            yield Fraction(sum(items.values()))
        else:
            pending += [(_decided(items, truths[n], is_held), n + 1) for is_held in (True, False)]


def _decided(items: Items, truth: Atom, is_held: bool) -> Items:
    found: Items = {}
    for mono, c in items.items():
        rest = tuple(item for item in mono if item[0] is not truth)
        if is_held or len(rest) == len(mono):
            found[rest] = found.get(rest, 0) + c
    return found
