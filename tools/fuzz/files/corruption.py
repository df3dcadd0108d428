"""Damage that follows the structure of a file: tokens of text, fields of messages, bytes of the rest."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from hlo_verify.passes.read import proto_edits
from tools.schema import MODULE, schema

_TOKENS = re.compile(rb"\w+|\s+|[^\w\s]")
_NUMBERS = (0, 1, 2, 3, 5, 7, 8, 255, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_JUNK = (b"{", b"}", b"(", b")", b"<", b">", b'"', b"\0", b"\xff", b"\xc3\xa9", b"%", b"@", b"#", b"-", b"...", b"// ")
_MOST = 4
"""The most places of one file that are damaged."""


def corrupted(form: str, contents: bytes, draw: random.Random) -> bytes:
    """The contents with a few damages of one kind."""
    if draw.random() < 0.02:
        return contents[: draw.randrange(len(contents))]
    for _ in range(draw.randint(1, _MOST)):
        if form in ("hlo", "mlir"):
            contents = _text(contents, draw)
        elif form == "proto" and draw.random() < 0.9:
            contents = _message(contents, MODULE, draw)
        elif form == "wrapped" and draw.random() < 0.9:
            contents = _message(contents, ".xla.HloProto", draw)
        else:
            contents = _bytes(contents, draw)
    return contents


def _text(contents: bytes, draw: random.Random) -> bytes:
    parts = contents.splitlines(keepends=True) if draw.random() < 0.15 else _TOKENS.findall(contents)
    if not parts:
        return contents
    here, there = draw.randrange(len(parts)), draw.randrange(len(parts))
    kind = draw.randrange(6)
    if kind == 0:
        parts[here], parts[there] = parts[there], parts[here]
    elif kind == 1:
        del parts[here]
    elif kind == 2:
        parts.insert(here, parts[there])
    elif kind == 3:
        parts[here] = parts[there]
    elif kind == 4:
        digits = [k for k, part in enumerate(parts) if part.isdigit()]
        if digits:
            parts[draw.choice(digits)] = str(draw.choice(_NUMBERS)).encode()
    else:
        parts.insert(here, draw.choice(_JUNK) * draw.choice((1, 1, 1, 3, 2000)))
    return b"".join(parts)


def _bytes(contents: bytes, draw: random.Random) -> bytes:
    if not contents:
        return contents
    here, count = draw.randrange(len(contents)), draw.choice((1, 1, 1, 4, 32))
    kind = draw.randrange(5)
    if kind == 0:
        return contents[:here] + bytes([contents[here] ^ 1 << draw.randrange(8)]) + contents[here + 1 :]
    if kind == 1:
        return contents[:here] + draw.randbytes(count) + contents[here + count :]
    if kind == 2:
        return contents[:here] + contents[here + count :]
    if kind == 3:
        return contents[:here] + draw.randbytes(count) + contents[here:]
    there = draw.randrange(len(contents))
    return contents[:here] + contents[there : there + count] + contents[here + count :]


def _message(message: bytes, kind: str, draw: random.Random) -> bytes:
    """The message with one field damaged, at any depth."""
    try:
        fields = list(proto_edits.fields_of(message))
    except ValueError:
        return _bytes(message, draw)
    if not fields:
        return message
    number, wire, payload, raw = draw.choice(fields)
    here = next(k for k, field in enumerate(fields) if field[3] is raw)
    parts = [field[3] for field in fields]
    known = schema().messages.get(kind, {}).get(number)
    if payload is not None and known is not None and known.is_message and draw.random() < 0.85:
        parts[here] = proto_edits.field_bytes(number, _message(payload, known.kind, draw))
    else:
        parts[here] = draw.choice(_DAMAGES)(number, wire, payload, raw, draw)
        if draw.random() < 0.1:
            there = draw.randrange(len(parts))
            parts[here], parts[there] = parts[there], parts[here]
    return b"".join(parts)


_Damage = Callable[[int, int, "bytes | None", bytes, random.Random], bytes]


def _gone(number: int, wire: int, payload: bytes | None, raw: bytes, draw: random.Random) -> bytes:
    return b""


def _twice(number: int, wire: int, payload: bytes | None, raw: bytes, draw: random.Random) -> bytes:
    return raw + raw


def _other(number: int, wire: int, payload: bytes | None, raw: bytes, draw: random.Random) -> bytes:
    """Another number, or another list of numbers, or other text."""
    if wire == 0:
        return proto_edits.varint(number << 3) + proto_edits.varint(draw.choice(_NUMBERS))
    if payload is None:
        return raw[:1] + draw.randbytes(len(raw) - 1)
    try:
        values = list(proto_edits.unpacked(payload))
    except ValueError:
        return proto_edits.field_bytes(number, _bytes(payload, draw))
    if values and draw.random() < 0.7:
        values[draw.randrange(len(values))] = draw.choice((*_NUMBERS, *values))
    else:
        values.append(draw.choice(_NUMBERS))
    return proto_edits.field_bytes(number, b"".join(map(proto_edits.varint, values)))


def _cut(number: int, wire: int, payload: bytes | None, raw: bytes, draw: random.Random) -> bytes:
    if payload:
        return proto_edits.field_bytes(number, payload[: draw.randrange(len(payload))])
    return raw[: draw.randrange(len(raw))]


def _elsewhere(number: int, wire: int, payload: bytes | None, raw: bytes, draw: random.Random) -> bytes:
    """The same as another field."""
    _, start = proto_edits.read_varint(raw, 0)
    return proto_edits.varint(draw.randrange(1, 110) << 3 | wire) + raw[start:]


_DAMAGES: tuple[_Damage, ...] = (_gone, _twice, _other, _other, _other, _cut, _elsewhere)
