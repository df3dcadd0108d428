"""Every operation that is known, a row each: what kind of operation it is, and where it has a meaning.

Three engines give it one, which check one another and import nothing of each other: a row only names their files.
An operation without a row is not known: it may communicate, and it may give something else each time. One without an
engine's meaning equals nothing else there: nothing is proved of it, no numbers are found, or it is not re-checked.
`docs/adding-an-op.md` walks through a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto

from hlo_verify.program.library_calls import EVALUATED, LIBRARY_CALLS


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
    """Multiplies or divides its operands."""
    RESHAPES = auto()
    """Gives the elements of its operand in another shape, order or type."""
    MOVES = auto()
    """Puts elements somewhere else in a tensor."""
    SLICES = auto()
    """Takes a part of a tensor that lies together."""
    TAKES_PARTS = auto()
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
    KEEPS_SPLATS = auto()
    """Of a tensor of one number, gives a tensor of that number."""
    ADDS = auto()
    """A sum of its operands, or of their negatives."""
    BRANCHES = auto()
    """Runs one of its regions, which the first operand chooses."""
    REPEATABLE = auto()
    """Does the same each time, though no rule says what."""
    KEEPS_INDICES = auto()
    """Makes an index of indices, or nearly: they are followed through it to what they index."""
    KEEPS_SIGNS = auto()
    """Makes numbers of the same sign of positive ones."""
    OF_POSITIVES = auto()
    """Gives no number for negative ones."""
    JUMPS = auto()
    """Gives what may differ by much where an operand differs by little; a conversion does so to integers."""
    CHOOSES = auto()
    """May compare elements of an operand with each other: which of them it gives may differ where they hardly do."""
    HAS_EDGES = auto()
    """Gives no number, or an infinity, at or beyond numbers where it gives one of all that are a little different."""


NONE = None
"""No meaning in that engine."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operation: the files that have its meaning, and its families."""

    notation: str | None
    """In `ops/`: its rule in index notation, for proofs."""
    numbers: str | None
    """In `evaluate/`: its rule on numbers, for refutations."""
    recheck: str | None
    """In `passes/recheck/meanings/`: its meaning for the second check of a proof; `claims` is the walk itself."""
    families: Family = Family.PLAIN


ROWS: Mapping[str, Row] = {
    "abs": Row("elementwise", "elementwise", "elementwise"),
    "add": Row("elementwise", "elementwise", "elementwise", Family.ADDS | Family.KEEPS_INDICES),
    "after_all": Row("opaque", "elementwise", NONE, Family.REPEATABLE),
    "all_gather": Row(
        "collectives", "collectives", "collectives", Family.COLLECTIVE | Family.MOVES | Family.KEEPS_SIGNS
    ),
    "all_reduce": Row(
        "collectives", "collectives", "collectives", Family.COLLECTIVE | Family.REDUCES | Family.KEEPS_SIGNS
    ),
    "all_to_all": Row(
        "collectives", "collectives", "collectives", Family.COLLECTIVE | Family.BY_PARTITION | Family.MOVES
    ),
    "and": Row("bits", "elementwise", "elementwise"),
    "atan2": Row("elementwise", "elementwise", "elementwise", Family.HAS_EDGES),
    "bitcast_convert": Row("conversion", "elementwise", NONE),
    "broadcast_in_dim": Row(
        "movement", "movement", "movement", Family.RESHAPES | Family.KEEPS_SPLATS | Family.KEEPS_INDICES
    ),
    "case": Row("control", "control", "claims", Family.CONTROL | Family.BRANCHES),
    "cbrt": Row("elementwise", "elementwise", "elementwise"),
    "ceil": Row("elementwise", "elementwise", "elementwise", Family.JUMPS),
    "cholesky": Row("opaque", "linear_algebra", NONE, Family.REPEATABLE),
    "clamp": Row("elementwise", "elementwise", "elementwise", Family.KEEPS_INDICES),
    "collective_broadcast": Row(
        "collectives", "collectives", NONE, Family.COLLECTIVE | Family.FORWARDS | Family.BY_PARTITION
    ),
    "collective_permute": Row(
        "collectives", "collectives", "collectives", Family.COLLECTIVE | Family.FORWARDS | Family.BY_PARTITION
    ),
    "compare": Row("comparison", "elementwise", "elementwise", Family.JUMPS),
    "complex": Row("conversion", "elementwise", NONE),
    "concatenate": Row("movement", "movement", "movement", Family.MOVES | Family.TAKES_PARTS | Family.KEEPS_INDICES),
    "constant": Row("constants", "elementwise", "elementwise", Family.FILLS),
    "convert": Row("conversion", "elementwise", "elementwise", Family.RESHAPES | Family.KEEPS_INDICES | Family.JUMPS),
    "convolution": Row("contraction", "convolution", "reductions"),
    "cosine": Row("elementwise", "elementwise", "elementwise"),
    "count_leading_zeros": Row("elementwise", "elementwise", "elementwise"),
    "custom_call": Row("kernels", "manual", "movement", Family.KEEPS_INDICES),
    "divide": Row("elementwise", "elementwise", "elementwise", Family.SCALES | Family.KEEPS_SIGNS | Family.HAS_EDGES),
    "dot_general": Row("contraction", "contraction", "reductions"),
    "dynamic_broadcast_in_dim": Row("dynamic", "dynamic", NONE),
    "dynamic_conv": Row("dynamic", "dynamic", NONE),
    "dynamic_gather": Row("dynamic", "dynamic", NONE),
    "dynamic_iota": Row("dynamic", "elementwise", NONE),
    "dynamic_pad": Row("dynamic", "dynamic", NONE),
    "dynamic_reshape": Row("dynamic", "dynamic", NONE),
    "dynamic_slice": Row(
        "movement",
        "selection",
        "movement",
        Family.SLICES | Family.TAKES_PARTS | Family.LOOKS_UP | Family.INDEXED | Family.KEEPS_SIGNS,
    ),
    "dynamic_update_slice": Row("movement", "selection", "movement", Family.INDEXED),
    "exponential": Row("elementwise", "elementwise", "elementwise"),
    "exponential_minus_one": Row("elementwise", "elementwise", "elementwise"),
    "fft": Row("fourier", "fourier", NONE, Family.REPEATABLE),
    "floor": Row("elementwise", "elementwise", "elementwise", Family.JUMPS),
    "gather": Row("indexing", "selection", "movement", Family.LOOKS_UP | Family.INDEXED),
    "get_dimension_size": Row("dynamic", "elementwise", NONE),
    "if": Row("control", "control", "claims", Family.CONTROL | Family.BRANCHES),
    "imag": Row("conversion", "elementwise", NONE),
    "infeed": Row("opaque", NONE, NONE, Family.HAS_EFFECT | Family.NEW),
    "iota": Row("constants", "elementwise", "elementwise", Family.FILLS),
    "is_finite": Row("elementwise", "elementwise", "elementwise"),
    "log": Row("elementwise", "elementwise", "elementwise", Family.OF_POSITIVES | Family.HAS_EDGES),
    "log_plus_one": Row("elementwise", "elementwise", "elementwise", Family.OF_POSITIVES | Family.HAS_EDGES),
    "logistic": Row("elementwise", "elementwise", "elementwise"),
    "map": Row("elementwise", "elementwise", NONE),
    "maximum": Row("elementwise", "elementwise", "elementwise", Family.KEEPS_INDICES),
    "minimum": Row("elementwise", "elementwise", "elementwise", Family.KEEPS_INDICES),
    "multiply": Row("elementwise", "elementwise", "elementwise", Family.SCALES | Family.KEEPS_SIGNS),
    "negate": Row("elementwise", "elementwise", "elementwise", Family.ADDS),
    "not": Row("bits", "elementwise", "elementwise"),
    "optimization_barrier": Row("movement", "elementwise", "movement", Family.KEEPS_SPLATS | Family.KEEPS_INDICES),
    "or": Row("bits", "elementwise", "elementwise"),
    "outfeed": Row("opaque", NONE, NONE, Family.HAS_EFFECT),
    "pad": Row("movement", "movement", "movement", Family.MOVES | Family.TAKES_PARTS | Family.FILLS),
    "partition_id": Row("collectives", "collectives", "collectives", Family.NUMBERS_DEVICES),
    "popcnt": Row("elementwise", "elementwise", "elementwise"),
    "power": Row("elementwise", "elementwise", "elementwise", Family.OF_POSITIVES | Family.HAS_EDGES),
    "real": Row("conversion", "elementwise", NONE),
    "real_dynamic_slice": Row("dynamic", "dynamic", NONE),
    "recv": Row("opaque", NONE, NONE, Family.POINT_TO_POINT | Family.HAS_EFFECT | Family.NEW),
    "reduce": Row("reductions", "reductions", "reductions", Family.KEEPS_SIGNS | Family.CHOOSES),
    "reduce_precision": Row("conversion", "elementwise", "elementwise"),
    "reduce_scatter": Row("collectives", "collectives", "collectives", Family.COLLECTIVE | Family.REDUCES),
    "reduce_window": Row("windows", "windows", "reductions", Family.CHOOSES),
    "remainder": Row("elementwise", "elementwise", "elementwise", Family.JUMPS),
    "replica_id": Row("collectives", "collectives", "collectives", Family.NUMBERS_DEVICES),
    "reshape": Row(
        "movement", "movement", "movement", Family.RESHAPES | Family.MOVES | Family.KEEPS_SPLATS | Family.KEEPS_INDICES
    ),
    "reverse": Row("movement", "movement", "movement", Family.MOVES),
    "rng": Row("opaque", NONE, NONE, Family.NEW),
    "rng_bit_generator": Row("opaque", NONE, NONE),
    "round_nearest_afz": Row("elementwise", "elementwise", "elementwise", Family.JUMPS),
    "round_nearest_even": Row("elementwise", "elementwise", "elementwise", Family.JUMPS),
    "rsqrt": Row("elementwise", "elementwise", "elementwise", Family.OF_POSITIVES | Family.HAS_EDGES),
    "scatter": Row("scatter", "scatter", "reductions", Family.INDEXED),
    "select": Row("elementwise", "elementwise", "elementwise", Family.KEEPS_INDICES),
    "select_and_scatter": Row("windows", "windows", NONE, Family.CHOOSES),
    "send": Row("opaque", NONE, NONE, Family.POINT_TO_POINT | Family.HAS_EFFECT),
    "shift_left": Row("bits", "elementwise", NONE),
    "shift_right_arithmetic": Row("bits", "elementwise", NONE),
    "shift_right_logical": Row("bits", "elementwise", NONE),
    "sign": Row("elementwise", "elementwise", "elementwise", Family.JUMPS),
    "sine": Row("elementwise", "elementwise", "elementwise"),
    "slice": Row(
        "movement", "movement", "movement", Family.MOVES | Family.SLICES | Family.TAKES_PARTS | Family.KEEPS_INDICES
    ),
    "sort": Row("ordering", "ordering", NONE, Family.CHOOSES),
    "sqrt": Row("elementwise", "elementwise", "elementwise", Family.OF_POSITIVES | Family.HAS_EDGES),
    "subtract": Row("elementwise", "elementwise", "elementwise", Family.ADDS | Family.KEEPS_INDICES),
    "tan": Row("elementwise", "elementwise", "elementwise"),
    "tanh": Row("elementwise", "elementwise", "elementwise"),
    "transpose": Row(
        "movement", "movement", "movement", Family.RESHAPES | Family.MOVES | Family.KEEPS_SPLATS | Family.KEEPS_INDICES
    ),
    "triangular_solve": Row("opaque", "linear_algebra", NONE, Family.REPEATABLE),
    "while": Row("control", "control", "claims", Family.CONTROL),
    "xor": Row("bits", "elementwise", "elementwise"),
    "chlo.acos": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "chlo.acosh": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "chlo.asin": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "chlo.asinh": Row("elementwise", "elementwise", NONE),
    "chlo.atan": Row("elementwise", "elementwise", NONE),
    "chlo.atanh": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "chlo.bessel_i1e": Row("elementwise", NONE, NONE),
    "chlo.cosh": Row("elementwise", "elementwise", NONE),
    "chlo.digamma": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "chlo.erf": Row("elementwise", "elementwise", "elementwise"),
    "chlo.erf_inv": Row("elementwise", "elementwise", "elementwise", Family.HAS_EDGES),
    "chlo.erfc": Row("elementwise", "elementwise", "elementwise"),
    "chlo.lgamma": Row("elementwise", "elementwise", "elementwise", Family.HAS_EDGES),
    "chlo.mulhi": Row("elementwise", "elementwise", "elementwise"),
    "chlo.next_after": Row("elementwise", "elementwise", NONE),
    "chlo.polygamma": Row("elementwise", NONE, NONE, Family.HAS_EDGES),
    "chlo.sinh": Row("elementwise", "elementwise", NONE),
    "chlo.square": Row("elementwise", "elementwise", "elementwise"),
    "chlo.tan": Row("elementwise", "elementwise", "elementwise"),
    "chlo.top_k": Row("ordering", "ordering", NONE, Family.CHOOSES),
    "chlo.zeta": Row("elementwise", NONE, NONE, Family.HAS_EDGES),
    "mhlo.acos": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "mhlo.acosh": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "mhlo.all_to_all": Row(
        "collectives", "collectives", "collectives", Family.COLLECTIVE | Family.BY_PARTITION | Family.MOVES
    ),
    "mhlo.asin": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "mhlo.asinh": Row("elementwise", "elementwise", NONE),
    "mhlo.atanh": Row("elementwise", "elementwise", NONE, Family.HAS_EDGES),
    "mhlo.cosh": Row("elementwise", "elementwise", NONE),
    "mhlo.erf": Row("elementwise", "elementwise", "elementwise"),
    "mhlo.scan": Row("scan", NONE, NONE),
    "mhlo.sinh": Row("elementwise", "elementwise", NONE),
    "mhlo.tan": Row("elementwise", "elementwise", "elementwise"),
    "mhlo.topk": Row("ordering", "ordering", NONE, Family.CHOOSES),
    "mhlo.xla.rng_get_and_update_state": Row(NONE, NONE, NONE, Family.NEW),
    "sdy.manual_computation": Row("manual", "manual", "claims", Family.MANUAL),
    "sdy.reshard": Row("movement", "elementwise", "movement", Family.IDENTITY | Family.KEEPS_INDICES),
    "sdy.sharding_constraint": Row("movement", "elementwise", "movement", Family.IDENTITY | Family.KEEPS_INDICES),
}
"""By the names of operations; what a custom call is, its target says."""

CUSTOM_CALL = "custom_call"

TARGETS: Mapping[str, Row] = {
    "ragged_all_to_all": Row("opaque", NONE, NONE, Family.COLLECTIVE),
    "SPMDFullToShardShape": Row("manual", "manual", NONE, Family.MANUAL),
    "SPMDShardToFullShape": Row("manual", "manual", NONE, Family.MANUAL),
    "Sharding": Row("opaque", "manual", "movement", Family.IDENTITY),
    "LayoutConstraint": Row("opaque", "manual", "movement", Family.IDENTITY),
    "MoveToHost": Row("opaque", "manual", "movement", Family.IDENTITY),
    "MoveToDevice": Row("opaque", "manual", "movement", Family.IDENTITY),
    "annotate_device_placement": Row("opaque", "manual", "movement", Family.IDENTITY),
    "xla.sdy.FuncResultSharding": Row("opaque", "manual", "movement", Family.IDENTITY),
    "xla.sdy.PropagationBarrier": Row("opaque", "manual", "movement", Family.IDENTITY),
    "InvertDiagBlocksLowerTriangular": Row("opaque", NONE, NONE),
    "InvertDiagBlocksUpperTriangular": Row("opaque", NONE, NONE),
    "X64Combine": Row("opaque", NONE, NONE),
    "X64SplitLow": Row("opaque", NONE, NONE),
    "X64SplitHigh": Row("opaque", NONE, NONE),
    "TopK": Row("opaque", "manual", NONE),
    "mhlo.topk": Row("opaque", "manual", NONE),
    "AllocateBuffer": Row("kernels", NONE, NONE, Family.NEW),
    "tpu_custom_call": Row("kernels", NONE, NONE, Family.KERNEL),
    "__gpu$xla.gpu.triton": Row("kernels", NONE, NONE, Family.KERNEL),
    "triton_kernel_call": Row("kernels", NONE, NONE, Family.KERNEL),
    "AwsNeuronCustomNativeKernel": Row("kernels", NONE, NONE, Family.KERNEL),
    **dict.fromkeys(LIBRARY_CALLS, Row("kernels", NONE, NONE)),
    **dict.fromkeys(EVALUATED, Row("kernels", "linear_algebra", NONE)),
}
"""By the targets of custom calls."""
