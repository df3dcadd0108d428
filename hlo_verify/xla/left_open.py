"""What a module leaves open, as XLA's partitioner takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hlo_verify.program.ir import Module, TensorType
from hlo_verify.program.pair import check_placed
from hlo_verify.program.sharding import Sharding, replicated


def completed(logical: Module, partitioned: Module) -> tuple[Module, list[str]]:
    """The module with what XLA left without a sharding replicated, and the names of such arguments.

    Only for what XLA itself partitioned: it takes and returns those whole on every device (see
    docs/decisions/unannotated.md). For results this asks the most that can be asked.
    """
    check_placed(logical, partitioned)
    devices = partitioned.partitions
    if devices is None:
        return logical, []

    def fill(shardings: Sequence[Sharding | None], whole: Sequence[TensorType], parts: Sequence[TensorType]) -> Any:
        filled = [
            replicated(type_.rank, devices) if sharding is None and type_ == part else sharding
            for sharding, type_, part in zip(shardings, whole, parts, strict=False)
        ]
        return (*filled, *shardings[len(filled) :])

    arguments = fill(logical.argument_shardings, logical.main.argument_types, partitioned.main.argument_types)
    results = fill(logical.result_shardings, logical.result_types, partitioned.result_types)
    left = [
        name
        for name, before, after in zip(logical.argument_names, logical.argument_shardings, arguments, strict=True)
        if before is None and after is not None
    ]
    return replace(logical, argument_shardings=arguments, result_shardings=results), left
