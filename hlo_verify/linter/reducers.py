"""What reductions apply."""

from __future__ import annotations

from hlo_verify.hlo.module import Instruction


def reducer_of(instruction: Instruction) -> str:
    """`add`, `maximum`…; nothing for more than one operation."""
    found = [
        one.opcode
        for applied in instruction.applied
        for one in applied.instructions
        if one.opcode not in ("parameter", "convert", "tuple", "get-tuple-element", "bitcast", "copy")
    ]
    return found[0] if found and set(found) == {found[0]} else ""
