"""Which devices hold the same shard, by HloSharding's text; against the reader that proofs use."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.shardings import each, read, shards
from hlo_verify.program.sharding import parse_sharding

TEXTS = [
    "{replicated}",
    "{devices=[8,1]<=[8]}",
    "{devices=[2,4]<=[8]}",
    "{devices=[4,2]<=[2,4]T(1,0)}",
    "{devices=[2,2]0,3,1,2}",
    "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
    "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
    "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, replicated}}",
    "{devices=[1,1,8]<=[8] last_tile_dim_replicate}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_shards(text: str) -> None:
    devices = 4 if "0,3" in text else 8
    [sharding] = parse_sharding(text, [2], devices)
    assert sharding is not None
    wanted = [tuple(map(int, row)) for row in np.asarray(sharding.coordinates)]
    found = shards(text, devices)
    assert found is not None
    pairs = [(a, b) for a in range(devices) for b in range(devices)]
    assert all((found[a] == found[b]) == (wanted[a] == wanted[b]) for a, b in pairs)


@pytest.mark.parametrize(
    "text",
    [
        "{manual}",
        "{maximal device=0}",
        "{devices=[2,4]<=[8] last_tile_dims={manual}}",
        "{devices=[4]<=[4]}",
        "",
        "{devices=[8]<=[2,4]T(0,0)}",
    ],
)
def test_what_says_nothing_of_the_devices(text: str) -> None:
    assert shards(text, 8) is None


def test_tuples_and_files() -> None:
    assert each("{{replicated}, {devices=[2,4]<=[8]}}") == ["{replicated}", "{devices=[2,4]<=[8]}"]
    assert each("{replicated}") == ["{replicated}"]
    assert read('{"in": ["{replicated}"]}').arguments == ("{replicated}",)
    for wrong in ("[]", "{", '{"in": [1]}'):
        with pytest.raises(InputError):
            read(wrong)
