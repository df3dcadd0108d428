"""Shardings in every spelling against JAX's, jaxlib's and brute force."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import hlo_sharding
from hlo_verify.passes.load.load import load
from hlo_verify.program.mesh import AxisReference, Mesh
from hlo_verify.program.sharding import Sharding, parse_hlo_sharding, parse_sdy_sharding, parse_sharding


def one(parsed: Any) -> Sharding:
    assert isinstance(parsed, Sharding)
    return parsed


def equal(left: Sharding, right: Sharding) -> bool:
    same = left.tiles == right.tiles and np.array_equal(left.coordinates, right.coordinates) and left.only == right.only
    if left.addends is None or right.addends is None:
        return same and left.addends is right.addends
    return same and np.array_equal(left.addends, right.addends)


# Against JAX: what it lowers, and where it says that each device's shard lies

JAX_CASES = """
import itertools, json, random, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_use_shardy_partitioner", sys.argv[1] == "shardy")
random.seed(0)
cases = []
for shape in [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (2, 1, 4)]:
    names = "abc"[: len(shape)]
    mesh = Mesh(np.array(jax.devices()).reshape(shape), tuple(names))
    for _ in range(5):
        axes = list(names)
        random.shuffle(axes)
        cut = sorted(random.randrange(len(axes) + 1) for _ in range(2))
        spec = [tuple(part) or None for part in (axes[: cut[0]], axes[cut[0] : cut[1]])]
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        lowered = jax.jit(lambda x: x, in_shardings=sharding).lower(jax.ShapeDtypeStruct((16, 24), np.float32))
        starts = [[s.start or 0 for s in sharding.devices_indices_map((16, 24))[d]] for d in mesh.devices.flat]
        cases.append({"module": lowered.as_text(), "shape": [16, 24], "starts": starts})
print(json.dumps(cases))
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("partitioner", ["shardy", "gspmd"])
def test_lowered_shardings_are_where_jax_says(partitioner: str) -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    printed = subprocess.run(
        [sys.executable, "-c", JAX_CASES, partitioner], capture_output=True, text=True, env=environment, check=True
    ).stdout
    cases = json.loads(printed)
    assert len(cases) == 30
    for case in cases:
        module = load(case["module"])
        sharding = one(module.argument_shardings[0])
        sizes = [-(-size // tiles) for size, tiles in zip(case["shape"], sharding.tiles, strict=True)]
        assert (sharding.coordinates * sizes).tolist() == case["starts"], case["module"]


# HloSharding

TILED = [
    "{devices=[2,1]0,1}",
    "{devices=[2,2]3,1,2,0}",
    "{devices=[2,4]<=[8]}",
    "{devices=[4,2]<=[2,4]T(1,0)}",
    "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
    "{devices=[1,2,2,2]<=[2,2,2]T(2,0,1) last_tile_dims={replicated,replicated}}",
    "{mesh['a'=2,'b'=2,'c'=2], [{'c'}, {'a'}]}",
    "{mesh['a'=2,'b'=2,'c'=2], device_ids=([2,4]T(1,0)), [{'c','a'}, {}]}",
    "{mesh['a'=4,'b'=2], [{'a':(2)2}, {'b'}]}",
]


@pytest.mark.parametrize("text", TILED)
def test_a_tile_assignment_is_jaxlibs(text: str) -> None:
    leaf = hlo_sharding(text)
    assignment = np.array(leaf.tile_assignment_devices()).reshape(leaf.tile_assignment_dimensions())
    sharding = one(parse_hlo_sharding(text, 2, None))
    assert sharding.tiles == assignment.shape[:2]
    for position in itertools.product(*map(range, assignment.shape)):
        assert tuple(sharding.coordinates[assignment[position]]) == position[:2]
    assert sharding.addends is None and sharding.only is None


def test_whole_tensor_shardings() -> None:
    assert one(parse_hlo_sharding("{replicated}", 2, 3)).coordinates.tolist() == [[0, 0]] * 3
    assert one(parse_hlo_sharding("{maximal device=2}", 1, 4)).only == 2
    assert one(parse_hlo_sharding("{maximal_mesh[device_id=2]}", 1, 4)).only == 2
    assert one(parse_hlo_sharding("{unreduced}", 1, 4)).addends is not None
    assert parse_hlo_sharding("{manual}", 2, 4) is None
    assert parse_hlo_sharding("{unknown}", 2, 4) is None
    assert parse_hlo_sharding("{devices=[2,2]<=[4] last_tile_dims={manual}}", 1, 4) is None
    assert one(parse_hlo_sharding("{devices=[2,2]<=[4] shard_as 1}", 2, 4)).tiles == (2, 2)


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[2,2,2]<=[8] last_tile_dims={unreduced,replicated}}",
        "{mesh['a'=2,'b'=2,'c'=2], [{'a'}], unreduced={'b'}}",
    ],
)
def test_unreduced_axes_number_the_addends(text: str) -> None:
    sharding = one(parse_hlo_sharding(text, 1, 8))
    assert sharding.coordinates[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert sharding.addends is not None and sharding.addends.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_tuples_give_an_element_each() -> None:
    first, second = parse_sharding("{{devices=[2,1]<=[2]}, {replicated}}", [2, 1], 2)
    assert one(first).tiles == (2, 1) and one(second).tiles == (1,)
    assert parse_hlo_sharding("{}", (), 2) == ()
    # One placement for several results holds for each.
    assert [one(s).tiles for s in parse_sharding("{replicated}", [2, 2], 2)] == [(1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "not a sharding"),
        ("{devices=[3]0,1}", "each of its 3 devices once|not a sharding"),
        ("{devices=[2]0,0}", "each of its 2 devices once"),
        ("{devices=[2]0,5}", "each of its 2 devices once"),
        ("{devices=[4]<=[4]}", "for 4 devices, the module has 2"),
        ("{devices=[2,1]<=[2]}", "2 dimensions for a tensor of 1"),
        ("{maximal device=5}", "device 5"),
        ("#sdy.sharding<@mesh, [{}]>", "@mesh"),
        ("#sdy.sharding<nonsense>", "not a sharding"),
        ('#sdy.sharding<mesh<["a"=4]>, [{"a"}]>', "4 devices, the module has 2"),
        ('#sdy.sharding<mesh<["a"=2]>, [{"b"}]>', "'b'"),
    ],
)
def test_what_is_no_placement_is_an_input_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_sharding(text, [1], 2)


# Shardy


def test_open_dimensions_priorities_and_replicated_axes_place_nothing() -> None:
    plain = one(parse_sdy_sharding('#sdy.sharding<mesh<["a"=2, "b"=2]>, [{"a"}, {}]>', 4))
    marked = one(parse_sdy_sharding('#sdy.sharding<mesh<["a"=2, "b"=2]>, [{"a", ?}p1, {?}], replicated={"b"}>', 4))
    assert equal(plain, marked)


def test_meshes_without_axes() -> None:
    assert equal(
        one(parse_sdy_sharding("#sdy.sharding<mesh<[]>, [{}]>", 4)), one(parse_hlo_sharding("{replicated}", 1, 4))
    )
    assert one(parse_sdy_sharding("#sdy.sharding<mesh<[], device_ids=[3]>, [{}]>", 4)).only == 3


def test_only_manual_axes_count_for_a_manual_computation() -> None:
    text = '#sdy.sharding<mesh<["a"=2, "b"=4]>, [{"a", "b"}]>'
    assert one(parse_sdy_sharding(text, 8, manual=["a"])).tiles == (2,)


FACTORS = st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3)


@st.composite
def split_meshes(draw: st.DrawFn) -> tuple[Mesh, Mesh, dict[str, AxisReference]]:
    """A mesh, the same mesh with every axis split into its factors, and the sub-axis that each factor is."""
    whole, split, parts = [], [], {}
    for k, factors in enumerate(draw(st.lists(FACTORS, min_size=1, max_size=2))):
        name, before = f"x{k}", 1
        whole.append((name, math.prod(factors)))
        for m, factor in enumerate(factors):
            split.append((f"{name}_{m}", factor))
            parts[f"{name}_{m}"] = AxisReference(name, before, factor)
            before *= factor
    order = tuple(draw(st.permutations(range(math.prod(size for _, size in whole)))))
    return Mesh(tuple(whole), order), Mesh(tuple(split), order), parts


@given(split_meshes(), st.data())
def test_sub_axes_are_axes_of_the_split_mesh(
    meshes: tuple[Mesh, Mesh, dict[str, AxisReference]], data: st.DataObject
) -> None:
    mesh, split, parts = meshes
    chosen = data.draw(st.lists(st.sampled_from(sorted(parts)), unique=True))
    axes = [AxisReference(name) for name in chosen]
    radix, value = mesh.digits([parts[name] for name in chosen])
    expected_radix, expected = split.digits(axes)
    assert radix == expected_radix and np.array_equal(value, expected)

    positions = np.array(split.device_ids).reshape([size for _, size in split.axes])
    names = [name for name, _ in split.axes]
    inside = [names.index(name) for name in chosen]
    groups = positions.transpose([k for k in range(len(names)) if k not in inside] + inside).reshape(-1, radix)
    assert np.array_equal(mesh.groups([parts[name] for name in chosen]), groups)


@given(split_meshes(), st.data())
def test_a_permuted_mesh_permutes_the_devices(
    meshes: tuple[Mesh, Mesh, dict[str, AxisReference]], data: st.DataObject
) -> None:
    mesh = meshes[0]
    text = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    chosen = data.draw(st.sampled_from([name for name, _ in mesh.axes]))
    spec = f'[{{"{chosen}"}}, {{}}]'
    plain = one(parse_sdy_sharding(f"#sdy.sharding<mesh<[{text}]>, {spec}>", None))
    if list(mesh.device_ids) == list(range(mesh.size)):
        return  # Shardy has a mesh name no order that is iota
    order = ", ".join(map(str, mesh.device_ids))
    permuted = one(parse_sdy_sharding(f"#sdy.sharding<mesh<[{text}], device_ids=[{order}]>, {spec}>", None))
    assert np.array_equal(permuted.coordinates[list(mesh.device_ids)], plain.coordinates)


def test_spread_needs_a_sharding_that_names_no_devices() -> None:
    assert equal(
        one(parse_hlo_sharding("{replicated}", 2, None)).spread(4), one(parse_hlo_sharding("{replicated}", 2, 4))
    )
    assert equal(
        one(parse_hlo_sharding("{unreduced}", 2, None)).spread(4), one(parse_hlo_sharding("{unreduced}", 2, 4))
    )
    assert one(parse_hlo_sharding("{maximal device=1}", 2, None)).spread(4).devices == 4
    with pytest.raises(InputError, match="for 2 devices"):
        one(parse_hlo_sharding("{devices=[2]<=[2]}", 1, None)).spread(4)
