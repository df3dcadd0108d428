"""Keys that devices mask beside those that the reference does: in halos, padding, behind the last row."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check
from hlo_verify.passes.chain.masking_numbers import both_infinite
from hlo_verify.passes.load.load import load
from hlo_verify.session import Session
from tests.passes.chain.test_masking_numbers import (
    HARMFUL,
    HARMLESS,
    INFINITE,
    KEEP,
    LARGE,
    SCORES,
    Function,
    N,
    X,
    report,
)

TWO = jax.sharding.AbstractMesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
KEYS = {  # which keys a query sees, by how far before it they are
    "a window": lambda back: (back >= 0) & (back < 2),
    "both sides": lambda back: abs(back) < 2,
    "none in the first row": lambda back: (back > 0) & (back < 2),
}


def whole(fill: float, keys: str) -> Function:
    back = np.arange(N)[:, None] - np.arange(N)
    return lambda q, k, v: jax.nn.softmax(jnp.where(KEYS[keys](back), q @ k.T, fill), -1) @ v


def with_halo(fill: float, keys: str, *, bound: int = 0, turned: bool = False) -> Function:
    """Devices have the rows before and behind their own; where there are none, they have those of the other end."""

    def around(rows: jax.Array) -> jax.Array:
        before, behind = (lax.ppermute(ends, "d", [(0, 1), (1, 0)]) for ends in (rows[-1:], rows[:1]))
        return jnp.concatenate([behind, rows, before] if turned else [before, rows, behind])

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        row = lax.axis_index("d") * 4 + jnp.arange(4)[:, None]
        key = lax.axis_index("d") * 4 - 1 + jnp.arange(6)
        seen = KEYS[keys](row - key) & (key >= bound) & (key < N)
        return jax.nn.softmax(jnp.where(seen, q @ around(k).T, fill), -1) @ around(v)

    return jax.shard_map(local, mesh=TWO, in_specs=P("d"), out_specs=P("d"))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("pair", [(INFINITE, LARGE), (LARGE, LARGE), (-1e9, LARGE)], ids=str)
@pytest.mark.parametrize("keys", ["a window", "both sides"])
def test_a_halo_is_masked_beyond_the_ends(pair: tuple[float, float], keys: str) -> None:
    found = report(whole(pair[0], keys), with_halo(pair[1], keys))
    assert found.verdict is Verdict.PROVED, found
    assert any("read as minus infinity" in said for said in found.assumptions)


WRONG = {
    "the other end is seen": with_halo(LARGE, "both sides", bound=-9),
    "the first row is not": with_halo(LARGE, "both sides", bound=1),
    "another window": with_halo(LARGE, "a window"),
    "the halos exchanged": with_halo(LARGE, "both sides", turned=True),
    "too small a number": with_halo(-1.0, "both sides"),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_so(name: str) -> None:
    assert check(whole(LARGE, "both sides"), WRONG[name], X, X, X).verdict is Verdict.REFUTED


def test_a_row_without_keys() -> None:
    """It has a mean of all values of which there are more with a halo, where a number masks."""
    keys = "none in the first row"
    assert check(whole(LARGE, keys), with_halo(LARGE, keys), X, X, X).verdict is Verdict.REFUTED
    for fill in (LARGE, INFINITE):
        assert not is_read(whole(fill, keys), with_halo(LARGE, keys), X, X, X)
        assert is_read(whole(fill, "a window"), with_halo(LARGE, "a window"), X, X, X)


def is_read(first: Function, second: Function, *given: jax.ShapeDtypeStruct) -> bool:
    modules = (jax.jit(each).trace(*given or (SCORES,)).lower(lowering_platforms=("cpu",)) for each in (first, second))
    with Session().on():
        return both_infinite(*(load(module.as_text()) for module in modules)) is not None


def on_devices(function: Function) -> Function:
    """A function of scores that a number masks, which each device has all of."""
    return jax.shard_map(masked(function), mesh=TWO, in_specs=P(), out_specs=P(), check_vma=False)


def masked(function: Function) -> Function:
    return lambda s: function(jnp.where(KEEP, s, LARGE))


@pytest.mark.parametrize("name", sorted(HARMLESS.keys() - {"what is left masked again"}))
def test_what_is_the_same_of_both(name: str) -> None:
    """`test_masking_numbers` asks floating point."""
    assert is_read(masked(HARMLESS[name]), on_devices(HARMLESS[name]))


@pytest.mark.parametrize("name", HARMFUL)
def test_what_differs(name: str) -> None:
    """Neither in the reference nor on devices."""
    assert not is_read(masked(HARMFUL[name]), on_devices(jax.nn.softmax))
    assert not is_read(masked(jax.nn.softmax), on_devices(HARMFUL[name]))
