"""Operations on floating-point numbers of two widths, which HLO has and StableHLO has not: conversions are written out.

XLA lets an instruction take or give bfloat16 beside float32 (`bfloat16-propagation` of the TPU's compiler makes
`bf16[8] add(f32[8], f32[8])`), and computes in the wider type. So operands are converted to float32, and so is the
instruction's own type, of which a conversion gives what it gave. jaxlib's conversion refuses such a module; it is asked
about only then.
"""

from __future__ import annotations

from hlo_verify.passes.read import proto_edits
from hlo_verify.passes.read.proto_edits import ELEMENT_TYPE, ID, METADATA, NAME, OPCODE, OPERANDS, SHAPE, SHARDING

_F32, _BF16 = 11, 16  # PrimitiveType
_NARROW = proto_edits.varint(ELEMENT_TYPE << 3) + proto_edits.varint(_BF16)
_WIDE = proto_edits.varint(ELEMENT_TYPE << 3) + proto_edits.varint(_F32)

_OF_ONE_TYPE = """abs add atan2 broadcast cbrt ceil clamp concatenate copy cosine divide dynamic-slice
dynamic-update-slice erf exponential exponential-minus-one floor gather log log-plus-one logistic maximum minimum
multiply negate pad power remainder reshape reverse round-nearest-afz round-nearest-even rsqrt select sign sine slice
sqrt subtract tan tanh transpose"""
_OPCODES = {name.encode(): True for name in _OF_ONE_TYPE.split()} | {b"compare": False}
"""The operations whose floating-point operands are of one type; whether their result is of it as well."""


def write_out(module: bytes) -> bytes:
    """The serialized HloModuleProto with conversions around what takes or gives both types."""
    return proto_edits.edit_computations(module, _write_out) if _NARROW in module else module


def _write_out(computation: bytes) -> bytes:
    shapes = proto_edits.shapes_of(computation)
    types = {number: proto_edits.numbers_of(shape).get(ELEMENT_TYPE, []) for number, shape in shapes.items()}
    last = max(shapes, default=0)

    def fresh() -> int:
        nonlocal last
        last += 1
        return last

    def edit(instruction: bytes) -> list[bytes]:
        (opcode,), number = proto_edits.payloads(instruction, OPCODE), proto_edits.id_of(instruction)
        operands = proto_edits.integers(instruction, OPERANDS)
        is_alike = _OPCODES.get(opcode)
        counted = [each for each in (*operands, number) if is_alike or each != number]
        if is_alike is None or {_F32, _BF16} - {type_ for each in counted for type_ in types[each]}:
            return [instruction]
        before, wide = [], []
        for operand in operands:
            if types[operand] == [_BF16]:
                converted = fresh()
                before.append(_conversion(instruction, (METADATA,), converted, operand, _widened(shapes[operand])))
                operand = converted
            wide.append(operand)
        if not is_alike or types[number] != [_BF16]:
            return [*before, _with(instruction, number, wide, shapes[number])]
        computed = fresh()
        itself = _with(instruction, computed, wide, _widened(shapes[number]))
        return [*before, itself, _conversion(instruction, (METADATA, SHARDING), number, computed, shapes[number])]

    return proto_edits.replace_instructions(computation, edit)


def _widened(shape: bytes) -> bytes:
    """A tensor's shape in the wider type."""
    return b"".join(_WIDE if number == ELEMENT_TYPE else raw for number, _, _, raw in proto_edits.fields_of(shape))


def _with(instruction: bytes, number: int, operands: list[int], shape: bytes) -> bytes:
    """An instruction with another number, other operands and another shape."""
    kept = b"".join(raw for n, _, _, raw in proto_edits.fields_of(instruction) if n not in (ID, OPERANDS, SHAPE))
    return kept + _numbered(number, operands, shape)


def _conversion(instruction: bytes, fields: tuple[int, ...], number: int, operand: int, shape: bytes) -> bytes:
    """A conversion of which some fields are an instruction's: where in the user's program it comes from, say."""
    kept = b"".join(raw for n, _, _, raw in proto_edits.fields_of(instruction) if n in fields)
    name = proto_edits.field_bytes(NAME, b"convert.of.%d" % number)
    return name + proto_edits.field_bytes(OPCODE, b"convert") + kept + _numbered(number, [operand], shape)


def _numbered(number: int, operands: list[int], shape: bytes) -> bytes:
    packed = b"".join(map(proto_edits.varint, operands))
    return (
        proto_edits.varint(ID << 3)
        + proto_edits.varint(number)
        + proto_edits.field_bytes(OPERANDS, packed)
        + proto_edits.field_bytes(SHAPE, shape)
    )
