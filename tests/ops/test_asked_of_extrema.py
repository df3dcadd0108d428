"""Conditions on the greater or lesser of integers: lengths that are capped, flags of what began anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("d",))


def restarted(x: Any, flags: Any) -> Any:
    """Sums that begin anew at flags."""

    def step(carried: Any, given: Any) -> tuple[Any, Any]:
        carried = jnp.where(given[1] > 0, given[0], carried + given[0])
        return carried, carried

    return lax.scan(step, 0.0, (x, flags))[1]


def joined(keep: Callable[[Any, Any], Any], carry: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same by pairs that are joined on each device, and then with what devices before hold."""

    def local(x: Any, flags: Any) -> Any:
        def pair(a: Any, b: Any) -> tuple[Any, Any]:
            return jnp.where(b[1] > 0, b[0], a[0] + b[0]), keep(a[1], b[1])

        sums, began = lax.associative_scan(pair, (x, flags))
        ends, anew = lax.all_gather(sums[-1], "d"), lax.all_gather(began[-1], "d")
        before = jnp.float32(0)
        for n in range(3):
            before = jnp.where(n < lax.axis_index("d"), carry(anew[n], ends[n], before), before)
        return jnp.where(began > 0, sums, sums + before)

    return local


def continued(anew: Any, end: Any, before: Any) -> Any:
    return jnp.where(anew > 0, end, before + end)


def verdict(whole: Callable[..., Any], local: Callable[..., Any], arguments: Any, given: Any, out: P) -> Verdict:
    return hlo_verify.verify(*Placed(MESH, given, out, arguments).pair(whole, local), refute=False).verdict


FLAGS = ([*floats((8,)), jax.ShapeDtypeStruct((8,), jnp.int32)], P("d"), P("d"))


@pytest.mark.parametrize("keep", [jnp.maximum, lambda a, b: jnp.maximum(b, a)])
def test_segmented_sums(keep: Callable[[Any, Any], Any]) -> None:
    assert verdict(restarted, joined(keep, continued), *FLAGS) is Verdict.PROVED


@pytest.mark.parametrize(
    ("keep", "carry"),
    [
        (jnp.minimum, continued),
        (jnp.maximum, lambda anew, end, before: before + end),
        (jnp.maximum, lambda anew, end, before: jnp.where(anew > 0, before, before + end)),
    ],
)
def test_other_segmented_sums(keep: Callable[[Any, Any], Any], carry: Callable[[Any, Any, Any], Any]) -> None:
    assert verdict(restarted, joined(keep, carry), *FLAGS) is not Verdict.PROVED


LENGTHS = ([*floats((16,)), *[jax.ShapeDtypeStruct((), jnp.int32)] * 2], (P("d"), P(), P()), P())
Kept = Callable[[Any, Any, Any], Any]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (lambda i, a, b: i < jnp.minimum(a, b), lambda i, a, b: (i < a) & (i < b), True),
        (lambda i, a, b: i >= jnp.maximum(a, b), lambda i, a, b: (i >= a) & (i >= b), True),
        (lambda i, a, b: i < jnp.maximum(a, b), lambda i, a, b: (i < a) | (i < b), True),
        (lambda i, a, b: i >= jnp.minimum(a, b), lambda i, a, b: ~((i < a) & (i < b)), True),
        (lambda i, a, b: i < jnp.minimum(a, b), lambda i, a, b: (i < a) & (i <= b), False),
        (lambda i, a, b: i < jnp.minimum(a, b), lambda i, a, b: (i < a) | (i < b), False),
        (lambda i, a, b: i >= jnp.maximum(a, b), lambda i, a, b: (i >= a) | (i >= b), False),
        (lambda i, a, b: jnp.minimum(a, b) == i, lambda i, a, b: (i == a) | (i == b), False),
    ],
)
def test_what_is_kept_by_two_lengths(one: Kept, other: Kept, expected: bool) -> None:
    def whole(x: Any, a: Any, b: Any) -> Any:
        return jnp.where(one(jnp.arange(16), a, b), x, 0).sum()

    def local(x: Any, a: Any, b: Any) -> Any:
        return lax.psum(jnp.where(other(4 * lax.axis_index("d") + jnp.arange(4), a, b), x, 0).sum(), "d")

    assert (verdict(whole, local, *LENGTHS) is Verdict.PROVED) is expected
