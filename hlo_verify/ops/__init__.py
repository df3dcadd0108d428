"""The meaning of every operation in index notation, one file a family."""

from __future__ import annotations

from hlo_verify.ops import (
    bits,
    collectives,
    comparison,
    constants,
    contraction,
    control,
    conversion,
    dynamic,
    elementwise,
    fourier,
    indexing,
    kernels,
    manual,
    movement,
    opaque,
    ordering,
    reductions,
    scan,
    scatter,
    windows,
)
from hlo_verify.ops.in_floats import unless_made_so, unless_of_floats
from hlo_verify.ops.values import Context, Rule, Value
from hlo_verify.program.ir import Op
from hlo_verify.program.op_families import CHOOSES, JUMPS, communicates
from hlo_verify.terms.term import ZERO


def _merge(*families: dict[str, Rule]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for family in families:
        for name, rule in family.items():
            if name in rules:
                raise ImportError(f"two rules for {name}")
            is_asked = name in (JUMPS - {"compare"}) | CHOOSES
            rules[name] = _with_empty_results(unless_of_floats(unless_made_so(rule) if is_asked else rule))
    return rules


def _with_empty_results(rule: Rule) -> Rule:
    """A rule that need not think of results without any element: they have one term, unless devices may wait for it."""

    def checked(op: Op, args: list[Value], context: Context) -> list[Value]:
        waits = any(map(communicates, op.regions))
        if op.types and all(0 in type_.shape for type_ in op.types) and not waits:
            return [Value(type_, ZERO) for type_ in op.types]
        return [Value(value.type, ZERO) if 0 in value.shape else value for value in rule(op, args, context)]

    return checked


RULES = _merge(
    movement.RULES,
    constants.RULES,
    elementwise.RULES,
    comparison.RULES,
    bits.RULES,
    conversion.RULES,
    contraction.RULES,
    reductions.RULES,
    windows.RULES,
    ordering.RULES,
    scan.RULES,
    indexing.RULES,
    scatter.RULES,
    collectives.RULES,
    control.RULES,
    fourier.RULES,
    opaque.RULES,
    kernels.RULES,
    dynamic.RULES,
    manual.RULES,
)
"""Rules by operation name."""

FUNCTIONS = frozenset(
    name
    for family in (movement, elementwise, comparison, bits, conversion, contraction, reductions, windows)
    for name in family.RULES
)
"""Operations whose results are functions of their operands, types, attributes and regions alone."""

SHAREABLE = FUNCTIONS | frozenset(name for family in (constants, ordering) for name in family.RULES)
SHAREABLE |= frozenset(name for family in (indexing, scatter, collectives, control) for name in family.RULES)
"""Operations whose results depend on their operands, types, attributes and regions alone; of `CONTROL` only where the
logical module has no loop that a loop could be matched with."""
