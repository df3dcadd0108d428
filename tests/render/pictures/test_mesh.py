"""Pictures of meshes and placements: their structure, not their pixels."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify.render.pictures import (
    Block,
    Joined,
    Mesh,
    Placement,
    array_picture,
    mesh_picture,
    no_shard,
    of_tiles,
)
from hlo_verify.render.pictures.lattice import MOST_CELLS
from hlo_verify.render.pictures.sheet import width_of

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert('x')</script>&\"\x00"


def read(picture: str) -> ET.Element:
    root = ET.fromstring(picture)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    assert root[0].tag == f"{SVG}title" and root[1].tag == f"{SVG}desc" and root[0].text and root[1].text
    assert not {"id", "onload", "href"} & {key for each in root.iter() for key in each.attrib}
    assert not re.search(r"url\(|<script|@import|http(?!://www\.w3\.org/2000/svg)", picture)
    return root


def texts(root: ET.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def coloured(root: ET.Element) -> dict[str, str]:
    """What is said of each coloured cell, with its colour."""
    cells = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "cell"]
    return {each[0].text or "": each.get("fill") or "" for each in cells}


def split(shape: tuple[int, ...], tiles: tuple[int, ...], copies: int = 1) -> Placement:
    """Blocks over devices in row-major order, each on some devices."""
    at = list(itertools.product(*map(range, tiles)))
    return of_tiles("x", shape, tiles, [at[d // copies] for d in range(len(at) * copies)])


def test_devices_have_their_blocks_and_copies_one_colour() -> None:
    placement = split((8, 16), (2, 2), copies=2)
    root = read(mesh_picture(Mesh((("data", 2), ("model", 4))), placement))
    said = coloured(root)
    assert said["device 0: [0:4, 0:8]"] == said["device 1: [0:4, 0:8]"] != said["device 2: [0:4, 8:16]"]
    assert len(said) == 8 and len(set(said.values())) == 4
    assert {"data ↓", "model →", "[4:8, 8:16]", "each block has 2 copies, in one colour"} <= set(texts(root))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 3))
def test_colours_are_equal_where_blocks_are(tiles: list[int], copies: int) -> None:
    placement = split(tuple(6 * count for count in tiles), tuple(tiles), copies)
    root = read(mesh_picture(Mesh((("d", len(placement.holds)),)), placement))
    of_block: dict[str, set[str]] = {}
    for said, colour in coloured(root).items():
        of_block.setdefault(said.partition(": ")[2], set()).add(colour)
    assert all(len(colours) == 1 for colours in of_block.values())
    assert len({min(colours) for colours in of_block.values()}) == len(of_block)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 3))
def test_every_block_of_the_index_space_is_drawn(tiles: list[int], copies: int) -> None:
    shape = tuple(6 * count for count in tiles)
    placement = split(shape, tuple(tiles), copies)
    said = coloured(read(array_picture(placement)))
    assert len(said) == len(placement.blocks) <= MOST_CELLS and len(set(said.values())) == len(said)
    whole = {device for text in said for device in devices_in(text)}
    assert whole == set(range(len(placement.holds)))


def devices_in(text: str) -> list[int]:
    runs = text.rpartition("devices ")[2].split(", ")
    return [n for run in runs for n in range(int(run.split("–")[0]), int(run.split("–")[-1]) + 1)]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("axes", [(8192,), (64, 128), (16, 32, 16), (2, 2, 2, 1024)], ids=len)
def test_large_meshes_are_drawn_in_part(axes: tuple[int, ...]) -> None:
    mesh = Mesh(tuple((f"axis{n}", size) for n, size in enumerate(axes)))
    placement = split((8192, 4), (8192, 1))
    for picture in (mesh_picture(mesh, placement), array_picture(placement), mesh_picture(mesh)):
        root = read(picture)
        assert len(picture) < 60_000
        assert sum(1 for each in root.iter(f"{SVG}rect") if each.get("class") in ("cell", "panel")) <= MOST_CELLS
        assert any("are drawn" in text for text in texts(root))
    assert "8191" in texts(read(mesh_picture(mesh, placement)))


def test_axes_along_which_all_is_alike_are_drawn_once() -> None:
    mesh = Mesh((("data", 512), ("model", 4)))
    placement = of_tiles("w", (8, 8), (1, 4), [[0, d % 4] for d in range(2048)])
    root = read(mesh_picture(mesh, placement))
    assert len(coloured(root)) == 4
    assert "alike at all 512 positions of data" in texts(root)


@pytest.mark.parametrize("shape", [(4096, 4096), (256, 112, 112, 64), (8, 8, 4, 2048, 2), (1 << 20, 32000)], ids=str)
@pytest.mark.parametrize("devices", [2, 4, 8, 16, 32])
def test_indices_are_never_cut_short(shape: tuple[int, ...], devices: int) -> None:
    for rows in (1, 2):
        tiles = (devices // rows, rows, *([1] * (len(shape) - 2)))
        root = read(mesh_picture(Mesh((("data", devices // rows), ("model", rows))), split(shape, tiles)))
        flat = read(mesh_picture(Mesh((("device", devices),)), split(shape, tiles)))
        for text in (*texts(root), *texts(flat)):
            assert "…" not in text and width_of(text) <= 640


def test_a_mesh_in_another_order_of_devices() -> None:
    root = read(mesh_picture(Mesh((("x", 4),), (3, 1, 2, 0)), split((4,), (4,))))
    drawn = [text for text in texts(root) if text.startswith("[")]
    assert drawn == ["[3:4]", "[1:2]", "[2:3]", "[0:1]"]
    with pytest.raises(ValueError, match="devices for a mesh"):
        mesh_picture(Mesh((("x", 4),), (0, 1)))


def test_addends_are_hatched_and_no_shards_are_marked() -> None:
    sums = of_tiles("y", (8,), (1,), [[0], [0]], addends=[0, 1])
    root = read(mesh_picture(Mesh((("x", 2),)), sums))
    assert sum(each.get("class") == "hatch" for each in root.iter(f"{SVG}path")) == 2
    assert {"addend 0", "addend 1", "hatched: addends, which are still to be summed"} <= set(texts(root))
    assert "sum of 2" in texts(read(array_picture(sums)))
    root = read(mesh_picture(Mesh((("x", 2),)), no_shard("z", (8,), 2)))
    assert sum(each.get("class") == "wrong" for each in root.iter(f"{SVG}rect")) == 2
    assert texts(root).count("no shard") == 2


def test_elements_that_nobody_holds_and_blocks_that_overlap() -> None:
    blocks = (Block(((0, 5),)), Block(((3, 8),)))
    root = read(array_picture(Placement("x", (10,), blocks, (0, 1, None))))
    assert {"0:3", "3:5", "5:8", "8:10", "nobody", "2 blocks overlap", "devices 0, 1"} <= set(texts(root))
    assert "nothing" in texts(read(mesh_picture(Mesh((("x", 3),)), Placement("x", (10,), blocks, (0, 1, None)))))


def test_collectives() -> None:
    mesh = Mesh((("data", 2), ("model", 2)))
    root = read(mesh_picture(mesh, None, Joined("all_reduce", ((0, 2), (1, 3)))))
    outlines = [each.get("stroke") for each in root.iter(f"{SVG}rect") if each.get("class") == "outline"]
    assert outlines[0] == outlines[2] != outlines[1] == outlines[3]
    assert "all_reduce joins 2 groups: 0, 2; 1, 3." in (root[1].text or "")
    root = read(mesh_picture(mesh, None, Joined("collective_permute", pairs=((0, 1), (1, 2), (2, 2)))))
    arrows = [each[0].text for each in root.iter(f"{SVG}path") if each.get("class") == "link"]
    assert arrows == ["device 0 sends to device 1", "device 1 sends to device 2"]
    assert {"nothing is sent to 0, 3: zeros there", "to themselves: 2"} <= set(texts(root))


def test_names_are_escaped() -> None:
    placement = Placement(NASTY, (4,), (Block(None, NASTY), Block(None, NASTY, is_shard=False)), (0, 1))
    mesh = Mesh(((NASTY, 2),))
    for picture in (mesh_picture(mesh, placement, Joined(NASTY, ((0, 1),))), array_picture(placement)):
        root = read(picture)
        assert any("alert" in text for text in texts(root)) and "\x00" not in picture


def test_scalars_one_device_and_the_style() -> None:
    scalar = of_tiles("loss", (), (), [[], []])
    assert "the value" in texts(read(mesh_picture(Mesh((("x", 2),)), scalar)))
    assert "devices 0, 1" in texts(read(array_picture(scalar)))
    assert "0" in texts(read(mesh_picture(Mesh(()))))
    assert "<style>" in mesh_picture(Mesh(())) and "<style>" not in mesh_picture(Mesh(()), style=False)


def test_a_placement_says_each_block_once() -> None:
    with pytest.raises(ValueError, match="named twice"):
        Placement("x", (4,), (Block(((0, 4),)), Block(((0, 4),))), (0, 1))
    with pytest.raises(ValueError, match="that there is not"):
        Placement("x", (4,), (Block(((0, 4),)),), (0, 1))
    with pytest.raises(ValueError, match="1 dimensions"):
        Placement("x", (4,), (Block(((0, 4), (0, 1))),), (0,))
