"""The numbers that a pair's modules compute of constants alone, which the other module may hold as constants.

1.0 is what tanh(6) is folded to in a narrow type, and 1 + 1e-8 in single precision; 0 what is too small for a type, and
infinity what is too large. Such a constant looks as if it were meant as it is written, and a program may well hold the
same number elsewhere, and mean it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from hlo_verify.evaluate import Blocks, Limits, evaluate
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array
from hlo_verify.program.element_types import finfo, is_float
from hlo_verify.program.ir import Module, Name, Op, operations
from hlo_verify.program.operations import ROWS

FOLDED = 256
"""How many roundings a constant may be off by that only one module holds: 1.5e-5 of it in single precision. Tables of
sines that were folded are off by that, and nobody tells two constants apart by so little."""

FOLDED_NARROW = 2
"""The same for types of fewer than `WIDE` bits, in which as many roundings would leave nothing of a number."""

WIDE = 24

CONSTANTS = frozenset({"constant", "iota"})
"""Operations that values begin with which no argument takes part in."""

_LIMITS = Limits(elements=1 << 22, work=1e9, turns=64)


def moves(op: Op) -> bool:
    """Whether an operation makes no number that was not there."""
    row = ROWS.get(op.name)
    return row is not None and row.notation == "movement"


def precision(dtype: str) -> int:
    """The bits of the significand of a floating-point type."""
    return int(finfo(dtype).nmant) + 1


def smallest(dtype: str) -> float:
    """The least positive number that a floating-point type holds with all of its bits."""
    return float(finfo(dtype).smallest_normal)


def roundings(bits: int) -> int:
    """How many roundings what was folded may be off by, in a type with so many bits."""
    return FOLDED if bits >= WIDE else FOLDED_NARROW


@dataclass(frozen=True, slots=True)
class FoldedNumbers:
    """Enclosures of those numbers, by the types that they are computed in, each once and by their lower bounds."""

    numbers: Mapping[str, Array] = field(default_factory=dict)

    @property
    def are_too_large(self) -> bool:
        """Whether some number is beyond its type, so that it would be folded to an infinity."""
        return any(
            np.any(np.isfinite(found["low"]) & (np.fmax(-found["low"], found["high"]) > float(finfo(dtype).max)))
            for dtype, found in self.numbers.items()
        )

    def off(self, value: float, dtype: str) -> float:
        """How far off a constant of a type is from such a number that it may have been rounded from; 0 where there is
        none, or that number itself alone."""
        return max((self._off(value, dtype, computed) for computed in self.numbers), default=0.0)

    def _off(self, value: float, dtype: str, computed: str) -> float:
        bits = min(precision(dtype), precision(computed))
        reach = roundings(bits) * abs(value) * 2.0**-bits or max(smallest(dtype), smallest(computed))
        found = self.numbers[computed]
        first = np.searchsorted(np.maximum.accumulate(found["high"]), value - reach)
        near = found[first : np.searchsorted(found["low"], value + reach, side="right")]
        near = near[near["high"] >= value - reach]
        farthest = np.fmax(np.abs(near["low"] - value), np.abs(near["high"] - value)).max(initial=0.0)
        return min(reach, float(farthest))


def folded_numbers(*modules: tuple[Module, int]) -> FoldedNumbers:
    """Of modules, each with the number of devices that run it."""
    made: dict[str, list[Array]] = defaultdict(list)
    for module, devices in modules:
        types = dict(_computed(module))

        def observe(name: Name, blocks: Blocks | None, types: Mapping[Name, str] = types) -> None:
            if blocks is not None and name in types:
                made[types[name]].append(np.unique(blocks.values[~np.isnan(blocks.values["low"])]))

        if types:
            nothing = [None] * len(module.main.argument_types)
            evaluate(module, nothing, devices, real=INTERVALS, limits=_LIMITS, observe=observe)
    return FoldedNumbers({dtype: np.unique(np.concatenate(found)) for dtype, found in made.items()})


def _computed(module: Module) -> Iterator[tuple[Name, str]]:
    """The values that are not only moved, of real floating-point types, with these."""
    for op in operations(module.main):
        if op.name not in CONSTANTS and not moves(op):
            yield from ((name, t.dtype) for name, t in zip(op.results, op.types, strict=True) if is_float(t.dtype))
