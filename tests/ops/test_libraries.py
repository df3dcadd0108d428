"""Calls to libraries of linear algebra are functions of each matrix of a batch, which devices may share out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as scipy
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

Program = Callable[..., Any]
solved = lax.linalg.triangular_solve


def definite(a: jax.Array) -> jax.Array:
    return jnp.einsum("bij,bkj->bik", a, a) + 5 * jnp.eye(a.shape[-1])


def report(program: Program, local: Program, ins: Any, outs: Any, *shapes: tuple[int, ...]) -> hlo_verify.Report:
    placed = Placed(AbstractMesh((4,), ("x",)), ins, outs, floats(*shapes))
    return hlo_verify.verify(*placed.pair(program, local), refute=False)


BATCHED = P("x"), P("x"), (8, 3, 3)
OF_MATRICES: dict[str, Program] = {
    "cholesky": lambda a: jnp.linalg.cholesky(definite(a)),
    "qr": jnp.linalg.qr,
    "svd": lambda a: jnp.linalg.svd(a, full_matrices=False),
    "eigh": jnp.linalg.eigh,
    "eig": jnp.linalg.eigvals,
    "lu": lambda a: lax.linalg.lu(a)[0],
    "schur": lax.linalg.schur,
    "tridiagonal": lambda a: lax.linalg.tridiagonal(definite(a))[0],
    "hessenberg": lambda a: lax.linalg.hessenberg(a)[0],
    "inverse": jnp.linalg.inv,
    "logarithm of the determinant": lambda a: jnp.linalg.slogdet(a)[1],
    "solve": lambda a: jnp.linalg.solve(a, a[..., :2]),
    "gradient": jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(definite(a)))),
}


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", OF_MATRICES)
def test_a_batch_is_shared_out(name: str) -> None:
    found = report(OF_MATRICES[name], OF_MATRICES[name], *BATCHED)
    assert found.verdict is Verdict.PROVED
    assert any("computes the same of equal matrices" in said for said in found.assumptions)


OTHERS: dict[str, tuple[Program, Program]] = {
    "upper": (lambda a: jnp.linalg.cholesky(a), lambda a: jnp.linalg.cholesky(a, upper=True)),
    "in another order": (lambda a: jnp.linalg.cholesky(a), lambda a: jnp.linalg.cholesky(a[::-1])),
    "of other devices": (
        lambda a: jnp.linalg.eigvalsh(a),
        lambda a: jnp.linalg.eigvalsh(lax.ppermute(a, "x", [(0, 1), (1, 0), (2, 3), (3, 2)])),
    ),
    "reversed": (lambda a: jnp.linalg.eigvalsh(a), lambda a: jnp.linalg.eigvalsh(a)[:, ::-1]),
    "transposed": (lambda a: jnp.linalg.svd(a)[0], lambda a: jnp.linalg.svd(a.transpose(0, 2, 1))[0]),
    "the other triangle": (
        lambda a: scipy.solve_triangular(a, a[..., :2], lower=True),
        lambda a: scipy.solve_triangular(a, a[..., :2], lower=False),
    ),
    "with ones on the diagonal": (
        lambda a: scipy.solve_triangular(a, a[..., :2], lower=True),
        lambda a: scipy.solve_triangular(a, a[..., :2], lower=True, unit_diagonal=True),
    ),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", OTHERS)
def test_another_call_is_not_the_same(name: str) -> None:
    assert report(*OTHERS[name], *BATCHED).verdict is Verdict.UNKNOWN


def test_one_matrix_a_device() -> None:
    whole = lambda a: jnp.linalg.eigvalsh(a)  # noqa: E731
    assert report(whole, lambda a: jnp.linalg.eigvalsh(a[0])[None], P("x"), P("x"), (4, 3, 3)).verdict is Verdict.PROVED


@pytest.mark.parametrize(("lower", "verdict"), [(True, Verdict.PROVED), (False, Verdict.UNKNOWN)])
def test_a_triangular_system_is_solved_column_by_column(lower: bool, verdict: Verdict) -> None:
    whole = lambda a, b: scipy.solve_triangular(a, b, lower=True)  # noqa: E731
    local = lambda a, b: scipy.solve_triangular(a, b, lower=lower)  # noqa: E731
    assert report(whole, local, (P(), P(None, "x")), P(None, "x"), (3, 3), (3, 8)).verdict is verdict


def test_a_triangular_system_is_not_solved_row_by_row() -> None:
    """The unknowns of one system belong together: on the right of a matrix these are rows."""
    whole = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, lower=True)  # noqa: E731
    assert report(whole, whole, (P(), P("x")), P("x"), (3, 3), (8, 3)).verdict is Verdict.PROVED
    other = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True)  # noqa: E731
    square = (P(), P(None, "x")), P(None, "x"), (8, 8), (8, 8)
    assert report(other, other, *square).verdict is Verdict.PROVED
    mixed = lambda a, b: lax.linalg.triangular_solve(a[:2, :2], b.T, left_side=False, lower=True).T  # noqa: E731
    assert report(lambda a, b: other(a[:2, :2], b), mixed, *square[:2], (8, 8), (2, 8)).verdict is Verdict.UNKNOWN


TRIANGLES: dict[str, tuple[bool, Program]] = {
    "masked": (True, lambda a, b: solved(jnp.tril(a), b, left_side=True, lower=True)),
    "something else above": (True, lambda a, b: solved(jnp.triu(a * a + 1, 1) + a, b, left_side=True, lower=True)),
    "transposed": (True, lambda a, b: solved(jnp.tril(a).T, b, left_side=True, lower=False, transpose_a=True)),
    "without the diagonal": (False, lambda a, b: solved(jnp.tril(a, -1) + jnp.eye(3), b, left_side=True, lower=True)),
    "one diagonal more": (False, lambda a, b: solved(jnp.tril(a, -1), b, left_side=True, lower=True)),
    "the other triangle": (False, lambda a, b: solved(jnp.triu(a), b, left_side=True, lower=True)),
}
"""Whether it is the solution by the lower triangle of a."""


@pytest.mark.parametrize("name", TRIANGLES)
def test_one_triangle_is_read(name: str) -> None:
    same, local = TRIANGLES[name]
    whole = lambda a, b: solved(a, b, left_side=True, lower=True)  # noqa: E731
    found = report(whole, local, (P(), P(None, "x")), P(None, "x"), (3, 3), (3, 8))
    assert found.verdict is (Verdict.PROVED if same else Verdict.UNKNOWN)


@pytest.mark.parametrize("offset", [-1, 0])
def test_a_diagonal_of_ones_is_not_read(offset: int) -> None:
    whole = lambda a, b: solved(a, b, left_side=True, lower=True, unit_diagonal=True)  # noqa: E731
    local = lambda a, b: solved(jnp.tril(a, offset), b, left_side=True, lower=True, unit_diagonal=True)  # noqa: E731
    assert report(whole, local, (P(), P(None, "x")), P(None, "x"), (3, 3), (3, 8)).verdict is Verdict.PROVED
    other = lambda a, b: solved(jnp.tril(a, -2), b, left_side=True, lower=True, unit_diagonal=True)  # noqa: E731
    assert report(whole, other, (P(), P(None, "x")), P(None, "x"), (3, 3), (3, 8)).verdict is Verdict.UNKNOWN


TURNED: dict[str, tuple[bool, Program]] = {
    "on the right": (True, lambda a, b: solved(a, b.T, left_side=False, lower=True, transpose_a=True).T),
    "the other triangle, transposed": (
        True,
        lambda a, b: solved(a.T, b, left_side=True, lower=False, transpose_a=True),
    ),
    "both": (True, lambda a, b: solved(a.T, b.T, left_side=False, lower=False).T),
    "not transposed": (False, lambda a, b: solved(a, b.T, left_side=False, lower=True).T),
    "the other triangle": (False, lambda a, b: solved(a, b.T, left_side=False, lower=False, transpose_a=True).T),
    "another matrix": (False, lambda a, b: solved(a.T, b.T, left_side=False, lower=False, transpose_a=True).T),
    "ones": (False, lambda a, b: solved(a, b.T, left_side=False, lower=True, transpose_a=True, unit_diagonal=True).T),
    "the conjugate": (
        False,
        lambda a, b: solved(a, b.T, left_side=False, lower=True, transpose_a=True, conjugate_a=True).T,
    ),
}
"""Whether it is `solve_triangular(a, b, lower=True)`."""


@pytest.mark.parametrize("name", TURNED)
def test_the_side_of_a_triangular_system_does_not_matter(name: str) -> None:
    same, local = TURNED[name]
    whole = lambda a, b: solved(a, b, left_side=True, lower=True)  # noqa: E731
    dtype = jnp.complex64 if name == "the conjugate" else jnp.float32
    shapes = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in ((3, 3), (3, 8)))
    placed = Placed(AbstractMesh((4,), ("x",)), (P(), P(None, "x")), P(None, "x"), shapes)
    verdict = hlo_verify.verify(*placed.pair(whole, local), refute=False).verdict
    assert (verdict is Verdict.PROVED) == same
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3))
    assert np.allclose(whole(a, b), local(a, b), atol=1e-3) == (same or name == "the conjugate")


def module(call: str) -> str:
    """A program on four devices that makes its result of two rows each."""
    return (
        "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
        'func.func public @main(%x: tensor<8x3x3xf32> {mhlo.sharding = "{replicated}"}) -> '
        '(tensor<8x3x3xf32> {mhlo.sharding = "{replicated}"}) {\n'
        f"{call}\nreturn %y#0 : tensor<8x3x3xf32>\n}}\n}}\n"
    )


CALL = """%y:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {
  mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"},
  operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
  result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]
} : (tensor<8x3x3xf32>) -> (tensor<8x3x3xf32>, tensor<8xi32>)"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("uplo = 76", "uplo = 85"),
        ("spotrf", "sgetrf_of_somebody"),
        ('num_batch_dims = "1"', 'num_batch_dims = "0"'),
        ("operand_layouts = [dense<[1, 2, 0]>", "operand_layouts = [dense<[2, 1, 0]>"),
        ("result_layouts = [dense<[1, 2, 0]>", "result_layouts = [dense<[0, 1, 2]>"),
        ("result_layouts", "has_side_effect = true, result_layouts"),
        ("result_layouts", "backend_config = {uplo = 85 : ui8}, api_version = 4 : i32, result_layouts"),
        ('num_batch_dims = "1"', 'num_batch_dims = "1", window = "size=3"'),
    ],
)
def test_a_call_is_known_by_all_that_it_says(before: str, after: str) -> None:
    assert hlo_verify.verify(module(CALL), module(CALL), refute=False).verdict is Verdict.PROVED
    other = CALL.replace(before, after)
    assert other != CALL
    assert hlo_verify.verify(module(CALL), module(other), refute=False).verdict is not Verdict.PROVED


def test_how_a_call_may_be_split_does_not_matter() -> None:
    rule = "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i]) {i=8, j=3, k=3, l=3, m=3}, custom>,"
    other = re.sub(r"mhlo.frontend_attributes = \{.*?\},", rule, CALL)
    assert hlo_verify.verify(module(CALL), module(other), refute=False).verdict is Verdict.PROVED
