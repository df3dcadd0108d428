"""Attributes are equal where all of their parts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlo_verify.program.attributes import fingerprint
from hlo_verify.program.sharding import parse_sharding, same


def test_placements_on_many_devices_are_told_apart() -> None:
    """Numpy prints the first and the last of a thousand elements."""
    one, other = (
        parse_sharding(f"{{devices=[1024]{order}}}", [1], 1024)[0] for order in ("<=[1024]", "<=[4,4,64]T(1,0,2)")
    )
    assert one is not None and other is not None and not same(one, other) and repr(one) == repr(other)
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([1]), np.array([1], np.int32)),
        (np.arange(2000), np.where(np.arange(2000) == 1000, 0, np.arange(2000))),
        ({"a": 1}, {"b": 1}),
        ((1, (2,)), ((1, 2),)),
    ],
)
def test_what_differs_is_told_apart(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_what_is_repeated_is_not_written_out() -> None:
    tens = np.broadcast_to(np.float32(10), (1 << 20, 1 << 20))
    assert len(str(fingerprint(tens))) < 100
