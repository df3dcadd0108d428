"""Replica groups along axes of a mesh, written out as lists, for all-to-alls on tuples.

jaxlib converts such an all-to-all to an operation of the dialect mhlo, which takes its groups as lists only: the module
that comes out with axes does not parse.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.passes.read import proto_edits
from hlo_verify.passes.read.proto_edits import GROUPS, MESH_GROUPS, OPCODE, SHAPE
from hlo_verify.program.mesh import AxisReference, Mesh, device_order_of

# xla/xla_data.proto
_ELEMENT_TYPE, _TUPLE = 2, 13
_MEMBERS = 1  # ReplicaGroup.replica_ids
_MESH, _AXES = 1, 2  # MeshAxesReplicaGroupListProto
_MESH_AXES, _NAME, _SIZE = 1, 1, 2  # MeshProto, MeshAxis
_AXIS, _PART, _BEFORE, _TAKEN = 1, 2, 1, 2  # AxisRefProto, SubAxisInfo


def write_out(module: bytes) -> bytes:
    """The serialized HloModuleProto with such groups as lists; where it names orders of devices, by those."""

    def edit(instruction: bytes) -> bytes:
        if b"all-to-all" not in instruction:
            return instruction
        fields = list(proto_edits.fields_of(instruction))
        payloads = {number: payload for number, _, payload, _ in fields if payload is not None}
        if payloads[OPCODE] != b"all-to-all" or MESH_GROUPS not in payloads or not _is_tuple(payloads[SHAPE]):
            return instruction
        rest = [raw for number, _, _, raw in fields if number != MESH_GROUPS]
        return b"".join((*rest, *_lists(payloads[MESH_GROUPS])))

    return proto_edits.edit_instructions(module, edit) if b"all-to-all" in module else module


def _is_tuple(shape: bytes) -> bool:
    return _TUPLE in proto_edits.numbers_of(shape).get(_ELEMENT_TYPE, ())


def _lists(groups: bytes) -> Iterator[bytes]:
    """Each group as a field of an instruction."""
    fields = [(number, payload) for number, _, payload, _ in proto_edits.fields_of(groups) if payload is not None]
    mesh = _mesh(next(payload for number, payload in fields if number == _MESH))
    references = [_axis(payload, mesh) for number, payload in fields if number == _AXES]
    for group in mesh.groups(references).tolist():
        members = b"".join(map(proto_edits.varint, group))
        yield proto_edits.field_bytes(GROUPS, proto_edits.field_bytes(_MEMBERS, members))


def _mesh(message: bytes) -> Mesh:
    axes: list[tuple[str, int]] = []
    for number, _, payload, _ in proto_edits.fields_of(message):
        if number == _MESH_AXES and payload is not None:
            parts = {n: p for n, _, p, _ in proto_edits.fields_of(payload) if p is not None}
            axes.append((parts.get(_NAME, b"").decode(), proto_edits.numbers_of(payload).get(_SIZE, [1])[0]))
    return Mesh(tuple(axes), device_order_of(axes[0][0]) if axes else ())


def _axis(message: bytes, mesh: Mesh) -> AxisReference:
    name, _ = mesh.axes[proto_edits.numbers_of(message).get(_AXIS, [0])[0]]
    for number, _, payload, _ in proto_edits.fields_of(message):
        if number == _PART and payload is not None:
            part = proto_edits.numbers_of(payload)
            return AxisReference(name, part.get(_BEFORE, [1])[0], part.get(_TAKEN, [1])[0])
    return AxisReference(name)
