"""Which start of a shard an offset was probably meant to be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hlo_verify.index import expr
from hlo_verify.passes.diagnose.shard_match import Shards

DEVICE = expr.fresh("d", 4)
START = expr.of_var(DEVICE)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ((0, 6, 2, 4), 2),
        ((0, 7, 2, 4), None),
        ((1, 2, 3, 4), None),
        ((0, 1, 2, 2**62), None),  # as many as there are of them, not as far as they reach
    ],
)
def test_a_table_in_even_steps_is_like_the_start_of_shards(values: tuple[int, ...], step: int | None) -> None:
    nothing: Any = SimpleNamespace(logical=(), partitioned=(), arguments=(), placements=(), device=DEVICE)
    shards = Shards(nothing, _starts={4: [START]})
    wanted = None if step is None else expr.scale(START, step)
    assert shards.start_like(expr.table(values, START)) is wanted
