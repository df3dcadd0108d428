"""Through which narrower types the numbers went that are asked whether they are infinite.

    is_finite(f32(f16(x)))

A conversion is the identity of real numbers, and leaves no mark in a term. What is too large for a type on the way is
an infinity behind it, whatever is asked there: so such a question says the type that holds least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hlo_verify.passes.load.forward import Forward, with_marks
from hlo_verify.program.element_types import DTYPES, finfo, is_float, is_inexact
from hlo_verify.program.ir import NARROWED, Module, Name, Op, TensorType, value_types

_ASKS = ("is_finite", "compare")


def marked(module: Module) -> Module:
    """The module with those questions marked of numbers that went through a type of fewer."""
    narrowest = _Narrowest(types=value_types(module.main))
    narrowest.read(module.main)
    return replace(module, main=with_marks(module.main, NARROWED, narrowest.marks))


@dataclass(slots=True)
class _Narrowest(Forward):
    """Told of each value that may have gone through a narrower type is the one that holds least."""

    types: Mapping[Name, TensorType] = field(kw_only=True)

    def add(self, op: Op) -> None:
        """What an operation gives went where any of its numbers did; one that gives narrower ones is a step more."""
        through = [self.told[v] for v in op.operands if v in self.told]
        before = max((_most(dtype) for v in op.operands if is_float(dtype := self.types[v].dtype)), default=0)
        through += [dtype for type_ in op.types if is_float(dtype := type_.dtype) and _most(dtype) < before]
        if not through:
            return
        least = self.one_of(op, through)
        if op.name in _ASKS:
            self.marks[op.results] = least
        self.told |= {v: least for v, type_ in zip(op.results, op.types, strict=True) if is_inexact(type_.dtype)}

    def of(self, value: Name) -> str:
        return self.told.get(value, "")

    def one_of(self, op: Op, told: Sequence[str]) -> str:
        return min(told, key=_most)


def _most(dtype: str) -> float:
    return float(finfo(dtype).max) if dtype in DTYPES else 0.0
