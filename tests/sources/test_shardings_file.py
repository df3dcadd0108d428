"""Shardings files: what they say, where they are applied, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.ir import Function, Module, TensorType
from hlo_verify.program.sharding import Sharding, parse_hlo_sharding
from hlo_verify.sources.shardings_file import Shardings, read_shardings

KINDS = (TensorType((8, 16), "f32"), TensorType((16,), "f32"), TensorType((), "f32"))


def module(partitions: int | None = 8, own: Sharding | None = None) -> Module:
    """Two arguments, x and params['w'], and one result."""
    return Module(
        name="m",
        main=Function((0, 1), KINDS[:2], (), (2,)),
        argument_names=("x", "params['w']"),
        result_names=("loss",),
        result_types=KINDS[2:],
        argument_shardings=(own, None),
        result_shardings=(None,),
        partitions=partitions,
    )


def read(folder: Path, text: str) -> Shardings:
    path = folder / "shardings"
    path.write_text(text)
    return read_shardings(path)


MESH = "[mesh]\ndata = 2\nmodel = 4\n"


def placed(folder: Path, entry: str, mesh: str = MESH) -> Sharding:
    """How `x`, of 8 by 16, is placed."""
    sharding = read(folder, f"{mesh}[arguments]\nx = {entry}\n").apply(module()).argument_shardings[0]
    assert sharding is not None
    return sharding


def same(one: Sharding, text: str) -> bool:
    other = parse_hlo_sharding(text, 2, 8)
    assert isinstance(other, Sharding)
    return one.tiles == other.tiles and np.array_equal(one.coordinates, other.coordinates)


@pytest.mark.parametrize(
    ("entry", "hlo"),
    [
        ('["data"]', "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
        ('["", "model"]', "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"),
        ('[[], ["model", "data"]]', "{devices=[1,8]<=[2,4]T(1,0)}"),
        ('[["data", "model"], []]', "{devices=[8,1]<=[8]}"),
        ("\"P('data', 'model')\"", "{devices=[2,4]<=[8]}"),
        ("\"PartitionSpec(None, ('data', 'model'))\"", "{devices=[1,8]<=[8]}"),
        ('"P()"', "{replicated}"),
        ("[]", "{replicated}"),
        ('"{devices=[4,2]<=[8]}"', "{devices=[4,2]<=[8]}"),
    ],
)
def test_spellings(tmp_path: Path, entry: str, hlo: str) -> None:
    assert same(placed(tmp_path, entry), hlo)


def test_unreduced_axes(tmp_path: Path) -> None:
    sharding = placed(tmp_path, "\"P('data', unreduced={'model'})\"")
    assert sharding.addends is not None
    assert sharding.addends.tolist() == [0, 1, 2, 3] * 2


def test_another_order_of_devices(tmp_path: Path) -> None:
    sharding = placed(tmp_path, '["data"]', mesh="device_ids = [7,6,5,4,3,2,1,0]\n" + MESH)
    assert sharding.coordinates[:, 0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_names_positions_and_json(tmp_path: Path) -> None:
    table = {
        "mesh": {"data": 2, "model": 4},
        "arguments": {"params['w']": ["model"], "0": ["data", None]},
        "results": {"loss": []},
    }
    applied = read(tmp_path, json.dumps(table)).apply(module(partitions=None))
    assert applied.partitions == 8
    x, w = applied.argument_shardings
    assert x is not None
    assert w is not None
    assert (x.tiles, w.tiles) == ((2, 1), (4,))
    [loss] = applied.result_shardings
    assert loss is not None
    assert loss.tiles == ()


def test_what_is_not_mentioned_stays(tmp_path: Path) -> None:
    own = placed(tmp_path, '["data"]')
    applied = read(tmp_path, MESH + "[results]\n0 = []\n").apply(module(own=own))
    assert applied.argument_shardings == (own, None)


def test_repeating_what_the_module_says_is_no_contradiction(tmp_path: Path) -> None:
    own = placed(tmp_path, '["data"]')
    read(tmp_path, MESH + '[arguments]\nx = ["data"]\n').apply(module(own=own))
    with pytest.raises(InputError, match="the module itself says otherwise"):
        read(tmp_path, MESH + '[arguments]\nx = ["model"]\n').apply(module(own=own))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mesh = [2, 4]", "mesh must be a table"),
        ("[mesh]\ndata = 0", "mesh must be a table"),
        ("device_ids = [0, 0]\n[mesh]\nx = 2", "device_ids must name each of the 2 devices"),
        ("device_ids = 3\n[mesh]\nx = 2", "device_ids must name each of the 2 devices"),
        ("device_ids = ['a', 1]\n[mesh]\nx = 2", "device_ids must name each of the 2 devices"),
        ("device_ids = [false, true]\n[mesh]\nx = 2", "device_ids must name each of the 2 devices"),
        ("device_ids = [0]\n[mesh]\nx = 99999999999999", "device_ids must name each of the 99999999999999 devices"),
        ("[argument]\nx = []", "unknown key 'argument'"),
        ("arguments = 3", "arguments must be a table"),
        (MESH + "[arguments]\nx = 3", "not a sharding: 3"),
        (MESH + "[arguments]\nx = [3]", "3 is neither an axis nor a list of axes"),
        (MESH + '[arguments]\nx = "data"', "not a partition spec"),
        (MESH + '[arguments]\nx = "P(data)"', "not a partition spec"),
        (MESH + "[arguments]\nx = \"open('data')\"", "not a partition spec"),
        (MESH + "[arguments]\nx = \"P('data', reduced={'model'})\"", "not a partition spec"),
        (MESH + '[arguments]\nx = ["expert"]', "the mesh has no axis 'expert'; its axes are data, model"),
        (MESH + '[arguments]\nx = ["data", "data"]', "the axis 'data' is used twice"),
        (MESH + '[arguments]\nx = ["", "", "data"]', "3 entries for f32[8,16], which has 2 dimensions"),
        (MESH + "[arguments]\ny = []", "argument 'y' does not exist; there are 2: x, params['w']"),
        (MESH + "[results]\n1 = []", "result '1' does not exist; there are 1: loss"),
        (MESH + "[arguments]\nx = []\n0 = []", "are the same argument"),
        (MESH.replace("4", "8") + "[arguments]\nx = []", "the mesh has 16 devices, the module is for 8"),
        ('[arguments]\nx = ["data"]', "a partition spec needs a mesh"),
        ('[arguments]\nx = "{devices=[3]<=[3]}"', "a sharding is for 3 devices, the module has 8"),
        ('[arguments]\nx = "{manual}"', "does not place the tensor"),
        (f"[arguments]\n{'9' * 5000} = []", "does not exist; there are 2"),
        ("= 3", "neither valid TOML nor JSON"),
        ('{"mesh":' * 5000, "neither valid TOML nor JSON"),
        ("{", "neither valid TOML nor JSON"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, text).apply(module())
    assert str(tmp_path / "shardings") in str(raised.value)
    assert said in str(raised.value)


def test_a_name_that_two_have(tmp_path: Path) -> None:
    from dataclasses import replace

    twice = replace(module(), argument_names=("x", "x"))
    with pytest.raises(InputError, match="2 have that name; use the position"):
        read(tmp_path, MESH + "[arguments]\nx = []").apply(twice)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_shardings(tmp_path / "nowhere.toml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not text"):
        read_shardings(tmp_path / "binary")
