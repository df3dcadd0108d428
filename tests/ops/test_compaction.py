"""Elements that a mask keeps, each moved to its number among them: prefix counts as places of a scatter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.compare import assert_same
from tests.support.modules import ours

SIZE, MINE = 8, 2
MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))


def put(x: Any, at: Any) -> jax.Array:
    return jnp.zeros(SIZE).at[at].set(x, mode="drop")


def put_unwrapped(x: Any, at: Any) -> jax.Array:
    return jnp.zeros(SIZE).at[at].set(x, mode="drop", wrap_negative_indices=False)


def add(x: Any, at: Any) -> jax.Array:
    return jnp.zeros(SIZE).at[at].add(x, mode="drop")


def kept(k: Any, place: Any) -> jax.Array:
    return jnp.where(k, place, SIZE)


def count(k: Any) -> jax.Array:
    return jnp.cumsum(k.astype(jnp.int32))


FORMS: dict[str, Callable[[Any, Any, Any], jax.Array]] = {
    "up to itself": lambda x, k, j: put(x, kept(k, count(k) - 1)),
    "before it": lambda x, k, j: put(x, kept(k, count(k) - k)),
    "unwrapped": lambda x, k, j: put_unwrapped(x, kept(k, count(k) - 1)),
    "from the end": lambda x, k, j: put(x, kept(k, count(k[::-1])[::-1] - 1)),
    "chosen by more": lambda x, k, j: put(x, kept(k & j, count(k) - 1)),
    "where negative places wrap": lambda x, k, j: add(x, kept(k, count(k) - 2)),
    "chosen by another": lambda x, k, j: add(x, kept(j, count(k) - 1)),
    "chosen by what is before": lambda x, k, j: add(x[1:], kept(k[:-1], count(k)[1:] - 1)),
    "chosen by what is next": lambda x, k, j: add(x[:-1], kept(k[1:], count(k)[:-1] - 1)),
    "the others": lambda x, k, j: add(x, kept(~k, count(k) - 1)),
}
COINCIDE: dict[str, Callable[[Any, Any, Any], jax.Array]] = {
    "chosen by another": lambda x, k, j: put(x, kept(j, count(k) - 1)),
    "the others": lambda x, k, j: put(x, kept(~k, count(k) - 1)),
    "not by all": lambda x, k, j: put(x, kept(k, count(k & j) - 1)),
    "all": lambda x, k, j: put(x, count(k) - 1),
}


def lowered(function: Callable[..., jax.Array]) -> str:
    shapes = [jax.ShapeDtypeStruct((SIZE,), dtype) for dtype in (jnp.float32, jnp.bool_, jnp.bool_)]
    return jax.jit(function, keep_unused=True).lower(*shapes).as_text()


@pytest.mark.parametrize("name", FORMS)
def test_what_lands_at_numbers_among_the_kept(name: str) -> None:
    """By numbers, of which few or many are kept, and of which the first are not, so that places before them wrap."""
    text, rng = lowered(FORMS[name]), np.random.default_rng(3)
    late = np.arange(SIZE) >= 3
    drawn = [(rng.random(SIZE) < share, rng.random(SIZE) < 0.5) for share in (0.2, 0.6)]
    for k, j in [(late, ~late), *drawn]:
        x = rng.integers(1, 9, SIZE).astype("f")
        answer = ours(text, [x, k, j])
        assert not answer.unsupported
        assert_same(answer.results[0], np.asarray(FORMS[name](x, k, j)), f"{x} {k} {j}")


@pytest.mark.parametrize("name", COINCIDE)
def test_places_that_may_coincide_are_in_no_known_order(name: str) -> None:
    assert ours(lowered(COINCIDE[name]), [np.ones(SIZE, "f"), *np.ones((2, SIZE), bool)]).unsupported


def numbers(k: Any, *, own: bool = False) -> jax.Array:
    """The number of each of a device's elements among all that are kept: those ahead, and its own up to it."""
    totals, device = lax.all_gather(k.sum(), "x"), lax.axis_index("x")
    ahead = jnp.arange(4) <= device if own else jnp.arange(4) < device
    return jnp.where(ahead, totals, 0).sum() + count(k) - 1


def whole(condition: Callable[[Any], Any]) -> Callable[[Any], jax.Array]:
    return lambda x: put(x, kept(condition(x), count(condition(x)) - 1))


def shared(condition: Callable[[Any], Any], *, own: bool = False) -> Callable[[Any], jax.Array]:
    return lambda x: lax.psum(add(x, kept(condition(x), numbers(condition(x), own=own))), "x")


def multiplied(x: Any) -> jax.Array:
    return lax.psum(jnp.where(x > 0, x, 0) @ jax.nn.one_hot(numbers(x > 0), SIZE), "x")


@pytest.mark.parametrize(
    ("condition", "local", "dtype", "expected"),
    [
        (lambda x: x > 0, shared(lambda x: x > 0), jnp.float32, Verdict.PROVED),
        (lambda x: x > 0, multiplied, jnp.float32, Verdict.PROVED),
        (lambda x: (x >= 2) & (x < 5), shared(lambda x: (x >= 2) & (x < 5)), jnp.int32, Verdict.PROVED),
        (lambda x: x > 0, shared(lambda x: x > 0, own=True), jnp.float32, Verdict.REFUTED),
        (lambda x: x > 0, shared(lambda x: x <= 0), jnp.float32, Verdict.REFUTED),
    ],
)
def test_elements_that_devices_move_together(condition: Any, local: Any, dtype: Any, expected: Verdict) -> None:
    """Each device counts its own, and learns how many are kept on those before it."""
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)
    shapes = jax.ShapeDtypeStruct((SIZE,), dtype)
    found = hlo_verify.verify(*(jax.jit(f).trace(shapes) for f in (whole(condition), mapped)), devices=4)
    assert found.verdict is expected
