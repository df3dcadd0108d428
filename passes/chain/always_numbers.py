"""What is a number in each turn of each loop, on each device, though minus infinity masks scores there."""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate.blocks import Blocks
from hlo_verify.passes.chain.masked import ABOVE
from hlo_verify.passes.chain.reached import FLOATS, at_zero
from hlo_verify.program.ir import Module, Name


def always_numbers(module: Module, devices: int) -> frozenset[Name]:
    """The values of floats that are far above all that masks where all arguments are 0, whenever they are made. Where
    minus infinity is added and chosen by what depends on no argument, they are for all arguments."""
    found: dict[Name, bool] = {}

    def seen(name: Name, value: Blocks | None) -> None:
        is_number = value is not None and value.values.dtype == FLOATS and bool(np.isfinite(value.values).all())
        is_above = is_number and value is not None and bool((value.values > ABOVE).all())
        found[name] = is_above and found.get(name, True)

    at_zero(module, devices, observe=seen)
    return frozenset(name for name, is_above in found.items() if is_above)
