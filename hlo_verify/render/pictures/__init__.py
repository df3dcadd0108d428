"""Pictures of what was found, as self-contained SVG: pure functions of plain data, which know nothing of the prover."""

from hlo_verify.render.pictures.mesh import Joined, array_picture, mesh_picture
from hlo_verify.render.pictures.placement import Block, Mesh, Placement, no_shard, of_tiles
from hlo_verify.render.pictures.sheet import STYLE

__all__ = ["STYLE", "Block", "Joined", "Mesh", "Placement", "array_picture", "mesh_picture", "no_shard", "of_tiles"]
