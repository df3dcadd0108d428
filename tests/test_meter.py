"""The account of what is done after a proof failed."""

from __future__ import annotations

import math

import pytest

from hlo_verify.limits import Limits
from hlo_verify.meter import TERM, Meter
from hlo_verify.session import Session


def test_there_is_no_end_before_it_begins() -> None:
    meter = Meter()
    meter.charge(1e30)
    with meter.keeping(0.5):
        assert meter.left == math.inf


def test_what_was_done_is_taken_from_what_is_left() -> None:
    meter = Meter()
    meter.charge(5)
    meter.begin(100_000)
    assert meter.left == 100_000
    meter.charge(10)
    meter.charge_terms(2)
    meter.charge_terms(-1)  # terms were numbered anew meanwhile
    assert meter.left == 100_000 - 10 - 2 * TERM


def test_what_is_kept_is_there_again_afterwards() -> None:
    meter = Meter()
    meter.begin(100)
    with pytest.raises(KeyError), meter.keeping(0.5):
        meter.charge(30)
        assert meter.left == 20
        raise KeyError
    assert meter.left == 70
    meter.charge(80)
    with meter.keeping(0.5):
        assert meter.left == -10


def test_what_is_lent_is_taken_first_and_is_gone_afterwards() -> None:
    meter = Meter()
    meter.begin(100)
    with meter.lending(50):
        meter.charge(40)
        assert meter.left == 110
    assert meter.left == 100
    with meter.lending(50):
        meter.charge(80)
        assert meter.left == 70
    assert meter.left == 70


def test_what_took_more_than_there_was_takes_nothing_of_what_is_lent_later() -> None:
    meter = Meter()
    meter.begin(100)
    meter.charge(130)
    assert meter.left == -30
    with meter.lending(50):
        assert meter.left == 50
        meter.charge(60)
        assert meter.left == -40
    assert meter.left == -40


@pytest.mark.parametrize("is_so", [False, True])
def test_some_of_what_is_done_has_nothing_of_what_is_lent(is_so: bool) -> None:
    meter = Meter()
    meter.begin(100)
    with meter.lending(50):
        with meter.nothing_lent(is_so):
            meter.charge(40)
            assert meter.left == (60 if is_so else 110)
        assert meter.left == 110


def test_what_is_not_afforded_is_said() -> None:
    session = Session(Limits())
    assert session.affords(1e30)
    session.meter.begin(100)
    assert session.affords(99)
    assert session.spent().limits == ()
    assert not session.affords(100)
    assert session.spent().limits == ("wrong_work",)
