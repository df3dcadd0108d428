"""Windowed einsums are proved for rings of any size, and refuted where a window, a step or a turn is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hlo_verify
from hlo_verify import Verdict
from tests.ops.windowed import contracting, filling, scattering, texts

FORMS = [contracting, filling, scattering]


@pytest.mark.parametrize("n", [4, 8, 64])
@pytest.mark.parametrize("form", FORMS)
def test_proved(form: Callable[..., Any], n: int) -> None:
    assert hlo_verify.verify(*texts(form, n), refute=False).verdict is Verdict.PROVED


@pytest.mark.parametrize("n", [4, 8])
@pytest.mark.parametrize("wrong", [{"off": 1}, {"off": 2}, {"turns": -1}, {"turns": 1}, {"unpassed": True}], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_refuted(form: Callable[..., Any], wrong: dict[str, Any], n: int) -> None:
    if form is filling and wrong == {"turns": 1}:
        pytest.skip("one turn more writes the same windows again")
    assert hlo_verify.verify(*texts(form, n, **wrong)).verdict is Verdict.REFUTED
