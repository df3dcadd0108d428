"""Causes that are known, the more particular first."""

from __future__ import annotations

from tools.hunt.causes import Cause
from tools.hunt.kinds import ABORT, FALSE_PROOF, MISSED, REFUSED, WRONG


def _wrong(name: str, needs: str, without: str = "", *, page: str = "", upstream: str = "") -> Cause:
    return Cause(
        name, (WRONG, MISSED), frozenset(needs.split()), frozenset(without.split()), page=page, upstream=upstream
    )


def _lost_by_the_runtime(extremum: str, needs: str, text: str) -> Cause:
    """What is PROVED by the specification, by which the least and greatest of NaN and a number are NaN. A place that is
    taken from outside gives NaN; where that is equal to no update, a gradient is 0."""
    name = "XLA's CPU runtime leaves NaN out of an extremum over devices"
    return Cause(name, (FALSE_PROOF,), frozenset({*needs.split(), f"scatter:{extremum}"}), text=text)


KNOWN: tuple[Cause, ...] = (
    *(_lost_by_the_runtime(extremum, "take", r"not \[.*\bnan\b") for extremum in ("min", "max")),
    *(
        _lost_by_the_runtime(extremum, f"{take} gradient:scatter:2", r"not \[.*\b0\.")
        for extremum in ("min", "max")
        for take in ("take", "take_along")
    ),
    _wrong("a pad that shifts a whole operand is dropped", "pad pad:shift", page="pad-of-whole-operand"),
    _wrong("a pad between elements of a whole operand", "pad pad:inner", "gradient", page="pad-of-whole-operand"),
    _wrong("the gradient of a pad between elements: a strided slice", "gradient:pad:0 pad:inner", "windows"),
    _wrong("a strided slice of a split dimension", "slice", "gradient", page="strided-slice"),
    _wrong(
        "the gradient of max pooling: where shard 0 begins", "windows gradient", "windows:add", page="pooling-gradient"
    ),
    _wrong("a reduction of windows over a dilated operand", "windows windows:base", "gradient"),
    _wrong(
        "two windows over one tensor, padded with different values",
        "windowed:again",
        "gradient",
        page="windows-padded-apart",
    ),
    _wrong(
        "a convolution on a mesh of several axes: an all-reduce over all devices",
        "convolution mesh:2d",
        page="convolution-several-axes",
    ),
    _wrong(
        "a grouped convolution takes inputs of the wrong group",
        "convolution:feature_group_count mesh:1d",
        page="grouped-convolution",
    ),
    _wrong("a convolution with groups of batches", "convolution:batch_group_count mesh:1d"),
    _wrong("the start of a dynamic update outside", "dynamic_update", upstream="openxla/xla#49118"),
    _wrong("the start of a dynamic update outside", "dynamic_slice gradient", upstream="openxla/xla#49118"),
    _wrong("the start of a dynamic slice outside", "dynamic_slice", "gradient", upstream="openxla/xla#49122"),
    _wrong("the gradient of a gather with narrow indices", "take gradient indices:narrow"),
    Cause(
        "a pad of a whole operand: a module of wrong shape", (REFUSED,), frozenset({"pad"}), page="pad-of-whole-operand"
    ),
    Cause(
        "a grouped convolution with fewer outputs than groups",
        (REFUSED,),
        text="divisible by feature_group_count",
        page="grouped-convolution",
    ),
    Cause("a strided slice that XLA's own verifier refuses", (REFUSED,), frozenset({"slice"}), text="hlo verifier"),
    Cause("a result that XLA is left to place lies unevenly, which JAX refuses", (REFUSED,), text="IndivisibleError"),
    Cause("a gather with narrow indices along a split dimension", (ABORT,), text="Unsupported indices type"),
    Cause("a pad or window that dilates, with a start that moves", (ABORT,), text="get_first_valid_element_offset"),
    Cause("a reduction of windows over a dilated operand: shapes differ", (ABORT,), text="sharded_rw->shape"),
    Cause(
        "moving a split from one dimension to another on a mesh of two axes", (ABORT,), text="Could not slice dimension"
    ),
    Cause("a pad that leaves less than one shard", (ABORT,), text="shard_count > 1"),
    Cause(
        "a sort's gradient along a dimension that another constraint splits", (ABORT,), text="IsScalarWithElementType"
    ),
    Cause("a convolution with groups of batches", (ABORT,), text="new_input_batch_size"),
    Cause("a gradient of a convolution on a mesh of 3 by 2, split by both axes", (ABORT,), text="sub_dims.has_value"),
    Cause("a Fourier transform in a layout that XLA's CPU backend does not run", (REFUSED,), text="fft_thunk"),
    Cause(
        "memory is damaged while XLA compiles",
        (ABORT,),
        text="free\\(\\)|corrupt|double-linked|malloc|SIGSEGV|status -11",
    ),
)
"""The pages are in docs/findings/."""
