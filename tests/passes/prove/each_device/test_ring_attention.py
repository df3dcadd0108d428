"""Attention in rings of devices is proved however it is masked, and nothing that is nearly right."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.ring_attention import RINGS, WRONG, Ring


def verdict(ring: Ring) -> Verdict:
    return hlo_verify.verify(*ring.pair(), refute=False).verdict


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RINGS)
def test_rings(name: str) -> None:
    assert verdict(RINGS[name]) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ring", WRONG, ids=str)
def test_wrong_rings(ring: Ring) -> None:
    assert verdict(ring) is Verdict.UNKNOWN


def test_a_scale_that_is_rounded() -> None:
    """The devices multiply by the number that is nearest to what the whole divides by."""

    class Divided(Ring):
        def whole(self, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
            return jax.nn.softmax(q @ k.T / np.sqrt(8).astype(np.float32)) @ v

    ring = Divided(mask="", scale=float(np.float32(1) / np.sqrt(8).astype(np.float32)))
    report = hlo_verify.verify(*ring.pair(), refute=False)
    assert report.verdict is Verdict.PROVED
    assert any("rounded" in said for said in report.assumptions)
    assert verdict(replace(ring, scale=ring.scale * 1.001)) is Verdict.UNKNOWN
