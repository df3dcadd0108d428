"""dot_general: classes of the contracted dimensions are weighted by how often they occur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, refine, taken
from hlo_verify.evaluate.maps import Array, ClassMap
from hlo_verify.evaluate.numbers import held, wrapped
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.totals import matrix_product, rearranged, scaled, total
from hlo_verify.program.ir import Op


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which axes of two arrays go together (axis 0, the devices, among the batch axes), and which are summed over."""

    batch: Sequence[tuple[int, int]]
    summed: Sequence[tuple[int, int]]


def contracted(lhs: Blocks, rhs: Blocks, pairing: Pairing, dtype: str, run: Run) -> Blocks:
    """The sum over pairs of dimensions of products: batch dimensions, then the others of lhs, then those of rhs."""
    left, right = list[Array | None]([None] * lhs.values.ndim), list[Array | None]([None] * rhs.values.ndim)
    batch: list[ClassMap] = []
    for i, j in pairing.batch:
        now, (left[i], right[j]) = refine(
            [(lhs.classes[i], lhs.values.shape[i]), (rhs.classes[j], rhs.values.shape[j])], run.maps
        )
        batch.append(now)
    weights: list[Array] = []
    for i, j in pairing.summed:
        now, (left[i], right[j]) = refine(
            [(lhs.classes[i], lhs.values.shape[i]), (rhs.classes[j], rhs.values.shape[j])], run.maps
        )
        weights.append(run.maps.weights(now) if len(now) else np.zeros(1, np.int64))
    a, b = (held(x, dtype, run.real) for x in taken([lhs.values, rhs.values], [left, right], run.fits))
    a, b = _weighted(a, b, pairing.summed, weights, dtype)
    free = [
        [k for k in range(x.ndim) if all(k != pair[side] for pair in (*pairing.batch, *pairing.summed))]
        for side, x in enumerate((a, b))
    ]
    maps = [*batch, *(lhs.classes[k] for k in free[0]), *(rhs.classes[k] for k in free[1])]
    return Blocks(tuple(maps), wrapped(_product(a, b, pairing, free, run, dtype), dtype, run.real))


def _weighted(
    a: Array, b: Array, summed: Sequence[tuple[int, int]], weights: Sequence[Array], dtype: str
) -> tuple[Array, Array]:
    """The factors, one of them times the weights; what only one of them depends on is summed up at once."""
    for (i, j), weight in zip(summed, weights, strict=True):
        if dtype == "i1":
            if not weight.any():
                a = np.zeros_like(a)
            a = np.asarray(a.any(axis=i, keepdims=True)) if b.shape[j] == 1 else a
            b = np.asarray(b.any(axis=j, keepdims=True)) if a.shape[i] == 1 else b
            continue
        if b.shape[j] == 1 or (a.shape[i] > 1 and a.size <= b.size):
            a = scaled(a, weight.reshape(tuple(-1 if k == i else 1 for k in range(a.ndim))))
            if b.shape[j] == 1:
                a = total(a, i)
        else:
            b = scaled(b, weight.reshape(tuple(-1 if k == j else 1 for k in range(b.ndim))))
            if a.shape[i] == 1:
                b = total(b, j)
    return a, b


def _product(a: Array, b: Array, pairing: Pairing, free: list[list[int]], run: Run, dtype: str) -> Array:
    """The contraction of small arrays, as a product of matrices for each batch index.

    A batch axis along which one factor has size 1 is one of the other's own axes to the product.
    """
    shapes = [np.broadcast_shapes((a.shape[i],), (b.shape[j],))[0] for i, j in pairing.batch]
    result = (*shapes, *(a.shape[k] for k in free[0]), *(b.shape[k] for k in free[1]))
    both = [(n, i, j) for n, (i, j) in enumerate(pairing.batch) if a.shape[i] > 1 and b.shape[j] > 1]
    only_a = [(n, i) for n, (i, j) in enumerate(pairing.batch) if b.shape[j] == 1]
    only_b = [(n, j) for n, (i, j) in enumerate(pairing.batch) if b.shape[j] > 1 and a.shape[i] == 1]
    drop_a, drop_b = (
        [i for i, j in pairing.batch if b.shape[j] > 1 and a.shape[i] == 1],
        [j for _, j in pairing.batch if b.shape[j] == 1],
    )
    drop_a += [i for i, j in pairing.summed if a.shape[i] == 1]
    drop_b += [j for i, j in pairing.summed if b.shape[j] == 1]
    summed = [(i, j) for i, j in pairing.summed if a.shape[i] > 1 and b.shape[j] > 1]
    inner = math.prod(a.shape[i] for i, _ in summed)
    outer = math.prod(a.shape[i] for _, i, _ in both)
    run.spend(math.prod(result))
    run.toil(math.prod(result) * inner / 8)
    to_x = [i for _, i, _ in both] + [i for _, i in only_a] + free[0] + [i for i, _ in summed] + drop_a
    to_y = [j for _, _, j in both] + [j for _, j in summed] + [j for _, j in only_b] + free[1] + drop_b
    x, y = rearranged(a, to_x, (outer, -1, inner)), rearranged(b, to_y, (outer, inner, -1))
    product = np.matmul(x.astype(np.int64), y.astype(np.int64)) > 0 if dtype == "i1" else matrix_product(x, y)
    order = [n for n, _, _ in both] + [n for n, _ in only_a]
    order += [len(shapes) + k for k in range(len(free[0]))]
    order += [n for n, _ in only_b] + [len(shapes) + len(free[0]) + k for k in range(len(free[1]))]
    return np.transpose(product.reshape([result[n] for n in order]), np.argsort(order) if order else [])


def _dot_general(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    numbers = op.attributes["dot_dimension_numbers"]
    lhs, rhs = args

    def pairs(name: str) -> list[tuple[int, int]]:
        left, right = numbers[f"lhs_{name}_dimensions"], numbers[f"rhs_{name}_dimensions"]
        return [(i + 1, j + 1) for i, j in zip(left, right, strict=True)]

    pairing = Pairing([(0, 0), *pairs("batching")], pairs("contracting"))
    return [contracted(lhs, rhs, pairing, op.types[0].dtype, run)]


RULES: dict[str, Rule] = {"dot_general": _dot_general}
