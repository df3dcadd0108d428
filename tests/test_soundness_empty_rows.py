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


OUTSIDE: dict[str, Callable[[jax.Array], jax.Array]] = {
    "logarithm": jnp.log,
    "inverse root": lax.rsqrt,
    "root of less": lambda s: jnp.sqrt(s - 1e-3),
    "remainder": lambda s: jnp.fmod(1.0, s),
    "one by a root": lambda s: 1 / jnp.sqrt(s),
    "power": lambda s: s**-0.5,
    "power of itself": lambda s: s ** (s - 1),
    "root of a cube": lambda s: 1 / jnp.cbrt(s),
    "digamma": lax.digamma,
    "logarithm of gamma": lax.lgamma,
    "area tangent": lambda s: jnp.arctanh(1 / (1 + s)),
    "arc sine": lambda s: jnp.arcsin(s - 2),
    "inverse error function": lambda s: lax.erf_inv(1 + s),
    "logarithm of a logarithm": lambda s: jnp.log(jnp.log1p(s)),
    "one by an exponential less one": lambda s: 1 / jnp.expm1(s),
    "one by the least": lambda s: 1 / jnp.minimum(s, 1),
    "one by a sigmoid": lambda s: 1 / (jax.nn.sigmoid(s) - 0.5),
}
"""Functions of what is left of a row, that have no number where nothing is."""


@pytest.mark.parametrize("name", OUTSIDE)
def test_other_functions_outside_of_their_domains(name: str) -> None:
    mask, _ = MASKS["before"]

    def left(rows: jax.Array, s: jax.Array) -> jax.Array:
        return OUTSIDE[name](kept(mask, rows, jnp.arange(SIZE), s).sum(1))

    assert_no_number_stays(left)


def assert_no_number_stays(left: Callable[[jax.Array, jax.Array], jax.Array]) -> None:
    """What is computed of rows is the same on devices, and not what a device makes 0 where it is none, or the reference
    does."""

    def zeroed(rows: jax.Array, s: jax.Array) -> jax.Array:
        found = left(rows, s)
        return jnp.where(jnp.isnan(found) | jnp.isinf(found), 0, found)

    def of(
        whole: Callable[[jax.Array, jax.Array], jax.Array], local: Callable[[jax.Array, jax.Array], jax.Array]
    ) -> Verdict:
        return verdict(lambda s, v: whole(jnp.arange(SIZE), s), lambda s, v: local(own(), s))

    assert of(left, left) is Verdict.PROVED
    assert of(zeroed, zeroed) is Verdict.PROVED
    assert of(zeroed, left) is Verdict.UNKNOWN
    assert of(left, zeroed) is Verdict.UNKNOWN


TABLE = np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE) * (np.arange(SIZE)[:, None] != 5) * 0.37
CONSTANTS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "weights of a row": lambda rows, s: 1 / (jnp.asarray(TABLE)[rows] * jnp.exp(s)).sum(1),
    "sizes of weights": lambda rows, s: jnp.log(jnp.sqrt((jnp.abs(jnp.asarray(TABLE))[rows] * jnp.exp(s)).sum(1))),
    "one weight": lambda rows, s: 1 / (jnp.asarray(TABLE[:, 1])[rows] * jnp.exp(s[:, 0])),
    "places": lambda rows, s: 1 / ((rows - 3) * jnp.exp(s[:, 0])),
    "logarithm of places": lambda rows, s: jnp.log((rows - 3) * jnp.exp(s[:, 0])),
    "greatest": lambda rows, s: 1 / kept(MASKS["before"][0], rows, jnp.arange(SIZE), s).max(1),
    "a norm": lambda rows, s: 1 / jnp.sqrt(kept(MASKS["before"][0], rows, jnp.arange(SIZE), s).var(1)),
    "beside a greatest that is masked": lambda rows, s: 1 / in_units_of_the_greatest(rows, s),
    "mixed": lambda rows, s: jnp.sqrt(jnp.where(rows > 2, jnp.exp(s[:, 0]), -1)),
}
"""What is left of rows that constants and places make 0, at some of them."""


def in_units_of_the_greatest(rows: jax.Array, s: jax.Array) -> jax.Array:
    mask = jnp.arange(SIZE)[None, :] < rows[:, None]
    greatest = jnp.maximum(jnp.where(mask, s, -jnp.inf).max(1, keepdims=True), 0)
    return jnp.where(mask, jnp.exp(s - greatest), 0).sum(1)


@pytest.mark.parametrize("name", CONSTANTS)
def test_rows_that_constants_make_zero(name: str) -> None:
    assert_no_number_stays(CONSTANTS[name])


@pytest.mark.parametrize("function", [lambda s: jnp.sqrt(1 + s), lambda s: 1 / (1 + jnp.sqrt(s)), jnp.tanh])
def test_functions_of_nothing_that_are_numbers(function: Callable[[jax.Array], jax.Array]) -> None:
    """A device may well ask whether they are."""
    mask, _ = MASKS["before"]

    def left(rows: jax.Array, s: jax.Array) -> jax.Array:
        return function(kept(mask, rows, jnp.arange(SIZE), s).sum(1))

    def numbers(s: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.where(jnp.isfinite(left(own(), s)), left(own(), s), 0)

    assert verdict(lambda s, v: left(jnp.arange(SIZE), s), numbers) is Verdict.PROVED


def test_rows_that_are_never_empty() -> None:
    """Where each row keeps an element, a device may well leave out what no element is divided by."""

    def mask(i: jax.Array, j: jax.Array) -> jax.Array:
        return j <= i

    def local(s: jax.Array, v: jax.Array) -> jax.Array:
        return but_0(own(), SIZE, attention(mask, own(), s, v))

    assert verdict(partial(attention, mask, jnp.arange(SIZE)), local) is Verdict.PROVED


TOKENS = jax.ShapeDtypeStruct((SIZE,), jnp.int32)


def of_tokens(below: int, row: int | None, tokens: jax.Array, scores: jax.Array) -> jax.Array:
    """Shares of scores up to the diagonal, or below it, whose tokens are some; 0 in rows that are left out."""
    i, k = jnp.arange(SIZE)[:, None], jnp.arange(SIZE)[None]
    left = jnp.where((k <= i - below) & ((tokens >= 0) & (tokens < 9))[None], jnp.exp(scores), 0)
    shares = left / left.sum(1, keepdims=True)
    return shares if row is None else jnp.where(i == row, 0 * scores, shares)


@pytest.mark.parametrize(("below", "row"), [(1, 0), (0, SIZE), (1, SIZE)])
def test_conditions_on_integers_beside_those_on_places(below: int, row: int) -> None:
    """Integers of an argument may leave nothing of a row, or may not; the diagonal leaves nothing of row 0 for all."""
    logical = jax.jit(partial(of_tokens, below, None)).trace(TOKENS, SCORES)
    other = jax.jit(partial(of_tokens, below, row)).trace(TOKENS, SCORES)
    found = hlo_verify.verify(logical, other, time_limit=60).verdict
    assert found == Verdict.PROVED if row == SIZE else found != Verdict.PROVED
