"""The meaning of every operation in index notation, one file a family."""

from __future__ import annotations

from hlo_verify.ops import (
    bits,
    collectives,
    constants,
    contraction,
    control,
    conversion,
    elementwise,
    indexing,
    manual,
    movement,
    opaque,
    reductions,
)
from hlo_verify.ops.values import Rule


def _merge(*families: dict[str, Rule]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for family in families:
        for name, rule in family.items():
            if name in rules:
                raise ImportError(f"two rules for {name}")
            rules[name] = rule
    return rules


RULES = _merge(
    movement.RULES,
    constants.RULES,
    elementwise.RULES,
    bits.RULES,
    conversion.RULES,
    contraction.RULES,
    reductions.RULES,
    indexing.RULES,
    collectives.RULES,
    control.RULES,
    opaque.RULES,
    manual.RULES,
)
"""Rules by operation name."""
