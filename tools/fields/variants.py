"""Every change of one field of a message: set where it was not, another value where it was, at any depth."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.passes.read import proto_edits
from tools.schema import Field, schema

Variant = tuple[str, bytes]
"""The path of a field, `window.dimensions.size`, and the message with another value there."""

WHOLE = {
    # on one device, on another
    ".xla.OpSharding": (bytes([0x08, 1, 0x1A, 1, 1, 0x22, 1, 0]), bytes([0x08, 1, 0x1A, 1, 1, 0x22, 1, 1])),
    # f32[4]{0} and f32[4]{0:S(5)}
    ".xla.ShapeProto": (bytes.fromhex("100b1a01042a030a0100"), bytes.fromhex("100b1a01042a060a0100800105")),
    # {{0},{1}}, and {{0,1,2,3}}
    ".xla.IotaReplicaGroupListProto": (bytes.fromhex("080210011a0102220100"), bytes.fromhex("080110041a0104220100")),
    # along the only axis, of two devices, of a mesh
    ".xla.MeshAxesReplicaGroupListProto": (bytes.fromhex("0a070a050a01611002" + "1200"),),
    # f32[] 1.5
    ".xla.LiteralProto": (bytes.fromhex("0a04100b2a0042040000c03f"),),
}
"""Messages of which most values end jaxlib's process, with some that do not."""


def variants(message: bytes, kind: str, around: frozenset[str] = frozenset()) -> Iterator[Variant]:
    """The message with one field, of itself or of a message inside, that is changed, added or left out.

    Messages inside of one of their own kind (`around`), such as the shapes of a tuple, are not varied.
    """
    around |= {kind}
    present = [(number, wire, payload, raw) for number, wire, payload, raw in proto_edits.fields_of(message)]
    numbers = {number for number, *_ in present}
    for field in schema().messages.get(kind, {}).values():
        for k, (number, wire, payload, raw) in enumerate(present):
            if number == field.number:
                before, after = (b"".join(part[3] for part in parts) for parts in (present[:k], present[k + 1 :]))
                for path, changed in _changed(field, wire, payload, raw, around):
                    yield path, before + changed + after
                yield field.name, before + after
        if field.number not in numbers or field.repeated:
            for path, added in _added(field, around):
                yield path, message + added


def _changed(field: Field, wire: int, payload: bytes | None, raw: bytes, around: frozenset[str]) -> Iterator[Variant]:
    if field.kind in WHOLE:
        yield from ((field.name, proto_edits.field_bytes(field.number, value)) for value in WHOLE[field.kind])
    elif field.is_message:
        if field.kind not in around:
            for path, inner in variants(payload or b"", field.kind, around):
                yield f"{field.name}.{path}", proto_edits.field_bytes(field.number, inner)
    elif field.is_text:
        yield field.name, proto_edits.field_bytes(field.number, (payload or b"") + b"x")
    elif wire == 2:  # a packed list of numbers
        values = list(proto_edits.unpacked(payload or b""))
        for k, value in enumerate(values):
            others = [*values[:k], value + 1, *values[k + 1 :]]
            yield field.name, proto_edits.field_bytes(field.number, b"".join(map(proto_edits.varint, others)))
        yield field.name, proto_edits.field_bytes(field.number, b"".join(map(proto_edits.varint, (*values, 1))))
    else:
        _, start = proto_edits.read_varint(raw, 0)
        old = proto_edits.read_varint(raw, start)[0] if wire == 0 else None
        yield from ((field.name, value) for value in _values(field, old))


def _added(field: Field, around: frozenset[str]) -> Iterator[Variant]:
    if field.kind in WHOLE:
        yield from ((field.name, proto_edits.field_bytes(field.number, value)) for value in WHOLE[field.kind])
    elif field.is_message:
        yield field.name, proto_edits.field_bytes(field.number, b"")
        if field.kind not in around:
            for path, inner in variants(b"", field.kind, around):
                yield f"{field.name}.{path}", proto_edits.field_bytes(field.number, inner)
    elif field.is_text:
        yield field.name, proto_edits.field_bytes(field.number, b"x")
    else:
        yield from ((field.name, value) for value in _values(field, None))


def _values(field: Field, old: int | None) -> Iterator[bytes]:
    """Values of a field of numbers, other than the one that it has."""
    tag = proto_edits.varint(field.number << 3 | field.wire)
    if field.wire == 1:
        yield tag + b"\0\0\0\0\0\0\xf8\x3f"
    elif field.wire == 5:
        yield tag + b"\0\0\x40\x3f"
    else:
        known = schema().enums.get(field.kind)
        others = known if known is not None else (1 - (old or 0),) if field.is_bool else (1, 2, (old or 0) + 1)
        for value in dict.fromkeys(others):
            if value not in (old or 0, 0 if old is None else None):
                yield tag + proto_edits.varint(value)
