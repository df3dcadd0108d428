"""Through which narrower types the numbers went that are asked whether they are infinite.

    is_finite(f32(f16(x)))

A conversion is the identity of real numbers, and leaves no mark in a term. What is too large for a type on the way is
an infinity behind it, whatever is asked there: so such a question says the type that holds least.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hlo_verify.program.element_types import DTYPES, finfo, is_float
from hlo_verify.program.ir import NARROWED, Function, Module, Name, Op
from hlo_verify.program.op_families import RUNS_REGIONS

_ASKS = ("is_finite", "compare")


def marked(module: Module) -> Module:
    """The module with those questions marked of numbers that went through a type of fewer."""
    found = _Narrowest()
    found.read(module.main)
    return replace(module, main=found.with_marks(module.main)) if found.types else module


@dataclass(slots=True)
class _Narrowest:
    """Of each value that may have gone through a narrower type, the one that holds least."""

    types: dict[Name, str] = field(default_factory=dict)
    _own: dict[Name, str] = field(default_factory=dict)
    """The type of each value itself."""

    def read(self, function: Function) -> None:
        self._own |= {v: t.dtype for v, t in zip(function.arguments, function.argument_types, strict=True)}
        for op in function.ops:
            if op.name in RUNS_REGIONS and op.regions:
                self._read_regions(op)
            else:
                self._add(op)
            self._own |= {v: t.dtype for v, t in zip(op.results, op.types, strict=True)}

    def _read_regions(self, op: Op) -> None:
        is_loop = op.name == "while"
        for _ in range(1 + is_loop):  # what a turn gives is handed to the next one
            for region in op.regions:
                if len(region.arguments) == len(op.operands):
                    self._hand(region.arguments, op.operands)
                self.read(region)
            for region in op.regions[is_loop:]:
                self._hand(op.results, region.results)
                if is_loop:
                    self._hand(op.regions[0].arguments, region.results)
                    self._hand(region.arguments, region.results)

    def _hand(self, to: Iterable[Name], values: Iterable[Name]) -> None:
        for new, old in zip(to, values, strict=True):
            self._note(new, [self.types[v] for v in (new, old) if v in self.types])

    def _note(self, value: Name, types: list[str]) -> None:
        if types:
            self.types[value] = min(types, key=_most)

    def _add(self, op: Op) -> None:
        """What an operation gives went where any of its numbers did; a conversion is one step more."""
        through = [self.types[v] for v in op.operands if v in self.types]
        if op.name == "convert" and is_float(new := op.types[0].dtype):
            old = self._own[op.operands[0]]
            if is_float(old) and _most(new) < _most(old):
                through.append(new)
        for v, type_ in zip(op.results, op.types, strict=True):
            self._note(v, through if is_float(type_.dtype) else [])

    def with_marks(self, function: Function) -> Function:
        ops = []
        for op in function.ops:
            op = replace(op, regions=tuple(map(self.with_marks, op.regions))) if op.regions else op
            through = [self.types[v] for v in op.operands if v in self.types] if op.name in _ASKS else []
            if through:
                op = replace(op, attributes={**op.attributes, NARROWED: min(through, key=_most)})
            ops.append(op)
        return replace(function, ops=tuple(ops))


def _most(dtype: str) -> float:
    return float(finfo(dtype).max) if dtype in DTYPES else 0.0
