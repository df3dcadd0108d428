"""Arguments that both programs use as what they leave of 1 are read as that: products of these have one term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.complements import complements

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
SIZE = 12
Left = Callable[[Any], Any]


def returns(x: Any, done: Any, left: Left) -> Any:
    """What is earned from each place on, until something ends."""

    def turn(later: Any, at: Any) -> tuple[Any, Any]:
        now = at[0] + 0.5 * at[1] * later
        return now, now

    return lax.scan(turn, jnp.float32(0), (x, left(done)), reverse=True)[1]


def by_devices(x: Any, done: Any, left: Left, after: Callable[[Any, Any], Any] = jnp.greater) -> Any:
    def join(a: Any, b: Any) -> tuple[Any, Any]:
        return a[0] * b[0], b[1] + b[0] * a[1]

    decays, sums = lax.associative_scan(join, (0.5 * left(done), x), reverse=True)
    first = [lax.all_gather(each[0], "d") for each in (decays, sums)]
    later = jnp.float32(0)
    for k in (3, 2, 1):
        later = jnp.where(after(k, lax.axis_index("d")), first[1][k] + first[0][k] * later, later)
    return sums + decays * later


def verdict(one: Callable[..., Any], other: Callable[..., Any], dtype: Any) -> Verdict:
    given = jax.ShapeDtypeStruct((SIZE,), jnp.float32), jax.ShapeDtypeStruct((SIZE,), dtype)
    mapped = jax.shard_map(other, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    report = hlo_verify.verify(jax.jit(one).trace(*given), jax.jit(mapped).trace(*given), devices=4, refute=False)
    return report.verdict


LEFT: dict[str, tuple[Left, Left, Any]] = {
    "of truth values": (lambda done: jnp.where(done, 0.0, 1.0), lambda done: (~done).astype(jnp.float32), jnp.bool_),
    "of numbers": (lambda done: 1 - done, lambda done: 1.0 - done, jnp.float32),
}


@pytest.mark.countersigned
@pytest.mark.parametrize("name", LEFT)
def test_what_ends_somewhere(name: str) -> None:
    one, other, dtype = LEFT[name]
    found = verdict(lambda x, done: returns(x, done, one), lambda x, done: by_devices(x, done, other), dtype)
    assert found is Verdict.PROVED


@pytest.mark.parametrize("name", LEFT)
def test_what_ends_elsewhere(name: str, prover_alone: None) -> None:
    one, other, dtype = LEFT[name]

    def wrong(x: Any, done: Any) -> Any:
        return by_devices(x, done, other, jnp.greater_equal)

    assert verdict(lambda x, done: returns(x, done, one), wrong, dtype) is not Verdict.PROVED


@pytest.mark.parametrize("name", LEFT)
def test_an_argument_is_not_what_it_leaves(name: str, prover_alone: None) -> None:
    one, _, dtype = LEFT[name]
    apart = verdict(lambda x, done: x * one(done), lambda x, done: x * (1 - one(done)), dtype)
    assert apart is not Verdict.PROVED


def found_in(one: Callable[..., Any], other: Callable[..., Any], dtype: Any) -> frozenset[int]:
    given = jax.ShapeDtypeStruct((SIZE,), jnp.float32), jax.ShapeDtypeStruct((SIZE,), dtype)
    return complements(*(load(jax.jit(f).lower(*given).as_text()) for f in (one, other)))


def test_which_arguments_are_read_so() -> None:
    def left(x: Any, done: Any) -> Any:
        return x * (1 - done)

    def in_a_loop(x: Any, done: Any) -> Any:
        return lax.fori_loop(0, SIZE, lambda k, y: y + x * (1 - done[k]), x)

    def itself(x: Any, done: Any) -> Any:
        return x * (1 - done) + done

    def carried(x: Any, done: Any) -> Any:
        return lax.fori_loop(0, SIZE, lambda k, of: (of[0] * (1 - of[1]), of[1] + 1), (x, done))[0]

    assert found_in(left, in_a_loop, jnp.float32) == {1}
    for other in (itself, carried, lambda x, done: x * (2 - done), lambda x, done: x * done, lambda x, done: x + done):
        assert not found_in(left, other, jnp.float32)
    assert not found_in(left, left, jnp.int32)
    assert found_in(lambda x, done: jnp.where(done, 0, x), lambda x, done: x * ~done, jnp.bool_) == {1}
    assert not found_in(lambda x, done: jnp.where(done, 0, done * x), lambda x, done: x * ~done, jnp.bool_)
    assert not found_in(lambda x, done: jnp.where(done, x, 0), lambda x, done: x * ~done, jnp.bool_)
