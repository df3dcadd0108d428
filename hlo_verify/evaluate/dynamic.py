"""Operations that take a shape, a window or a padding as an operand: it must be the same on every device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlo_verify.evaluate import convolution, movement, selection
from hlo_verify.evaluate.blocks import Blocks, dense
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Op


def _elements(a: Blocks) -> tuple[int, ...]:
    """The elements of a tensor of integers that is the same on every device."""
    if a.values.shape[0] > 1:
        raise UnknownError("an operand that says what to do differs among the devices")
    return tuple(int(x) for x in dense(a, 0).reshape(-1))


def _with_attributes(rule: Rule, operands: int, *names: str) -> Rule:
    """The static operation on the first operands, with the others as attributes."""

    def dynamic(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
        extra = {name: _elements(a) for name, a in zip(names, args[operands:], strict=True)}
        static = replace(op, operands=op.operands[:operands], attributes={**op.attributes, **extra})
        return rule(static, args[:operands], run, place)

    return dynamic


def _convolution(rule: Rule) -> Rule:
    def dynamic(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
        padding = np.array(_elements(args[2]), np.int64).reshape(-1, 2)
        ones = (1,) * len(padding)
        defaults = {"window_strides": ones, "lhs_dilation": ones, "rhs_dilation": ones}
        attributes = {**defaults, "window_reversal": (False,) * len(padding), **op.attributes, "padding": padding}
        return rule(replace(op, operands=op.operands[:2], attributes=attributes), args[:2], run, place)

    return dynamic


def _static(rule: Rule) -> Rule:
    """Operations whose last operand is the shape of the result, which its type says too."""

    def dynamic(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
        return rule(op, args[:-1], run, place)

    return dynamic


RULES: dict[str, Rule] = {
    "dynamic_reshape": _static(movement.RULES["reshape"]),
    "dynamic_broadcast_in_dim": _static(movement.RULES["broadcast_in_dim"]),
    "dynamic_pad": _with_attributes(
        movement.RULES["pad"], 2, "edge_padding_low", "edge_padding_high", "interior_padding"
    ),
    "real_dynamic_slice": _with_attributes(movement.RULES["slice"], 1, "start_indices", "limit_indices", "strides"),
    "dynamic_gather": _with_attributes(selection.RULES["gather"], 2, "slice_sizes"),
    "dynamic_conv": _convolution(convolution.RULES["convolution"]),
}
