"""What a question measures index expressions by: rulers, the marks on them, and the digits that lie between marks.

See `shape_reduction` for what they are for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from hlo_verify.index.expr import Var
from hlo_verify.passes.recheck.plain import (
    Affine,
    Clamp,
    Element,
    Entry,
    Expr,
    Gate,
    Integer,
    Made,
    OfIndex,
    Part,
    Reduce,
    Row,
    Table,
    indices,
    is_unbounded,
    nodes_of,
)
from hlo_verify.program.allowed_values import Values

Ruler = Hashable
"""A variable, or a place that index expressions are used in."""


def ruler_of(part: Part) -> Ruler:
    """The ruler on which a digit's base is measured."""
    base = part.base
    if isinstance(base, Var):
        return base
    if isinstance(base, Integer):
        return ("integer", base.term.tensor if isinstance(base.term, Element) else None)
    return ("inside", id(base))


def ends_of(values: Values) -> tuple[int, int]:
    """The least of some integers, and the end of them, which comes after the greatest."""
    least, greatest = values.integers
    return least, greatest + 1


def place(node: Expr, k: int) -> Ruler:
    """The ruler of a term's k-th index expression."""
    if isinstance(node, Made):
        return (node.function, k)
    return (node.tensor, k) if isinstance(node, Element) else ("form", id(node))


@dataclass(slots=True)
class Use:
    """A digit on the ruler of a place: `factor * ((base div low) mod radix)`."""

    where: Ruler
    base: Ruler
    low: int
    end: int | None
    factor: int


@dataclass(slots=True)
class Survey:
    """Every use of a digit, and every constant, on each ruler."""

    uses: list[Use] = field(default_factory=list)
    constants: dict[Ruler, set[int]] = field(default_factory=dict)
    rigid: set[Ruler] = field(default_factory=set)
    affines: list[tuple[Affine, Ruler]] = field(default_factory=list)
    bound: set[Var] = field(default_factory=set)
    variables: set[Var] = field(default_factory=set)
    _seen: set[tuple[int, Ruler]] = field(default_factory=set)

    def term(self, terms: Iterable[Expr]) -> None:
        for node in nodes_of(terms):
            for k, e in enumerate(indices(node)):
                where = place(node, k)
                self.affine(e, where)
                if isinstance(node, OfIndex | Entry):
                    self.rigid.add(where)
                if isinstance(node, Gate):
                    ends = (node.lo, None if node.hi is None else node.hi + 1)
                    self.constants.setdefault(where, set()).update(x for x in ends if x is not None)
            if isinstance(node, Reduce | Row | Made):
                self.bound.update(node.bound)
            if isinstance(node, Made):  # of fewer elements it is another function
                self.rigid.update(node.bound)

    def affine(self, e: Affine, where: Ruler) -> None:
        if (id(e), where) in self._seen:
            return
        self._seen.add((id(e), where))
        self.affines.append((e, where))
        if e.const:
            self.constants.setdefault(where, set()).add(e.const)
        for part, c in e.items:
            base, key = part.base, ruler_of(part)
            end = None if part.radix is None else part.low * part.radix
            if isinstance(base, Var):
                self.variables.add(base)
                if end is None and not is_unbounded(base):
                    end = base.size
            elif isinstance(base, Affine):
                self.affine(base, key)
            elif isinstance(base, Clamp):
                self.affine(base.inner, key)
                self.constants.setdefault(key, set()).update((base.lo, base.hi, base.hi + 1))
            elif isinstance(base, Table):
                self.affine(base.inner, ("entries", id(base)))
                self.rigid.update((key, ("entries", id(base))))
            elif isinstance(base.term, Element) and base.term.tensor.assumed is not None:
                self.constants.setdefault(key, set()).update(ends_of(base.term.tensor.assumed))
            self.uses.append(Use(where, key, part.low, end, abs(c)))


class _Scales:
    """Rulers that measure one another: of each, one that stands for all that it is joined with, and its unit there."""

    def __init__(self) -> None:
        self._above: dict[Ruler, tuple[Ruler, Fraction]] = {}

    def _find(self, ruler: Ruler) -> tuple[Ruler, Fraction]:
        unit = Fraction(1)
        while ruler in self._above:
            ruler, step = self._above[ruler]
            unit *= step
        return ruler, unit

    def join(self, where: Ruler, base: Ruler, ratio: Fraction) -> bool:
        """Take 1 of `base` for `ratio` of `where`; False where what was joined before says otherwise."""
        (one, unit), (other, unit_of_base) = self._find(where), self._find(base)
        if one == other:
            return unit_of_base == ratio * unit
        self._above[other] = (one, ratio * unit / unit_of_base)
        return True


class Rulers:
    """The marks of every ruler."""

    def __init__(self, survey: Survey) -> None:
        self.marks: dict[Ruler, list[int]] = {}
        self.rigid = set(survey.rigid)
        for v in survey.variables:
            self.marks[v] = [1] if is_unbounded(v) else [1, v.size]
        for use in survey.uses:
            self.marks.setdefault(use.where, [1])
            self.marks.setdefault(use.base, [1])
        carried = self._carried(survey.uses)
        for use in survey.uses:
            self._must(use.where, use.factor)
            self._must(use.base, use.low)
            if use.end is not None:
                self._must(use.base, use.end)
        ends = [(use.factor * (use.end // use.low), use.where) for use in survey.uses if use.end is not None]
        for end, where in sorted(ends, key=lambda item: -item[0]):
            self.add(where, end)
        self._spread(carried)  # a constant next to the end of a digit, on any ruler, is no mark of its own
        for where, numbers in survey.constants.items():
            for n in sorted(numbers, key=lambda n: -abs(n)):
                if n:
                    self.add(where, abs(n))
        self._spread(carried)

    def add(self, ruler: Ruler, mark: int) -> bool:
        """Put a mark on a ruler; False where it does not divide the next one, or is not divided by the one below."""
        marks = self.marks.setdefault(ruler, [1])
        if mark in marks or mark < 1:
            return False
        if isinstance(ruler, Var) and not is_unbounded(ruler) and mark > ruler.size:
            return False
        below = max(m for m in marks if m < mark)
        above = min((m for m in marks if m > mark), default=None)
        if mark % below or (above is not None and above % mark):
            return False
        marks.append(mark)
        marks.sort()
        return True

    def _must(self, ruler: Ruler, mark: int) -> None:
        if not self.add(ruler, mark) and mark not in self.marks[ruler]:
            self.rigid.add(ruler)

    def _carried(self, uses: list[Use]) -> list[Use]:
        """The uses along which marks are carried over.

        Two rulers that digits without an end join in two scales (`a + 3*a`) would carry a mark on for ever: such
        rulers keep their sizes, and no mark goes along the second scale.
        """
        scales = _Scales()
        carried = []
        for use in uses:
            if use.end is not None or scales.join(use.where, use.base, Fraction(use.factor, use.low)):
                carried.append(use)
            else:
                self.rigid.update((use.where, use.base))
        return carried

    def _spread(self, uses: list[Use]) -> None:
        """Carry marks over between rulers, along the digits on both, until nothing changes."""
        changed = True
        while changed:
            changed = False
            for use in uses:
                ratio_end = None if use.end is None else use.factor * (use.end // use.low)
                for u in list(self.marks[use.where]):
                    if u >= use.factor and u % use.factor == 0 and (ratio_end is None or u <= ratio_end):
                        changed |= self.add(use.base, use.low * (u // use.factor))
                for q in list(self.marks[use.base]):
                    if q >= use.low and q % use.low == 0 and (use.end is None or q <= use.end):
                        changed |= self.add(use.where, use.factor * (q // use.low))
