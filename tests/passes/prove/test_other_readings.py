"""Which walks are taken to read loops in other ways."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import PartitionSpec as P

from hlo_verify.limits import Limits
from hlo_verify.ops.induction import Reading
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove import prove
from hlo_verify.passes.prove.prove import OtherReadings, Outcome, walk
from hlo_verify.program.pair import result_placements
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import on, turned

N = 4
PLACED = on({"i": N}, (P("i"), P("i")), P("i"), (2 * N, 2 * N), (2 * N, 2))


def plain(x: Array, w: Array) -> Array:
    return jnp.tanh(x @ w)


def summed(x: Array, w: Array) -> Array:
    """The same, where the reference adds up in a loop too."""
    blocks = x.reshape(-1, N, 2).swapaxes(0, 1), w.reshape(N, 2, -1)
    total, _ = lax.scan(lambda s, b: (s + b[0] @ b[1], None), jnp.zeros((x.shape[0], w.shape[1])), blocks)
    return jnp.tanh(total)


def ring(shift: int) -> Callable[..., Array]:
    def local(x: Array, w: Array) -> Array:
        d = lax.axis_index("i")

        def body(t: Any, carried: Any) -> Any:
            total, w = carried
            block = lax.dynamic_slice_in_dim(x, 2 * lax.rem(d - t + N + shift, N), 2, 1)
            return total + block @ w, lax.ppermute(w, "i", turned(N, 1))

        return jnp.tanh(lax.fori_loop(0, N, body, (jnp.zeros((2, 2)), w))[0])

    return local


def unnumbered(text: str) -> tuple[str, list[str]]:
    """Terms without the numbers of their sums, and what these are read at, in any order."""
    place = r"p[0-9]+(?:\[[0-9]+:[0-9]+\])?"
    return re.sub(place, "p", re.sub("sum[0-9]+", "sum", text)), sorted(re.findall(place, text))


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("whole", [plain, summed])
def test_no_walk_repeats_what_the_first_one_found(
    whole: Callable[..., Array], shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is summed up where the reference has no loops: what such a walk would find is what is known."""
    session, walked = Session(), []
    logical, partitioned = (load(each, devices=N) for each in PLACED.pair(whole, ring(shift)))
    placed = result_placements(logical, partitioned, N)

    def noted(*given: Any, reading: Reading, **others: Any) -> Outcome:
        walked.append(reading)
        return walk(*given, reading=reading, **others)

    with session.on():
        first = walk(logical, partitioned, False, None, session=session)
        again = walk(logical, partitioned, False, None, session=session, reading=Reading.SUMMED)
        terms = [unnumbered(str(outcome.found + outcome.wanted)) for outcome in (first, again)]
        assert (terms[0] == terms[1]) is (whole is plain)
        monkeypatch.setattr(prove, "walk", noted)
        with_it, alone = (OtherReadings(logical, partitioned, placed, session, first=each) for each in (first, None))
        for readings, expected in ((with_it, [] if whole is plain else [Reading.SUMMED]), (alone, [Reading.SUMMED])):
            walked.clear()
            assert readings.prove(0) is (shift == 0)
            assert walked == expected if shift == 0 else walked == [*expected, Reading.WRITTEN_OUT]


@pytest.mark.parametrize("turns", [2, N])
def test_nothing_is_written_out_where_all_loops_are_long(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk in which short loops are written out is the one that sums them up, and is not taken again."""
    session, walked = Session(Limits(unrolled_turns=turns)), []
    logical, partitioned = (load(each, devices=N) for each in PLACED.pair(summed, ring(1)))
    placed = result_placements(logical, partitioned, N)

    def noted(*given: Any, reading: Reading, **others: Any) -> Outcome:
        walked.append(reading)
        return walk(*given, reading=reading, **others)

    monkeypatch.setattr(prove, "walk", noted)
    with session.on():
        assert not OtherReadings(logical, partitioned, placed, session).prove(0)
    assert walked == ([Reading.SUMMED] if turns == 2 else [Reading.SUMMED, Reading.WRITTEN_OUT])


def test_results_are_compared_with_the_effort_of_a_walk_that_begins() -> None:
    """Comparisons in vain took what the first one had."""
    session = Session()
    logical, partitioned = (load(each, devices=N) for each in PLACED.pair(plain, ring(1)))
    with session.on():
        first = walk(logical, partitioned, False, None, session=session)
        first.stages.effort.left = first.stages.network.left = 0
        placed = result_placements(logical, partitioned, N)
        readings = OtherReadings(logical, partitioned, placed, session, first=first)
        afresh = readings._walked(Reading.SUMMED)
        assert afresh is not None
        assert afresh.stages.effort.left == session.limits.reading_steps
        assert afresh.stages.network.left == session.limits.reading_network_steps
        assert first.stages.effort.left == first.stages.network.left == 0
