"""Inputs whose integers lie outside of the dimensions that they index, and the preconditions that they break."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.evaluate import Blocks, index_limits, index_places
from hlo_verify.passes.refute.trial import Counterexample
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.ir import Module
from hlo_verify.program.preconditions import Precondition, assumed


def are_outside(found: Counterexample) -> bool:
    """Whether integers of these inputs lie outside of what they index."""
    logical = found.trial.pair.logical
    return bool(_broken(logical, found, index_limits(logical)))


def broken_by(found: Sequence[Counterexample]) -> tuple[Precondition, ...]:
    """Preconditions that those inputs break: that indices lie inside of what they index."""
    said: dict[Precondition, None] = {}
    for each in found:
        logical = each.trial.pair.logical
        said |= dict.fromkeys(_broken(logical, each, index_limits(logical)))
    return tuple(said)


def that_indices_lie_inside(logical: Module) -> list[tuple[Precondition, ...]]:
    """Preconditions that all integers lie inside of what they index; and that the windows which begin there do."""
    ways = (_inside(logical, sizes_of(logical)) for sizes_of in (index_limits, index_places))
    return [way for way in dict.fromkeys(ways) if way]


def _inside(logical: Module, sizes: Sequence[int | None]) -> tuple[Precondition, ...]:
    each = zip(logical.argument_names, sizes, assumed(logical), strict=True)
    return tuple(
        Precondition(name, Values(0, size, (False, True)))
        for name, size, values in each
        if size is not None and size > 0 and (values is None or values.integers[0] < 0 or values.integers[1] >= size)
    )


def _broken(logical: Module, found: Counterexample, sizes: Sequence[int | None]) -> list[Precondition]:
    each = zip(logical.argument_names, sizes, found.trial.inputs, strict=True)
    return [
        Precondition(name, Values(0, size, (False, True)))
        for name, size, blocks in each
        if size is not None and size > 0 and _has_outside(blocks, size)
    ]


def _has_outside(blocks: Blocks, size: int) -> bool:
    return blocks.values.size > 0 and bool(blocks.values.min() < 0 or blocks.values.max() >= size)
