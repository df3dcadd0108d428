"""What each device does by itself is proved where it is right, and nothing that is nearly right."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.each_device.compare import each_device
from hlo_verify.report import Report
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import PROGRAMS, on, turned

WRONG = [(name, wrong) for name, program in PROGRAMS.items() for wrong in program.wrong]


def verified(pair: tuple[str, str], **options: Any) -> Report:
    return hlo_verify.verify(*pair, refute=False, **options)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_programs(name: str) -> None:
    report = verified(PROGRAMS[name].pair())
    assert report.verdict is Verdict.PROVED, [result.reason for result in report.results]


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_wrong_programs(name: str, wrong: str) -> None:
    assert verified(PROGRAMS[name].pair(wrong)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_the_walk_for_all_devices(name: str) -> None:
    logical, partitioned = map(load, PROGRAMS[name].pair())
    with Session().on() as session:
        found = each_device(logical, partitioned, session)
        assert found is not None
        assert all(found.proves(n) for n in range(len(found.wanted)))


@pytest.mark.drawn(8)
@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_wrong_programs_without_it(name: str, wrong: str) -> None:
    logical, partitioned = map(load, PROGRAMS[name].pair(wrong))
    with Session().on() as session:
        found = each_device(logical, partitioned, session)
        assert found is None or not all(found.proves(n) for n in range(len(found.wanted)))


@pytest.mark.parametrize(("limit", "value"), [("devices_apart", 2), ("operations_apart", 20), ("turns_by_device", 1)])
def test_limits(limit: str, value: int) -> None:
    logical, partitioned = map(load, PROGRAMS["scatters_sums"].pair())
    with Session(Limits(**{limit: value})).on() as session:
        found = each_device(logical, partitioned, session)
        assert found is None or not found.proves(0)
        assert limit in session.spent().limits


@pytest.mark.parametrize(("turns", "is_seen"), [(4, True), (60, False)])
def test_numbers_that_double_in_length_each_turn(turns: int, is_seen: bool) -> None:
    """That of the last of 60 turns would have 2**60 bits."""
    placed = on({"i": 4}, P("i"), P("i"), (4,))

    def local(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, turns, lambda _, y: y * (y + y), x)

    module = load(placed.lowered(placed.mapped(local)))
    with Session().on() as session:
        found = each_device(module, module, session)
        assert (found is not None and found.proves(0)) == is_seen
        assert ("operations_apart" in session.spent().limits) != is_seen


def test_devices_that_disagree_have_no_result() -> None:
    """A result that is not split has to be the same on every device, in either module."""
    placed = on({"i": 4}, P("i"), P(), (4,))

    def local(x: jax.Array) -> jax.Array:
        return lax.ppermute(x, "i", turned(4, 3))

    assert verified((placed.lowered(placed.mapped(local)), placed.lowered(placed.mapped(local)))).verdict is (
        Verdict.UNKNOWN
    )


def test_a_branch_that_only_some_devices_take_hides_no_communication() -> None:
    placed = on({"i": 4}, P("i"), P("i"), (4,))

    def local(x: jax.Array) -> jax.Array:
        y = lax.ppermute(x, "i", [(0, 2), (2, 1), (1, 3), (3, 0)])
        kept = lax.cond(lax.axis_index("i") == 0, lambda x: lax.ppermute(x, "i", turned(4, 1)), lambda x: x, x)
        return lax.ppermute(y, "i", [(2, 0), (1, 2), (3, 1), (0, 3)]) + 0 * kept

    assert verified(placed.pair(lambda x: x, local)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("split", "end"), [(0, 1), (1, 0)])
def test_parts_without_elements(split: int, end: int) -> None:
    """Pieces lie end to end along a dimension of no elements, or are cut there; beside what has some."""

    def local(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        exchanged = lax.all_to_all(x, "i", split, end, tiled=True)
        return jnp.concatenate([exchanged] * 2)[:2], y + 1

    placed = on({"i": 2}, (P("i"), P("i")), (P("i"), P("i")), (4, 0), (4,))
    logical, partitioned = map(load, placed.pair(lambda x, y: (x, y + 1), local))
    with Session().on() as session:
        found = each_device(logical, partitioned, session)
        assert found is not None and found.proves(0) and found.proves(1)
