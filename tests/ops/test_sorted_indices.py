"""What devices take for granted of indices, that these are sorted and that none is like another, is looked up where
constants and their own number decide it: `x.at[::2].set(u)` says both of the places that it writes to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check
from hlo_verify.ops.constants import constant_term
from hlo_verify.ops.indexing import are_sorted
from hlo_verify.ops.values import Value
from hlo_verify.program.ir import TensorType

SIZE = 3
"""Of each dimension that is indexed."""


@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("along", [(0, 1), (1, 0)])
def test_the_order_of_indices_is_that_of_their_rows(components: int, along: tuple[int, ...]) -> None:
    """Every table of three indices, some of which lie outside: of several components none may, as a gather clamps."""
    for flat in product(range(-1, SIZE + 1), repeat=3 * components) if components == 1 else _few(along):
        rows = np.array(flat, np.int32).reshape(3, components)
        indices = Value(TensorType(rows.shape, "i32"), constant_term(rows, "i32", rows.shape))
        ways = [rows.tolist(), rows[:, np.argsort(along[:components])].tolist()]
        is_sorted = all(a <= b for way in ways for a, b in pairwise(way))
        is_inside = components == 1 or bool(((rows >= 0) & (rows < SIZE)).all())
        dimensions = along if components == 2 else along[:1]
        assert are_sorted(indices, 1, dimensions, (SIZE, SIZE)) == (is_sorted and is_inside), rows


def _few(along: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(sum(along))
    tables = [generator.integers(0, SIZE, (3, 2)) for _ in range(100)]
    inside = [np.array(sorted(table.tolist())) for table in tables]
    return [*tables, *inside, *(table + np.array([0, 1]) for table in inside)]


def _mine(size: int) -> jax.Array:
    """The places of a device's own elements."""
    return lax.axis_index("d") * size + jnp.arange(size)


SORTED, UNIQUE = {"indices_are_sorted": True}, {"unique_indices": True}
Body = Callable[..., jax.Array]
PAIRS: dict[str, tuple[Body, Body, Verdict]] = {
    "every other row": (
        lambda x, u: x.reshape(4, 2, 8).at[:, 0].set(u).reshape(8, 8),
        lambda x, u: x.at[::2].set(u),
        Verdict.PROVED,
    ),
    "every other column from the second": (
        lambda x, u: jnp.where(jnp.arange(8) % 2 == 1, x[:, :8] + 1, x),
        lambda x, u: x.at[:, 1::2].add(1),
        Verdict.PROVED,
    ),
    "backwards": (lambda x, u: x.at[jnp.array([6, 4, 2, 0])].set(u), lambda x, u: x.at[::-2].set(u), Verdict.UNKNOWN),
    "every other of a device's rows": (
        lambda x, u: x.at[jnp.arange(4) * 2].get() + u,
        lambda x, u: lax.all_gather(x.at[_mine(2) * 2].get(**SORTED), "d", tiled=True) + u,
        Verdict.PROVED,
    ),
    "a block of rows and columns": (
        lambda x, u: jnp.pad(jnp.ones((4, 4)), ((0, 4), (0, 4))) + x * (jnp.arange(8) > 3),
        lambda x, u: (x * (jnp.arange(8) > 3)).at[jnp.arange(4)[:, None], jnp.arange(4)].add(1, **SORTED, **UNIQUE),
        Verdict.PROVED,
    ),
    "sorted by column alone": (
        lambda x, u: x.at[jnp.arange(4), jnp.arange(4)[:, None]].add(u[:, :4]),
        lambda x, u: x.at[jnp.arange(4), jnp.arange(4)[:, None]].add(u[:, :4], **SORTED),
        Verdict.UNKNOWN,
    ),
    "one row twice": (
        lambda x, u: x.at[jnp.arange(4) // 2].add(u),
        lambda x, u: x.at[jnp.arange(4) // 2].add(u, **SORTED, **UNIQUE),
        Verdict.UNKNOWN,
    ),
    "one row twice, in order": (
        lambda x, u: x.at[jnp.arange(4) // 2].add(u),
        lambda x, u: x.at[jnp.arange(4) // 2].add(u, **SORTED),
        Verdict.PROVED,
    ),
    "past the largest of their type": (
        lambda x, u: x.at[jnp.arange(4, dtype=jnp.int8) * 50].get(mode="clip") + u,
        lambda x, u: x.at[jnp.arange(4, dtype=jnp.int8) * 50].get(mode="clip", **SORTED) + u,
        Verdict.UNKNOWN,
    ),
    "of arguments": (
        lambda x, u: x.at[u[:, 0].astype(int)].get(mode="clip"),
        lambda x, u: x.at[u[:, 0].astype(int)].get(mode="clip", **SORTED),
        Verdict.UNKNOWN,
    ),
    "other rows": (
        lambda x, u: x.reshape(4, 2, 8).at[:, 0].set(u).reshape(8, 8),
        lambda x, u: x.at[1::2].set(u),
        Verdict.REFUTED,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_devices_say_of_places_that_are_known(name: str) -> None:
    reference, body, verdict = PAIRS[name]
    whole, part = jax.ShapeDtypeStruct((8, 8), "float32"), jax.ShapeDtypeStruct((4, 8), "float32")
    mesh = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))
    placed = jax.shard_map(body, mesh=mesh, in_specs=(P(), P()), out_specs=P(), check_vma=False)
    found = check(reference, placed, whole, part, refute=verdict is Verdict.REFUTED)
    assert found.verdict is verdict, str(found)
