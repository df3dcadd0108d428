"""Shape reduction: a question about large tensors as one about small ones.

A question is a pair of terms (`passes.recheck.plain`) that should be equal at every element. Its index expressions are
sums of multiples of digits of variables. Every place that an index expression is used in (a dimension of a tensor, the
form of a guard, the inside of a division) has a *ruler*: numbers that divide one another, on which the multiples and
their ends lie. A digit lies between two marks of every ruler that it is used on; so does the same stretch of its
variable's own ruler. Stretches that are one digit are one *class*, and have one radix. A smaller instance gives every
class a smaller radix and recomputes what depends on it: a coefficient, a size or a bound `sum of q * mark` becomes the
sum of the same multiples of the new marks, so that an offset of 3 stays 3 and `n - 1` stays one less than the end.

Theorem. Let both terms be built from reads, functions, sums and guards whose index expressions are *aligned*: on each
ruler, every digit begins and ends at marks, and every constant is a small multiple of marks (of at most half a stretch
less one). Then an index expression is a fixed affine function of the digits, with coefficients that are products of the
radices, and so is the position of every breakpoint. If the two sides read, under a matching of their bound digits, at
expressions that differ, their difference is an affine function of the digits that is not 0; with at least two values a
digit (and two more than the largest offset) it is not 0 at one of the small instance's points either. Conversely the
same equations between products of radices hold at every size. So the two sides are equal at all sizes of this shape
exactly where they are equal at the small one.

Numeric coefficients may depend on sizes too: `sum over n of (a[k] + b)` is `sum over n of a[k], plus n*b`. Where a
summed digit has fewer values than it had, what its addends have in common counts for the values that are left out:
of `2 + 2*o` values for offsets up to o, the two in the middle are beyond the reach of every offset on either side,
so that what these two have in common is what all the values left out have (`passes.recheck.instantiate`).

A digit that ends between two marks, as a window does, keeps its size, and so do the stretches that it passes; the
stretch that it ends in has room for as far as it reaches, as for an offset.

What is checked of its conditions: the alignment of every digit, and the size that offsets force. A class with a digit
or a constant that is not aligned keeps its radix, and so does everything whose value is used as a number (iota), is
looked up in a table (device numbers, replica groups) or divides unevenly; the instance is then *bounded* in these and
says so (`Instance.kept`). A difference is therefore looked at again without reduction, where that can be afforded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hlo_verify.index.expr import Var
from hlo_verify.passes.recheck.plain import Expr, Part
from hlo_verify.passes.recheck.rulers import Ruler, Rulers, Survey, Use, place, ruler_of

Stretch = tuple[Ruler, int]
"""A ruler between a mark and the next one up."""

LEAST = 2
"""The fewest values of a digit."""


@dataclass(slots=True)
class Requirements:
    """What a small instance has to keep: conditions on the radix of each stretch between neighbouring marks.

    A stretch has at least `least` values, and two more than that for each of `room`; never more than it had. Stretches
    that are one digit have one radix, and those that are fixed keep theirs.
    """

    marks: dict[Ruler, list[int]]
    least: int
    same: list[tuple[Stretch, Stretch]] = field(default_factory=list)
    fixed: set[Stretch] = field(default_factory=set)
    room: dict[Stretch, int] = field(default_factory=dict)
    """The most values by which an offset or a window reaches over an end of the stretch."""

    def classes(self) -> dict[Stretch, Stretch]:
        """Every stretch, with one that stands for all that have its radix."""
        parent: dict[Stretch, Stretch] = {(r, low): (r, low) for r, marks in self.marks.items() for low in marks[:-1]}

        def find(x: Stretch) -> Stretch:
            while (up := parent[x]) != x:
                parent[x] = x = parent[up]
            return x

        for a, b in self.same:
            parent[find(a)] = find(b)
        return {x: find(x) for x in parent}


@dataclass(slots=True)
class Instance:
    """A question at smaller sizes."""

    marks: dict[Ruler, list[int]]
    small: dict[Ruler, list[int]]
    """The marks of the small instance, one for each."""
    shrunk: int = 0
    """How many digits have fewer values than they had."""
    kept: tuple[int, ...] = ()
    """Sizes of digits that keep their size although they are large: the instance is bounded in these."""

    def number(self, ruler: Ruler, n: int) -> int:
        """A coefficient, bound or offset on a ruler."""
        if n < 0:
            return -self.number(ruler, -n)
        marks = self.marks.get(ruler)
        if marks is None:
            return n
        return sum(q * small for q, small in zip(_digits(n, marks), self.small[ruler], strict=True))

    def place(self, node: Expr, k: int) -> Ruler:
        """The ruler of a term's k-th index expression."""
        return place(node, k)

    def ruler_of(self, part: Part) -> Ruler:
        """The ruler on which a digit's base is measured."""
        return ruler_of(part)

    def pieces(self, v: Var) -> list[tuple[int, int, int]]:
        """A variable as digits from the lowest up: the weight of each, how many values it has, and how many it had."""
        if v not in self.marks:
            return [(1, v.size, v.size)]
        steps = zip(pairwise(self.small[v]), pairwise(self.marks[v]), strict=True)
        return [(low, high // low, end // start) for (low, high), (start, end) in steps]

    def size(self, v: Var) -> int:
        """How many values a variable has."""
        return self.small[v][-1] if v in self.small else v.size


def _digits(n: int, marks: Sequence[int]) -> list[int]:
    """`n >= 0` as multiples of marks: the last one is of any size, each other at most half of its stretch."""
    digits = []
    for low, high in pairwise(marks):
        radix = high // low
        q, r = divmod(n // low, radix)
        if 2 * r > radix:
            r -= radix
            q += 1
        digits.append(r)
        n = q * high
    digits.append(n // marks[-1])
    return digits


def reduce(terms: Sequence[Expr], *, shrink: bool = True, least: int = LEAST) -> Instance:
    """The smallest instance of a question that keeps what its terms distinguish; at full size without `shrink`."""
    if not shrink:
        return Instance({}, {})
    return smallest(requirements(terms, least))


def requirements(terms: Sequence[Expr], least: int = LEAST) -> Requirements:
    """What the small instance of a question has to keep."""
    survey = Survey()
    survey.term(terms)
    rulers = Rulers(survey)
    found = Requirements(rulers.marks, least)
    touched: set[Stretch] = set()
    for use in survey.uses:
        _align(use, rulers, found, touched)
    for ruler, marks in rulers.marks.items():
        unused = ruler in survey.bound
        for low in marks[:-1]:
            if ruler in rulers.rigid or (unused and (ruler, low) not in touched):
                found.fixed.add((ruler, low))
    for ruler, numbers in survey.constants.items():
        _make_room(ruler, numbers, rulers.marks.get(ruler, [1]), found.room)
    return found


def _align(use: Use, rulers: Rulers, found: Requirements, touched: set[Stretch]) -> None:
    """Join the stretches of a digit on both rulers; where they do not fit, they keep their size."""
    marks, outer = rulers.marks[use.base], rulers.marks[use.where]
    if use.low not in marks or use.factor not in outer:
        rulers.rigid.update((use.base, use.where))
        return
    for low, high in pairwise(marks):
        if low < use.low or (use.end is not None and low >= use.end):
            continue
        a, b = use.factor * (low // use.low), use.factor * (high // use.low)
        touched.add((use.base, low))
        if a not in outer:
            found.fixed.add((use.base, low))
            rulers.rigid.add(use.where)
            continue
        following = outer[outer.index(a) + 1 :]
        if following[:1] == [b]:
            found.same.append(((use.base, low), (use.where, a)))
        elif following:
            found.fixed.add((use.base, low))
            _reach(use.where, outer, a, b, found)


def _reach(ruler: Ruler, marks: list[int], start: int, end: int, found: Requirements) -> None:
    """Make room for a digit that ends between marks, as a window does: what it passes keeps its size, and where it ends
    there is room for as far as it reaches."""
    for low, high in pairwise(marks):
        if start <= low and high <= end:
            found.fixed.add((ruler, low))
        elif start <= low < end:
            found.room[ruler, low] = found.room.get((ruler, low), 0) + -(-end // low)


def _make_room(ruler: Ruler, numbers: set[int], marks: list[int], room: dict[Stretch, int]) -> None:
    most: dict[int, int] = {}
    for n in numbers:
        for low, q in zip(marks[:-1], _digits(abs(n), marks), strict=False):
            most[low] = max(most.get(low, 0), abs(q))
    for low, q in most.items():
        if q:
            room[ruler, low] = room.get((ruler, low), 0) + q


def smallest(required: Requirements) -> Instance:
    """The instance with the fewest values of every digit.

    The requirements bound each class of stretches by itself, so that the least radices of all classes are reached at
    once: no other instance has fewer values anywhere. (A test has Z3's optimizer find the same ones.)
    """
    classes = required.classes()
    fixed = {classes[stretch] for stretch in required.fixed if stretch in classes}
    room: dict[Stretch, int] = {}
    for stretch, n in required.room.items():
        if stretch in classes:
            room[classes[stretch]] = max(room.get(classes[stretch], 0), n)
    small: dict[Ruler, list[int]] = {}
    kept: set[int] = set()
    shrunk: set[Stretch] = set()
    for ruler, own in required.marks.items():
        new = [1]
        for low, high in pairwise(own):
            root, radix = classes[ruler, low], high // low
            wanted = required.least + 2 * room.get(root, 0) if root not in fixed else radix
            if root in fixed and radix > required.least and isinstance(ruler, Var):
                kept.add(radix)
            if wanted < radix:
                shrunk.add(root)
            new.append(new[-1] * min(radix, wanted))
        small[ruler] = new
    return Instance(required.marks, small, len(shrunk), tuple(sorted(kept)))
