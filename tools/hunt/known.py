"""Causes that are known, the more particular first."""

from __future__ import annotations

from tools.hunt.causes import Cause
from tools.hunt.kinds import REFUSED, WRONG

KNOWN: tuple[Cause, ...] = (
    Cause("pad of a whole operand: the shift is dropped", (WRONG,), frozenset({"pad", "pad:shift"}),
          page="pad-of-whole-operand"),
    Cause("pad of a whole operand: a module of wrong shape", (REFUSED,), frozenset({"pad"}),
          page="pad-of-whole-operand"),
    Cause("max pooling's gradient: the halo of select_and_scatter", (WRONG,), frozenset({"windows", "gradient"}),
          page="pooling-gradient"),
    Cause("input gradient of a grouped convolution with fewer groups than devices", (WRONG,),
          frozenset({"convolution:feature_group_count", "gradient:convolution:0"}), frozenset({"mesh:2d"}),
          page="convolution-fewer-groups"),
    Cause("convolution on a mesh of several axes: an all-reduce over all devices", (WRONG,),
          frozenset({"convolution", "mesh:2d"}), page="convolution-several-axes"),
    Cause("dynamic_update_slice with a start outside", (WRONG,), frozenset({"dynamic_update"}),
          upstream="openxla/xla#49118"),
)  # fmt: skip
"""The pages are in docs/findings/."""
