"""fft: products with matrices of roots of unity, along one dimension after the other.

    FFT    y[k] = sum j<n. x[j] * exp(-2*pi*i*j*k/n)          IFFT   with exp(2*pi*i*j*k/n) / n
    RFFT   the first n div 2 + 1 of these, of real numbers, along the last dimension, and FFT along the others
    IRFFT  IFFT along the others; along the last the real numbers whose first n div 2 + 1 are these

(StableHLO, "fft".) Along a dimension that is transformed, each index is a class of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import acb, arb

from hlo_verify.evaluate.balls import BALLS
from hlo_verify.evaluate.blocks import Blocks, replaced, spread
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import storage
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.totals import matrix_product
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Op


def _fft(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    (x,) = args
    kind = str(op.attributes["fft_type"]).rstrip(">").split()[-1].split(".")[-1]
    lengths = [int(n) for n in op.attributes["fft_length"]]
    if 0 in x.shape or kind not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise UnknownError(f"a Fourier transform {kind} of {x.shape}")
    if x.values.dtype == object and not all(isinstance(each, arb | acb) for each in x.values.reshape(-1)):
        raise UnknownError("a Fourier transform of what is no number")
    *before, last = range(1 + len(x.shape) - len(lengths), 1 + len(x.shape))
    sign = 1 if kind.startswith("I") else -1
    whole = _roots(lengths[-1], x.values.dtype, sign, run)
    if kind != "IRFFT":
        x = _along(x, last, whole[:, : lengths[-1] // 2 + 1] if kind == "RFFT" else whole, run)
    for axis, n in zip(before, lengths, strict=False):
        x = _along(x, axis, _roots(n, x.values.dtype, sign, run), run)
    if kind == "IRFFT":
        x = _real(x, last, whole[: lengths[-1] // 2 + 1], run)
    stored = storage(op.types[0].dtype, run.real)
    return [x if stored == BALLS else Blocks(x.classes, x.values.astype(stored))]


def _roots(n: int, dtype: np.dtype[Any], sign: int, run: Run) -> Array:
    """The matrix of a transform along a dimension of that size; inverse ones are divided by it."""
    run.spend(2 * n * n)
    count = n if sign > 0 else 1
    if dtype == BALLS:
        turns = [arb(2 * k * sign) / n for k in range(n)]
        roots = np.array([acb(turn.cos_pi(), turn.sin_pi()) / count for turn in turns] + [None], object)[:n]
    else:
        roots = np.exp(2j * np.pi * sign * np.arange(n) / n) / count
    return np.asarray(roots[np.outer(np.arange(n), np.arange(n)) % n])


def _along(x: Blocks, axis: int, matrix: Array, run: Run) -> Blocks:
    """The tensor times a matrix along an axis."""
    run.fits(x.values.size // x.values.shape[axis] * len(x.classes[axis]) * x.values.itemsize / 8)
    x = spread(x, axis, run.maps)
    rows = np.moveaxis(x.values, axis, -1)
    size, count = matrix.shape
    run.spend(rows.size // size * count)
    run.toil(rows.size * count / 8)
    product = matrix_product(np.ascontiguousarray(rows).reshape(1, -1, size), matrix[None])
    values = np.moveaxis(product.reshape(*rows.shape[:-1], count), -1, axis)
    return replaced(x, axis, run.maps.distinct(count) if count > 1 else run.maps.constant(1), np.asarray(values))


def _real(x: Blocks, axis: int, inverse: Array, run: Run) -> Blocks:
    """The real numbers of whose transform this is the first half: the other one has the conjugates of it."""
    n = inverse.shape[1]
    times = np.array([1 if k in (0, n / 2) else 2 for k in range(len(inverse))])
    x = _along(x, axis, inverse * times[:, None], run)
    if x.values.dtype != object:
        return Blocks(x.classes, np.ascontiguousarray(x.values.real))
    real = np.frompyfunc(lambda z: z.real if isinstance(z, acb) else z, 1, 1)
    return Blocks(x.classes, np.asarray(real(x.values), object))


RULES: dict[str, Rule] = {"fft": _fft}
