"""Wrong programs with calls to libraries of linear algebra are refuted, by inputs with which XLA shows it too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

Program = Callable[..., Any]


def definite(a: jax.Array) -> jax.Array:
    return a @ a.mT + jnp.eye(a.shape[-1])


def values(x: jax.Array) -> jax.Array:
    return jnp.linalg.svd(x, compute_uv=False)


WRONG: dict[str, tuple[Program, Program]] = {
    "cholesky": (lambda a: jnp.linalg.cholesky(definite(a)), lambda a: jnp.linalg.cholesky(definite(a.mT))),
    "lu": (lambda a: lax.linalg.lu(a)[0], lambda a: lax.linalg.lu(a.mT)[0]),
    "permutation": (lambda a: lax.linalg.lu(a)[2], lambda a: lax.linalg.lu(-a[::-1])[2]),
    "qr": (lambda a: jnp.linalg.qr(a, mode="r"), lambda a: jnp.linalg.qr(-a, mode="r")),
    "eigenvalues": (lambda a: jnp.linalg.eigvalsh(definite(a)), lambda a: jnp.linalg.eigvalsh(definite(a))[:, ::-1]),
    "singular values": (values, lambda a: values(2 * a)),
    "inverse": (jnp.linalg.inv, lambda a: jnp.linalg.inv(a).mT),
    "determinant": (lambda a: jnp.linalg.slogdet(a)[1], lambda a: jnp.linalg.slogdet(a + jnp.eye(3))[1]),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_refuted(name: str) -> None:
    placed = Placed(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P("x"), P("x"), floats((4, 3, 3)))
    found = hlo_verify.verify(*placed.pair(*WRONG[name]))
    assert found.verdict is Verdict.REFUTED
    assert "which ran both modules" in str(found)


def test_a_sum_that_is_left_out_is_refuted() -> None:
    placed = Placed(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P("x"), P(), floats((4, 3)))
    whole = lambda x: jnp.linalg.solve(x.T @ x + jnp.eye(3), x.sum(0))  # noqa: E731
    right = lambda x: jnp.linalg.solve(lax.psum(x.T @ x, "x") + jnp.eye(3), lax.psum(x.sum(0), "x"))  # noqa: E731
    wrong = lambda x: jnp.linalg.solve(lax.psum(x.T @ x + jnp.eye(3), "x"), lax.psum(x.sum(0), "x"))  # noqa: E731
    assert hlo_verify.verify(*placed.pair(whole, right)).verdict is Verdict.PROVED
    assert hlo_verify.verify(*placed.pair(whole, wrong)).verdict is Verdict.REFUTED


def cholesky_solve(a: jax.Array, b: jax.Array) -> jax.Array:
    return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b)


def root_times(a: jax.Array, b: jax.Array) -> jax.Array:
    """By the roots of eigenvalues: of two that are equal nothing is known, nor of such roots of negative ones."""
    values, v = jnp.linalg.eigh(a)
    return (v * jnp.sqrt(values)) @ (v.T @ b)


@pytest.mark.parametrize("solve", [cholesky_solve, root_times])
def test_what_is_known_for_some_arguments_is_refuted_by_these(solve: Program) -> None:
    """A diagonal that is an argument: negative ones, by which the first inputs are drawn, leave a matrix no factors."""
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    placed = Placed(mesh, (P("x"), P("x"), P()), (P(), P("x")), floats((32, 4), (32,), (1,)))

    def whole(x: jax.Array, y: jax.Array, more: jax.Array) -> tuple[jax.Array, jax.Array]:
        w = solve(x.T @ x + more * jnp.eye(4), x.T @ y)
        return w, x @ w

    def local(x: jax.Array, y: jax.Array, more: jax.Array, times: int) -> tuple[jax.Array, jax.Array]:
        own = jnp.eye(4) * more
        gram = lax.psum(x.T @ x + own, "x") if times > 1 else lax.psum(x.T @ x, "x") + own
        w = solve(gram, lax.psum(x.T @ y, "x"))
        return w, x @ w

    assert hlo_verify.verify(*placed.pair(whole, partial(local, times=1))).verdict is Verdict.PROVED
    assert hlo_verify.verify(*placed.pair(whole, partial(local, times=4))).verdict is Verdict.REFUTED


def low_rank(first: int) -> Program:
    def product(a: jax.Array) -> jax.Array:
        u, s, vt = jnp.linalg.svd(a)
        return (u * s[:, None])[..., first : first + 2] @ vt[:, first : first + 2]

    return product


def function_of(power: float) -> Program:
    def product(a: jax.Array) -> jax.Array:
        values, v = jnp.linalg.eigh(definite(a))
        return (v * values[:, None] ** power) @ v.mT

    return product


OF_VECTORS: dict[str, tuple[Program, Program]] = {
    "the least singular values": (low_rank(0), low_rank(1)),
    "another power": (function_of(0.5), function_of(-0.5)),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", OF_VECTORS)
def test_what_hangs_on_no_signs_is_refuted(name: str) -> None:
    placed = Placed(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P("x"), P("x"), floats((4, 3, 3)))
    found = hlo_verify.verify(*placed.pair(*OF_VECTORS[name]))
    assert found.verdict is Verdict.REFUTED
    assert "which ran both modules" in str(found)


def vectors(a: jax.Array) -> jax.Array:
    return jnp.linalg.eigh(definite(a))[1]


def of_both(a: jax.Array) -> jax.Array:
    return vectors(a)[..., 0] * vectors(a + 1)[..., 0]


OTHER_SIGNS: dict[str, tuple[Program, Program]] = {
    "all": (vectors, lambda a: -vectors(a)),
    "one": (vectors, lambda a: vectors(a).at[..., 0].multiply(-1)),
    "of two": (lambda a: vectors(a)[..., 0] * vectors(a)[..., 2], lambda a: -vectors(a)[..., 0] * vectors(a)[..., 2]),
    "of two matrices": (of_both, lambda a: -of_both(a)),
    "by the first": (vectors, lambda a: vectors(a) * jnp.sign(vectors(a)[:, :1])),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", OTHER_SIGNS)
def test_signs_of_eigenvectors_are_no_witness(name: str) -> None:
    """LAPACK has some sign for each, which no specification says."""
    placed = Placed(AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,)), P("x"), P("x"), floats((4, 3, 3)))
    assert hlo_verify.verify(*placed.pair(*OTHER_SIGNS[name])).verdict is Verdict.UNKNOWN
