"""What is rounded to an integer of few bits, against what stays a float."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.terms import whole

Body = Callable[[jax.Array], jax.Array]
FLOATS = jax.ShapeDtypeStruct((8, 6), jnp.float32)


def greatest(x: jax.Array) -> jax.Array:
    return lax.pmax(jnp.max(jnp.abs(x)), "x")


def bits(x: jax.Array, dtype: str = "int8") -> jax.Array:
    return jnp.round(x).astype(dtype).astype("float32")


def where_zero(most: jax.Array, asked: jax.Array | None = None) -> jax.Array:
    return jnp.where((most if asked is None else asked) == 0, 1.0, most / 127)


def where_small(most: jax.Array, least: float) -> jax.Array:
    return jnp.where(most > least, most / 127, 1e-4 * least if least > 1e-3 else least / 100)


def of_all(x: jax.Array) -> jax.Array:
    return bits(x / (jnp.max(jnp.abs(x)) / 127)).sum()


def clipped(x: jax.Array) -> jax.Array:
    return jnp.clip(jnp.round(x * 10), -127, 127).sum()


def rows(x: jax.Array) -> jax.Array:
    scales = jnp.max(jnp.abs(x), 1, keepdims=True) / 127
    return (bits(x / scales) * scales).sum()


def integers(x: jax.Array) -> jax.Array:
    return jnp.round(x).astype("int8").astype("int32").sum()


RIGHT: dict[str, tuple[Body, Body]] = {
    "floats": (of_all, lambda x: lax.psum(jnp.round(x / (greatest(x) / 127)).sum(), "x")),
    "integers": (of_all, lambda x: lax.psum(integers(127 * x / greatest(x)), "x").astype("float32")),
    "clipped first": (clipped, lambda x: lax.psum(bits(jnp.clip(x * 10, -127, 127)).sum(), "x")),
    "clipped after": (
        clipped,
        lambda x: lax.psum(jnp.clip(jnp.round(x * 10), -127, 127).astype("int8").astype("int32").sum(), "x") * 1.0,
    ),
    "a scale for each row": (
        rows,
        lambda x: (
            lax.psum(
                (jnp.round(x * (127 / jnp.max(jnp.abs(x), 1, keepdims=True))).T * jnp.max(jnp.abs(x), 1)).sum(), "x"
            )
            / 127
        ),
    ),
    "no less than a number": (
        lambda x: bits(x / (jnp.maximum(jnp.max(jnp.abs(x)), 1e-6) / 127)).sum(),
        lambda x: lax.psum(jnp.round(x / (jnp.maximum(greatest(x), 1e-6) / 127)).sum(), "x"),
    ),
    "clips nothing": (
        lambda x: jnp.clip(jnp.round(x / (jnp.max(jnp.abs(x)) / 127)), -127, 127).sum(),
        lambda x: lax.psum(bits(x / (greatest(x) / 127)).sum(), "x"),
    ),
    "a scale that is no less than a number": (
        lambda x: bits(jnp.clip(x / jnp.maximum(jnp.max(jnp.abs(x)) / 127, 1e-8), -128, 127)).sum(),
        lambda x: lax.psum(jnp.round(x / jnp.maximum(greatest(x) / 127, 1e-8)).sum(), "x"),
    ),
    "a scale of 1 where all is 0": (
        lambda x: jnp.round(x / where_zero(jnp.max(jnp.abs(x)))).sum(),
        lambda x: lax.psum(jnp.clip(bits(x / where_zero(greatest(x))), -127, 127).sum(), "x"),
    ),
    "a scale of a number where all is small": (
        lambda x: bits(x / where_small(jnp.max(jnp.abs(x), 1, keepdims=True), 1e-6)).sum(),
        lambda x: lax.psum(jnp.round(x / where_small(jnp.max(jnp.abs(x), 1, keepdims=True), 1e-6)).sum(), "x"),
    ),
    "unsigned": (
        lambda x: jnp.floor(255 * jnp.clip(x, 0, 1)).sum(),
        lambda x: lax.psum(jnp.floor(255 * jnp.clip(x, 0, 1)).astype("uint8").astype("float32").sum(), "x"),
    ),
}

WRONG: dict[str, tuple[Body, Body]] = {
    "a scale for each device": (of_all, lambda x: lax.psum(bits(x / (jnp.max(jnp.abs(x)) / 127)).sum(), "x")),
    "clips one": (
        lambda x: jnp.clip(jnp.round(x / (jnp.max(jnp.abs(x)) / 127)), -126, 127).sum(),
        lambda x: lax.psum(bits(x / (greatest(x) / 127)).sum(), "x"),
    ),
    "a scale that is half as large": (
        lambda x: jnp.clip(jnp.round(x / jnp.maximum(jnp.max(jnp.abs(x)) / 254, 1e-8)), -127, 127).sum(),
        lambda x: lax.psum(jnp.round(x / jnp.maximum(greatest(x) / 254, 1e-8)).sum(), "x"),
    ),
    "a scale that is no more than a number": (
        lambda x: jnp.clip(jnp.round(x / jnp.minimum(jnp.max(jnp.abs(x)) / 127, 1e-3)), -127, 127).sum(),
        lambda x: lax.psum(jnp.round(x / jnp.minimum(greatest(x) / 127, 1e-3)).sum(), "x"),
    ),
    "a scale of 1 where another one is 0": (
        lambda x: jnp.round(x / where_zero(jnp.max(jnp.abs(x)), jnp.max(jnp.abs(x - 1)))).sum(),
        lambda x: lax.psum(bits(x / where_zero(greatest(x), greatest(x - 1))).sum(), "x"),
    ),
    "a scale of less where all is small": (
        lambda x: jnp.round(x / where_small(jnp.max(jnp.abs(x)), 0.5)).sum(),
        lambda x: lax.psum(jnp.clip(jnp.round(x / where_small(greatest(x), 0.5)), -127, 127).sum(), "x"),
    ),
    "more than the type has": (
        lambda x: jnp.round(x / (jnp.max(jnp.abs(x)) / 129)).sum(),
        lambda x: lax.psum(bits(x / (greatest(x) / 129)).sum(), "x"),
    ),
    "sums that wrap": (of_all, lambda x: lax.psum(bits(x / (greatest(x) / 127)).astype("int8"), "x").sum() * 1.0),
    "the greatest of other numbers": (
        lambda x: jnp.round(x / (jnp.max(jnp.abs(x - 1)) / 127)).sum(),
        lambda x: lax.psum(bits(x / (greatest(x - 1) / 127)).sum(), "x"),
    ),
    "no absolute values": (
        lambda x: jnp.round(x / (jnp.max(x) / 127)).sum(),
        lambda x: lax.psum(bits(x / (lax.pmax(jnp.max(x), "x") / 127)).sum(), "x"),
    ),
    "not rounded": (
        clipped,
        lambda x: lax.psum(jnp.clip(x * 10, -127, 127).astype("int8").astype("float32").sum(), "x"),
    ),
    "a fraction is left": (
        lambda x: jnp.clip(jnp.round(x * 10), -12.5, 12.5).sum(),
        lambda x: lax.psum(jnp.clip(jnp.round(x * 10), -12.5, 12.5).astype("int8").astype("float32").sum(), "x"),
    ),
    "rounded down": (
        lambda x: jnp.floor(x / (jnp.max(jnp.abs(x)) / 127)).sum(),
        lambda x: lax.psum(jnp.clip(jnp.floor(x / (greatest(x) / 127)), -127, 127).sum(), "x"),
    ),
    "rounded up": (
        lambda x: jnp.ceil(x / (jnp.max(jnp.abs(x)) / 127)).sum(),
        lambda x: lax.psum(bits(jnp.ceil(x / (greatest(x) / 127))).sum(), "x"),
    ),
    "no number": (
        lambda x: jnp.clip(jnp.floor(jnp.log(x)), -9, 9).sum(),
        lambda x: lax.psum(jnp.clip(jnp.floor(jnp.log(x)), -9, 9).astype("int8").astype("float32").sum(), "x"),
    ),
}


def checked(reference: Body, distributed: Body, recheck: bool = False) -> hlo_verify.Report:
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    split = jax.shard_map(distributed, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    return hlo_verify.check(reference, split, FLOATS, recheck=recheck)


def verdict(reference: Body, distributed: Body) -> Verdict:
    return checked(reference, distributed).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_quantised(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("whole_number", [jnp.floor, jnp.ceil])
def test_floats_are_off_by_a_rounding_from_a_greatest_number(whole_number: Body) -> None:
    """`x / (max|x| / 127)` is 127.00001 of some: these are rounded up to 128, or down to -128."""
    x = jax.random.normal(jax.random.key(3), (64, 4))
    found = whole_number(x / (jnp.max(jnp.abs(x), 1, keepdims=True) / 127))
    assert float(jnp.abs(found).max()) == 128


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", WRONG)
def test_other_quantised(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED


@pytest.mark.parametrize("name", ["integers", "clipped after"])
def test_a_second_check_agrees(name: str) -> None:
    found = checked(*RIGHT[name], recheck=True)
    assert found.verdict is Verdict.PROVED
    assert found.recheck is not None and not found.recheck.disagreements


@pytest.mark.usefixtures("prover_alone")
def test_a_second_check_disagrees_where_bounds_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "range_of", lambda p: (-127, 127))
    found = checked(*WRONG["a fraction is left"], recheck=True)
    assert found.recheck is not None and found.recheck.disagreements
