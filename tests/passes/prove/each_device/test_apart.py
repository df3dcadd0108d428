"""What is asked about each device by itself has an end, in the middle of a term too, and leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify.index.interned import made
from hlo_verify.limits import Limits
from hlo_verify.memory import Memory, per_session
from hlo_verify.meter import TERM
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.program.ir import Module
from hlo_verify.report import Verdict
from hlo_verify.session import Session
from tests.support.lowering import floats

PAIRS = Path(__file__).parents[3] / "pairs"
MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))


def compiled() -> tuple[Module, Module]:
    folder = PAIRS / "sums_of_windows_across_shards"
    return load(folder / "logical.mlir"), load(folder / "partitioned.mlir")


def by_hand() -> tuple[Module, Module]:
    """Halos that go round a ring, with the way that each device asks in."""

    def local(x: jax.Array) -> jax.Array:
        d = lax.axis_index("d")
        before = lax.ppermute(x[-1:], "d", [(k, (k + 1) % 4) for k in range(4)])
        return jnp.where(d == 0, x, x + jnp.concatenate([before, x[:-1]]))

    def reference(x: jax.Array) -> jax.Array:
        return jnp.where(jnp.arange(16)[:, None] < 4, x, x + jnp.roll(x, 1, axis=0))

    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    first, second = (jax.jit(f).lower(*floats((16, 4))).as_text(debug_info=True) for f in (reference, mapped))
    return load(first), load(second)


LIMITS = {"small_terms_apart": compiled, "terms_apart": by_hand}


@pytest.mark.parametrize("limit", LIMITS)
def test_it_ends_while_a_term_is_made(limit: str) -> None:
    pair = LIMITS[limit]()
    session = Session(replace(Limits(), **{limit: 100}))
    with session.on():
        session.meter.begin(TERM * 1_000_000)
        apart = Apart(*pair, session, [0])
        assert not apart.proves(0)
        assert not apart.proves(0)
    assert limit in session.spent().limits
    with Session().on() as session:
        session.meter.begin(TERM * 1_000_000)
        apart, before, terms = Apart(*pair, session, [0]), session.memory.values, made()
        assert apart.proves(0)
        assert apart.proves(0)
        assert session.memory.values is before and made() - terms < 100  # its terms are its own


@pytest.mark.parametrize("limit", LIMITS)
def test_a_wrong_module_pays_for_it(limit: str) -> None:
    pair = LIMITS[limit]()
    with Session(replace(Limits(), terms_apart=100)).on() as session:
        session.meter.begin(TERM * 50)
        apart = Apart(*pair, session, [0], seems_wrong=True)
        assert not apart.proves(0)
        assert session.meter.left <= 0


def test_a_brief_look_ends_sooner() -> None:
    """What it was too dear for is proved when all else has failed."""
    pair = by_hand()
    for few, is_seen in ((1, False), (Limits().small_terms_apart, True)):
        with Session(replace(Limits(), small_terms_apart=few)).on() as session:
            session.meter.begin(TERM * 1_000_000)
            apart = Apart(*pair, session, [0])
            assert apart.proves_briefly(0) is is_seen
            assert apart.proves(0)


def test_what_is_not_proved_within_it_stays_unknown() -> None:
    session = Session(replace(Limits(), small_terms_apart=1000))
    assert prove(*compiled(), session=session).verdict is Verdict.UNKNOWN
    assert "small_terms_apart" in session.spent().limits
    assert prove(*compiled(), session=Session()).verdict is Verdict.PROVED


_numbers = per_session("numbers of a test of memories", list)


def test_a_memory_that_is_resumed() -> None:
    first, second = Memory(), Memory()
    with first.resumed():
        _numbers().append(1)
        with second.resumed():
            assert _numbers() == []
            _numbers().append(2)
        assert _numbers() == [1]
    with second.resumed():
        assert _numbers() == [2]
    second.forget()
    with first.resumed(), second.resumed():
        assert _numbers() == []
    with first.resumed():
        assert _numbers() == [1]
