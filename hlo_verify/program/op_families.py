"""What can be said of operations by their names, and of custom calls by their targets: each once, for all who ask.

An operation that has a rule has a row here. One without is not known: it may communicate, and it may give something
else each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from typing import Any

from hlo_verify.program.ir import Function, Op, operations
from hlo_verify.registered_calls import registered


class Family(Flag):
    """Several may hold of one operation."""

    PLAIN = 0
    """A function of its operands and attributes, of which no more needs to be said."""
    COLLECTIVE = auto()
    """Devices exchange what they hold, in groups or pairs that the attributes name."""
    REDUCES = auto()
    """Such an exchange, in which what devices hold is combined."""
    FORWARDS = auto()
    """Such an exchange, in which a device gets what one other device holds, as it is."""
    BY_PARTITION = auto()
    """Such an exchange that, on a channel, is among the partitions of each replica."""
    POINT_TO_POINT = auto()
    """Hands data to another device, or the world outside, or takes it from there."""
    NUMBERS_DEVICES = auto()
    """Gives the number of the device that runs it."""
    HAS_EFFECT = auto()
    """Does something beside giving results, in some order."""
    NEW = auto()
    """Is no function of its operands: gives something else at each execution."""
    CONTROL = auto()
    """Runs its regions, or some of them, some number of times."""
    MANUAL = auto()
    """A region that each device runs for itself, or its border."""
    SCALES = auto()
    RESHAPES = auto()
    """Gives the elements of its operand in another shape, order or type."""
    MOVES = auto()
    """Puts elements somewhere else in a tensor."""
    SLICES = auto()
    """Takes a part of a tensor that lies together."""
    CUTS = auto()
    """Takes parts of a tensor, or makes it a part of a larger one."""
    FILLS = auto()
    """Gives elements that come from no operand."""
    LOOKS_UP = auto()
    """Takes elements from places that operands name."""
    INDEXED = auto()
    """Takes elements from, or puts them to, places that operands name."""
    IDENTITY = auto()
    """Gives its operands as they are."""
    KERNEL = auto()
    """A program of another language, of which nothing is known."""


COMMUNICATES = Family.COLLECTIVE | Family.POINT_TO_POINT

_PLAIN = """
    abs add after_all and atan2 bitcast_convert cbrt ceil cholesky clamp compare complex convolution cosine
    count_leading_zeros dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_iota dynamic_pad dynamic_reshape
    exponential exponential_minus_one fft floor get_dimension_size imag is_finite log log_plus_one logistic map
    maximum minimum negate not optimization_barrier or popcnt power real real_dynamic_slice reduce
    reduce_precision reduce_window remainder rng_bit_generator round_nearest_afz round_nearest_even rsqrt select
    select_and_scatter shift_left shift_right_arithmetic shift_right_logical sign sine sort sqrt subtract tan tanh
    triangular_solve xor chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.bessel_i1e chlo.cosh
    chlo.digamma chlo.erf chlo.erf_inv chlo.erfc chlo.lgamma chlo.next_after chlo.polygamma chlo.sinh chlo.square
    chlo.tan chlo.top_k chlo.zeta mhlo.acos mhlo.acosh mhlo.asin mhlo.asinh mhlo.atanh mhlo.cosh mhlo.erf
    mhlo.scan mhlo.sinh mhlo.tan mhlo.topk
"""

ROWS: Mapping[str, Family] = {
    **dict.fromkeys(_PLAIN.split(), Family.PLAIN),
    "all_reduce": Family.COLLECTIVE | Family.REDUCES,
    "reduce_scatter": Family.COLLECTIVE | Family.REDUCES,
    "all_gather": Family.COLLECTIVE | Family.MOVES,
    "all_to_all": Family.COLLECTIVE | Family.BY_PARTITION | Family.MOVES,
    "mhlo.all_to_all": Family.COLLECTIVE | Family.BY_PARTITION | Family.MOVES,
    "mhlo.ragged_all_to_all": Family.COLLECTIVE,
    "ragged_all_to_all": Family.COLLECTIVE,
    "collective_permute": Family.COLLECTIVE | Family.BY_PARTITION | Family.FORWARDS,
    "collective_broadcast": Family.COLLECTIVE | Family.BY_PARTITION | Family.FORWARDS,
    "partition_id": Family.NUMBERS_DEVICES,
    "replica_id": Family.NUMBERS_DEVICES,
    "send": Family.POINT_TO_POINT | Family.HAS_EFFECT,
    "recv": Family.POINT_TO_POINT | Family.HAS_EFFECT | Family.NEW,
    "infeed": Family.HAS_EFFECT | Family.NEW,
    "outfeed": Family.HAS_EFFECT,
    "rng": Family.NEW,
    "mhlo.xla.rng_get_and_update_state": Family.NEW,
    "while": Family.CONTROL,
    "case": Family.CONTROL,
    "if": Family.CONTROL,
    "sdy.manual_computation": Family.MANUAL,
    "sdy.reshard": Family.IDENTITY,
    "sdy.sharding_constraint": Family.IDENTITY,
    "multiply": Family.SCALES,
    "divide": Family.SCALES,
    "reshape": Family.RESHAPES | Family.MOVES,
    "transpose": Family.RESHAPES | Family.MOVES,
    "broadcast_in_dim": Family.RESHAPES,
    "convert": Family.RESHAPES,
    "reverse": Family.MOVES,
    "slice": Family.MOVES | Family.SLICES | Family.CUTS,
    "concatenate": Family.MOVES | Family.CUTS,
    "pad": Family.MOVES | Family.CUTS | Family.FILLS,
    "constant": Family.FILLS,
    "iota": Family.FILLS,
    "dynamic_slice": Family.SLICES | Family.CUTS | Family.LOOKS_UP | Family.INDEXED,
    "gather": Family.LOOKS_UP | Family.INDEXED,
    "dynamic_gather": Family.PLAIN,
    "scatter": Family.INDEXED,
    "dynamic_update_slice": Family.INDEXED,
}
"""By the names of operations; what a custom call is, its target says."""

CUSTOM_CALL = "custom_call"

TARGETS: Mapping[str, Family] = {
    "ragged_all_to_all": Family.COLLECTIVE,
    "SPMDFullToShardShape": Family.MANUAL,
    "SPMDShardToFullShape": Family.MANUAL,
    "Sharding": Family.IDENTITY,
    "LayoutConstraint": Family.IDENTITY,
    "MoveToHost": Family.IDENTITY,
    "MoveToDevice": Family.IDENTITY,
    "annotate_device_placement": Family.IDENTITY,
    "xla.sdy.FuncResultSharding": Family.IDENTITY,
    "xla.sdy.PropagationBarrier": Family.IDENTITY,
    "X64Combine": Family.PLAIN,
    "X64SplitLow": Family.PLAIN,
    "X64SplitHigh": Family.PLAIN,
    "TopK": Family.PLAIN,
    "mhlo.topk": Family.PLAIN,
    "AllocateBuffer": Family.NEW,
    "tpu_custom_call": Family.KERNEL,
    "__gpu$xla.gpu.triton": Family.KERNEL,
    "triton_kernel_call": Family.KERNEL,
    "AwsNeuronCustomNativeKernel": Family.KERNEL,
}
"""By the targets of custom calls."""


def _names(family: Family) -> frozenset[str]:
    return frozenset(name for name, row in ROWS.items() if row & family)


def _targets(family: Family) -> frozenset[str]:
    return frozenset(target for target, row in TARGETS.items() if row & family)


COLLECTIVES = _names(Family.COLLECTIVE)
REDUCTIONS = _names(Family.REDUCES)
BY_PARTITION = _names(Family.BY_PARTITION)
FORWARDS = _names(Family.FORWARDS)
DEVICE_NUMBERS = _names(Family.NUMBERS_DEVICES)
EFFECTS = _names(Family.HAS_EFFECT)
CONTROL = _names(Family.CONTROL)
SCALES = _names(Family.SCALES)
RESHAPES = _names(Family.RESHAPES)
MOVES = _names(Family.MOVES)
SLICES = _names(Family.SLICES)
CUTS = _names(Family.CUTS)
FILLS = _names(Family.FILLS)
LOOKUPS = _names(Family.LOOKS_UP)
INDEXED = _names(Family.INDEXED)

IDENTITIES = _targets(Family.IDENTITY)
BORDERS = _targets(Family.MANUAL)


def family(name: str, attributes: Mapping[str, Any]) -> Family | None:
    """What is known of an operation with those attributes; None if nothing is."""
    if name != CUSTOM_CALL:
        return ROWS.get(name)
    target = str(attributes.get("call_target_name"))
    if target in registered():
        return Family.PLAIN  # what users say of a call, they say of what it computes on one device
    known = TARGETS.get(target)
    if known == Family.KERNEL:
        if attributes.get("has_side_effect"):
            return None
        if says_that_it_communicates(attributes):
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


def communicates(function: Function) -> bool:
    """Whether an operation of a function exchanges data with other devices, or may do so for all that is known."""
    return any(map(_communicates, function.ops))


def _communicates(op: Op) -> bool:
    known = family(op.name, op.attributes)
    return known is None or bool(known & COMMUNICATES) or any(map(communicates, op.regions))


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
    return any(map(_is_new, function.ops))


def _is_new(op: Op) -> bool:
    known = family(op.name, op.attributes)
    return known is None or bool(known & Family.NEW) or any(map(is_new_each_time, op.regions))
