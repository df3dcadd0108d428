"""A program by itself, without another to compare it with, whose devices hold different values of one result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

import hlo_verify
from hlo_verify.diagnostics import Mismatch
from hlo_verify.report import Verdict

X = jax.ShapeDtypeStruct((8, 6), jnp.float32)
G = jax.ShapeDtypeStruct((6,), jnp.float32)
P = PartitionSpec
WHOLE = P()


def normed(x: Any, g: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * g


def gradient(reduced: Callable[[Any], Any], x: Any, g: Any) -> Any:
    return reduced(jax.grad(lambda g: jnp.sum(normed(x, g) ** 2))(g))


def report(body: Callable[..., Any], out: PartitionSpec = WHOLE) -> hlo_verify.Report:
    """Of a function of rows that are split over both axes of 2 × 2 devices, and of what all of them hold."""
    mesh = AbstractMesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    step = jax.shard_map(body, mesh=mesh, in_specs=(P(("a", "b")), P()), out_specs=out, check_vma=False)
    found = hlo_verify.check(jax.jit(step), X, G)
    assert isinstance(found, hlo_verify.Report)
    return found


WRONG = {
    "a gradient that nobody adds up": (partial(gradient, lambda g: g), WHOLE),
    "a gradient that is added up over one axis": (partial(gradient, lambda g: lax.psum(g, "a")), WHOLE),
    "an axis that the specs leave out": (lambda x, g: x * g, P("a")),
    "a device's number": (lambda x, g: g + lax.axis_index("b"), WHOLE),
    "integers": (lambda x, g: jnp.argmax(x, axis=0), WHOLE),
    "whether its rows are": (lambda x, g: jnp.all(x > 0, axis=0), WHOLE),
    "noise of its own": (
        lambda x, g: jax.random.bits(jax.random.fold_in(jax.random.key(0), lax.axis_index("a")), (2,)),
        WHOLE,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_they_are_seen(name: str) -> None:
    body, out = WRONG[name]
    (result,) = report(body, out=out).results
    assert (result.verdict, result.code) == (Verdict.REFUTED, Mismatch.DEVICES_DISAGREE)
    assert result.witness is not None and result.witness.point.beside is not None
    assert "which ran the partitioned module" in result.witness.replayed


RIGHT = {
    "added up": (partial(gradient, lambda g: lax.psum(g, ("a", "b"))), WHOLE),
    "in the order of a ring": (
        lambda x, g: sum(lax.ppermute(x.sum(0), ("a", "b"), [(i, (i + k) % 4) for i in range(4)]) for k in range(4)),
        WHOLE,
    ),
    "named": (lambda x, g: x * g, P(("a", "b"))),
    "nothing of the device": (lambda x, g: g + 0 * lax.axis_index("b"), P()),
}


@pytest.mark.parametrize("name", RIGHT)
def test_others_are_proved(name: str) -> None:
    body, out = RIGHT[name]
    assert report(body, out=out).verdict is Verdict.PROVED


ROUNDED = {
    "what is left of a sum": lambda x: x - (0.9 * x + 0.1 * x),
    "a logarithm": lambda x: jnp.log(0.1 + 0.9 + 0 * x),
    "a product": lambda x: 0.1 * x * 0.2 - 0.02 * x,
}


@pytest.mark.parametrize("name", ROUNDED)
def test_what_constants_were_rounded_by_is_no_difference(name: str) -> None:
    """Real numbers differ from 0 there by what the literals as they are written are off; nothing else is to be seen."""
    found = report(lambda x, g: jnp.where(lax.axis_index("a") == 0, ROUNDED[name](g), 0))
    assert found.verdict is not Verdict.REFUTED


@pytest.mark.parametrize("name", ROUNDED)
def test_nor_is_it_between_two_programs_with_the_same_constants(name: str) -> None:
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))

    def both(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda g: (f(g), [c * g for c in (0.9, 0.1, 0.2, 0.02)])

    step = jax.shard_map(both(ROUNDED[name]), mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    found = hlo_verify.check(both(lambda g: 0 * g), step, G)
    assert isinstance(found, hlo_verify.Report)
    assert found.verdict is not Verdict.REFUTED


def test_small_differences_are_seen_all_the_same() -> None:
    """Beside constants that are rounded: of inputs, not of what these are rounded by."""
    found = report(lambda x, g: 0.1 * g + jnp.where(lax.axis_index("a") == 0, 0.001 * g, 0))
    assert [result.code for result in found.results] == [Mismatch.DEVICES_DISAGREE]


def test_the_report_says_which_devices_differ() -> None:
    found = report(lambda x, g: g + lax.axis_index("b"))
    text = str(found)
    assert "devices 0 and 1 hold different values of what should be the same on both" in text
    assert "on device 1, and " in text and "on device 0, which should hold the same" in text


def test_a_reference_says_what_is_wrong() -> None:
    """The logical result is the same on all devices: it tells more than they do."""
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
    body = partial(gradient, lambda g: g)
    step = jax.shard_map(body, mesh=mesh, in_specs=(P("d"), P()), out_specs=P(), check_vma=False)
    found = hlo_verify.check(body, step, X, G)
    assert isinstance(found, hlo_verify.Report)
    assert [result.code for result in found.results] == [Mismatch.NEVER_REDUCED]
    assert all(result.witness and result.witness.point.beside is None for result in found.results)
