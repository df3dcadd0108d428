"""Who distributes a function: its author by manual regions, XLA by shardings, or nobody."""

from __future__ import annotations

import enum
import re

_REGION = re.compile(r"\bsdy\.manual_computation\b|@SPMDFullToShardShape\b")
_STATED = re.compile(r"\bsdy\.sharding(_constraint)?\b|\bsdy\.reshard\b|\bmhlo\.sharding\b|@Sharding\b")


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


def distribution_of(contents: str | bytes, devices: int | None) -> Distribution:
    """Who distributes the module: text of StableHLO, or a proto of what was compiled for so many devices."""
    if isinstance(contents, bytes):
        return Distribution.DONE if devices is not None and devices > 1 else Distribution.NOBODY
    if _STATED.search(contents):
        return Distribution.XLA
    return Distribution.AUTHOR if _REGION.search(contents) else Distribution.NOBODY
