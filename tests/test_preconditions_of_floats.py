"""Preconditions of floats: signs, and ranges that decide comparisons and extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, PartitionSpec

from hlo_verify import Verdict, verify
from tests.support.lowering import Placed

P = PartitionSpec

FLOATS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Any, Any]] = {
    "absolute value": (lambda x, y: jnp.abs(x) * y, lambda x, y: x * y, "nonnegative", (-1, 5)),
    "root of a square": (lambda x, y: jnp.sqrt(x * x) * y, lambda x, y: x * y, "nonnegative", (-1, 5)),
    "relu": (lambda x, y: jnp.maximum(x, 0) * y, lambda x, y: x * y, "nonnegative", (-1, 5)),
    "condition": (lambda x, y: jnp.where(x > 0, y, 0), lambda x, y: y, "positive", "nonnegative"),
    "clip": (lambda x, y: jnp.clip(x, 0, 1) * y, lambda x, y: x * y, "(0, 1]", "(0, 2]"),
    "comparison": (lambda x, y: jnp.where(x < 2, y, 0), lambda x, y: y, (-3, 2), "[-3, 2]"),
    "difference": (lambda x, y: jnp.abs(1 - x) * y, lambda x, y: (1 - x) * y, "[0, 1]", "[0, 2]"),
}
"""What is equal for floats of one range, and differs for some of another."""


def _of_floats(whole: Callable[[Any, Any], Any], local: Callable[[Any, Any], Any]) -> tuple[str, str]:
    shapes = [jax.ShapeDtypeStruct((8,), jnp.float32)] * 2
    return Placed(AbstractMesh((4,), ("i",)), (P("i"), P("i")), P("i"), shapes).pair(whole, local)


@pytest.mark.parametrize("what", FLOATS)
def test_ranges_of_floats(what: str) -> None:
    whole, local, within, beyond = FLOATS[what]
    modules = _of_floats(whole, local)
    assert verify(*modules, assume={"x": within}, refute=False).verdict is Verdict.PROVED
    assert verify(*modules, assume={"x": beyond}, refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.parametrize("what", ["relu", "clip", "difference"])
def test_floats_of_a_witness_are_such_as_are_allowed(what: str) -> None:
    whole, local, within, beyond = FLOATS[what]
    modules = _of_floats(whole, local)
    assert verify(*modules, assume={"x": within}).verdict is Verdict.PROVED
    report = verify(*modules, assume={"x": beyond})
    assert report.verdict is Verdict.REFUTED
    assert report.suggestion is None


def test_a_range_that_no_proof_uses_is_one_of_the_search() -> None:
    """Whether a product is below a bound is no question that proofs answer; no input shows that it is not."""
    modules = _of_floats(lambda x, y: jnp.where(x * x < 4, y, 0), lambda x, y: y)
    assert verify(*modules).verdict is Verdict.REFUTED
    assert verify(*modules, assume={"x": (-1, 1)}).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("what", ["absolute value", "relu", "condition", "clip"])
def test_the_second_check_knows_of_floats(what: str) -> None:
    whole, local, within, _ = FLOATS[what]
    report = verify(*_of_floats(whole, local), assume={"x": within}, recheck=True)
    assert report.verdict is Verdict.PROVED
    assert report.recheck is not None and not report.recheck.disagreements
