"""The decoder of any size (`tools.scale`): right on every mesh, wrong where an all_reduce is left out; its costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import at_once
from hlo_verify.program.ir import Module
from hlo_verify.session import Session
from tools.scale import decoder, lower
from tools.scale.decoder import Size

SMALL = {"width": 16, "inner": 32, "heads": 4, "head": 4, "vocabulary": 64, "sequence": 8}


def small(layers: int, dropped: int | None = None) -> tuple[Module, Module]:
    logical, partitioned = lower.pair(Size(layers, 2, 2, **SMALL), dropped)
    return load(logical), load(partitioned)


@pytest.mark.parametrize("layers", [1, 2])
def test_right(layers: int) -> None:
    assert hlo_verify.verify(*small(layers), refute=False).verdict is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dropped", [0, 1])
def test_a_dropped_sum_of_one_layer_is_never_proved(dropped: int) -> None:
    logical, partitioned = small(2, dropped)
    with Session().on() as session:
        report, _ = at_once(logical, partitioned, None, session)
    wrong = [result.name for result in report.results if result.verdict is not Verdict.PROVED]
    assert "result[1]" in wrong and len(wrong) > 20


def test_layers_are_derived_once_whatever_their_weights_are_called() -> None:
    """Which of two products of a sum gives its scale depended on the names of tensors, so that what was renamed from
    one layer to the next was written otherwise there: of six layers none were shared, of sixteen all."""
    logical, partitioned = small(6)
    with Session().on() as session:
        report, walked = at_once(logical, partitioned, None, session)
    assert report.verdict is Verdict.PROVED
    assert walked is None


def test_a_dropped_sum_is_not_shared_away() -> None:
    logical, partitioned = small(6, 3)
    with Session().on() as session:
        report, _ = at_once(logical, partitioned, None, session)
    assert report.verdict is Verdict.UNKNOWN


def test_a_module_for_a_hundred_thousand_devices_has_a_handful_of_tables() -> None:
    """As many as shardings are written differently, not as many as arguments: each is a table of all devices."""
    size = replace(decoder.of(2, 131072), sequence=8)
    logical, partitioned = map(load, lower.pair(size))
    for module in (logical, partitioned):
        every = [*module.argument_shardings, *module.result_shardings]
        assert len({id(sharding) for sharding in every}) < 10 < len(every)
    assert partitioned.partitions == 131072


@pytest.mark.parametrize("dropped", [None, 0])
def test_devices_in_the_order_of_a_ring(dropped: int | None) -> None:
    """Of a mesh of v5e:2x4: tables of places, in which nothing cancels, unless devices are numbered by place."""
    logical, partitioned = map(load, lower.pair(Size(1, 4, 2, **SMALL), dropped, [0, 1, 2, 3, 7, 6, 5, 4]))
    with Session().on() as session:
        report, _ = at_once(logical, partitioned, None, session)
    assert report.verdict is (Verdict.PROVED if dropped is None else Verdict.UNKNOWN)
