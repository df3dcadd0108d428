"""A program that divides 0 by 0 in some place for all inputs is proved only to be one that does so there, too.

Softmaxes of scores that are masked, by what no argument says, with nothing left in one row. XLA gives NaN there; a
device that gives 0 is as wrong as one that gives anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

SIZE, WIDTH, DEVICES = 8, 4, 4
MESH = AbstractMesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))
SCORES, VALUES = (jax.ShapeDtypeStruct((SIZE, n), jnp.float32) for n in (SIZE, WIDTH))
BELOW = np.tri(SIZE, k=-1, dtype=np.bool_)
WITHOUT = np.arange(SIZE)[:, None] != np.full(SIZE, 5)

Mask = Callable[[jax.Array, jax.Array], jax.Array]
MASKS: dict[str, tuple[Mask, int]] = {
    "before": (lambda i, j: j < i, 0),
    "behind": (lambda i, j: j > i, SIZE - 1),
    "padding": (lambda i, j: (i < SIZE - 1) & (j >= 0), SIZE - 1),
    "a window": (lambda i, j: (j < i - 2) & (j > i - 6), 0),
    "one row": (lambda i, j: (i != 4) & (j >= 0), 4),
    "blocks": (lambda i, j: j // 4 < i // 4, 0),
    "a table": (lambda i, j: jnp.asarray(BELOW)[i, j], 0),
    "a table without a row": (lambda i, j: jnp.asarray(WITHOUT)[i, j], 5),
    "factors": (lambda i, j: 0.37 * jnp.asarray(WITHOUT, jnp.float32)[i, j], 5),
}
"""Which elements of a row count, and a row of which none does."""


def own() -> jax.Array:
    return lax.axis_index("d") * (SIZE // DEVICES) + jnp.arange(SIZE // DEVICES)


def kept(mask: Mask, rows: jax.Array, columns: jax.Array, scores: jax.Array) -> jax.Array:
    keep = mask(rows[:, None], columns[None, :])
    return jnp.where(keep, jnp.exp(scores), 0) if keep.dtype == jnp.bool_ else jnp.exp(scores) * keep


def attention(mask: Mask, rows: jax.Array, scores: jax.Array, values: jax.Array) -> jax.Array:
    left = kept(mask, rows, jnp.arange(SIZE), scores)
    return left / left.sum(1, keepdims=True) @ values


def by_columns(mask: Mask, scores: jax.Array, values: jax.Array) -> jax.Array:
    left = kept(mask, jnp.arange(SIZE), own(), scores)
    return lax.psum(left @ values, "d") / lax.psum(left.sum(1, keepdims=True), "d")


def but_0(rows: jax.Array, empty: int, found: jax.Array) -> jax.Array:
    return jnp.where((rows == empty)[:, None], 0, found)


def verdict(whole: Callable[..., jax.Array], local: Callable[..., jax.Array], *, by_rows: bool = True) -> Verdict:
    specs = ((P("d"), P()), P("d")) if by_rows else ((P(None, "d"), P("d")), P())
    mapped = jax.shard_map(local, mesh=MESH, in_specs=specs[0], out_specs=specs[1], check_vma=False)
    return hlo_verify.check(whole, mapped, SCORES, VALUES, refute=False).verdict


@pytest.mark.parametrize("name", MASKS)
def test_rows_without_elements(name: str) -> None:
    mask, empty = MASKS[name]
    whole = partial(attention, mask, jnp.arange(SIZE))
    assert verdict(whole, lambda s, v: attention(mask, own(), s, v)) is Verdict.PROVED
    assert verdict(whole, partial(by_columns, mask), by_rows=False) is Verdict.PROVED
    assert verdict(whole, lambda s, v: but_0(own(), empty, attention(mask, own(), s, v))) is Verdict.UNKNOWN
    columns = verdict(whole, lambda s, v: but_0(jnp.arange(SIZE), empty, by_columns(mask, s, v)), by_rows=False)
    assert columns is Verdict.UNKNOWN


@pytest.mark.parametrize("name", MASKS)
def test_rows_that_both_leave_out(name: str) -> None:
    mask, empty = MASKS[name]

    def whole(s: jax.Array, v: jax.Array) -> jax.Array:
        return but_0(jnp.arange(SIZE), empty, attention(mask, jnp.arange(SIZE), s, v))

    assert verdict(whole, lambda s, v: but_0(own(), empty, attention(mask, own(), s, v))) is Verdict.PROVED


@pytest.mark.parametrize("made", [jnp.log, lambda s: 1 / s])
def test_columns_without_elements(made: Callable[[jax.Array], jax.Array]) -> None:
    """Over the split dimension: a column of a table is no stretch of it."""
    table = WITHOUT.T & (np.arange(SIZE)[:, None] % 3 > 0)

    def columns(rows: jax.Array, s: jax.Array) -> jax.Array:
        return jnp.where(jnp.asarray(table)[rows], jnp.exp(s[:, :1]), 0.0).sum(0)

    def local(s: jax.Array, v: jax.Array) -> jax.Array:
        return made(lax.psum(columns(own(), s), "d"))

    def whole(s: jax.Array, v: jax.Array) -> jax.Array:
        return made(columns(jnp.arange(SIZE), s))

    def verdict_of(function: Callable[[jax.Array, jax.Array], jax.Array]) -> Verdict:
        mapped = jax.shard_map(function, mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)
        return hlo_verify.check(whole, mapped, SCORES, VALUES, refute=False).verdict

    assert verdict_of(local) is Verdict.PROVED
    assert verdict_of(lambda s, v: jnp.where(jnp.isfinite(local(s, v)), local(s, v), 0)) is Verdict.UNKNOWN
    assert verdict_of(lambda s, v: 2 * local(s, v) - local(s, v)) is Verdict.UNKNOWN


def as_number(found: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(found), 0, found)


def test_what_is_no_number_is_asked_for() -> None:
    """A reference that makes 0 of NaN gives 0 in such a row, and a device that does not gives NaN."""
    mask, _ = MASKS["before"]

    def whole(s: jax.Array, v: jax.Array) -> jax.Array:
        return as_number(attention(mask, jnp.arange(SIZE), s, v))

    assert verdict(whole, lambda s, v: as_number(attention(mask, own(), s, v))) is Verdict.PROVED
    assert verdict(whole, lambda s, v: attention(mask, own(), s, v)) is Verdict.UNKNOWN


@pytest.mark.parametrize("function", [jnp.log, lax.rsqrt, lambda s: jnp.sqrt(s - 1e-3), lambda s: jnp.fmod(1.0, s)])
def test_other_functions_outside_of_their_domains(function: Callable[[jax.Array], jax.Array]) -> None:
    mask, _ = MASKS["before"]

    def rows(rows: jax.Array, s: jax.Array) -> jax.Array:
        found = function(kept(mask, rows, jnp.arange(SIZE), s).sum(1))
        return jnp.where(jnp.isnan(found) | jnp.isinf(found), 0, found)

    def local(s: jax.Array, v: jax.Array) -> jax.Array:
        return function(kept(mask, own(), jnp.arange(SIZE), s).sum(1))

    assert verdict(lambda s, v: rows(jnp.arange(SIZE), s), lambda s, v: rows(own(), s)) is Verdict.PROVED
    assert verdict(lambda s, v: rows(jnp.arange(SIZE), s), local) is Verdict.UNKNOWN


def test_rows_that_are_never_empty() -> None:
    """Where each row keeps an element, a device may well leave out what no element is divided by."""

    def mask(i: jax.Array, j: jax.Array) -> jax.Array:
        return j <= i

    def local(s: jax.Array, v: jax.Array) -> jax.Array:
        return but_0(own(), SIZE, attention(mask, own(), s, v))

    assert verdict(partial(attention, mask, jnp.arange(SIZE)), local) is Verdict.PROVED
