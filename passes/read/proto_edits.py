"""The few edits of a serialized HloModuleProto that jaxlib has no call for.

Protocol buffers are a list of (field, wire type, payload); what is not touched is copied
byte for byte, so that fields of newer versions survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.mesh import ORDER_MARK

# xla/service/hlo.proto
_HLO_PROTO_MODULE = 1  # HloProto.hlo_module; HloModuleProto has its name there
_MODULE_COMPUTATIONS = 3
_MODULE_ENTRY_ID = 6
_COMPUTATION_INSTRUCTIONS = 2
_COMPUTATION_ID = 5
_GROUPS_MESH = 1  # MeshAxesReplicaGroupListProto
_MESH_AXES, _MESH_DEVICE_IDS, _MESH_DEVICE_IOTA = 1, 2, 3
_AXIS_NAME = 1
_IOTA_SHAPE, _IOTA_PERMUTATION = 1, 2

_LENGTH_DELIMITED = 2

_SHARDING = b"xla.sdy.sharding"
"""The frontend attribute by which Shardy places an argument."""

# HloInstructionProto
NAME, OPCODE, SHAPE, METADATA, ID, OPERANDS, SHARDING = 1, 2, 3, 7, 35, 36, 40
CONSTRAIN_LAYOUT, OPERAND_SHAPES_WITH_LAYOUT = 56, 57
FRONTEND_ATTRIBUTES = 68
GROUPS, MESH_GROUPS = 49, 93

# xla/xla_data.proto
ELEMENT_TYPE, DIMENSIONS, TUPLE_SHAPES, LAYOUT, IS_DYNAMIC = 2, 3, 4, 5, 6  # ShapeProto
MINOR_TO_MAJOR, LAYOUT_TILES, MEMORY_SPACE, TAIL_PADDING = 1, 6, 8, 16  # LayoutProto
TILE_DIMENSIONS = 1  # TileProto


def module_of(serialized: bytes) -> bytes:
    """The HloModuleProto in a serialized HloModuleProto, HloProto or HloSnapshot. Raises `InputError`."""
    for _ in range(3):
        try:
            fields = [(number, payload) for number, _, payload, _ in fields_of(serialized)]
        except ValueError as error:
            raise InputError(
                "the file is binary and is neither MLIR bytecode nor a protocol buffer; "
                "expected MLIR bytecode, a jax.export artifact or a serialized HloModuleProto",
                Input.NOT_A_MODULE,
            ) from error
        if any(number == _MODULE_COMPUTATIONS and payload is not None for number, payload in fields) and not any(
            number == _HLO_PROTO_MODULE and payload and _is_module(payload) for number, payload in fields
        ):
            return serialized
        inner = [payload for number, payload in fields if number == _HLO_PROTO_MODULE and payload]
        if not inner:
            break
        serialized = inner[0]
    raise InputError("the file is a protocol buffer, but no HloModuleProto, or it is cut short", Input.NOT_A_MODULE)


def _is_module(payload: bytes) -> bool:
    """Whether a payload is a message with computations in it, not a name."""
    try:
        return any(
            number == _MODULE_COMPUTATIONS and wire == _LENGTH_DELIMITED for number, wire, _, _ in fields_of(payload)
        )
    except ValueError:
        return False


def without_parameter_frontend_attributes(module: bytes) -> bytes:
    """The module without frontend attributes on parameters, which change no value, but for what places an argument.

    jaxlib's conversion to StableHLO refuses them on parameters that are tuples.
    """
    entry = numbers_of(module).get(_MODULE_ENTRY_ID)

    def strip(instruction: bytes) -> bytes:
        fields = list(fields_of(instruction))
        if not any(number == OPCODE and payload == b"parameter" for number, _, payload, _ in fields):
            return instruction
        return b"".join(raw for number, _, _, raw in fields if number != FRONTEND_ATTRIBUTES)

    def strip_all(computation: bytes) -> bytes:
        places = _SHARDING in computation and numbers_of(computation).get(_COMPUTATION_ID) == entry
        return computation if places else edit_computation(computation, strip)

    return edit_computations(module, strip_all)


def name_device_orders(module: bytes) -> bytes:
    """The module with the order of devices that a replica group's mesh has put into the name of its first axis.

    jaxlib's conversion to StableHLO forgets the order (`mesh['a'=4], device_ids=(3,1,2,0) {'a'}` becomes
    the mesh `["a"=4]`), and takes two meshes that differ in it alone for one. `device_order_of` reads it back.
    """

    def edit_mesh(mesh: bytes) -> bytes:
        order = _device_order(mesh)
        parts, first = [], True
        for number, _, payload, raw in fields_of(mesh):
            if number == _MESH_AXES and first and order is not None:
                raw, first = field_bytes(number, rewrite(payload or b"", _AXIS_NAME, lambda name: name + order)), False
            parts.append(raw)
        return b"".join(parts)

    def edit_instruction(instruction: bytes) -> bytes:
        if _MESH_GROUPS_TAG not in instruction:
            return instruction
        return rewrite(instruction, MESH_GROUPS, lambda groups: rewrite(groups, _GROUPS_MESH, edit_mesh))

    return edit_instructions(module, edit_instruction)


def _device_order(mesh: bytes) -> bytes | None:
    """What a MeshProto says of the order of its devices, as text: a list, or a shape and a permutation of iota."""
    for number, _, payload, _ in fields_of(mesh):
        if number == _MESH_DEVICE_IDS and payload:
            return f"{ORDER_MARK}{_numbers(payload)}".encode()
        if number == _MESH_DEVICE_IOTA and payload:
            parts = {n: _numbers(p) for n, _, p, _ in fields_of(payload) if p is not None}
            if _IOTA_PERMUTATION in parts:
                return f"{ORDER_MARK}{parts[_IOTA_SHAPE]}T{parts[_IOTA_PERMUTATION]}".encode()
    return None


def _numbers(packed: bytes) -> str:
    return ",".join(map(str, unpacked(packed)))


def unpacked(packed: bytes) -> Iterator[int]:
    """The numbers of a repeated field that is packed."""
    position = 0
    while position < len(packed):
        number, position = read_varint(packed, position)
        yield number


def numbers_of(message: bytes) -> dict[int, list[int]]:
    """The numbers among a message's fields, those of packed fields not."""
    found: dict[int, list[int]] = {}
    for number, wire, _, raw in fields_of(message):
        if wire == 0:
            _, start = read_varint(raw, 0)
            found.setdefault(number, []).append(read_varint(raw, start)[0])
    return found


def payloads(message: bytes, field: int) -> list[bytes]:
    """The length-delimited payloads of a field."""
    return [payload for number, _, payload, _ in fields_of(message) if number == field and payload is not None]


def integers(message: bytes, field: int) -> list[int]:
    """The numbers of a repeated field, packed or not."""
    packed = [n for payload in payloads(message, field) for n in unpacked(payload)]
    return packed + numbers_of(message).get(field, [])


def id_of(instruction: bytes) -> int:
    return numbers_of(instruction).get(ID, [0])[0]


def shapes_of(computation: bytes) -> dict[int, bytes]:
    """The shape of each instruction of a computation, by its number."""
    instructions = payloads(computation, _COMPUTATION_INSTRUCTIONS)
    return {id_of(each): b"".join(payloads(each, SHAPE)) for each in instructions}


def edit_instructions(module: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    return edit_computations(module, lambda computation: edit_computation(computation, edit))


def edit_computations(module: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    return rewrite(module, _MODULE_COMPUTATIONS, edit)


def edit_computation(computation: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """The computation with `edit` applied to every instruction."""
    return rewrite(computation, _COMPUTATION_INSTRUCTIONS, edit)


def replace_instructions(computation: bytes, edit: Callable[[bytes], list[bytes]]) -> bytes:
    """The computation with what `edit` gives in the place of every instruction."""
    parts = []
    for number, _, payload, raw in fields_of(computation):
        if number == _COMPUTATION_INSTRUCTIONS and payload is not None:
            parts += [field_bytes(number, each) for each in edit(payload)]
        else:
            parts.append(raw)
    return b"".join(parts)


def rewrite(message: bytes, field: int, edit: Callable[[bytes], bytes]) -> bytes:
    """The message with `edit` applied to every submessage in `field`."""
    parts = []
    for number, _, payload, raw in fields_of(message):
        if number == field and payload is not None:
            edited = edit(payload)
            parts.append(raw if edited is payload else field_bytes(number, edited))
        else:
            parts.append(raw)
    return b"".join(parts)


def field_bytes(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | _LENGTH_DELIMITED) + varint(len(payload)) + payload


def fields_of(message: bytes) -> Iterator[tuple[int, int, bytes | None, bytes]]:
    """Each field's number, wire type, payload (of the length-delimited ones) and bytes. Raises ValueError."""
    position = 0
    while position < len(message):
        start = position
        tag, position = read_varint(message, position)
        number, wire = tag >> 3, tag & 7
        payload = None
        if wire == 0:
            _, position = read_varint(message, position)
        elif wire == _LENGTH_DELIMITED:
            length, position = read_varint(message, position)
            payload = message[position : position + length]
            position += length
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if number == 0 or position > len(message):
            raise ValueError("not a protocol buffer, or cut short")
        yield number, wire, payload, message[start:position]


def read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message) or shift > 63:
            raise ValueError("a number is cut short")
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_MESH_GROUPS_TAG = varint(MESH_GROUPS << 3 | _LENGTH_DELIMITED)
