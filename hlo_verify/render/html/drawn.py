"""The pictures of a fault, as SVG to stand in a page."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from hlo_verify.render.pictures import Block, Joined, Mesh, Placement, mesh_picture
from hlo_verify.render.pictures.dataflow import Dataflow, Node, Side, dataflow_picture
from hlo_verify.scene import Around, Held, Scene

NEAR = 40
"""Characters of a lineage in a picture."""


def pictures(scene: Scene | None, devices: int) -> list[Markup]:
    """Where tensors lie, whom a collective joins, and the dataflow, as far as there is something to draw."""
    return [] if scene is None else [Markup(drawn) for drawn in _drawn(scene, devices)]  # pictures escape their texts


def _drawn(scene: Scene, devices: int) -> Iterator[str]:
    if scene.partitioned.parts:
        called = "logical" if scene.logical.parts else "logical: no counterpart"
        sides = _side(called, scene.logical), _side("partitioned, on each device", scene.partitioned)
        yield dataflow_picture(Dataflow(*sides, scene.matches), style=False)
    mesh = Mesh(scene.axes or (("device", devices),), scene.device_ids if scene.axes else ())
    if mesh.size != devices or devices < 2:
        return
    joined = None
    if scene.meeting is not None:
        joined = Joined(scene.meeting.operation, scene.meeting.groups, scene.meeting.pairs)
    told = [held for held in scene.held if len(held.starts) == devices]
    for held in told:
        yield mesh_picture(mesh, _placement(held), joined, style=False)
        joined = None
    if joined is not None:
        yield mesh_picture(mesh, None, joined, style=False)


def _placement(held: Held) -> Placement:
    numbers: dict[Block, int] = {}
    holds: list[int | None] = []
    for device, start in enumerate(held.starts):
        if start is None:
            holds.append(None)
            continue
        ends = zip(start, held.shard, held.shape, strict=True)
        box = tuple((min(low, size), min(low + count, size)) for low, count, size in ends)
        block = Block(box, addend=held.addends[device] if held.addends else None)
        holds.append(numbers.setdefault(block, len(numbers)))
    return Placement(held.tensor, held.shape, tuple(numbers), tuple(holds))


def _side(title: str, around: Around) -> Side:
    nodes = [
        Node(part.name, part.operation, tuple(filter(None, (part.type, part.lineage[:NEAR]))), part.at_fault)
        for part in around.parts
    ]
    return Side(title, tuple(nodes), around.edges, around.left_out)
