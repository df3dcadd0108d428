"""Sums of intervals over any axis, how intervals are moved, and quotients: against exact numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hlo_verify.evaluate import interval_functions as functions
from hlo_verify.evaluate import intervals
from hlo_verify.evaluate.intervals import interval
from tests.evaluate.test_intervals import POINTS, rational

GENERATOR = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """As in an evaluation, what is no number is no warning."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("shape", [(3, 40, 20), (2, 5, 17), (1, 1, 30), (40, 3, 2), (7, 16, 1), (0, 4, 20)])
@pytest.mark.parametrize("piece", [8, 100, 1 << 14])
def test_sums_over_any_axis_hold_the_exact_ones(
    shape: tuple[int, ...], piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "PIECE", piece)
    low = np.exp(GENERATOR.uniform(-9, 9, shape)) * GENERATOR.choice([-1, 1], shape)
    values = interval(low, low + np.abs(low) * GENERATOR.choice([0, 1e-9], shape))
    for axis in (k for k in range(3) if shape[k]):
        found = np.moveaxis(intervals.total(values, axis), axis, -1)[..., 0]
        for row in np.ndindex(found.shape):
            terms = np.moveaxis(values, axis, -1)[row]
            assert rational(found[row]["low"]) <= sum(map(rational, terms["low"]))
            assert rational(found[row]["high"]) >= sum(map(rational, terms["high"]))
            assert found[row]["high"] - found[row]["low"] <= 1e-8 * np.abs(terms["high"]).sum()


@pytest.mark.parametrize("axis", range(3))
def test_sums_of_what_is_not_finite_are_not_known(axis: int) -> None:
    values = intervals.exact(np.ones((20, 20, 20)))
    values[1, 2, 3], values[4, 5, 6], values[7, 8, 9] = [(x, x) for x in (np.nan, np.inf, -np.inf)]
    odd = np.isnan(np.where(np.isfinite(values["low"]), 0, np.nan).sum(axis=axis, keepdims=True))
    found = intervals.total(values, axis)
    assert (np.isnan(found["low"]) == odd).all() and (np.isnan(found["high"]) == odd).all()
    assert (np.abs(found[~odd]["low"] - 20) < 1e-9).all() and (found[~odd]["high"] >= 20).all()


def test_what_is_rearranged_is_moved_alone() -> None:
    values = interval(np.arange(24.0).reshape(2, 3, 4), 100 + np.arange(24.0).reshape(2, 3, 4))
    values[0, 1, 2] = np.nan, np.nan
    for some in (values, values[:, ::-1], np.broadcast_to(values[:, :1], values.shape)):
        found = intervals.rearranged(some, [2, 0, 1], (4, -1))
        for side in ("low", "high"):
            assert np.array_equal(found[side], some[side].transpose(2, 0, 1).reshape(4, -1), equal_nan=True)


def test_quotients_of_positive_numbers_hold_the_exact_ones() -> None:
    low = np.abs(POINTS)
    a = interval(low, low * GENERATOR.choice([1, 1 + 1e-9, 3], len(low)))
    a, b = (each[np.isfinite(a["high"])] for each in (a, GENERATOR.permutation(a)))
    b = interval(np.maximum(b["low"], 5e-324), np.maximum(b["high"], 5e-324))
    b = np.where(np.isfinite(b["high"]), b, interval(1.0, 2.0))
    found = functions.REAL["divide"](a, b)
    for x, y, each in zip(a, b, found, strict=True):
        if np.isnan(each["low"]):
            assert rational(x["high"]) > rational(y["low"]) * 10**300  # too large a number
            continue
        assert rational(each["low"]) * rational(y["high"]) <= rational(x["low"])
        assert rational(each["high"]) * rational(y["low"]) >= rational(x["high"])
        assert each["low"] >= 0 and (each["high"] == 0) == (x["high"] == 0)
