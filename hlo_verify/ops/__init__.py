"""The meaning of every operation in index notation, one file a family."""

from __future__ import annotations

from hlo_verify.ops import collectives, contraction, control, elementwise, indexing, movement, opaque, reductions
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
    elementwise.RULES,
    contraction.RULES,
    reductions.RULES,
    indexing.RULES,
    collectives.RULES,
    control.RULES,
    opaque.RULES,
)
"""Rules by operation name."""
