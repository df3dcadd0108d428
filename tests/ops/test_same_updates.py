"""Updates that may overwrite one another, and are one at each element: marks, masks, and functions of what is there."""

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

SIZE, MINE = 8, 4
DROPPED: dict[str, Any] = {"mode": "drop", "wrap_negative_indices": False}


def local(n: Any) -> Any:
    """Places on a device that holds every other element's half: those of its own, and one past its end."""
    j = n - MINE
    return jnp.where((j >= 0) & (j < MINE), j, MINE)


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "a number": lambda x, n: x.at[n].set(7.0),
    "minus infinity": lambda x, n: x.at[n].set(-jnp.inf),
    "of what is there": lambda x, n: x.at[n].set(3 * x[n] - 1),
    "of another place": lambda x, n: x.at[n % SIZE].set(x[SIZE - 1 - n % SIZE]),
    "from the end": lambda x, n: x.at[SIZE - 1 - n].set(2 * x[SIZE - 1 - n], mode="drop"),
    "dropped": lambda x, n: x.at[n].set(2 * x[n], **DROPPED),
    "a part": lambda x, n: x[MINE:].at[local(n)].set(-x[MINE:][jnp.clip(n - MINE, 0, MINE - 1)], mode="drop"),
    "a remainder": lambda x, n: x.at[n % 4].set(x[n % 4] + 1),
    "which one it is": lambda x, n: x.at[n].set(jnp.arange(5.0)),
    "rows": lambda x, n: jnp.stack([x, -x]).at[:, n].set(2 * x[n]),
    "windows": lambda x, n: jnp.stack([x, -x], 1).at[n].set(jnp.stack([x[n], x[n]], 1)),
}


@pytest.mark.parametrize("name", FORMS)
def test_an_element_is_what_lands_on_it(name: str) -> None:
    """By numbers, at places that coincide, are negative, or lie past the end."""
    rng = np.random.default_rng(5)
    function = jax.jit(FORMS[name])
    text = function.lower(jax.ShapeDtypeStruct((SIZE,), jnp.float32), jax.ShapeDtypeStruct((5,), jnp.int32)).as_text()
    for _ in range(6):
        x, n = rng.integers(-9, 9, SIZE).astype("f"), rng.integers(-3, 11, 5).astype("i")
        answer = ours(text, [x, n])
        if name == "which one it is":
            assert answer.unsupported
        else:
            assert_same(answer.results[0], np.asarray(function(x, n)), f"{x} {n}")


MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
TOKENS, SEEN = 16, 5


def mine() -> Any:
    return lax.axis_index("x") * 4


def is_seen(n: Any) -> Any:
    return (n[:, None] == mine() + jnp.arange(4)).any(0)


def own(n: Any, off: int = 0) -> Any:
    j = n - mine() + off
    return jnp.where((j >= 0) & (j < 4), j, 4)


def penalised(z: Any) -> Any:
    return jnp.where(z > 0, z / 2, z * 2)


def looked_up(z: Any, n: Any, off: int = 0) -> Any:
    there = z[jnp.clip(n - mine(), 0, 3)]
    return z.at[own(n, off)].set(jnp.where(there < 0, there * 2, there / 2), mode="drop")


def marked(z: Any, n: Any) -> Any:
    return jnp.where(jnp.zeros(TOKENS, bool).at[n].set(True), penalised(z), z)


def gathered(z: Any, n: Any) -> Any:
    return z.at[n].set(penalised(z[n]))


def banned(z: Any, n: Any) -> Any:
    return z.at[n].set(-jnp.inf)


@pytest.mark.parametrize(
    ("whole", "part", "expected"),
    [
        (marked, lambda z, n: jnp.where(is_seen(n), penalised(z), z), Verdict.PROVED),
        (gathered, lambda z, n: jnp.where(is_seen(n), penalised(z), z), Verdict.PROVED),
        (gathered, looked_up, Verdict.PROVED),
        (banned, lambda z, n: jnp.where(is_seen(n), -jnp.inf, z), Verdict.PROVED),
        (gathered, lambda z, n: jnp.where(is_seen(n), z / 2, z), Verdict.REFUTED),
        (gathered, lambda z, n: looked_up(z, n, off=1), Verdict.REFUTED),
        (gathered, lambda z, n: jnp.where(is_seen(n[1:]), penalised(z), z), Verdict.REFUTED),
        (marked, lambda z, n: z.at[jnp.clip(n - mine(), 0, 3)].set(0.0), Verdict.REFUTED),
    ],
)
def test_tokens_that_were_seen(whole: Any, part: Any, expected: Verdict) -> None:
    """A penalty on tokens of a vocabulary that devices share: by marks, by comparison, by what is looked up."""
    shapes = jax.ShapeDtypeStruct((TOKENS,), jnp.float32), jax.ShapeDtypeStruct((SEEN,), jnp.int32)
    mapped = jax.shard_map(part, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)
    traced = (jax.jit(function).trace(*shapes) for function in (whole, mapped))
    assert hlo_verify.verify(*traced, devices=4, assume={"n": (0, TOKENS)}).verdict is expected
