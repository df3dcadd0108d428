"""`mulhi`, the upper half of a product of integers, which jaxlib's conversion of HLO gives no name.

HLO has it since JAX draws random numbers with it (the places of a tensor in 64 bits are counted by two numbers of 32),
and StableHLO has `chlo.mulhi`; what the conversion makes of it is `mhlo.unknown`, a module that does not parse. So it
goes through the conversion as a call of a function that nobody else has, and becomes the operation behind it.
"""

from __future__ import annotations

from typing import Any

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.read import proto_edits
from hlo_verify.passes.read.expand import operations
from hlo_verify.passes.read.proto_edits import OPCODE

_MULHI = proto_edits.field_bytes(OPCODE, b"mulhi")
_TARGET = 28  # HloInstructionProto.custom_call_target
_NAME = b"hlo_verify.mulhi"
_CALL = proto_edits.field_bytes(OPCODE, b"custom-call") + proto_edits.field_bytes(_TARGET, _NAME)


def has(module: bytes) -> bool:
    """Whether a serialized HloModuleProto may have such products, and no calls of a function of that name."""
    return _MULHI in module and _NAME not in module


def name(module: bytes) -> bytes:
    """The serialized HloModuleProto in which they are calls."""

    def edit(instruction: bytes) -> bytes:
        if proto_edits.payloads(instruction, OPCODE) != [b"mulhi"]:
            return instruction
        fields = proto_edits.fields_of(instruction)
        return b"".join(_CALL if number == OPCODE else raw for number, _, _, raw in fields)

    return proto_edits.edit_instructions(module, edit)


def write_out(module: Any) -> None:
    """Put the operation in the place of those calls in an MLIR module. What is said of them is kept."""
    for call in list(operations(module.operation)):
        if call.name != "stablehlo.custom_call" or call.attributes["call_target_name"].value != _NAME.decode():
            continue
        said = {each: call.attributes[each] for each in call.attributes if each.partition(".")[0] == "mhlo"}
        with call.context, call.location, ir.InsertionPoint(call):
            types = [call.results[0].type]
            product = ir.Operation.create("chlo.mulhi", types, list(call.operands), said)
        call.results[0].replace_all_uses_with(product.result)
        call.erase()
