"""What can be asked of operations by their names, and of custom calls by their targets, as `operations` has them.

An operation that is not known may communicate, and it may give something else each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlo_verify.program.ir import Function, Op, operations, used
from hlo_verify.program.operations import CUSTOM_CALL, ROWS, TARGETS, Family
from hlo_verify.registered_calls import registered

COMMUNICATES = Family.COLLECTIVE | Family.POINT_TO_POINT
_IN_SPITE_OF_EFFECTS = Family.COLLECTIVE | Family.IDENTITY | Family.MANUAL
"""What custom calls are though they say that they have a side effect: the compiler's own marks say it of themselves, so
that they stay where they are. Of all others no more is known then."""


def _names(family: Family) -> frozenset[str]:
    return frozenset(name for name, row in ROWS.items() if row.families & family)


def _targets(family: Family) -> frozenset[str]:
    return frozenset(target for target, row in TARGETS.items() if row.families & family)


ELEMENTWISE = frozenset(name for name, row in ROWS.items() if row.notation in ("elementwise", "conversion")) - {"map"}
"""Operations on one element of each operand, but for comparisons and what looks at bits."""
COLLECTIVES = _names(Family.COLLECTIVE)
REDUCTIONS = _names(Family.REDUCES)
BY_PARTITION = _names(Family.BY_PARTITION)
FORWARDS = _names(Family.FORWARDS)
DEVICE_NUMBERS = _names(Family.NUMBERS_DEVICES)
EFFECTS = _names(Family.HAS_EFFECT)
CONTROL = _names(Family.CONTROL)
RUNS_REGIONS = _names(Family.CONTROL | Family.MANUAL)
"""Operations that give what their regions do."""
OF_ELEMENTS = frozenset(ROWS) - RUNS_REGIONS
"""Operations whose regions, where they have any, say what becomes of elements."""
SCALES = _names(Family.SCALES)
RESHAPES = _names(Family.RESHAPES)
MOVES = _names(Family.MOVES)
SLICES = _names(Family.SLICES)
PARTS = _names(Family.TAKES_PARTS)
FILLS = _names(Family.FILLS)
LOOKUPS = _names(Family.LOOKS_UP)
INDEXED = _names(Family.INDEXED)
KEEPS_SPLATS = _names(Family.KEEPS_SPLATS)
ADDS = _names(Family.ADDS)
BRANCHES = _names(Family.BRANCHES)
REPEATABLE = _names(Family.REPEATABLE)
KEEPS_INDICES = _names(Family.KEEPS_INDICES)
KEEPS_SIGNS = _names(Family.KEEPS_SIGNS)
OF_POSITIVES = _names(Family.OF_POSITIVES)
JUMPS = _names(Family.JUMPS)
CHOOSES = _names(Family.CHOOSES)
HAS_EDGES = _names(Family.HAS_EDGES)
DECIDED = CHOOSES | HAS_EDGES
"""Operations of which what an operand is decides more than how large the result is."""

LINEAR = RESHAPES | ADDS
"""Operations that a sum over devices may be taken after as well as before, of some of their operands."""

IDENTITIES = _targets(Family.IDENTITY)
BORDERS = _targets(Family.MANUAL)
REGION = "sdy.manual_computation"
"""What runs on each device, inside of a global module."""


def plain_name(name: str) -> str:
    """An operation's name without the dialect: `erf` is one function, of `chlo` as JAX writes it and of `mhlo` as HLO
    is read."""
    return name.removeprefix("chlo.").removeprefix("mhlo.")


def family(name: str, attributes: Mapping[str, Any]) -> Family | None:
    """What is known of an operation with those attributes; None if nothing is."""
    if name != CUSTOM_CALL:
        row = ROWS.get(name)
        return None if row is None else row.families
    target = str(attributes.get("call_target_name"))
    row = TARGETS.get(target)
    # What users say of a call, they say of what it computes on one device.
    known = Family.PLAIN if target in registered() else None if row is None else row.families
    if known is not None and attributes.get("has_side_effect") and not known & _IN_SPITE_OF_EFFECTS:
        return None
    if known == Family.KERNEL and says_that_it_communicates(attributes):
        return Family.KERNEL | Family.COLLECTIVE
    return known


def says_that_it_communicates(attributes: Mapping[str, Any]) -> bool:
    """Whether a Pallas TPU kernel copies to other devices: `jax._src.tpu_custom_call.CustomCallBackendConfig.to_json`
    writes so."""
    if attributes.get("call_target_name") != "tpu_custom_call":
        return False
    config = attributes.get("backend_config")
    text = config if isinstance(config, str) else repr(config)
    return "has_communication" in text or "collective_id" in text


def is_identity(op: Op) -> bool:
    """Whether an operation gives its operands as they are."""
    known = family(op.name, op.attributes)
    return known is not None and bool(known & Family.IDENTITY)


def has_effect(op: Op) -> bool:
    """Whether an operation hands something to the world outside of the module, takes something from it, or may."""
    known = family(op.name, op.attributes)
    if op.name != CUSTOM_CALL:
        return op.name in EFFECTS
    return bool(op.attributes.get("has_side_effect")) and (known is None or bool(known & COMMUNICATES))


def live(function: Function) -> list[Op]:
    """The operations that a function's results hang on, and those with an effect."""
    needed, found = {*function.results}, list[Op]()
    for op in reversed(function.ops):
        inside = (each for region in op.regions for each in operations(region))
        if not needed.isdisjoint(op.results) or has_effect(op) or any(map(has_effect, inside)):
            needed |= used(op)
            found.append(op)
    return found[::-1]


def communicates(function: Function) -> bool:
    """Whether an operation of a function exchanges data with other devices, or may do so for all that is known."""
    return any(map(_communicates, function.ops))


def communicates_itself(op: Op) -> bool:
    """Whether an operation exchanges data with other devices, or may do so for all that is known, whatever its regions
    do."""
    known = family(op.name, op.attributes)
    return known is None or bool(known & COMMUNICATES)


def _communicates(op: Op) -> bool:
    return communicates_itself(op) or any(map(communicates, op.regions))


def may_part(op: Op) -> bool:
    """Whether an operation that is no branch or loop itself has one inside in which devices may communicate."""
    inner = (inner for region in op.regions for inner in operations(region))
    return op.name not in CONTROL and any(
        each.name in CONTROL and any(map(communicates, each.regions)) for each in inner
    )


def is_one_expression(function: Function) -> bool:
    """Whether a function may be run for all elements at once, with a term for them all: what a loop carries, or what is
    new each time, would be one tensor for all of them."""
    for op in operations(function):
        known = family(op.name, op.attributes)
        if known is None or known & (COMMUNICATES | Family.NEW | Family.MANUAL) or op.name == "while":
            return False
    return True


def is_new_each_time(function: Function) -> bool:
    """Whether what a function gives may depend on more than its arguments, for something in it is new each time."""
    return any(map(is_new, function.ops))


def is_new(op: Op) -> bool:
    """The same of an operation."""
    known = family(op.name, op.attributes)
    return known is None or bool(known & Family.NEW) or any(map(is_new_each_time, op.regions))
