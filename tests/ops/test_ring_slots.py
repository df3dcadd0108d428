"""A step of decoding that writes a key to its slot of a ring, and masks slots by another number than its reference."""

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
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.passes.refute.draws import Draw, Known
from hlo_verify.program.allowed_values import Values
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((2,), ("x",))
SLOTS = 8


def reference(q: Any, k: Any, keys: Any, values: Any, place: Any) -> Any:
    keys = keys.at[:, place % SLOTS].set(k)
    scores = jnp.where(jnp.arange(SLOTS) <= place, jnp.einsum("hd,htd->ht", q, keys) / 2, -jnp.inf)
    return jnp.einsum("ht,htd->hd", jax.nn.softmax(scores), values)


def local(slot: Callable[[Any], Any]) -> Callable[..., Any]:
    def of(q: Any, k: Any, keys: Any, values: Any, place: Any) -> Any:
        keys = lax.dynamic_update_slice(keys, k[:, None], (0, slot(place), 0))
        scores = jnp.where(jnp.arange(SLOTS)[None] <= place, (keys * q[:, None]).sum(-1) * 0.5, -1e30)
        shares = jnp.exp(scores - scores.max(-1, keepdims=True))
        return jnp.einsum("ht,htd->hd", shares, values) / shares.sum(-1, keepdims=True)

    return of


def verdict(slot: Callable[[Any], Any], **how: Any) -> Verdict:
    given = (P("x"),) * 4 + (P(),)
    arguments = [*floats((4, 2), (4, 2), (4, SLOTS, 2), (4, SLOTS, 2)), jax.ShapeDtypeStruct((), jnp.int32)]
    pair = Placed(MESH, given, P("x"), arguments).pair(reference, local(slot))
    return hlo_verify.verify(*pair, assume=["place in [0, 64)"], **how).verdict


def test_it_is_proved_before_each_device_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> bool:
        raise AssertionError("each device was looked at")

    monkeypatch.setattr(Apart, "proves", never)
    assert verdict(lambda place: lax.rem(place, SLOTS)) is Verdict.PROVED
    assert verdict(lambda place: lax.rem(place, SLOTS), refute=False) is Verdict.PROVED


@pytest.mark.slow
def test_a_ring_that_does_not_go_round_is_refuted() -> None:
    """Slots are compared with the place, though it goes beyond them: inputs are drawn there too, as the user says."""
    assert verdict(lambda place: jnp.minimum(place, SLOTS - 1)) is Verdict.REFUTED


def test_places_are_drawn_as_far_as_the_user_says() -> None:
    known, draw = Known((SLOTS, None), frozenset(), (False, False), frozenset()), Draw(1.0, 2, 3)
    assert [known.reach(0, draw, said) for said in (None, Values(0, 64), Values(0, 4))] == [SLOTS, 64, SLOTS]
    assert known.reach(1, draw, Values(0, 64)) == 3
