"""What kinds of operations the opcodes of HLO are, by the one table of operations."""

from __future__ import annotations

from hlo_verify.program.op_families import ADDS, COLLECTIVES, SCALES
from hlo_verify.program.operations import ROWS, Family

_IN_STABLEHLO = {
    "broadcast": "broadcast_in_dim",
    "dot": "dot_general",
    "erf": "chlo.erf",
    "mulhi": "chlo.mulhi",
    "round-nearest-afz": "round_nearest_afz",
    "round-nearest-even": "round_nearest_even",
    "rng-get-and-update-state": "mhlo.xla.rng_get_and_update_state",
    "tan": "tan",
}
"""Opcodes whose operations have other names in StableHLO."""

_ELEMENTWISE = ("elementwise", "bits", "comparison", "conversion")
"""The files of index notation whose operations work element by element."""


def operation(opcode: str) -> str:
    """The name of an opcode's operation in the table of operations."""
    return _IN_STABLEHLO.get(opcode, opcode.replace("-", "_"))


def is_elementwise(opcode: str) -> bool:
    """Whether each element of the result is a function of the elements of the operands in its place."""
    row = ROWS.get(operation(opcode))
    return opcode == "copy" or (row is not None and row.notation in _ELEMENTWISE)


def moves(opcode: str) -> bool:
    """Whether it puts elements elsewhere, or fills in what is known, and computes nothing."""
    row = ROWS.get(operation(opcode))
    return opcode in ("copy", "bitcast") or (row is not None and row.notation in ("movement", "constants"))


def is_new(opcode: str) -> bool:
    """Whether its result is no function of its operands: numbers drawn, and what comes from elsewhere."""
    row = ROWS.get(operation(opcode.removesuffix("-done")))
    return row is not None and bool(row.families & Family.NEW)


def adds(opcode: str) -> bool:
    """Whether it is a sum of its operands, or of their negatives."""
    return operation(opcode) in ADDS


def scales(opcode: str) -> bool:
    """Whether it multiplies or divides."""
    return operation(opcode) in SCALES


def is_collective(opcode: str) -> bool:
    """Whether devices exchange what they hold."""
    return operation(opcode.removesuffix("-start")) in COLLECTIVES


def is_linear(opcode: str) -> bool:
    """Whether a sum over devices may be taken after an operation as well as before, of one of its operands."""
    return adds(opcode) or scales(opcode) or opcode in CHANGES_NO_VALUE or opcode == "select"


def is_bent(opcode: str) -> bool:
    """Whether it is an elementwise function that is no sum and no multiple of one operand."""
    return is_elementwise(opcode) and not is_linear(opcode)


CHANGES_NO_VALUE = frozenset(("copy", "convert", "real", "reduce-precision", "complex", "imag"))
"""Elementwise operations that a sum over devices may be taken after as well as before."""
