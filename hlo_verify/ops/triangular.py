"""Triangular systems, each for one column of unknowns with the matrix on its left.

    y A = b    is    Aᵀ yᵀ = bᵀ,      and the lower triangle of A is the upper one of Aᵀ.

So the side on which a matrix stands, and whether it is transposed, have no part in what a solution is.
"""

from __future__ import annotations

from hlo_verify.ops.values import Value, function_of, positions
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import TensorType
from hlo_verify.terms.term import Poly

PLAIN, TRANSPOSED, CONJUGATED = "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"


def solution(a: Value, b: Value, type_: TensorType, *, left: bool, lower: bool, unit: bool, transpose: str) -> Poly:
    """The unknowns, of which every column is solved by itself (every row, where `a` stands on the right)."""
    rank = len(b.shape)
    own = [rank - 2 if left else rank - 1]
    conjugated = transpose == CONJUGATED and not is_float(a.type.dtype)
    if left == (transpose != PLAIN):
        *batch, row, column = positions(a.shape)
        a, lower = Value(a.type, a.at([*batch, column, row])), not lower
    key = ("lower", str(lower)), ("unit_diagonal", str(unit)), ("conjugated", str(conjugated))
    return function_of("triangular_solve", key, [(a, range(rank - 2, rank)), (b, own)], type_, own)
