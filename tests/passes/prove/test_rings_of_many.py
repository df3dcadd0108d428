"""Rings as the documentation of JAX writes them, proved without a look at each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from tests.passes.prove.each_device.programs import on, turned

N = 18
"""More than a sum is written out over (`enumerated_values`), and than fit into a light term."""

Function = Callable[..., Any]
LIMITS = Limits(devices_apart=1)


def turns(is_loop: bool, body: Function, first: Any, last: int = N) -> Any:
    if is_loop:
        return lax.fori_loop(1, last, body, first)
    for i in range(1, last):
        first = body(i, first)
    return first


def moved(x: Array, by: int) -> Array:
    return lax.ppermute(x, "i", turned(N, by))


def block(x: Array, n: Any, width: int = 1) -> Array:
    return lax.dynamic_slice_in_dim(x, n * width, width, 1)


def gathered(is_loop: bool = False, sign: int = -1, last: int = N, place: Function = lambda d: d % N) -> Function:
    """A product whose right factor goes round."""

    def local(x: Array, w: Array) -> Array:
        d = lax.axis_index("i")

        def body(i: Any, carried: Any) -> Any:
            total, w = carried
            w = moved(w, 1)
            return total + block(x, place(d + sign * i)) @ w, w

        return turns(is_loop, body, (block(x, d) @ w, w), last)[0]  # type: ignore[no-any-return]

    return local


def scattered(is_loop: bool = False, start: int = 1) -> Function:
    """A product whose result goes round, in two halves, one in each direction."""

    def local(x: Array, w: Array) -> Array:
        d = lax.axis_index("i")
        x = x.reshape(N, 2, 1, -1)

        def body(i: Any, carried: Any) -> Any:
            low, high = moved(carried[0], 1), moved(carried[1], -1)
            return low + x[(d - i - 1) % N, 0] @ w, high + x[(d + i + 1) % N, 1] @ w

        first = x[(d - 1) % N, 0] @ w, x[(d + start) % N, 1] @ w
        return jnp.concatenate(turns(is_loop, body, first))

    return local


GATHERED = on({"i": N}, (P("i"), P("i")), P("i"), (N, N), (N, 2))
SCATTERED = on({"i": N}, (P(None, "i"), P("i")), P("i"), (2 * N, N), (N, 2))
PLACES: dict[str, Function] = {
    "selected": lambda d: jnp.where(d < 0, d + N, d),
    "shifted": lambda d: (d + N) % N,
    "of a remainder": lambda d: lax.rem(d + N, N),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("is_loop", [False, True])
@pytest.mark.parametrize(("placed", "local"), [(GATHERED, gathered), (SCATTERED, scattered)])
def test_a_ring_of_many_is_proved(placed: Any, local: Function, is_loop: bool) -> None:
    pair = placed.pair(lambda x, w: x @ w, local(is_loop))
    assert hlo_verify.verify(*pair, refute=False, limits=LIMITS).verdict is Verdict.PROVED


@pytest.mark.parametrize("place", PLACES)
def test_places_are_written_in_many_ways(place: str) -> None:
    pair = GATHERED.pair(lambda x, w: x @ w, gathered(place=PLACES[place]))
    assert hlo_verify.verify(*pair, refute=False, limits=LIMITS).verdict is Verdict.PROVED


WRONG = {
    "other direction": (GATHERED, gathered(sign=1)),
    "one turn short": (GATHERED, gathered(last=N - 1)),
    "one turn short, in a loop": (GATHERED, gathered(is_loop=True, last=N - 1)),
    "wrapped too early": (GATHERED, gathered(place=lambda d: jnp.where(d < 1, d + N - 1, d))),
    "one half starts late": (SCATTERED, scattered(start=2)),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", WRONG)
def test_a_ring_that_goes_wrong_is_not_proved(name: str) -> None:
    placed, local = WRONG[name]
    report = hlo_verify.verify(*placed.pair(lambda x, w: x @ w, local), refute=False)
    assert report.verdict is not Verdict.PROVED
