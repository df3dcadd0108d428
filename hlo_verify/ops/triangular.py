"""Triangular systems, each for one column of unknowns with the matrix on its left.

    y A = b    is    Aᵀ yᵀ = bᵀ,      and the lower triangle of A is the upper one of Aᵀ.

So the side on which a matrix stands, and whether it is transposed, have no part in what a solution is. Of the matrix
one triangle alone is read, without its diagonal where that is said to be of ones.
"""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.ops.values import Value, function_of, positions
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra, guards
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
    a = Value(a.type, algebra.multiply(_is_read(a, lower=lower, unit=unit), a.term))
    key = ("lower", str(lower)), ("unit_diagonal", str(unit)), ("conjugated", str(conjugated))
    return function_of("triangular_solve", key, [(a, range(rank - 2, rank)), (b, own)], type_, own)


def _is_read(a: Value, *, lower: bool, unit: bool) -> Poly:
    """Where the elements of a triangle are."""
    *_, row, column = positions(a.shape)
    below = expr.add(row, expr.scale(column, -1))
    return guards.interval(below if lower else expr.scale(below, -1), int(unit), None)
