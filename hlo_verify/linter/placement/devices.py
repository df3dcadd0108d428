"""Facts about all devices at once. A *label* gives every device a number: devices with one number are alike in some
way. Labels are numbers into a table themselves, so that equal ones are one, and are combined once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from hlo_verify.hlo.groups import Groups
from hlo_verify.linter.agreement import numbered

Table = tuple[int, ...]


class Devices:
    """The devices of a module, with labels that are kept as long as this is."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._tables: list[Table] = []
        self._numbers: dict[Table, int] = {}
        self._finer: dict[tuple[int, int], int] = {}
        self._coarser: dict[tuple[int, int], int] = {}
        self._after: dict[tuple[str, int, int], int] = {}
        self._groups: dict[Groups, int] = {}
        self.one = self.label([0] * count)
        """The label of what is the same on all devices."""
        self.each = self.label(range(count))
        """The label of what may be another on each device."""

    def label(self, marks: Iterable[Hashable]) -> int:
        """The label that tells devices apart by their marks."""
        table = numbered(marks)
        number = self._numbers.get(table)
        if number is None:
            number = self._numbers[table] = len(self._tables)
            self._tables.append(table)
        return number

    def table(self, label: int) -> Table:
        """By device, its number; numbers count up from 0 in the order of devices."""
        return self._tables[label]

    def finer(self, *labels: int) -> int:
        """The label of what is alike by each of several labels."""
        distinct = sorted(set(labels))
        found = distinct[0]
        for other in distinct[1:]:
            if (found, other) not in self._finer:
                self._finer[found, other] = self.label(zip(self._tables[found], self._tables[other], strict=True))
            found = self._finer[found, other]
        return found

    def coarser(self, one: int, other: int) -> int:
        """The label of what is alike by either of two labels, or by both in turn."""
        key = (one, other)
        if key not in self._coarser:
            first, second = self._tables[one], self._tables[other]
            roots = list(range(max(first) + 1))
            met: dict[int, int] = {}
            for a, b in zip(first, second, strict=True):
                low, high = sorted((_root(roots, a), _root(roots, met.setdefault(b, a))))
                roots[high] = low
            self._coarser[key] = self.label(_root(roots, a) for a in first)
        return self._coarser[key]

    def covers(self, coarse: int, fine: int) -> bool:
        """Whether devices that are alike by `fine` are so by `coarse`."""
        return self.finer(coarse, fine) == fine

    def group(self, groups: Groups) -> int:
        """The number of groups of devices, in which each device stands once. Raises ValueError for others."""
        number = self._groups.get(groups)
        if number is None:
            if sorted(device for group in groups for device in group) != list(range(self.count)):
                raise ValueError("a device stands in no group, or in two")
            number = self._groups[groups] = len(self._groups)
        return number

    def over_groups(self, what: str, groups: Groups, label: int, combine: Callable[[Table], Sequence[Hashable]]) -> int:
        """What becomes of a label in groups: `combine` takes the numbers of a group's members to their marks. `what`
        names it: the answer is kept."""
        key = (what, self.group(groups), label)
        if key not in self._after:
            table = self._tables[label]
            marks: list[Hashable] = [0] * self.count
            for group in groups:
                for device, mark in zip(group, combine(tuple(table[member] for member in group)), strict=True):
                    marks[device] = mark
            self._after[key] = self.label(marks)
        return self._after[key]

    def in_groups(self, groups: Groups) -> int:
        """The label of groups: which one a device is in."""
        return self.over_groups("group", groups, self.each, lambda members: [min(members)] * len(members))

    def positions(self, groups: Groups) -> int:
        """The label of where in its group a device stands."""
        return self.over_groups("position", groups, self.one, lambda members: range(len(members)))


def _root(roots: list[int], number: int) -> int:
    while roots[number] != number:
        number = roots[number]
    return number
