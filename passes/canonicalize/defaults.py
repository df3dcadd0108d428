"""What StableHLO leaves out of an operation's text, put back: defaults, group modes, legacy forms.

A rule fills in an operation's attributes, given the types of its operands and results, and
gives its name, which differs for legacy forms. No later pass needs to know a default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo_verify.program.ir import TensorType
from hlo_verify.program.op_families import BY_PARTITION
from hlo_verify.program.sharding import mesh_of, parse_sdy_sharding

Attributes = dict[str, Any]
Types = Sequence[TensorType]


def _pairs(value: Any, rank: int) -> Any:
    return np.zeros((rank, 2), np.int64) if value is None else np.asarray(value, np.int64).reshape(rank, 2)


def _convolution(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    rank = operands[0].rank - 2
    for key in ("window_strides", "lhs_dilation", "rhs_dilation"):
        attributes.setdefault(key, (1,) * rank)
    attributes.setdefault("window_reversal", (False,) * rank)
    attributes["padding"] = _pairs(attributes.get("padding"), rank)
    return name


def _window(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    rank = operands[0].rank
    keys = ["window_dimensions", "window_strides"]
    if name == "reduce_window":
        keys += ["base_dilations", "window_dilations"]
    for key in keys:
        attributes.setdefault(key, (1,) * rank)
    attributes["padding"] = _pairs(attributes.get("padding"), rank)
    return name


def _compare(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    dtype = operands[0].dtype
    if dtype.startswith(("f", "bf", "complex")):
        default = "FLOAT"
    else:
        default = "UNSIGNED" if dtype.startswith("u") or dtype == "i1" else "SIGNED"
    attributes.setdefault("compare_type", default)
    return name


def _sort(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    attributes.setdefault("is_stable", False)
    dimension = attributes.setdefault("dimension", -1)
    attributes["dimension"] = dimension % max(operands[0].rank, 1)
    return name


def _indexed(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    attributes.setdefault("indices_are_sorted", False)
    if name == "scatter":
        attributes.setdefault("unique_indices", False)
    return name


def _collective(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    handle = attributes.pop("channel_handle", None)
    attributes["channel_id"] = handle["handle"] if handle else 0
    if name not in BY_PARTITION:
        attributes.setdefault("use_global_device_ids", False)
    if "source_target_pairs" in attributes:
        pairs = np.asarray(attributes["source_target_pairs"], np.int64)  # where it is that already, the object itself
        attributes["source_target_pairs"] = pairs if pairs.shape[1:] == (2,) else pairs.reshape(-1, 2)
    return name


def _collective_of_tuple(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    """mhlo's own form, whose channel is read as text; one that says otherwise is left as it is."""
    handle = re.search(r"handle = (\d+)", str(attributes.get("channel_handle")))
    if handle is not None:
        del attributes["channel_handle"]
        attributes["channel_id"] = int(handle[1])
    return name


def _dot(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    attributes["dot_dimension_numbers"] = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (operands[0].rank - 1,),
        "rhs_contracting_dimensions": (0,),
    }
    return "dot_general"


def _broadcast(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    sizes = attributes.pop("broadcast_sizes")
    new = len(sizes) if isinstance(sizes, tuple) else int(np.size(sizes))
    attributes["broadcast_dimensions"] = tuple(range(new, new + operands[0].rank))
    return "broadcast_in_dim"


def _create_token(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    return "after_all"


def _manual_computation(name: str, attributes: Attributes, operands: Types, results: Types) -> str:
    """Shardings become placements along the manual axes alone, next to the mesh that they share."""
    texts = attributes["in_shardings"], attributes["out_shardings"]
    for key, text in zip(("in_shardings", "out_shardings"), texts, strict=True):
        attributes[key] = parse_sdy_sharding(text, None, manual=attributes["manual_axes"])
    attributes["mesh"] = mesh_of(texts[0]) or mesh_of(texts[1])
    return name


RULES: dict[str, Callable[[str, Attributes, Types, Types], str]] = {
    "convolution": _convolution,
    "reduce_window": _window,
    "select_and_scatter": _window,
    "compare": _compare,
    "sort": _sort,
    "gather": _indexed,
    "dynamic_gather": _indexed,
    "scatter": _indexed,
    "all_gather": _collective,
    "all_reduce": _collective,
    "all_to_all": _collective,
    "mhlo.all_to_all": _collective_of_tuple,
    "collective_broadcast": _collective,
    "collective_permute": _collective,
    "reduce_scatter": _collective,
    "dot": _dot,
    "broadcast": _broadcast,
    "create_token": _create_token,
    "sdy.manual_computation": _manual_computation,
}
