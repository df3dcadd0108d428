"""Single elements, with all that they are made of written out: no sum, extremum or choice of a best one is left.

    sum f<2. [2*f + (argmax k<3. x[2*f + k]) = 2] * g[f]

        =  [x[2] is the first best of x[0], x[1], x[2]] * g[0]  +  [x[2] is the first best of x[2], x[3], x[4]] * g[1]

Over an element whose place is known, two programs that go through windows in other variables, or begin them elsewhere,
are sums of the same products. Padding is no candidate for a best one: what is worse than every number (minus infinity
for the greatest) never is, beside numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise, product
from math import prod

from hlo_verify.equality import opening, thresholds, truth_tables
from hlo_verify.equality.best_elements import BEST, at_best, bests_in_places, wins
from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.limits import allows, limit_of
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.bounds import within
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.extreme_places import cases_of, is_of_places, without_idle_number
from hlo_verify.terms.functions import EXTREMA, INFINITY, MAXIMUM, MINIMUM, POSITIVE, Function
from hlo_verify.terms.guards import Bound
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.places import with_values
from hlo_verify.terms.steps import pieces
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Poly,
    Read,
    number,
    of_atom,
    value_of,
)

OPENED = frozenset({"sum", "term", "product", *EXTREMA})


def same_written_out(found: Poly, expected: Poly, inside: Poly, session: Session, steps: Steps) -> bool:
    """Whether two terms without variables are one once they are written out."""
    if found.free or expected.free or inside.free:
        return False
    writing = Writing(steps)
    try:
        return are_one(found, expected, inside, writing) or (
            writing.has_truths and are_one(found, expected, inside, Writing(steps, with_truths=True))
        )
    except SpentError:
        session.reached("written_out_elements")
        return False


def are_one(found: Poly, expected: Poly, inside: Poly, writing: Writing) -> bool:
    where = writing.poly(inside)
    first, second = (algebra.expanded(where, writing.poly(p)) for p in (found, expected))
    return first is second


class Writing:
    """Writes terms out; raises `SpentError` where that takes too many steps. Whether all of some truth values hold, or
    one does, is written out too only `with_truths`: beside the first place that holds, which says the same."""

    def __init__(self, steps: Steps, with_truths: bool = False) -> None:
        self.steps = steps
        self.with_truths = with_truths
        self.has_truths = False
        self.written: dict[int, Poly] = {}

    def poly(self, p: Poly) -> Poly:
        found = self.written.get(p.uid)
        if found is None:
            self.steps.take(sum(self.size_of_product(mono) for mono, _ in p.items))
            found = algebra.with_atoms(p, self.atom)
            self.steps.take(_size(found))
            self.written[p.uid] = found
        return found

    def size_of_product(self, mono: Monomial) -> int:
        """How large a product of what atoms are written out as is at the most; 0 where it is one product itself."""
        count, width, most = 1, 0, limit_of("expanded_power")
        for atom, n in mono:
            items = self.atom(atom).items
            count *= len(items) ** (min(n, most) if isinstance(n, int) and n > 0 else 1)
            width += _width(self.atom(atom))
        return count * width if count > 1 else 0

    def atom(self, atom: Atom) -> Poly:
        found = self.written.get(atom.uid)
        if found is None:
            self.steps.take()
            found = self.written[atom.uid] = self._made(atom)
        return found

    def _made(self, atom: Atom) -> Poly:
        if isinstance(atom, Apply):
            signs = self._signs(atom)
            if signs is not None:
                return signs
            whole = of_atom(atom)
            places = without_idle_number(whole)
            if places is not whole:
                return self.poly(places)
            chosen = self._chosen_in_levels(atom)
            if chosen is not None:
                return chosen
            return self._asked(self._applied(atom.function, tuple(map(self.poly, atom.args))))
        best = next(bests_in_places(atom), None)
        winners = None if best is None else self._winners(best)
        if best is not None and winners is not None:
            return algebra.add(
                *(algebra.expanded(wins, self.poly(at_best(atom, best, n))) for n, wins in winners if wins.items)
            )
        if isinstance(atom, Ix):
            own = self._own_value(atom.index)
            return algebra.of_index(self._place(atom.index)) if own is None else self.poly(own)
        if isinstance(atom, Guard):
            return self._counted(self._place(atom.form), atom.lo, atom.hi)
        return self._read(atom)

    def _read(self, atom: Read) -> Poly:
        source = atom.tensor
        if source.kind in BEST and source.seal is None:
            winners = self._winners(atom)
            if winners is not None:
                return algebra.add(*(algebra.scale(wins, n) for n, wins in winners))
        is_truth = source.dtype == "i1" and source.kind in EXTREMA
        self.has_truths |= is_truth
        if source.kind not in OPENED or source.seal is not None or (is_truth and not self.with_truths):
            return self._as_it_is(atom)
        if source.kind in EXTREMA and not is_truth:
            chosen = self._chosen_in_levels(atom)
            if chosen is not None:
                return chosen
        parts = self._parts(atom)
        if is_truth:
            return self._holds(source.kind, parts)
        if source.kind in EXTREMA:
            different = tuple(dict.fromkeys(parts))
            return parts[0] if len(different) == 1 else self._applied(EXTREMA[source.kind], different)
        if source.kind == "product":
            whole = parts[0]
            for part in parts[1:]:
                self.steps.take(_size(whole) * len(part.items) + _size(part) * len(whole.items))
                whole = algebra.multiply(whole, part)
            return whole
        self.steps.take(sum(map(_size, parts)))
        return algebra.add(*parts)

    def _as_it_is(self, atom: Read) -> Poly:
        return algebra.read(atom.tensor, [self._place(e) for e in atom.indices])

    def _chosen_in_levels(self, atom: Read | Apply) -> Poly | None:
        """The least, or greatest, of numbers that conditions choose, extrema of the same within it told with it; the
        atom itself without truths, and None of what is no such extremum."""
        kind = _kind_of(of_atom(atom))
        if kind is None:
            return None
        parts = tuple(dict.fromkeys(self._within_extrema(kind, of_atom(atom))))
        varying = [p for p in parts if p.constant is None]
        if len(parts) < 2 or not varying or not all(map(_is_chosen, varying)):
            return None
        self.has_truths = True
        if self.with_truths:
            return self._in_levels(kind, parts)
        return self._as_it_is(atom) if isinstance(atom, Read) else None

    def _within_extrema(self, kind: str, p: Poly) -> Iterator[Poly]:
        """What an extremum is the extremum of, without those of its kind that it is made of."""
        atom = p.atom
        if _kind_of(p) != kind:
            yield self.poly(p)
        elif isinstance(atom, Apply):
            for arg in atom.args:
                yield from self._within_extrema(kind, arg)
        elif isinstance(atom, Read):
            for body in self._bodies(atom):
                yield from self._within_extrema(kind, body)

    def _own_value(self, e: Index) -> Poly | None:
        """The term whose value an index expression surely is, as it lies in the type's range, and between the ends to
        which it is clamped; None where it may be another."""
        part, c = e.items[0] if len(e.items) == 1 else (None, 0)
        if not isinstance(part, Opaque) or c != 1 or e.const:
            return None
        if part.operator == "clamp":
            inner = self._own_value(part.exprs[0])
            return inner if inner is not None and self._lies_within(inner, *part.args) else None
        if part.operator != "value":
            return None
        return value_of(part) if self._lies_within(value_of(part), part.lo, part.hi) else None

    def _lies_within(self, p: Poly, lo: int, hi: int) -> bool:
        """Whether a term is an integer between two ends, with nothing wrapped."""
        kind = _kind_of(p)
        parts = [] if kind is None else [*self._within_extrema(kind, p)]
        if kind is None or not all(part.constant is not None or _is_chosen(part) for part in parts):
            return within(p, lo, hi)
        best = max if kind == "max" else min
        numbers = [[n.constant or 0 for _, n in cases_of(part)] for part in parts]
        return lo <= best(map(min, numbers)) and best(map(max, numbers)) <= hi

    def _in_levels(self, kind: str, parts: Sequence[Poly]) -> Poly:
        """The least, or greatest, of numbers that conditions choose, by whether each part is above the least number,
        above the next one, and so on, as a first place is counted."""
        chosen = [[(on, n.constant or 0) for on, n in cases_of(p)] for p in parts]
        numbers = sorted({n for each in chosen for _, n in each})
        whole = number(numbers[0])
        for below, n in pairwise(numbers):
            self.steps.take(sum(map(len, chosen)))
            above = [algebra.add(*(on for on, each in one if each > below)) for one in chosen]
            whole = algebra.add(whole, algebra.scale(self._holds_by_name(kind, above), n - below))
        return whole

    def _holds_by_name(self, kind: str, parts: Sequence[Poly]) -> Poly:
        """Whether all of some truth values hold (`min`), or one does: by name where there are many, the products of
        which are too many."""
        decided, idle = (ZERO, ONE) if kind == "min" else (ONE, ZERO)
        different = sorted({p for p in parts if p is not idle}, key=lambda p: p.uid)
        if decided in different:
            return decided
        factors = different if kind == "min" else [algebra.subtract(ONE, p) for p in different]
        if allows("told_apart", prod(len(p.items) for p in factors)):
            return self._holds(kind, different)
        self.steps.take(sum(map(_size, different)))
        return define("holds", (), tuple(different), attributes=(kind,), ordered=True, dtype="i1")

    def _parts(self, atom: Read) -> list[Poly]:
        """What a definition adds up, multiplies or takes the best of, written out."""
        return list(map(self.poly, self._bodies(atom)))

    def _bodies(self, atom: Read) -> list[Poly]:
        """The same as it is said."""
        bound, (body, *_) = unfold(atom)
        self.steps.take(prod(v.size for v in bound))
        ways = product(*(range(v.size) for v in bound))
        each = (dict(zip(bound, map(expr.constant, values), strict=True)) for values in ways)
        return [algebra.substitute(body, mapping) if mapping else body for mapping in each]

    def _applied(self, function: Function, args: tuple[Poly, ...]) -> Poly:
        """A function of some terms: of step functions it is one of them, whose pieces are products of theirs, and each
        summand is one at the most."""
        is_of_truths = all(atom.boolean for p in args for mono, _ in p.items for atom, _ in mono)
        count = prod(len(p.items) + 1 if is_of_truths else len(p.items) if pieces(p) else 1 for p in args)
        self.steps.take(count * sum(map(_width, args)) ** 2 if is_of_truths or count > 1 else 0)
        found = apply(function, args)
        is_extremum = function in (MAXIMUM, MINIMUM) and is_of_truths and found.constant is None
        return self._in_cases(found, truth_tables.of_extremum(args, function == MAXIMUM)) if is_extremum else found

    def _asked(self, p: Poly) -> Poly:
        """A term whose conditions ask what extrema are of, with truths; the term itself without."""
        parts = thresholds.taken_apart(p)
        self.has_truths |= parts is not p
        if parts is p or not self.with_truths:
            return p
        self.steps.take(_size(parts))
        return parts

    def _counted(self, form: Index, lo: Bound, hi: Bound) -> Poly:
        """What a guard asks of integers that truth values decide, as `[2 <= a + a*b]` asks for `a*b`; with truths."""
        asked = guards.interval(form, lo, hi)
        return self._in_cases(asked, None if asked.constant is not None else truth_tables.of_guard(form, lo, hi))

    def _in_cases(self, p: Poly, table: truth_tables.Table | None) -> Poly:
        """A term that truth values decide, by their cases, with truths; the term itself without."""
        self.has_truths |= table is not None
        if table is None or not self.with_truths:
            return p
        self.steps.take(table.cases * len(table.truths))
        return table.written()

    def _winners(self, best: Read) -> list[tuple[int, Poly]] | None:
        """The indices of elements of which one is the first best one, with the condition that it is; None where these
        are not numbers, or infinities take part in them."""
        kind, (dtype, _) = best.tensor.kind, best.tensor.attributes
        bound, (value, index, first, _) = unfold(best)
        if dtype == "i1":
            return self._first_that_holds(best)
        worst = infinity(-1 if kind == "argmax" else 1)
        if self.poly(first) is not worst:  # integers have a least one
            return None
        values: dict[int, Poly] = {}
        self.steps.take(prod(v.size for v in bound))
        for each in product(*(range(v.size) for v in bound)):
            mapping = dict(zip(bound, map(expr.constant, each), strict=True))
            element, place = (self.poly(algebra.substitute(p, mapping)) for p in (value, index))
            if element is worst:
                continue
            n = place.constant
            if n is None or n.denominator != 1 or n in values or INFINITY in opening.ingredients(element):
                return None
            values[int(n)] = element
        order = sorted(values)
        kept = [n for k, n in enumerate(order) if all(values[m] is not values[n] for m in order[:k])]
        return [(n, wins(kind, dtype, values[n], [values[m] for m in kept])) for n in kept] or None

    def _first_that_holds(self, best: Read) -> list[tuple[int, Poly]] | None:
        """The same of truth values, where an initial index 0 is that of none: the first place is where one holds, and
        none before it. None where the places are not numbers from 0 on, or the initial pair is another."""
        bound, (value, index, *initial) = unfold(best)
        is_greatest = best.tensor.kind == "argmax"
        if initial != [ZERO if is_greatest else ONE, ZERO]:
            return None
        self.has_truths = True
        holding: dict[int, Poly] = {}
        self.steps.take(prod(v.size for v in bound))
        for each in product(*(range(v.size) for v in bound)):
            mapping = dict(zip(bound, map(expr.constant, each), strict=True))
            element, place = (self.poly(algebra.substitute(p, mapping)) for p in (value, index))
            n = place.constant
            if n is None or n.denominator != 1 or n < 0 or n in holding:
                return None
            holding[int(n)] = element if is_greatest else algebra.subtract(ONE, element)
        winners, none_before, fails = [], ONE, list[Poly]()
        for n in sorted(holding):
            fails.append(algebra.subtract(ONE, holding[n]))
            none_until = self._holds_by_name("min", fails)
            winners.append((n, algebra.subtract(none_before, none_until)))
            none_before = none_until
        return [*winners, (0, none_before)]

    def _signs(self, atom: Apply) -> Poly | None:
        """The sign of an extremum as whether all of some numbers are positive, or one is; None of what is none."""
        p = atom.args[0] if atom.function == POSITIVE else ZERO
        found = [(a, c) for mono, c in p.items for a, n in mono if n == 1 and len(mono) == 1 and isinstance(a, Read)]
        extrema = [(a, c) for a, c in found if a.tensor.kind in EXTREMA and a.tensor.seal is None]
        if len(extrema) != 1 or p.doubt:
            return None
        self.has_truths = True
        if not self.with_truths:
            return None
        (best, c), rest = extrema[0], algebra.subtract(p, algebra.scale(of_atom(extrema[0][0]), extrema[0][1]))
        kinds = ("max", "min") if best.tensor.kind == "max" else ("min", "max")
        signs = [apply(POSITIVE, (algebra.add(self.poly(rest), algebra.scale(part, c)),)) for part in self._parts(best)]
        return self._holds(kinds[c < 0], signs)

    def _holds(self, kind: str, parts: Sequence[Poly]) -> Poly:
        """Whether all of some truth values hold (`min`), or one does."""
        if kind == "min":
            return reduce(self._and, parts, ONE)
        return algebra.subtract(ONE, reduce(self._and, (algebra.subtract(ONE, part) for part in parts), ONE))

    def _and(self, p: Poly, q: Poly) -> Poly:
        self.steps.take(_size(p) * max(1, _size(q)))
        return algebra.expanded(p, q)

    def _place(self, e: Index) -> Index:
        """An index expression, with what it takes the value of written out."""
        return with_values(e, self.poly)


def _kind_of(p: Poly) -> str | None:
    """Whether a term is the greatest or the least of some numbers; None of others, and of truth values."""
    atom = p.atom
    if isinstance(atom, Apply) and not p.doubt:
        return next((kind for kind, function in EXTREMA.items() if atom.function == function), None)
    if not isinstance(atom, Read) or atom.tensor.kind not in EXTREMA or atom.tensor.seal is not None:
        return None
    return None if atom.tensor.dtype == "i1" else atom.tensor.kind


def _is_chosen(p: Poly) -> bool:
    """Whether conditions choose a term from several numbers."""
    return p.constant is None and is_of_places(p) and not any(isinstance(a, Ix) for mono, _ in p.items for a, _ in mono)


def _size(p: Poly) -> int:
    """How many factors a term has, each of which is compared with the others of its product."""
    return sum(len(mono) ** 2 for mono, _ in p.items)


def _width(p: Poly) -> int:
    """How many factors the longest product of a term has."""
    return max((len(mono) for mono, _ in p.items), default=0)
