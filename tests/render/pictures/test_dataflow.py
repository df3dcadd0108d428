"""Pictures of dataflow, and the layout that they have."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify.render.pictures import Dataflow, Node, Side, dataflow_picture
from hlo_verify.render.pictures.dataflow import MOST_NODES
from hlo_verify.render.pictures.layout import Edge, Layout, Size, lay_out

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Size], list[Edge]]:
    count = draw(st.integers(1, 14))
    sizes = {f"n{n}": Size(draw(st.integers(10, 200)), draw(st.integers(20, 60))) for n in range(count)}
    pairs = list(itertools.combinations(sizes, 2))
    return sizes, draw(st.lists(st.sampled_from(pairs), max_size=20, unique=True)) if pairs else []


def overlap(layout: Layout) -> list[tuple[str, str]]:
    return [
        (a, b)
        for (a, (x, y, one)), (b, (u, v, other)) in itertools.combinations(layout.places.items(), 2)
        if x < u + other.width and u < x + one.width and y < v + other.height and v < y + one.height
    ]


@settings(max_examples=60, deadline=None)
@given(graphs(), graphs(), st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=6))
def test_nodes_do_not_overlap_and_stand_above_their_users(
    left: tuple[dict[str, Size], list[Edge]], right: tuple[dict[str, Size], list[Edge]], pairs: list[tuple[int, int]]
) -> None:
    matches = [(f"n{a}", f"n{b}") for a, b in pairs if f"n{a}" in left[0] and f"n{b}" in right[0]]
    for layout, (sizes, edges) in zip(
        lay_out(left[0], right[0], left[1], right[1], matches), (left, right), strict=True
    ):
        assert layout.places.keys() == sizes.keys() and layout.routes.keys() == set(edges)
        assert not overlap(layout)
        for a, b in edges:
            assert layout.places[a][1] + layout.places[a][2].height < layout.places[b][1]
            points = layout.routes[a, b]
            assert all(one[1] <= other[1] for one, other in itertools.pairwise(points))
            assert all(-1 <= x <= layout.width + 1 for x, _ in points)
        assert all(x > -0.01 and x + size.width <= layout.width + 0.01 for x, _, size in layout.places.values())


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_a_graph_and_its_like_stand_level(graph: tuple[dict[str, Size], list[Edge]]) -> None:
    sizes, edges = graph
    left, right = lay_out(sizes, sizes, edges, edges, [(name, name) for name in sizes])
    assert left.places == right.places


def test_edges_go_round_nodes() -> None:
    """What passes a level has a place of its own there."""
    sizes = dict.fromkeys("abc", Size(80, 30))
    layout, _ = lay_out(sizes, {}, [("a", "b"), ("b", "c"), ("a", "c")], [], [])
    left, _, size = layout.places["b"]
    assert all(not left < x < left + size.width for x, _ in layout.routes["a", "c"][1:-1])


def test_crossing_edges_are_untangled() -> None:
    sizes = dict.fromkeys("abxy", Size(40, 30))
    layout, _ = lay_out(sizes, {}, [("a", "y"), ("b", "x")], [], [])
    assert (layout.places["a"][0] < layout.places["b"][0]) == (layout.places["y"][0] < layout.places["x"][0])


def test_matches_that_cross_in_time_and_loops_are_drawn_all_the_same() -> None:
    sizes = dict.fromkeys("ab", Size(40, 30))
    for layout in lay_out(sizes, sizes, [("a", "b")], [("a", "b")], [("a", "b"), ("b", "a")]):
        assert not overlap(layout)
    layout, _ = lay_out(sizes, {}, [("a", "b"), ("b", "a")], [], [])
    assert not overlap(layout)


def flow(fault: str = "y", label: str = "dot_general") -> Dataflow:
    nodes = (Node("x", "x", ("f32[8]",)), Node("w", label), Node("y", "add"))
    edges = (("x", "y"), ("w", "y"), ("elsewhere", "y"))
    marked = tuple(Node(n.name, n.label, n.details, n.name == fault) for n in nodes)
    return Dataflow(
        Side("logical", nodes, edges), Side("partitioned", marked, edges), (("x", "x"), ("w", "w"), ("w", "?"))
    )


def test_the_fault_is_marked_and_matches_are_numbered() -> None:
    root = ET.fromstring(dataflow_picture(flow()))
    texts = [(each.text, each.get("class") or "") for each in root.iter(f"{SVG}text")]
    assert [kind for text, kind in texts if text == "add"] == ["strong", "wrong"]
    assert [text for text, kind in texts if kind.startswith("mark")] == ["1", "2", "1", "2"]
    assert sum(each.get("class") == "wrong" for each in root.iter(f"{SVG}rect")) == 1
    assert sum(each.get("class") == "edge" for each in root.iter(f"{SVG}path")) == 4
    said = root[1].text or ""
    assert "The fault is at add." in said and "Matched: x and x, dot_general and dot_general." in said


def test_names_are_escaped() -> None:
    picture = dataflow_picture(flow(label="<script>alert(1)</script>"))
    assert "<script" not in picture and "&lt;script&gt;" in picture
    ET.fromstring(picture)


def test_a_large_graph_is_drawn_around_the_fault() -> None:
    nodes = tuple(Node(str(n), f"op{n}", at_fault=n == 500) for n in range(1000))
    side = Side("partitioned", nodes, tuple((str(n), str(n + 1)) for n in range(999)), 7)
    picture = dataflow_picture(Dataflow(Side("logical", (), ()), side))
    texts = [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]
    drawn = [text for text in texts if text.startswith("op")]
    assert len(drawn) == MOST_NODES and {"op490", "op500", "op510"} <= set(drawn)
    assert f"{1007 - MOST_NODES} more not drawn" in texts and len(picture) < 30_000


def test_two_nodes_of_one_name_are_refused() -> None:
    twice = Side("logical", (Node("x", "a"), Node("x", "b")), ())
    with pytest.raises(ValueError, match="one name"):
        dataflow_picture(Dataflow(twice, twice))
