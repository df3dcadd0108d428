"""Deterministic functions of whole tensors: known only by their name, attributes and operands."""

from __future__ import annotations

from typing import Any

from hlo_verify.ir import Op
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, whole


def _attributes(op: Op, names: tuple[str, ...]) -> Any:
    return tuple((name, str(op.attributes.get(name))) for name in names)


def _whole(*names: str) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        shapes = tuple(str(kind) for kind in op.types)
        key = (_attributes(op, names), shapes)
        return [Value(kind, whole(op.name, (*key, n), args, kind)) for n, kind in enumerate(op.types)]

    return rule


def _custom_call(op: Op, args: list[Value], context: Context) -> list[Value]:
    target = op.attributes.get("call_target_name")
    if target == "Sharding":
        return [Value(op.types[0], args[0].term)]
    if target in CUSTOM_CALLS:
        return CUSTOM_CALLS[target](op, args, context)
    raise UnsupportedError(f"custom_call to {target}, which has no registered meaning")


CUSTOM_CALLS: dict[str, Rule] = {}
"""Meanings of custom calls by target name; `hlo_verify.register_custom_call` adds to it."""

RULES: dict[str, Rule] = {
    "cholesky": _whole("lower"),
    "triangular_solve": _whole("left_side", "lower", "unit_diagonal", "transpose_a"),
    "fft": _whole("fft_type", "fft_length"),
    "rng_bit_generator": _whole("rng_algorithm"),
    "custom_call": _custom_call,
}
