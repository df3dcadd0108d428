"""Shape reduction: a question about large tensors as one about small ones.

A question is a pair of terms (`solver.plain`) that should be equal at every element. Its index expressions are sums of
multiples of digits of variables. Every place that an index expression is used in (a dimension of a tensor, the form of
a guard, the inside of a division) has a *ruler*: numbers that divide one another, on which the multiples and their ends
lie. A digit lies between two marks of every ruler that it is used on; so does the same stretch of its variable's own
ruler. Stretches that are one digit are one *class*, and have one radix. A smaller instance gives every class a smaller
radix and recomputes what depends on it: a coefficient, a size or a bound `sum of q * mark` becomes the sum of the same
multiples of the new marks, so that an offset of 3 stays 3 and `n - 1` stays one less than the end.

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
so that what these two have in common is what all the values left out have (`solver.expand`).

What is checked of its conditions: the alignment of every digit, and the size that offsets force. A class with a digit
or a constant that is not aligned keeps its radix, and so does everything whose value is used as a number (iota), is
looked up in a table (device numbers, replica groups) or divides unevenly; the instance is then *bounded* in these and
says so (`Instance.kept`). A difference is therefore looked at again without reduction, where that can be afforded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hlo_verify.index.expr import Var
from hlo_verify.passes.rulers import Ruler, Rulers, Survey, Use, place, ruler_of
from hlo_verify.solver.plain import Expr, Part

LEAST = 2
"""The fewest values of a digit."""


class _Classes:
    """Stretches between neighbouring marks, by union-find."""

    def __init__(self) -> None:
        self.parent: dict[tuple[Ruler, int], tuple[Ruler, int]] = {}

    def find(self, x: tuple[Ruler, int]) -> tuple[Ruler, int]:
        while (up := self.parent.setdefault(x, x)) != x:
            self.parent[x] = x = self.parent.setdefault(up, up)
        return x

    def join(self, a: tuple[Ruler, int], b: tuple[Ruler, int]) -> None:
        self.parent[self.find(a)] = self.find(b)


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
    survey = Survey()
    survey.term(terms)
    rulers = Rulers(survey)
    classes = _Classes()
    touched: set[tuple[Ruler, int]] = set()
    rigid: set[tuple[Ruler, int]] = set()
    floor: dict[tuple[Ruler, int], int] = {}
    for use in survey.uses:
        _align(use, rulers, classes, touched, rigid, floor)
    for ruler, marks in rulers.marks.items():
        unused = ruler in survey.bound
        for low in marks[:-1]:
            if ruler in rulers.rigid or (unused and (ruler, low) not in touched):
                rigid.add((ruler, low))
    for ruler, numbers in survey.constants.items():
        _make_room(ruler, numbers, rulers.marks.get(ruler, [1]), floor)
    return _instance(rulers.marks, classes, rigid, floor, least)


def _align(
    use: Use,
    rulers: Rulers,
    classes: _Classes,
    touched: set[tuple[Ruler, int]],
    rigid: set[tuple[Ruler, int]],
    floor: dict[tuple[Ruler, int], int],
) -> None:
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
            rigid.add((use.base, low))
            rulers.rigid.add(use.where)
            continue
        following = outer[outer.index(a) + 1 :]
        if following[:1] == [b]:
            classes.join((use.base, low), (use.where, a))
        elif following:
            rigid.add((use.base, low))
            if b < following[0]:  # it lies loosely inside of a stretch, as a window does
                floor[use.where, a] = floor.get((use.where, a), 0) + high // low
            else:
                rulers.rigid.add(use.where)


def _make_room(ruler: Ruler, numbers: set[int], marks: list[int], floor: dict[tuple[Ruler, int], int]) -> None:
    most: dict[int, int] = {}
    for n in numbers:
        for low, q in zip(marks[:-1], _digits(abs(n), marks), strict=False):
            most[low] = max(most.get(low, 0), abs(q))
    for low, q in most.items():
        if q:
            floor[ruler, low] = floor.get((ruler, low), 0) + q


def _instance(
    marks: dict[Ruler, list[int]],
    classes: _Classes,
    rigid: set[tuple[Ruler, int]],
    floor: dict[tuple[Ruler, int], int],
    least: int,
) -> Instance:
    fixed = {classes.find(stretch) for stretch in rigid}
    room: dict[tuple[Ruler, int], int] = {}
    for stretch, n in floor.items():
        root = classes.find(stretch)
        room[root] = max(room.get(root, 0), n)
    small: dict[Ruler, list[int]] = {}
    kept: set[int] = set()
    shrunk: set[tuple[Ruler, int]] = set()
    for ruler, own in marks.items():
        new = [1]
        for low, high in pairwise(own):
            root, radix = classes.find((ruler, low)), high // low
            wanted = least + 2 * room.get(root, 0) if root not in fixed else radix
            if root in fixed and radix > least and isinstance(ruler, Var):
                kept.add(radix)
            if wanted < radix:
                shrunk.add(root)
            new.append(new[-1] * min(radix, wanted))
        small[ruler] = new
    return Instance(marks, small, len(shrunk), tuple(sorted(kept)))
