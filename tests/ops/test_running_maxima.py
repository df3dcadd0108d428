"""Gradients of ring attention in loops, on any number of devices: what each turn keeps is in units of a maximum."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import open_obligations, walk
from hlo_verify.program.pair import device_count, result_placements
from hlo_verify.session import Session
from tests.passes.prove.each_device.ring_attention import INFINITE, Ring

SCANNED = Ring(devices=4, mask="", loop="scan", gradient=True)
THROUGH_MAXIMA = replace(SCANNED, held=False)
CAUSAL = replace(SCANNED, mask="compared")
RIGHT = {
    "plain": SCANNED,
    "64": replace(SCANNED, devices=64),
    "two": replace(SCANNED, devices=2),
    "from_infinity": replace(SCANNED, loop="fori", start=INFINITE),
    "sines": replace(SCANNED, sines=True, devices=8),
    "through_maxima": THROUGH_MAXIMA,
    "through_maxima_two": replace(THROUGH_MAXIMA, devices=2),
    "through_maxima_64": replace(THROUGH_MAXIMA, devices=64),
    "through_maxima_sines": replace(THROUGH_MAXIMA, sines=True, loop="fori"),
    "causal": CAUSAL,
    "causal_64": replace(CAUSAL, devices=64),
    "causal_infinite": replace(CAUSAL, masked=INFINITE, start=INFINITE),
    "through_maxima_from_infinity": replace(THROUGH_MAXIMA, start=INFINITE),
    "causal_through_maxima": replace(CAUSAL, held=False),
    "causal_through_maxima_from_infinity": replace(CAUSAL, held=False, start=INFINITE, devices=8),
    "causal_through_maxima_infinite_64": replace(CAUSAL, held=False, masked=INFINITE, start=INFINITE, devices=64),
}
RIGHT |= {f"{name}_told_apart": replace(ring, told_apart=True) for name, ring in RIGHT.items() if not ring.held}


def seen(ring: Ring) -> list[bool]:
    """Which results are seen to be right, for all devices at once, in a few steps."""
    logical, partitioned = map(load, ring.pair())
    with Session(Limits(unrolled_turns=1)).on() as session:
        session.phase = ""
        placed = result_placements(logical, partitioned, device_count(logical, partitioned))
        outcome = walk(logical, partitioned, False, None, session=session)
        return [
            not open_obligations(n, name, outcome, placed[n], decide=True, briefly=True)
            for n, name in enumerate(logical.result_names)
        ]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", RIGHT)
def test_gradients_of_rings_are_seen_to_be_right_for_all_devices_at_once(name: str) -> None:
    assert seen(RIGHT[name]) == [True] * 3


def test_they_are_proved_so() -> None:
    assert hlo_verify.verify(*RIGHT["64"].pair(), refute=False).verdict is Verdict.PROVED


@pytest.mark.parametrize("devices", [4, 64])
@pytest.mark.parametrize("wrong", ["short", "no_rescaling"])
def test_gradients_of_other_rings_are_not(wrong: str, devices: int) -> None:
    assert not any(seen(replace(SCANNED, devices=devices, wrong=wrong)))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("devices", [4, 64])
@pytest.mark.parametrize("wrong", ["short", "no_rescaling", "held_once"])
def test_gradients_through_maxima_of_other_rings_are_not(wrong: str, devices: int) -> None:
    assert not any(seen(replace(THROUGH_MAXIMA, devices=devices, wrong=wrong, by=(0, 1)))[:2])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["causal", "causal_64", "causal_infinite"])
@pytest.mark.parametrize("wrong", ["short", "no_rescaling", "owner", "strict"])
def test_gradients_of_rings_that_are_masked_otherwise_are_not(wrong: str, name: str) -> None:
    assert not any(seen(replace(RIGHT[name], wrong=wrong)))


OTHERS = [
    (name, wrong)
    for name in RIGHT
    if name.startswith(("through_maxima_from", "causal_through_maxima"))
    for wrong in ("short", "no_rescaling", "held_once")
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "wrong"), [*OTHERS, ("causal_through_maxima_infinite_64", "late")])
def test_gradients_through_maxima_of_rings_that_are_masked_otherwise_are_not(name: str, wrong: str) -> None:
    """Also not where the first turn of some devices has nothing but masked keys, which leaves a maximum of minus
    infinity that is no unit."""
    assert not any(seen(replace(RIGHT[name], wrong=wrong, by=(0, 1))))
