"""Who distributes a function: its author by manual regions, XLA by shardings, or nobody."""

from __future__ import annotations

import enum
import math
import re

_REGION = re.compile(r"\bsdy\.manual_computation\b|@SPMDFullToShardShape\b")
_STATED = re.compile(r"\bsdy\.sharding(_constraint)?\b|\bsdy\.reshard\b|\bmhlo\.sharding\b|@Sharding\b")


_ON_ONE = re.compile(r"\bsdy\.sharding = #sdy\.sharding(_per_value)?<\[?(<@maximal_mesh_\d+, \[\]>(, )?)+\]?>")
"""What JAX says of each call back to Python: it is made on one device."""

_EMPTY_MESH = re.compile(r"^\s*sdy\.mesh @(\S+) = <\[\]>", re.MULTILINE)
_OVER = r"\bsdy\.(sharding = #sdy\.sharding|(sharding_constraint|reshard) %%[\w:#]+ )<@(%s), \[[^@>]*\]>"
"""What JAX says of scalars that a function with manual regions takes, and of keys of random numbers: that they have a
sharding, over a mesh of no axes."""

_ONE = re.compile(r"\bmhlo\.num_partitions = 1 : i32\b")
_MESH = re.compile(r"^\s*sdy\.mesh @\S+ = <\[(.*?)\]", re.MULTILINE)
_SIZE = re.compile(r'"=(\d+)')


class Distribution(enum.Enum):
    """Who says what each device does."""

    NOBODY = "nobody"
    """The module is for one device."""
    AUTHOR = "author"
    """Manual regions, of `shard_map`, and nothing that is left to XLA."""
    XLA = "xla"
    """Shardings of arguments, results or values, beside manual regions or without any."""
    DONE = "done"
    """XLA has: the module was compiled."""


def devices_of_meshes(contents: str | bytes) -> int | None:
    """For how many devices text of StableHLO is whose meshes alone say it: for an `AbstractMesh` around a function, JAX
    writes that it is for one. None where the module says it itself, or meshes differ."""
    if isinstance(contents, bytes) or not _ONE.search(contents):
        return None
    sizes = {math.prod(map(int, _SIZE.findall(axes))) for axes in _MESH.findall(contents)} - {1}
    return sizes.pop() if len(sizes) == 1 else None


def distribution_of(contents: str | bytes, devices: int | None) -> Distribution:
    """Who distributes the module: text of StableHLO, or a proto of what was compiled for so many devices."""
    if isinstance(contents, bytes):
        return Distribution.DONE if devices is not None and devices > 1 else Distribution.NOBODY
    has_region = bool(_REGION.search(contents))
    contents = _without_what_lies_nowhere(contents)
    if _STATED.search(contents) and (has_region or _STATED.search(_ON_ONE.sub("", contents))):
        return Distribution.XLA
    return Distribution.AUTHOR if has_region else Distribution.NOBODY


def _without_what_lies_nowhere(contents: str) -> str:
    """The text without shardings over meshes that have no axes, which distribute nothing."""
    meshes = {re.escape(name) for name in _EMPTY_MESH.findall(contents)}
    return re.sub(_OVER % "|".join(sorted(meshes)), "", contents) if meshes else contents
