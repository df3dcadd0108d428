"""Pictures of what was found, as self-contained SVG: pure functions of plain data, which know nothing of the prover."""

from hlo_verify.render.pictures.dataflow import Dataflow, Node, Side, dataflow_picture
from hlo_verify.render.pictures.mesh import Joined, array_picture, mesh_picture
from hlo_verify.render.pictures.placement import Block, Mesh, Placement, no_shard, of_tiles
from hlo_verify.render.pictures.sheet import STYLE
from hlo_verify.render.pictures.timeline import Kept, Span, Timeline, timeline_picture

__all__ = [
    "STYLE",
    "Block",
    "Dataflow",
    "Joined",
    "Kept",
    "Mesh",
    "Node",
    "Placement",
    "Side",
    "Span",
    "Timeline",
    "array_picture",
    "dataflow_picture",
    "mesh_picture",
    "no_shard",
    "of_tiles",
    "timeline_picture",
]
