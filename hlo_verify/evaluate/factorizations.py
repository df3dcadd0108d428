"""Factorizations of one matrix, as LAPACK has them: of floats, or of balls that hold the exact results.

Each is straight-line arithmetic, but for what its algorithm chooses: the row with the greatest element, the sign of a
reflection. Where balls leave a choice open, and where a matrix has no such factorization, `ArgumentsError` is raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb

from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.unknown import ArgumentsError


def cholesky(a: Array) -> Array:
    """The lower factor of a symmetric matrix that its lower triangle gives; above the diagonal is what was there."""
    a = a.copy()
    for k in range(len(a)):
        a[k, k] = _root(a[k, k])
        column = a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        below = np.tril_indices(len(column))
        a[k + 1 :, k + 1 :][below] -= np.multiply.outer(column, column)[below]
    return a


def solved(a: Array, b: Array, *, is_lower: bool, has_unit_diagonal: bool) -> Array:
    """`x` with `a @ x = b`, of which `a` is read in one triangle only."""
    x = b.copy()
    for k in range(len(a)) if is_lower else range(len(a) - 1, -1, -1):
        if not has_unit_diagonal:
            _expect(a[k, k] != 0, "a triangular system that may be singular")
            x[k] = x[k] / a[k, k]
        left = slice(k + 1, None) if is_lower else slice(0, k)
        x[left] = x[left] - np.multiply.outer(a[left, k], x[k])
    return x


def lu(a: Array) -> tuple[Array, Array]:
    """Both factors in one matrix, and for each step the row that its own was exchanged with, counted from 1."""
    a = a.copy()
    rows, count = len(a), min(a.shape)
    pivots = np.zeros(count, np.int64)
    for k in range(count):
        p = k + _greatest(abs(a[k:, k]))
        pivots[k] = p + 1
        a[[k, p]] = a[[p, k]]
        _expect(a[k, k] != 0, "a matrix that may be singular")
        if k + 1 < rows:
            a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
            a[k + 1 :, k + 1 :] = a[k + 1 :, k + 1 :] - np.multiply.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, pivots


def householder(a: Array) -> tuple[Array, Array]:
    """R on and above the diagonal, the reflections below it, and how much each of them reflects (`geqrf`)."""
    a = a.copy()
    count = min(a.shape)
    taus = np.array([a.flat[0] * 0] * count, a.dtype)
    for k in range(count):
        alpha, below = a[k, k], a[k + 1 :, k]
        length = (below * below).sum() if len(below) else 0
        if not len(below) or _is_nothing(below):
            continue
        _expect(length > 0, "a reflection that may be none")
        _expect(alpha > 0 or alpha < 0, "a reflection of an unknown sign")
        norm = _root(alpha * alpha + length)
        beta = -norm if alpha > 0 else norm
        taus[k] = (beta - alpha) / beta
        a[k, k], a[k + 1 :, k] = beta, below / (alpha - beta)
        a[k:, k + 1 :] = _reflected(a[k:, k + 1 :], a[k + 1 :, k], taus[k])
    return a, taus


def product_of_reflections(a: Array, taus: Array) -> Array:
    """The first columns of the orthogonal matrix that reflections make (`orgqr`), as many as they have."""
    zero = a.flat[0] * 0
    q = np.full(a.shape, zero, a.dtype)
    for k in range(a.shape[1]):
        q[k, k] = zero + 1
    for k in range(len(taus) - 1, -1, -1):
        q[k:] = _reflected(q[k:], a[k + 1 :, k], taus[k])
    return q


def _reflected(a: Array, v: Array, tau: Any) -> Array:
    """`a - tau (1, v) (1, v)^T a`."""
    if not a.size:
        return a
    row = a[0].copy()
    for k in range(len(v)):
        row = row + v[k] * a[k + 1]
    row = tau * row
    return np.concatenate([(a[0] - row)[None], a[1:] - np.multiply.outer(v, row)])


def eigenvalues(a: Array) -> Array:
    """Those of a symmetric matrix, which its lower triangle gives, in ascending order."""
    a = _symmetric(a)
    if a.dtype != object:
        return np.linalg.eigvalsh(a)
    return _array([value for value, _ in _eigenpairs(a)])


def eigenvectors(a: Array, signs: Sequence[int]) -> tuple[Array, Array]:
    """The eigenvalues of a symmetric matrix of balls, and a vector of length 1 for each as a column, times 1 or -1."""
    pairs = _eigenpairs(_symmetric(a))
    vectors = [_vector(there) * sign for sign, (_, there) in zip(signs, pairs, strict=True)]
    return _array([value for value, _ in pairs]), np.stack(vectors, axis=1)


def _symmetric(a: Array) -> Array:
    if a.dtype == object:
        return np.where(np.tri(len(a), dtype=bool), a, a.T)
    return np.tril(a) + np.tril(a, -1).T


def _eigenpairs(a: Array) -> list[tuple[Any, Array]]:
    """In ascending order, each eigenvalue with a multiple of its vector, which complex balls hold."""
    matrix: Any = acb_mat
    try:
        values, vectors = matrix(*a.shape, [acb(x) for x in a.reshape(-1)]).eig(right=True)
    except (ValueError, ZeroDivisionError):
        raise ArgumentsError("eigenvalues that may be equal") from None
    columns = [_array([vectors[k, n] for k in range(len(a))]) for n in range(len(a))]
    pairs = sorted(((z.real, column) for z, column in zip(values, columns, strict=True)), key=lambda p: float(p[0]))
    _expect(all(x < y for (x, _), (y, _) in pairwise(pairs)), "eigenvalues that may be equal")
    return pairs


def _vector(multiple: Array) -> Array:
    """The real vector v of length 1 of which a vector is a multiple, and that has a positive product with one w: as
    `u u* / u* u` is `v v^T` whatever multiple u is, v is `(v v^T) w / sqrt(w^T (v v^T) w)`."""
    conjugate = _array([z.conjugate() for z in multiple])
    length = (multiple * conjugate).sum().real
    _expect(length > 0, "an eigenvector that may be nothing")
    w = _array([arb(n + 3) / (n + 2) for n in range(len(multiple))])
    onto = _array([z.real / length for z in multiple * (conjugate * w).sum()])
    vector: Array = onto / _root((onto * w).sum())
    return vector


def _array(values: list[Any]) -> Array:
    return np.array([*values, None], object)[:-1]


def singular_values(a: Array) -> Array:
    """In descending order."""
    if a.dtype != object:
        return np.linalg.svd(a, compute_uv=False)
    if a.shape[0] > a.shape[1]:
        a = a.T
    squares = eigenvalues(np.asarray(np.matmul(a, a.T)))
    return _array([*map(_root, squares[::-1])])


def singular_vectors(a: Array, signs: Sequence[int]) -> tuple[Array, Array, Array]:
    """`u`, the singular values s, and `vt`, with `(u * s) @ vt` the matrix of balls: as many vectors as values, each
    times 1 or -1."""
    if a.shape[0] > a.shape[1]:
        u, s, vt = singular_vectors(a.T, signs)
        return vt.T, s, u.T
    squares, vectors = eigenvectors(np.asarray(np.matmul(a, a.T)), signs)
    s, u = _array([*map(_root, squares[::-1])]), vectors[:, ::-1]
    return u, s, np.asarray(np.matmul(u.T, a)) / s[:, None]


def _expect(is_so: object, otherwise: str) -> None:
    if not is_so:
        raise ArgumentsError(otherwise)


def _root(x: Any) -> Any:
    _expect(x > 0, "a root of what may be no positive number")
    return x.sqrt() if isinstance(x, arb) else math.sqrt(x)


def _greatest(column: Array) -> int:
    """Which element is surely the greatest; of floats, the first such."""
    if column.dtype != object:
        return int(np.argmax(column))
    middles = [float(x.mid()) for x in column.tolist()]
    best = middles.index(max(middles))
    others = [x for n, x in enumerate(column) if n != best]
    _expect(all(column[best] > x for x in others), "a choice among elements that may be equally great")
    return best


def _is_nothing(values: Array) -> bool:
    """Whether all elements are zero, exactly."""
    return all(x.is_zero() if isinstance(x, arb) else x == 0 for x in values)
