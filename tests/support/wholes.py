"""Definitions of whole dimensions, on arrays of Python numbers: reductions, sorts, and opaque functions.

A rule takes the tensor, what each of its bodies is for every value of the bound variables, and the evaluator; it gives
an array that the definition's last indices look up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hlo_verify.ops import regions
from hlo_verify.terms.ordered import UPWARDS
from hlo_verify.terms.term import Tensor
from tests.support.functions import is_integer, wrap

if TYPE_CHECKING:
    from tests.support.evaluate import Evaluator

Array = npt.NDArray[Any]

REDUCTIONS: dict[str, Callable[[Array, tuple[int, ...]], Any]] = {
    "sum": lambda body, axes: np.add.reduce(body, axis=axes),
    "product": lambda body, axes: np.multiply.reduce(body, axis=axes),
    "max": lambda body, axes: np.maximum.reduce(body, axis=axes),
    "min": lambda body, axes: np.minimum.reduce(body, axis=axes),
    "term": lambda body, axes: body,
}


def region(key: Any, arguments: list[Any], evaluator: Evaluator) -> list[Any]:
    """The results of a reducer or comparator (a `regions.region_terms`) on scalars."""
    from tests.support.evaluate import Evaluator

    symbols = {s: s.dtype for s in regions.placeholders().values()}
    numbered = {int(s.name.removeprefix("a")): [] for s in symbols}
    for s in symbols:
        numbered[int(s.name.removeprefix("a"))].append(s)
    tensors = {s: np.asarray(x, dtype=object) for n, x in enumerate(arguments) for s in numbered.get(n, [])}
    inner = Evaluator({})
    inner.tensors = {**evaluator.tensors, **tensors}
    return [inner.poly(p, {})[()] for p in key]


def _sort(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    key, _, n = source.attributes
    if key == UPWARDS:
        return bodies[n][sorted(range(len(bodies[0])), key=lambda k: bodies[0][k])]

    def compare(i: int, j: int) -> int:
        def less(a: int, b: int) -> bool:
            return bool(region(key, [x for body in bodies for x in (body[a], body[b])], evaluator)[0])

        return -1 if less(i, j) else 1 if less(j, i) else 0

    order = sorted(range(len(bodies[0])), key=cmp_to_key(compare))
    return bodies[n][order]


def _top_k(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    largest, n, dtype, _ = source.attributes
    body = bodies[0]
    if is_integer(dtype):
        body = np.array([wrap(dtype, x) for x in body], dtype=object)
    order = sorted(range(len(body)), key=lambda i: (-body[i] if largest else body[i], i))
    return body[order] if n == 0 else np.asarray(order, dtype=object)


def _reduce(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    """A fold in row-major order, from the initial values."""
    key, n = source.attributes
    count = len(bodies) // 2
    state = [body.flat[0] for body in bodies[count:]]
    for row in zip(*(body.flat for body in bodies[:count]), strict=True):
        state = region(key, [*state, *row], evaluator)
    return np.asarray(state[n], dtype=object)


def _best(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    """The index of the best of pairs, the least one of equal values."""
    values, indices, first, place = bodies
    sign = -1 if source.kind == "argmax" else 1
    rows = [*zip(values.flat, indices.flat, strict=True), (first.flat[0], place.flat[0])]
    return np.asarray(min(rows, key=lambda row: (sign * row[0], row[1]))[1], dtype=object)


def _options(source: Tensor) -> dict[str, str]:
    return dict(source.attributes[0])


def _operands(source: Tensor, bodies: list[Array]) -> list[Array]:
    """Each operand of a `values.function_of` over its own variables; every body comes over those of all."""
    operands, start = [], 0
    for body, (_, sizes) in zip(bodies, source.attributes[1], strict=True):
        own = range(start, start + len(sizes))
        operands.append(body[tuple(slice(None) if k in own else 0 for k in range(body.ndim))])
        start += len(sizes)
    return operands


def _cholesky(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    factor = np.linalg.cholesky(bodies[0].astype(np.float64))
    return factor if _options(source)["lower"] == "True" else factor.T


def _triangular_solve(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    options = _options(source)
    a, b = (body.astype(np.float64) for body in _operands(source, bodies))
    a = np.tril(a) if options["lower"] == "True" else np.triu(a)
    if options["unit_diagonal"] == "True":
        a = a * (1 - np.eye(len(a))) + np.eye(len(a))
    return np.linalg.solve(a, b)


def _fft(source: Tensor, bodies: list[Array], evaluator: Evaluator) -> Any:
    options = _options(source)
    length = [int(n) for n in re.findall(r"\d+", options["fft_length"])]
    data = bodies[0].astype(np.complex128)
    if options["fft_type"] == "IRFFT":
        return np.fft.irfftn(data, s=length, axes=range(data.ndim))
    if options["fft_type"] == "RFFT":
        return np.fft.rfftn(data.real)
    return np.fft.fftn(data) if options["fft_type"] == "FFT" else np.fft.ifftn(data)


WHOLES: dict[str, Callable[[Tensor, list[Array], Any], Any]] = {
    "sort": _sort,
    "top_k": _top_k,
    "reduce": _reduce,
    "argmax": _best,
    "argmin": _best,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "fft": _fft,
}
