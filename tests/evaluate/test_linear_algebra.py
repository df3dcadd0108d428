"""Factorizations of numbers and of enclosures are what LAPACK makes of them, as XLA calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from hlo_verify.evaluate import Blocks, Evaluation, dense, evaluate, of_dense
from hlo_verify.evaluate.balls import exact, is_unknown, number, precision
from hlo_verify.evaluate.signs import is_opposite, other_choices
from hlo_verify.passes.load.load import load
from tests.support.compare import Array

solve = lax.linalg.triangular_solve


def definite(a: jax.Array) -> jax.Array:
    return jnp.matmul(a, a.mT) + jnp.eye(a.shape[-1])


SQUARE, TALL, WIDE = (2, 4, 4), (2, 5, 3), (2, 3, 5)
CALLS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "cholesky": (lambda a: jnp.linalg.cholesky(definite(a)), (SQUARE,)),
    "upper cholesky": (lambda a: jnp.linalg.cholesky(definite(a), upper=True), (SQUARE,)),
    "one number": (lambda a: jnp.linalg.cholesky(definite(a)), ((1, 1),)),
    "lu": (lambda a: lax.linalg.lu(a), (SQUARE,)),
    "lu of a tall matrix": (lambda a: lax.linalg.lu(a), (TALL,)),
    "lu of a wide matrix": (lambda a: lax.linalg.lu(a), (WIDE,)),
    "qr": (jnp.linalg.qr, (SQUARE,)),
    "qr of a tall matrix": (jnp.linalg.qr, (TALL,)),
    "qr of a wide matrix": (jnp.linalg.qr, (WIDE,)),
    "complete qr": (partial(jnp.linalg.qr, mode="complete"), (TALL,)),
    "qr of a triangle": (lambda a: jnp.linalg.qr(jnp.triu(a)), (SQUARE,)),
    "eigenvalues": (lambda a: jnp.linalg.eigvalsh(a + a.mT), (SQUARE,)),
    "eigenvalues of the upper half": (partial(jnp.linalg.eigvalsh, UPLO="U", symmetrize_input=False), (SQUARE,)),
    "eigenvalues of the lower half": (partial(jnp.linalg.eigvalsh, UPLO="L", symmetrize_input=False), (SQUARE,)),
    "singular values": (partial(jnp.linalg.svd, compute_uv=False), (SQUARE,)),
    "singular values of a tall matrix": (partial(jnp.linalg.svd, compute_uv=False), (TALL,)),
    "singular values of a wide matrix": (lambda a: jnp.linalg.svd(a)[1], (WIDE,)),
    "solve": (jnp.linalg.solve, ((3, 3), (3, 2))),
    "solve batched": (jnp.linalg.solve, (SQUARE, (2, 4, 3))),
    "inverse": (jnp.linalg.inv, (SQUARE,)),
    "determinant": (jnp.linalg.det, (SQUARE,)),
    "least squares": (lambda a, b: jnp.linalg.solve(a.mT @ a, a.mT @ b), (TALL, (2, 5, 2))),
}
for left in (False, True):
    for lower in (False, True):
        for transposed in (False, True):
            for unit in (False, True):
                settings = {"left_side": left, "lower": lower, "transpose_a": transposed, "unit_diagonal": unit}
                name = "triangle " + " ".join(key for key, is_set in settings.items() if is_set)
                CALLS[name] = partial(solve, **settings), ((2, 3, 3), (2, 3, 2) if left else (2, 2, 3))


def drawn(shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
    generator = np.random.default_rng(len(shapes[0]))
    return [(generator.normal(size=shape) + 2 * (n == 0) * np.eye(*shape[-2:])).astype(np.float32)
            for n, shape in enumerate(shapes)]  # fmt: skip


def evaluated(function: Callable[..., Any], arguments: list[Array], **options: Any) -> Evaluation:
    text = jax.jit(function).lower(*arguments).as_text()
    values = [of_dense(exact(x) if options else x) for x in arguments]
    return evaluate(load(text), values, 1, **options)


def whole(blocks: Blocks | None) -> Array:
    assert blocks is not None
    return dense(blocks, 0)


@pytest.mark.parametrize("name", CALLS)
def test_numbers_and_balls_are_what_xla_computes(name: str) -> None:
    function, shapes = CALLS[name]
    arguments = drawn(shapes)
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    found = evaluated(function, arguments)
    enclosed = evaluated(function, arguments, real=np.dtype(object))
    assert not found.unknown and not enclosed.unknown
    for plain, balls, right in zip(found.results, enclosed.results, wanted, strict=True):
        np.testing.assert_allclose(whole(plain), right, rtol=2e-3, atol=2e-4)
        for ball, value in zip(whole(balls).reshape(-1), whole(plain).reshape(-1), strict=True):
            assert np.isclose(number(ball), value, rtol=1e-9, atol=1e-12)
            assert not isinstance(ball, arb) or (ball.is_finite() and ball.rad() < 1e-9)


@pytest.mark.parametrize("bits", [64, 256])
def test_balls_hold_what_factors_multiply_to(bits: int) -> None:
    (a,) = drawn((SQUARE,))

    def parts(a: jax.Array) -> tuple[jax.Array, ...]:
        lower = jnp.linalg.cholesky(definite(a))
        q, r = jnp.linalg.qr(a)
        return (
            lower @ lower.mT - definite(a),
            q @ r - a,
            q @ q.mT - jnp.eye(4),
            a @ jnp.linalg.inv(a) - jnp.eye(4),
            jnp.prod(jnp.linalg.eigvalsh(definite(a)), -1) - jnp.prod(jnp.diagonal(lower, axis1=1, axis2=2) ** 2, -1),
            jnp.sum(jnp.linalg.svd(a, compute_uv=False) ** 2, -1) - jnp.sum(a * a, (-1, -2)),
        )

    with precision(bits):
        found = evaluated(parts, [a], real=np.dtype(object))
        assert not found.unknown
        for blocks in found.results:
            for ball in whole(blocks).reshape(-1):
                assert ball.contains(0) and ball.rad() < arb(2) ** (30 - bits)


SINGULAR = np.array([[1, 2], [2, 4]], np.float32)
NONE: dict[str, tuple[Callable[..., Any], Array]] = {
    "an indefinite matrix": (jnp.linalg.cholesky, np.array([[1, 2], [2, 1]], np.float32)),
    "a singular matrix": (jnp.linalg.inv, SINGULAR),
    "a semidefinite matrix": (jnp.linalg.cholesky, SINGULAR),
    "no number": (jnp.linalg.inv, np.array([[1, 2], [2, np.nan]], np.float32)),
    "complex numbers": (lambda a: jnp.linalg.inv(a + 1j), np.array([[1, 2], [2, 9]], np.float32)),
}


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_factorization_is_not_known(name: str) -> None:
    function, a = NONE[name]
    assert evaluated(function, [a]).results == (None,)
    assert evaluated(function, [a], real=np.dtype(object)).results == (None,)


CHOICES: dict[str, tuple[Callable[..., Any], Array]] = {
    "a pivot among equals": (lax.linalg.lu, np.array([[1, 2], [-1, 4]], np.float32)),
    "equal eigenvalues": (jnp.linalg.eigvalsh, np.eye(3, dtype=np.float32)),
    "a sign of zero": (partial(jnp.linalg.qr, mode="r"), np.array([[0, 2], [1, 4]], np.float32)),
    "a singular value of zero": (partial(jnp.linalg.svd, compute_uv=False), SINGULAR),
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_a_rounding_decides_is_not_enclosed(name: str) -> None:
    function, a = CHOICES[name]
    assert all(result is None for result in evaluated(function, [a], real=np.dtype(object)).results)


@pytest.mark.parametrize("signs", [0, *other_choices(8)])
@pytest.mark.parametrize("shape", [SQUARE, TALL, WIDE, (1, 1, 1)])
def test_balls_hold_eigenvectors_and_singular_vectors(shape: tuple[int, ...], signs: int) -> None:
    (a,) = drawn((shape,))

    def parts(a: jax.Array) -> tuple[jax.Array, ...]:
        one = jnp.eye(a.shape[-2])
        symmetric = a @ a.mT + jnp.diag(jnp.arange(a.shape[-2]) + 0.5)
        values, v = jnp.linalg.eigh(symmetric)
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        return (v * values[:, None]) @ v.mT - symmetric, v.mT @ v - one, (u * s[:, None]) @ vt - a

    with precision(128):
        found = evaluated(parts, [a], real=np.dtype(object), signs=signs)
        assert found.vectors and not found.unknown
        for blocks in found.results:
            for ball in whole(blocks).reshape(-1):
                assert ball.contains(0) and ball.rad() < 1e-25


def test_each_vector_of_an_evaluation_has_a_sign_of_its_own() -> None:
    """Those of one matrix of a batch are numbered after those of the one before."""
    (a,) = drawn((SQUARE,))
    count = int(np.prod(SQUARE[:-1]))

    def vectors(choice: int) -> Evaluation:
        return evaluated(lambda a: jnp.linalg.eigh(a + a.mT)[1], [a], real=np.dtype(object), signs=choice)

    first = whole(vectors(0).results[0])
    assert vectors(0).vectors == count
    for choice in other_choices(count):
        flips = [-1 if is_opposite(n, choice) else 1 for n in range(count)]
        signed = whole(vectors(choice).results[0]) * np.reshape(flips, (*SQUARE[:-2], 1, SQUARE[-1]))
        assert all(x.overlaps(y) and not x.contains(0) for x, y in zip(first.flat, signed.flat, strict=True))


def test_vectors_beyond_the_values_are_not_enclosed() -> None:
    (a,) = drawn((TALL,))
    left, _, right = evaluated(jnp.linalg.svd, [a], real=np.dtype(object)).results
    assert all(is_unknown(x) for x in whole(left)[..., 3:].reshape(-1))
    assert not any(is_unknown(x) for blocks in (left, right) for x in whole(blocks)[..., :3].reshape(-1))


def test_matrices_that_lie_by_rows_are_not_known() -> None:
    (a,) = drawn((SQUARE,))
    text = jax.jit(lax.linalg.lu).lower(a).as_text()
    assert "dense<[1, 2, 0]>" in text
    module = load(text.replace("dense<[1, 2, 0]>", "dense<[2, 1, 0]>"))
    assert evaluate(module, [of_dense(a)], 1).results == (None, None, None)


def test_each_matrix_of_a_batch_is_factored_once() -> None:
    a = np.array([[4.0, 1], [1, 3]], np.float32)
    text = jax.jit(lambda x: jnp.linalg.cholesky(x, symmetrize_input=False)).lower(np.stack([a] * 3)).as_text()
    same = Blocks((np.zeros(1, np.int64), np.zeros(3, np.int64), np.arange(2), np.arange(2)), a[None, None])
    (found,) = evaluate(load(text), [same], 1).results
    assert found is not None and found.values.shape[:2] == (1, 1)
    np.testing.assert_allclose(dense(found, 0), np.stack([np.linalg.cholesky(a)] * 3), rtol=1e-6)
