"""Operations that take a shape, a window or a padding as an operand, where that operand is constant.

Result types are static in every module that is read, so a shape that is an operand says nothing new.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.ops import constants, contraction, indexing, movement
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, as_index
from hlo_verify.program.ir import Op
from hlo_verify.terms.term import number


def constant_elements(op: Op, value: Value) -> tuple[int, ...]:
    """The elements of a constant tensor of integers, in row-major order.

    Raises `UnsupportedError` for any other operand.
    """
    elements = []
    for where in product(*map(range, value.shape)):
        e = as_index(Value(value.type, value.at([expr.constant(k) for k in where])))
        if e.items:
            raise UnsupportedError(f"{op.name} with an operand that is not constant", Unsupported.DYNAMIC)
        elements.append(e.const)
    return tuple(elements)


def _without(rule: Rule) -> Rule:
    """The static operation of the same name, whose last operand is a shape that the result's type has already."""

    def dynamic(op: Op, args: list[Value], context: Context) -> list[Value]:
        return rule(op, args[:-1], context)

    return dynamic


def _with_attributes(rule: Rule, operands: int, *names: str) -> Rule:
    """The static operation on the first operands, with the others as attributes."""

    def dynamic(op: Op, args: list[Value], context: Context) -> list[Value]:
        extra = {name: constant_elements(op, v) for name, v in zip(names, args[operands:], strict=True)}
        return rule(replace(op, attributes={**op.attributes, **extra}), args[:operands], context)

    return dynamic


def _dynamic_convolution(op: Op, args: list[Value], context: Context) -> list[Value]:
    flat = constant_elements(op, args[2])
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    ones, reversal = (1,) * len(pairs), (False,) * len(pairs)
    defaults = {"window_strides": ones, "lhs_dilation": ones, "rhs_dilation": ones, "window_reversal": reversal}
    static = replace(op, attributes={**defaults, **op.attributes, "padding": pairs})
    return contraction.RULES["convolution"](static, args[:2], context)


def _get_dimension_size(op: Op, args: list[Value], context: Context) -> list[Value]:
    return [Value(op.types[0], number(args[0].shape[op.attributes["dimension"]]))]


RULES: dict[str, Rule] = {
    "dynamic_reshape": _without(movement.RULES["reshape"]),
    "dynamic_broadcast_in_dim": _without(movement.RULES["broadcast_in_dim"]),
    "dynamic_iota": _without(constants.RULES["iota"]),
    "dynamic_pad": _with_attributes(
        movement.RULES["pad"], 2, "edge_padding_low", "edge_padding_high", "interior_padding"
    ),
    "real_dynamic_slice": _with_attributes(movement.RULES["slice"], 1, "start_indices", "limit_indices", "strides"),
    "dynamic_gather": _with_attributes(indexing.RULES["gather"], 2, "slice_sizes"),
    "dynamic_conv": _dynamic_convolution,
    "get_dimension_size": _get_dimension_size,
}
