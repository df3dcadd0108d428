"""Causal rings that leave out the keys after all of a device's rows, and rings that go through keys chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import open_obligations, walk
from hlo_verify.program.pair import result_placements
from hlo_verify.session import Session
from tests.support.lowering import Placed, floats

Kept = tuple[jax.Array, jax.Array, jax.Array]
ROWS, DEPTH = 4, 3


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.where(jnp.tril(jnp.ones((len(q), len(q)), bool)), q @ k.T, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


@dataclass(frozen=True)
class Ring:
    devices: int = 8
    skips: str = ""
    """What decides whether keys are looked at: "blocks" of a device, "chunks" of it, or nothing."""
    chunks: int = 0
    """How many chunks of a block an inner loop goes through; none without such a loop."""
    wrong: str = ""

    def local(self, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        place, count = lax.axis_index("ring"), self.devices
        rows = ROWS * place + jnp.arange(ROWS)

        def seen(kept: Kept, k: jax.Array, v: jax.Array, start: Any) -> Kept:
            total, weight, most = kept
            keys = start + jnp.arange(len(k))
            is_masked = rows[:, None] <= keys if self.wrong == "own_key" else rows[:, None] < keys
            scores = jnp.where(is_masked, -jnp.inf, q @ k.T)
            greatest = jnp.maximum(most, scores.max(-1))
            unit, each = jnp.exp(most - greatest), jnp.exp(scores - greatest[:, None])
            if self.wrong == "no_rescaling":
                unit = jnp.ones_like(unit)
            return total * unit[:, None] + each @ v, weight * unit + each.sum(-1), greatest

        def skipped(kept: Kept) -> Kept:
            total, weight, most = kept
            if self.wrong == "skipped_weight":
                return total, weight + 1, most
            return (total, weight, most - 1) if self.wrong == "skipped_unit" else (total, weight, most)

        def if_needed(is_asked: bool, first: Any, kept: Kept, *rest: Any) -> Kept:
            if not is_asked:
                return seen(kept, *rest)
            last = ROWS * place + ROWS - 1 - (ROWS if self.wrong == "too_many" else 0)
            return lax.cond(first <= last, lambda kept: seen(kept, *rest), skipped, kept)

        def turn(n: Any, carried: Any) -> Any:
            kept, k, v = carried
            start = ROWS * ((place - n - (self.wrong == "next_first")) % count)
            if self.chunks:
                size = ROWS // self.chunks

                def chunk(kept: Kept, n: Any) -> tuple[Kept, None]:
                    some = (lax.dynamic_slice_in_dim(x, n * size, size) for x in (k, v))
                    first = start + n * size
                    return if_needed(self.skips == "chunks", first, kept, *some, first), None

                kept, _ = lax.scan(chunk, kept, jnp.arange(self.chunks - (self.wrong == "a_chunk_less")))
            else:
                kept = if_needed(self.skips == "blocks", start, kept, k, v, start)
            k, v = (lax.ppermute(x, "ring", [(i, (i + 1) % count) for i in range(count)]) for x in (k, v))
            return kept, k, v

        if self.wrong == "next_first":
            k, v = (lax.ppermute(x, "ring", [(i, (i + 1) % count) for i in range(count)]) for x in (k, v))
        nothing = jnp.zeros_like(q), jnp.zeros(ROWS), jnp.full(ROWS, -jnp.inf)
        (total, weight, _), _, _ = lax.fori_loop(0, count, turn, (nothing, k, v))
        return total / weight[:, None]

    def pair(self) -> tuple[str, str]:
        split = P("ring", None)
        arguments = floats(*[(ROWS * self.devices, DEPTH)] * 3)
        return Placed(AbstractMesh((self.devices,), ("ring",)), split, split, arguments).pair(attention, self.local)

    def is_seen(self) -> bool:
        """Whether it is seen to be right for all devices at once, with no loop written out."""
        logical, partitioned = map(load, self.pair())
        with Session(Limits(unrolled_turns=1)).on() as session:
            session.phase = ""
            (placed,) = result_placements(logical, partitioned, self.devices)
            outcome = walk(logical, partitioned, False, None, session=session)
            (name,) = logical.result_names
            return not open_obligations(0, name, outcome, placed, decide=True, briefly=True)


RIGHT = {
    "blocks": Ring(skips="blocks"),
    "blocks_64": Ring(64, skips="blocks"),
    "chunks": Ring(chunks=2),
    "chunks_64": Ring(64, chunks=2),
    "one_chunk": Ring(chunks=1, skips="chunks"),
    "chunks_skipped": Ring(chunks=2, skips="chunks"),
    "single_keys": Ring(chunks=ROWS),
}


@pytest.mark.parametrize("name", RIGHT)
def test_they_are_seen_to_be_right_for_all_devices_at_once(name: str) -> None:
    assert RIGHT[name].is_seen()


def test_they_are_proved_so() -> None:
    assert hlo_verify.verify(*RIGHT["chunks_skipped"].pair(), refute=False).verdict is Verdict.PROVED


WRONG = {
    "blocks": ["no_rescaling", "skipped_weight", "skipped_unit", "too_many", "own_key"],
    "blocks_64": ["skipped_unit", "too_many"],
    "chunks": ["no_rescaling", "own_key", "a_chunk_less"],
    "chunks_skipped": ["skipped_weight", "skipped_unit", "too_many", "a_chunk_less"],
}


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, all_ in WRONG.items() for wrong in all_])
def test_others_are_not(name: str, wrong: str) -> None:
    assert not replace(RIGHT[name], wrong=wrong).is_seen()


def test_a_wrong_one_is_refuted() -> None:
    assert hlo_verify.verify(*replace(RIGHT["blocks"], devices=4, wrong="too_many").pair()).verdict is Verdict.REFUTED


@pytest.mark.parametrize("chunks", [0, 2])
def test_a_first_turn_that_sees_nothing_is_no_number(chunks: int) -> None:
    """What minus infinity masks as a whole is in no unit: its exponentials are no numbers. What is left out is 0."""
    assert not Ring(chunks=chunks, wrong="next_first").is_seen()
