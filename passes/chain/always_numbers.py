"""What is a number in each turn of each loop, on each device, though minus infinity masks scores there."""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, scalar
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.numbers import storage
from hlo_verify.evaluate.state import Limits
from hlo_verify.limits import limit_of
from hlo_verify.passes.chain.masked_scores import ABOVE
from hlo_verify.program.ir import Module, Name

FLOATS = np.dtype(np.float64)


def always_numbers(module: Module, devices: int) -> frozenset[Name]:
    """The values of floats that are far above all that masks where all arguments are 0, whenever they are made. Where
    minus infinity is added and chosen by what depends on no argument, they are for all arguments."""
    found: dict[Name, bool] = {}

    def seen(name: Name, value: Blocks | None) -> None:
        is_number = value is not None and value.values.dtype == FLOATS and bool(np.isfinite(value.values).all())
        is_above = is_number and value is not None and bool((value.values > ABOVE).all())
        found[name] = is_above and found.get(name, True)

    maps = Maps()
    types = module.main.argument_types
    zeros = [scalar(0, type_.shape, storage(type_.dtype, FLOATS), devices, maps) for type_ in types]
    limits = Limits(limit_of("enclosed_elements"), limit_of("glance_work"))
    evaluate(module, zeros, devices, limits=limits, maps=maps, observe=seen)
    return frozenset(name for name, is_above in found.items() if is_above)
