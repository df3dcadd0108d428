"""Calls to libraries of linear algebra: functions of each matrix of a batch, known by their names and settings.

What such a call sees of an operand is how its matrices lie in memory, so that their layouts are a part of its name. How
large the batch is, and how it could be split, is not. A triangular system is solved for each column by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlo_verify.diagnostics import Unsupported
from hlo_verify.ops.opaque import without_row_major
from hlo_verify.ops.triangular import CONJUGATED, PLAIN, TRANSPOSED, solution
from hlo_verify.ops.values import Context, UnsupportedError, Value, function_of, functions_of
from hlo_verify.program.attributes import fingerprint
from hlo_verify.program.ir import Op
from hlo_verify.program.library_calls import LIBRARY_CALLS

ON_THE_LEFT = ord("L")
SETTINGS = {"side": ON_THE_LEFT, "uplo": ord("L"), "diag": ord("U")}
TRANSPOSES = {ord("N"): PLAIN, ord("T"): TRANSPOSED, ord("C"): CONJUGATED}
SYSTEM = {*SETTINGS, "trans_x"}
"""What a triangular system of LAPACK is said by."""
ASKED = ("operand_layouts", "result_layouts", "sdy.sharding_rule", "api_version", "output_operand_aliases")
"""What is asked for by itself, or has no part in what a call of `LIBRARY_CALLS` computes."""


def library_call(op: Op, args: list[Value], context: Context) -> list[Value]:
    """The rule for a call of `LIBRARY_CALLS`."""
    target = str(op.attributes.get("call_target_name"))
    batch = _batch_dimensions(op, args, target)
    config, said = _said(op)
    layouts = tuple(
        _layouts(op.attributes, name, [value.shape for value in values], batch, target)
        for name, values in (("operand_layouts", args), ("result_layouts", op.types))
    )
    key = (target, fingerprint(config), fingerprint(said), layouts)
    if "trsm" in target and isinstance(config, dict) and len(args) == 2:
        (type_,), (a, b) = op.types, args
        by_columns = all(layout == (0, 1) for each in layouts for layout in each)
        if config.keys() == SYSTEM and config["trans_x"] in TRANSPOSES and by_columns:
            left, lower, unit = (config[name] == letter for name, letter in SETTINGS.items())
            transpose = TRANSPOSES[config["trans_x"]]
            return [Value(type_, solution(a, b, type_, left=left, lower=lower, unit=unit, transpose=transpose))]
        own = [batch if config.get("side") == ON_THE_LEFT else batch + 1]
        dims = [(a, range(batch, batch + 2)), (b, own)]
        return [Value(type_, function_of("library_call", key, dims, type_, own))]
    whole = [(value, range(batch, len(value.shape))) for value in args]
    results = tuple((type_.dtype, type_.shape[batch:]) for type_ in op.types)
    asked = [((key, results, n), type_, range(batch, type_.rank)) for n, type_ in enumerate(op.types)]
    terms = functions_of("library_call", whole, asked)
    return [Value(type_, term) for type_, term in zip(op.types, terms, strict=True)]


def _said(op: Op) -> tuple[Any, dict[str, Any]]:
    """The settings of a call, and all else that it says."""
    said = without_row_major(op.attributes)
    config = said.pop("backend_config", "")
    hints = said["frontend_attributes"]
    said["frontend_attributes"] = {name: value for name, value in hints.items() if name != "num_batch_dims"}
    return config, {name: value for name, value in said.items() if name not in ASKED}


def _batch_dimensions(op: Op, args: list[Value], target: str) -> int:
    """How many dimensions all operands and results begin with that the call maps over."""
    if op.attributes.get("has_side_effect") or op.regions or not args:
        raise UnsupportedError(f"custom_call to {target} with an effect or a region", Unsupported.OUTSIDE_WORLD)
    batch = len(args[0].shape) - LIBRARY_CALLS[target]
    said = op.attributes.get("frontend_attributes", {}).get("num_batch_dims", batch)
    shapes = [value.shape for value in args] + [type_.shape for type_ in op.types]
    if batch < 0 or str(said) != str(batch) or any(shape[:batch] != args[0].shape[:batch] for shape in shapes):
        raise UnsupportedError(f"custom_call to {target} with other batch dimensions", Unsupported.CUSTOM_CALL)
    return batch


def _layouts(
    attributes: Mapping[str, Any], name: str, shapes: list[tuple[int, ...]], batch: int, target: str
) -> tuple[tuple[int, ...], ...]:
    """How the matrices lie in memory, each dimension before those that are farther apart; row by row if nothing is
    said."""
    given = attributes.get(name) or [range(len(shape))[::-1] for shape in shapes]
    layouts = [tuple(int(k) for k in layout) for layout in given]
    if len(layouts) != len(shapes) or any(
        layout[len(layout) - batch :] != tuple(range(batch))[::-1] or len(layout) != len(shape)
        for layout, shape in zip(layouts, shapes, strict=False)
    ):
        raise UnsupportedError(f"custom_call to {target} with such layouts of a batch", Unsupported.CUSTOM_CALL)
    return tuple(tuple(k - batch for k in layout[: len(layout) - batch]) for layout in layouts)
