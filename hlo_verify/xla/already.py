"""Whether a module is what a partitioner made, and nothing that it could be given."""

from __future__ import annotations

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.op_families import BORDERS, COLLECTIVES


def check_not_partitioned(module: Module, what: str) -> None:
    """Raises `InputError` for a module for several partitions that communicate outside of any manual region: a
    partitioner makes these. `what` is its file."""
    if (module.partitions or 1) == 1:
        return
    found = None
    for op in operations(module.main):
        if op.name == "sdy.manual_computation" or str(op.attributes.get("call_target_name")) in BORDERS:
            return
        found = op if found is None and op.name in COLLECTIVES else found
    if found is not None:
        raise InputError(
            f"{what} is partitioned already: its {found.name} at {found.location} runs on each device. Pass the module "
            "that was partitioned before it (hlo-verify LOGICAL PARTITIONED), or look for defects of this one alone "
            "(hlo-verify lint PARTITIONED)",
            Input.PARTITIONED,
        )
