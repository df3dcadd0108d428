"""Shardings files for one module, which XLA then partitions by them."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo_verify
from hlo_verify import cli
from hlo_verify.passes.load.load import load
from hlo_verify.program.mesh import AxisReference, Mesh
from hlo_verify.program.sharding import Sharding, parse_hlo_sharding, place
from hlo_verify.sources.shardings_file import read_shardings
from hlo_verify.xla.annotate import hlo_text
from tests.programs import layer, lowered

SPECS = """
[mesh]
data = 2
model = 4
[arguments]
x = ["data"]
w = "P(None, 'model')"
[results]
0 = ["data", "model"]
"""
TEXTS = """
[arguments]
x = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"
w = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
"""


def _plain() -> str:
    x, w = jax.ShapeDtypeStruct((32, 16), jnp.float32), jax.ShapeDtypeStruct((16, 64), jnp.float32)
    return str(jax.jit(layer).trace(x, w).lower(lowering_platforms=("cpu",)).as_text(debug_info=True))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("text", [SPECS, TEXTS, "device_ids = [4, 5, 6, 7, 0, 1, 2, 3]" + SPECS])
def test_a_module_without_shardings_is_partitioned_by_those_of_a_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    report = hlo_verify.verify(_plain(), shardings=path, keep=tmp_path / "kept")
    assert (report.verdict, report.devices) == (hlo_verify.Verdict.PROVED, 8)
    given = read_shardings(path).apply(load(_plain()))
    halves = [load(tmp_path / "kept" / f"{half}.hlo") for half in ("annotated", "partitioned")]
    assert halves[1].main.argument_types[1].shape == (16, 16)
    for wanted, kept in zip(given.argument_shardings, halves[0].argument_shardings, strict=True):
        assert wanted is not None and kept is not None
        assert wanted.tiles == kept.tiles and np.array_equal(wanted.coordinates, kept.coordinates)


def test_what_a_module_leaves_open_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[mesh]\ndata = 2\nmodel = 4\n[results]\n1 = []\n0 = ['model']\n")
    source = lowered(out_shardings=False)
    assert hlo_verify.verify(source, shardings=tmp_path / "s.toml", keep=tmp_path).verdict is hlo_verify.Verdict.PROVED
    first = load(tmp_path / "partitioned.hlo").result_types[0]
    assert first.shape == (8, 64)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(SPECS)
    (tmp_path / "m.mlir").write_text(_plain())
    assert cli.main([str(tmp_path / "m.mlir"), "--shardings", str(tmp_path / "s.toml")]) == 0
    assert "2 results on 8 devices" in capsys.readouterr().out


AXES = st.permutations([AxisReference("a"), AxisReference("b"), AxisReference("c", 1, 2), AxisReference("c", 2, 3)])


@given(AXES, st.lists(st.integers(0, 4), min_size=3, max_size=3), st.permutations(range(24)))
def test_a_placement_and_its_text_are_the_same(axes: list[AxisReference], cuts: list[int], order: list[int]) -> None:
    one, two, three = sorted(cuts)
    mesh = Mesh((("a", 2), ("b", 2), ("c", 6)), tuple(order))
    placed = place(mesh, [axes[:one], axes[one:two]], axes[two:three], 24)
    again = parse_hlo_sharding(hlo_text(placed), 2, 24)
    assert isinstance(again, Sharding)
    assert again.tiles == placed.tiles
    assert np.array_equal(again.coordinates, placed.coordinates)
    # Which of the addends a device holds has no text where all devices hold one: which hold the same one has.
    same = [each.numbers[:, None] == each.numbers for each in (again, placed)]
    assert np.array_equal(*same)
