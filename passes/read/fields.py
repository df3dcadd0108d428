"""What jaxlib's conversion of HLO to StableHLO forgets of an instruction, and what that does to its meaning.

`python -m tools.fields` tries every field of HloInstructionProto on every opcode: it sets other values, and sees
whether XLA reads them there at all, and whether the StableHLO changes. What XLA reads and StableHLO does not have is
listed here, and is one of three things. It is without meaning for the opcode, for a reason. It is carried over, by
custom calls alone, whose meaning is anybody's: as a frontend attribute, which counts as their other attributes do. Or
the instruction is not understood: what it computes equals nothing else. That holds for fields that nobody has tried,
too: those that a newer XLA wrote and this jaxlib does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.read import proto_edits
from hlo_verify.passes.read.proto_edits import FRONTEND_ATTRIBUTES, OPCODE, OPERANDS
from hlo_verify.program.ir import UNREAD_FIELDS

# xla/service/hlo.proto
_LAST = 103
"""The last field that was tried."""

_CARRIED = {
    "window": 15,
    "convolution_dimension_numbers": 16,
    "feature_group_count": 50,
    "precision_config": 51,
    "batch_group_count": 58,
    "padding_type": 75,
}
_UNKNOWN = {"conv_kind": 97, "sparsity_config": 98, "block_scaling_config": 101}

_WINDOW = {"window_dilation": 5, "base_dilation": 6, "window_reversal": 7}
"""WindowDimension; a dilation is 1 where there is none."""

CARRIED: Mapping[str, frozenset[str]] = {"custom-call": frozenset(_CARRIED)}
"""By opcode, the fields that are carried over."""

NOT_UNDERSTOOD: Mapping[str, frozenset[str]] = {
    "convolution": frozenset(_UNKNOWN),
    "dot": frozenset({"sparsity_config", "block_scaling_config"}),
    "reduce-window": frozenset({"window.dimensions.window_reversal"}),
    "select-and-scatter": frozenset(f"window.dimensions.{name}" for name in _WINDOW),
}
"""By opcode, the fields that change what an instruction computes in ways that StableHLO has no words for."""


@dataclass(frozen=True, slots=True)
class WithoutMeaning:
    """Why a field, or a part of it, says nothing of what an instruction computes; `opcodes` where that is so."""

    why: str
    opcodes: frozenset[str] = frozenset()
    """Empty: all of them."""


def _of(opcodes: str, why: str) -> WithoutMeaning:
    return WithoutMeaning(why, frozenset(opcodes.split()))


WITHOUT_MEANING: Mapping[str, WithoutMeaning] = {
    "name": WithoutMeaning("what an instruction is called; operands refer to its id"),
    "metadata": WithoutMeaning("where in the user's program it comes from, and what profilers saw"),
    "statistics_viz": WithoutMeaning("numbers for tools that draw graphs"),
    "original_value": WithoutMeaning("which instruction of an earlier program had the value, for debuggers"),
    "control_predecessor_ids": WithoutMeaning("an order in time; values go by operands alone"),
    "backend_config": WithoutMeaning("how a backend is to compile what HLO defines; a custom call keeps it"),
    "backend_config_payload": WithoutMeaning("backend_config in another form"),
    "frontend_attributes": WithoutMeaning("hints to passes, where it is no call that they are on"),
    "constrain_layout": WithoutMeaning("that a layout is demanded: where elements lie, not what they are"),
    "output_operand_aliasing": WithoutMeaning("which results take the place of operands in memory"),
    "result_accuracy": WithoutMeaning("how far a result may be rounded"),
    "precision_config": _of("convolution dot ragged-dot scaled-dot", "how far products may be rounded"),
    "channel_id": _of("recv-done send-done", "the instruction that begins the exchange has it"),
    "is_host_transfer": _of("recv-done send-done", "the instruction that begins the exchange has it"),
    "outfeed_shape": _of("outfeed", "the layout of what is handed out; its shape is the operand's"),
    "is_stable": _of("topk", "equal elements are taken in order, whether that is demanded or not"),
    "dimensions": _of("reshape", "a hint which dimension is dynamic"),
    "operand_ids": _of("rng tuple", "operands beyond those that it has a use for"),
    "window.dimensions.size": _of("convolution", "the sizes of the kernel, which has a shape of its own"),
    "shape": _of("get-tuple-element parameter send", "its layout: where elements lie, not what they are"),
}
"""By the path of a field."""

CARRIES_NOTHING = frozenset(
    """all-gather-done all-reduce-done collective-permute-done dynamic-reshape get-tuple-element parameter recv-done
    send-done tuple""".split()
)
"""Opcodes whose frontend attributes the conversion forgets, or puts where no operation is."""

_NUMBERS = {
    opcode.encode(): frozenset(number for name, number in (_CARRIED | _UNKNOWN).items() if name in names)
    for opcode, names in (*CARRIED.items(), *NOT_UNDERSTOOD.items())
}
_NONE: frozenset[int] = frozenset()
_WINDOWS = {
    opcode.encode(): frozenset(number for name, number in _WINDOW.items() if f"window.dimensions.{name}" in names)
    for opcode, names in NOT_UNDERSTOOD.items()
}
_COUNTS = frozenset({_CARRIED["feature_group_count"], _CARRIED["batch_group_count"]})
"""Numbers of groups: one where there are none."""


def why_lost(opcode: str, path: str) -> str | None:
    """Why it does no harm that a field is forgotten; None where nobody has said."""
    top = path.partition(".")[0]
    if top in CARRIED.get(opcode, ()):
        return "carried over"
    if {top, path} & NOT_UNDERSTOOD.get(opcode, frozenset()):
        return "not understood"
    parts = path.split(".")
    said = (WITHOUT_MEANING.get(".".join(parts[:k])) for k in range(len(parts), 0, -1))
    found = next((each for each in said if each and (not each.opcodes or opcode in each.opcodes)), None)
    return None if found is None else found.why


def carry_over(module: bytes) -> bytes:
    """The serialized HloModuleProto whose instructions say, as a frontend attribute, what the conversion would forget.

    Raises `InputError` where the instruction cannot have one.
    """
    return proto_edits.edit_instructions(module, _carry_over)


_TAKE_OPERANDS = frozenset(
    b"all-gather all-reduce all-to-all collective-permute concatenate map reduce reduce-scatter reduce-window scatter "
    b"sort".split()
)
"""Opcodes of any number of operands but none: where there is none, what checks their types reads memory at random."""


def _carry_over(instruction: bytes) -> bytes:
    fields = list(proto_edits.fields_of(instruction))
    opcode = next((payload for number, _, payload, _ in fields if number == OPCODE), b"") or b""
    if opcode in _TAKE_OPERANDS and not any(number == OPERANDS and payload != b"" for number, _, payload, _ in fields):
        said = f"damaged: an instruction {opcode.decode()} has no operands; make the file again"
        raise InputError(said, Input.DAMAGED)
    wanted = _NUMBERS.get(opcode, _NONE)
    lost = [
        (number, raw)
        for number, _, payload, raw in fields
        if number > _LAST
        or (number in wanted and not _is_default(number, payload, raw))
        or (number == _CARRIED["window"] and _has_more(payload or b"", _WINDOWS.get(opcode, _NONE)))
    ]
    if not lost:
        return instruction
    if opcode.decode(errors="replace") in CARRIES_NOTHING:
        raise InputError(
            f"an instruction {opcode.decode(errors='replace')} has field {lost[0][0]} of HloInstructionProto, which "
            "hlo-verify does not know; dump the module as text",
            Input.UNSUPPORTED_MODULE,
        )
    unread = b"".join(raw for _, raw in sorted(lost)).hex().encode()
    entry = proto_edits.field_bytes(1, UNREAD_FIELDS.encode()) + proto_edits.field_bytes(2, unread)
    return instruction + proto_edits.field_bytes(FRONTEND_ATTRIBUTES, proto_edits.field_bytes(1, entry))


def _is_default(number: int, payload: bytes | None, raw: bytes) -> bool:
    """Whether a field says what goes without saying: XLA writes some with every call."""
    if payload is None:
        _, start = proto_edits.read_varint(raw, 0)
        return proto_edits.read_varint(raw, start)[0] in ((0, 1) if number in _COUNTS else (0,))
    if number == _CARRIED["precision_config"]:  # a precision for each operand, 0 where it is the default
        return not any(
            any(part) if part is not None else each[-1] for _, _, part, each in proto_edits.fields_of(payload)
        )
    return not payload


def _has_more(window: bytes, numbers: frozenset[int]) -> bool:
    """Whether a window has a dilation, or a reversal, among fields of such numbers."""
    if not numbers:
        return False
    dimensions = (
        proto_edits.numbers_of(payload) for _, _, payload, _ in proto_edits.fields_of(window) if payload is not None
    )
    reversal = _WINDOW["window_reversal"]
    return any(
        value > (0 if number == reversal else 1)
        for dimension in dimensions
        for number in numbers
        for value in dimension.get(number, ())
    )
