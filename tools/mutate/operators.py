"""The mutation operators, as a table: name, what it does, where it applies, and the edit.

An edit changes the operation it is given (or raises `NotHereError`, having changed nothing that matters: the module is
read again) and says in words what it did. Whether the values change is for the devices to say: some edits change
nothing (the groups of an all_reduce in another order), and a REFUTED there is as wrong as a PROVED elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.mutate import collectives, mlir, movement, values
from tools.mutate.mlir import Operation
from tools.mutate.site import Site

Edit = Callable[[Operation, Site], str]
Predicate = Callable[[Operation], bool]


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of mutation; its line of documentation is its edit's."""

    name: str
    applies: Predicate
    edit: Edit

    @property
    def summary(self) -> str:
        return (self.edit.__doc__ or "").split("\n")[0]


def on(names: str) -> Predicate:
    """Operations of those names."""
    wanted = frozenset(names.split())
    return lambda op: mlir.name(op) in wanted


def _has_result(op: Operation) -> bool:
    """Operations with one tensor as their result that is no constant everywhere."""
    return len(op.results) == 1 and mlir.is_tensor(op.results[0]) and mlir.splat_of(op.results[0]) is None


def _gives_floats(op: Operation) -> bool:
    return _has_result(op) and mlir.is_float(op.results[0])


def _scales(op: Operation) -> bool:
    return mlir.name(op) in ("multiply", "divide") and any(values.is_scale(op, n) for n in (0, 1))


_GROUPED = "all_reduce all_gather all_to_all reduce_scatter"
_REDUCING = "all_reduce reduce_scatter reduce scatter reduce_window"

OPERATORS = (
    # collectives
    Operator("drop collective", on(f"{_GROUPED} collective_permute"), collectives.drop),
    Operator("repeat collective", on("all_reduce all_to_all collective_permute"), collectives.repeat),
    Operator("regroup", on(_GROUPED), collectives.regroup),
    Operator("change axis", on(_GROUPED), collectives.change_axis),
    Operator("split groups", on("all_reduce"), collectives.split_groups),
    Operator("permute groups", on(_GROUPED), collectives.permute_groups),
    Operator("permute pairs", on("collective_permute"), collectives.permute_pairs),
    Operator("change kind", on("all_reduce all_gather reduce_scatter"), collectives.change_kind),
    Operator("change collective dimension", on("all_gather all_to_all reduce_scatter"), collectives.change_dimension),
    Operator("change reducer", on(_REDUCING), values.change_reducer),
    # movement
    Operator("shift slice", on("slice"), movement.shift_slice),
    Operator("shift offset", on("dynamic_slice dynamic_update_slice"), movement.shift_offset),
    Operator("shift index", on("gather scatter"), movement.shift_index),
    Operator("shift pad", on("pad"), movement.shift_pad),
    Operator("shift window", on("convolution reduce_window"), movement.shift_window),
    Operator("permute dimensions", on("transpose"), movement.permute_dimensions),
    Operator("reorder reshape", on("reshape"), movement.reorder_reshape),
    Operator("change broadcast", on("broadcast_in_dim"), movement.change_broadcast),
    Operator("swap parts", on("concatenate"), movement.swap_parts),
    Operator("flip", _has_result, movement.flip),
    Operator("drop reverse", on("reverse"), movement.unflip),
    Operator("transpose operand", _has_result, movement.transpose_operand),
    Operator("rotate", _has_result, movement.rotate),
    Operator("change contraction", on("dot_general"), movement.change_contraction),
    Operator("change reduced dimension", on("reduce"), movement.change_reduced),
    Operator("change iota", on("iota"), movement.change_iota),
    Operator("drop update", on("dynamic_update_slice scatter"), movement.drop_update),
    # values
    Operator("swap operands", on("subtract divide power compare dot dot_general remainder"), values.swap_operands),
    Operator("change function", on(" ".join((*values.SWAPPED, *values.UNARY))), values.change_function),
    Operator("drop term", on("add multiply maximum minimum subtract and or"), values.drop_term),
    Operator("drop scale", _scales, values.drop_scale),
    Operator("insert scale", _gives_floats, values.insert_scale),
    Operator("one device", _gives_floats, values.one_device),
    Operator("change constant", on("constant"), values.change_constant),
    Operator("change direction", on("compare"), values.change_direction),
    Operator("swap branches", on("select"), values.swap_branches),
    Operator("drop mask", on("select"), values.drop_mask),
    Operator("stale value", _has_result, values.stale),
    Operator("skip last iteration", on("while"), values.skip_last),
    Operator("swap carried", on("while"), values.swap_carried),
    Operator("keep carried", on("while"), values.keep_carried),
)
"""Every operator, in the order of the tables."""
