"""Deterministic functions known only by their name, attributes and operands, and custom calls.

Dimensions that such a function maps over pass through: a Cholesky decomposition is a function of the last two.
What draws new numbers, or exchanges data with the world around the module, has no meaning here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.ops.comparators import order_of
from hlo_verify.ops.groups import process_groups
from hlo_verify.ops.ordering import top_k, top_k_by
from hlo_verify.ops.regions import region_terms
from hlo_verify.ops.triangular import solution
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    function_of,
    functions_of,
    positions,
    whole,
)
from hlo_verify.program.attributes import enumerator, fingerprint
from hlo_verify.program.ir import KINDS, Op
from hlo_verify.program.op_families import IDENTITIES
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.term import ZERO


def _attributes(op: Op, *names: str) -> Any:
    return tuple((name, str(op.attributes.get(name))) for name in names)


def _last(value: Value, count: int) -> range:
    return range(len(value.shape) - count, len(value.shape))


def _cholesky(op: Op, args: list[Value], context: Context) -> list[Value]:
    (type_,), (a,) = op.types, args
    key = _attributes(op, "lower")
    return [Value(type_, function_of("cholesky", key, [(a, _last(a, 2))], type_, _last(a, 2)))]


def _triangular_solve(op: Op, args: list[Value], context: Context) -> list[Value]:
    (type_,), (a, b) = op.types, args
    left, lower, unit = (bool(op.attributes[name]) for name in ("left_side", "lower", "unit_diagonal"))
    transpose = enumerator(op.attributes["transpose_a"])
    return [Value(type_, solution(a, b, type_, left=left, lower=lower, unit=unit, transpose=transpose))]


def _rng_bit_generator(op: Op, args: list[Value], context: Context) -> list[Value]:
    """A function of the generator's state and of the shape that it fills."""
    key = (_attributes(op, "rng_algorithm"), tuple(map(str, op.types)))
    return [Value(type_, whole(op.name, (key, n), args, type_)) for n, type_ in enumerate(op.types)]


def _token(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Tokens order operations and hold nothing."""
    return [Value(type_, ZERO) for type_ in op.types]


def _without_meaning(reason: str) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        raise UnsupportedError(f"{op.name} {reason}", Unsupported.OUTSIDE_WORLD)

    return rule


# Custom calls

_HINTS = ("xla.sdy.", "_xla_compute_type", "_xla_buffer_placement", "_xla_stream_annotation", "_scheduling_group_id")
"""How the names of frontend attributes begin that say where, or when, a call runs: not what it computes."""
_EMPTY: Mapping[str, Any] = {
    "backend_config": "",
    "called_computations": (),
    "has_side_effect": False,
    "output_operand_aliases": (),
}
"""What attributes say where they say nothing: StableHLO leaves them out, the conversion of HLO does not."""
_ORIGINAL = 1
"""The version of a call's interface where none is said (0, or nothing at all)."""
_LAYOUTS = ("operand_layouts", "result_layouts")
_TILINGS = ("operand_tilings", "result_tilings")  # of jaxlib 0.12; empty for each tensor without tiles


def without_row_major(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that make a call another one: what it sees of an operand is how that lies in memory, and where
    nothing is said that is row by row."""
    kept = {
        k: v
        for k, v in attributes.items()
        if k not in ("sharding", "frontend_attributes") and not (k in _EMPTY and v == _EMPTY[k])
    }
    kept["api_version"] = kept.get("api_version") or _ORIGINAL
    given = attributes.get("frontend_attributes", {})
    kept["frontend_attributes"] = {name: value for name, value in given.items() if not name.startswith(_HINTS)}
    for name in _LAYOUTS:
        if all(list(layout) == list(range(len(layout)))[::-1] for layout in kept.get(name) or ()):
            kept.pop(name, None)
    for name in _TILINGS:
        if not any(kept.get(name) or ()):
            kept.pop(name, None)
    return kept


def deterministic(trailing: int | None = None) -> Rule:
    """The rule for a custom call whose results depend on nothing but its operands and attributes.

    A result may take the place of an operand in memory (`output_operand_aliases`): its value is a function of what that
    operand held, and other uses of the operand still see that.

    `trailing` is the number of last dimensions, of each operand and result, that the kernel works on; the ones before
    are batch dimensions, the same for all, which it maps over. None: it may mix all dimensions.
    """

    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        if op.attributes.get("has_side_effect"):
            raise UnsupportedError(
                f"custom_call to {op.attributes.get('call_target_name')}, which has a side effect",
                Unsupported.OUTSIDE_WORLD,
            )
        if op.regions:
            raise UnsupportedError(
                f"custom_call to {op.attributes.get('call_target_name')} with computations", Unsupported.REGION
            )
        key = fingerprint(without_row_major(op.attributes))
        result_types = tuple(
            (type_.dtype, type_.shape[0 if trailing is None else max(0, type_.rank - trailing) :]) for type_ in op.types
        )
        results = []
        dims = [(v, _last(v, len(v.shape) if trailing is None else min(trailing, len(v.shape)))) for v in args]
        for n, type_ in enumerate(op.types):
            own = range(0 if trailing is None else max(0, type_.rank - trailing), type_.rank)
            batch = type_.shape[: own.start]
            if any(v.shape[: d.start] != batch for v, d in dims):
                raise UnsupportedError(
                    f"custom_call to {op.attributes.get('call_target_name')} with other batch dimensions"
                )
            results.append(((key, result_types, n), type_, own))
        terms = functions_of("custom_call", dims, results)
        return [Value(type_, term) for type_, term in zip(op.types, terms, strict=True)]

    return rule


def _exchange(op: Op, args: list[Value], context: Context) -> list[Value]:
    """An exchange among devices of which nothing else is known: a function of the operands of them all, and of which of
    them gets the result. How much each sends where is among the operands (`ragged_all_to_all`)."""
    target = op.attributes.get("call_target_name")
    if context.device is None or op.regions or op.attributes.get("has_side_effect"):
        raise UnsupportedError(f"custom_call to {target} outside of a device's program", Unsupported.CUSTOM_CALL)
    config = op.attributes.get("backend_config")
    how = config
    if isinstance(config, dict):
        rows, channel = config.get("replica_groups", ()), config.get("channel_id", 0)
        if not isinstance(channel, int) or (np.size(rows) and np.ndim(rows) != 2):
            raise UnsupportedError(f"custom_call to {target} with other groups or channels", Unsupported.GROUPS)
        groups = {"replica_groups": rows if np.size(rows) else (), "channel_id": max(0, channel)}
        among = process_groups(replace(op, name="all_to_all", attributes=groups), context)
        how = {**config, "channel_id": 0, "replica_groups": among}
    about = {k: v for k, v in without_row_major(op.attributes).items() if k not in ("backend_config", KINDS)}
    sender = expr.fresh("f", context.device.size)
    bound, bodies = [sender], []
    for value in args:
        elements = [expr.fresh("f", n) for n in value.shape]
        sent = value.at([expr.of_var(v) for v in elements]) if 0 not in value.shape else ZERO
        bodies.append(algebra.substitute(sent, {context.device: expr.of_var(sender)}))
        bound += elements
    types = tuple(map(str, (*(value.type for value in args), *op.types)))
    key = (fingerprint(about), fingerprint(how), types)
    return [
        Value(
            type_,
            define(
                "exchange",
                bound,
                tuple(bodies),
                attributes=(key, n),
                at=(expr.of_var(context.device), *positions(type_.shape)),
                ordered=True,
                dtype=type_.dtype,
            ),
        )
        for n, type_ in enumerate(op.types)
    ]


def _identity(op: Op, args: list[Value], context: Context) -> list[Value]:
    return [Value(type_, value.term) for type_, value in zip(op.types, args, strict=True)]


def _top_k(op: Op, args: list[Value], context: Context) -> list[Value]:
    """TopK as XLA has it (with a comparator, which may order the values) and as JAX exports it. By another comparator,
    as XLA for TPUs writes the total order on bits, the best are a function of all elements and of what it computes."""
    attributes = op.attributes.get("attributes")
    stated = attributes.get("largest") if isinstance(attributes, dict) else None
    if not op.regions:
        return top_k(op, args, stated if isinstance(stated, bool) else True)
    order = order_of(op.regions[0]) if len(op.regions) == 1 else None
    if len(op.regions) == 1 and stated is None and (order is None or order[0] != 0):
        about = {k: v for k, v in without_row_major(op.attributes).items() if k != "called_computations"}
        return top_k_by((region_terms(op.regions[0], context), fingerprint(about)), op, args)
    if order is None or stated not in (None, not order[1]):
        raise UnsupportedError(
            "custom_call to TopK with a comparator that is no order of the values", Unsupported.REGION
        )
    return top_k(op, args, not order[1])


CUSTOM_CALLS: dict[str, Rule] = {
    **dict.fromkeys(IDENTITIES, _identity),
    "ragged_all_to_all": _exchange,
    **dict.fromkeys(("X64Combine", "X64SplitLow", "X64SplitHigh"), deterministic(0)),  # 64-bit numbers by their halves
    **dict.fromkeys(("TopK", "mhlo.topk"), _top_k),
    # of XLA's own expansion of triangular solves for TPUs: the inverse of each matrix
    **dict.fromkeys(("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular"), deterministic(2)),
}
"""Meanings of the compiler's own custom calls, by target."""

RULES: dict[str, Rule] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "rng_bit_generator": _rng_bit_generator,
    "after_all": _token,
    "rng": _without_meaning("draws new numbers every time"),
    "infeed": _without_meaning("reads data from outside of the module"),
    "recv": _without_meaning("reads data from outside of the module"),
    "outfeed": _without_meaning("hands data to the world outside, which no result shows"),
    "send": _without_meaning("hands data to the world outside, which no result shows"),
}
