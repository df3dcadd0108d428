"""Repairs say what the author would write: a mean over devices where the reference means one, not a factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check
from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.refute import refute

MESH = AbstractMesh((2, 4), ("a", "d"), axis_types=(AxisType.Auto,) * 2)
X, W = jax.ShapeDtypeStruct((16, 6), jnp.float32), jax.ShapeDtypeStruct((6, 8), jnp.float32)
Body = Callable[..., Any]


def mean(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w).mean()


def total(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w).sum()


gradient = jax.grad(mean)

CASES: dict[str, tuple[Body, Body, str, Mismatch]] = {
    "a sum of means": (
        mean,
        lambda w, x: lax.psum(mean(w, x), "d"),
        "the mean (pmean) over 'd' in place of the sum (psum) at ",
        Mismatch.WRONG_FACTOR,
    ),
    "a mean of sums": (
        total,
        lambda w, x: lax.pmean(total(w, x), "d"),
        "the sum (psum) over 'd' in place of the mean (pmean) at ",
        Mismatch.WRONG_FACTOR,
    ),
    "a sum of gradients of means": (
        gradient,
        lambda w, x: lax.psum(gradient(w, x), "d"),
        "the mean (pmean) over 'd' in place of the sum (psum) at ",
        Mismatch.WRONG_FACTOR,
    ),
    "a mean that is left out": (mean, mean, "a mean (pmean) over 'd' after ", Mismatch.NEVER_REDUCED),
    "a sum that is left out": (total, total, "an all_reduce over 'd' after ", Mismatch.NEVER_REDUCED),
    "a mean of gradients that is left out": (
        gradient,
        gradient,
        "a mean (pmean) over 'd' after ",
        Mismatch.NEVER_REDUCED,
    ),
    "a mean of squares": (
        lambda w, x: mean(w, x) ** 2,
        lambda w, x: lax.pmean(mean(w, x) ** 2, "d"),
        "a mean (pmean) over 'd' after ",
        Mismatch.JOINED_LATE,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_repair_is_what_one_writes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refute, "is_small", lambda pair: False)  # XLA need not run them as well
    plain, local, repair, code = CASES[name]
    distributed = jax.shard_map(local, mesh=MESH, in_specs=(P(), P("d")), out_specs=P(), check_vma=False)
    report = check(plain, distributed, W, X)
    (result,) = report.results
    assert result.verdict is Verdict.REFUTED and result.code is code and result.finding is not None
    assert result.finding.suggestion.startswith(repair), result.finding


def test_complex_values_are_apart_by_no_real_factor() -> None:
    """Nothing takes their real parts alone for that, of which numpy warns."""
    spread = jax.shard_map(lambda x: lax.psum(x.mean(0), "d"), mesh=MESH, in_specs=P("d"), out_specs=P())
    z = jax.ShapeDtypeStruct((16,), jnp.complex64)
    assert check(lambda x: x.mean(0), spread, z).verdict is Verdict.REFUTED
