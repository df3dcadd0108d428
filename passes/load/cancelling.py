"""Sums in which what hangs on arguments cancels.

    floor((x - x) + i / 41 * 41)        (x + i / 41 * 41) - x >= i

Real arithmetic has nothing of `x` there, and so floats decide: of the second by what is left of the numbers beside `x`,
which is known of no `x`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from hlo_verify.program.ir import Name, Op

_MOST = 8
"""So many parts of a sum are told apart."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a value is the sum of: how often values that hang on arguments, and which ones that hang on none."""

    times: dict[Name, int]
    beside: tuple[Name, ...] = ()


@dataclass(slots=True)
class Sums:
    """What is known of sums of values some of which hang on arguments."""

    known: Collection[Name]
    """The values that hang on no argument."""
    _parts: dict[Name, Parts] = field(default_factory=dict)

    def of(self, op: Op) -> Parts | None:
        """What an operation adds up; None of one that does not add."""
        if op.name not in _SIGNS:
            return None
        found = Parts({})
        for value, sign in zip(op.operands, _SIGNS[op.name], strict=True):
            found = _sum(found, self._of(value), sign)
        self._parts.pop(op.results[0], None)  # of a turn that was read before
        if len(found.times) + len(found.beside) <= _MOST:
            self._parts[op.results[0]] = found
        return found

    def _of(self, value: Name) -> Parts:
        if value in self.known:
            return Parts({}, (value,))
        return self._parts.get(value) or Parts({value: 1})


_SIGNS = {"add": (1, 1), "subtract": (1, -1), "negate": (-1,)}


def _sum(a: Parts, b: Parts, sign: int) -> Parts:
    times = {v: a.times.get(v, 0) + sign * b.times.get(v, 0) for v in (*a.times, *b.times)}
    return Parts({v: n for v, n in times.items() if n}, (*a.beside, *b.beside))
