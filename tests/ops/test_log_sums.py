"""Windows that add up exponentials and give logarithms, beside sums of exponentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.ops.log_sums import is_log_of_sum
from hlo_verify.passes.load.load import load

Function = Callable[[jax.Array], jax.Array]
MESH = AbstractMesh((4,), ("x",))
LEAST = -np.inf


def windows(
    join: Callable[..., Any] = jnp.logaddexp,
    *,
    first: float = LEAST,
    size: int = 8,
    low: int = 7,
    high: int = 0,
    stride: int = 1,
) -> Function:
    """`lax.reduce_window` along a vector."""
    return lambda x: lax.reduce_window(x, np.float32(first), join, (size,), (stride,), ((low, high),))


def by_offsets(own: int = 0) -> Function:
    """What the devices before it have, added to what each has up to a place; `own` is 1 where it counts its own too."""

    def run(x: jax.Array) -> jax.Array:
        total = jnp.cumsum(jnp.exp(x))
        every = lax.all_gather(total[-1], "x")
        before = jnp.sum(every * (jnp.arange(4) < lax.axis_index("x") + own))
        return jnp.log(total + before)

    return run


def halved(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.logaddexp(a, b) / 2


def by_tanh(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.tanh(jnp.abs(a - b))))


def in_pairs(x: jax.Array) -> jax.Array:
    return jnp.log(jnp.exp(x[0::2]) + jnp.exp(x[1::2]))


PAIRS: dict[str, tuple[Function, Function]] = {
    "cumulative": (lax.cumlogsumexp, by_offsets()),
    "as a window": (windows(), by_offsets()),
    "in pairs": (windows(size=2, low=0, stride=2), in_pairs),
    "other: what is behind": (lambda x: lax.cumlogsumexp(x, reverse=True), by_offsets()),
    "other: its own twice": (lax.cumlogsumexp, by_offsets(1)),
    "other: a window that is shorter": (windows(size=7, low=6), by_offsets()),
    "other: from zero on": (windows(first=0.0), by_offsets()),
    "other: halved": (windows(halved), by_offsets()),
    "other: another function": (windows(by_tanh, size=2, low=0, stride=2), in_pairs),
    "other: padding alone": (windows(size=1, low=2, high=-2), lambda x: x),
    "other: one beside": (windows(size=2, low=1, high=-1, stride=2), in_pairs),
}


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", PAIRS)
def test_windows_of_exponentials(name: str) -> None:
    whole, part = PAIRS[name]
    local = jax.shard_map(part, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    pair = jax.jit(whole).trace(x), jax.jit(local).trace(x)
    report = hlo_verify.verify(*pair, devices=4, refute=False)
    assert (report.verdict is Verdict.PROVED) is not name.startswith("other"), report


@pytest.mark.parametrize("x", [[0.0, 1, -2], [LEAST, LEAST, 3], [LEAST] * 3, [np.inf, 1, np.inf], [LEAST, np.inf, 0]])
def test_what_numbers_say(x: list[float]) -> None:
    """Infinities too, of which none is a difference."""
    with np.errstate(divide="ignore"):
        expected = np.log(np.cumsum(np.exp(x)))
    np.testing.assert_allclose(lax.cumlogsumexp(jnp.array(x)), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("edit", "is_it"),
    [
        (("", ""), True),
        (("compare NE", "compare EQ"), False),
        (("stablehlo.negate", "stablehlo.abs"), False),
        (("stablehlo.log_plus_one", "stablehlo.exponential_minus_one"), False),
        (("stablehlo.maximum", "stablehlo.minimum"), False),
        ((", FLOAT", ", TOTALORDER"), False),
    ],
)
def test_which_regions_are_read_so(edit: tuple[str, str], is_it: bool) -> None:
    text = jax.jit(lax.cumlogsumexp).lower(jnp.zeros(3)).as_text()
    assert edit[0] in text
    module = load(text.replace(*edit) if edit[0] else text)
    regions = [op.regions[0] for op in module.main.ops if op.name == "reduce_window"]
    assert [is_log_of_sum(region) for region in regions] == [is_it]
