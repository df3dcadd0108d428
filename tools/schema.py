"""XLA's messages as the installed jaxlib knows them: the descriptors that protobuf compiled into its library.

No Python class for HloModuleProto is shipped. But the library holds the description of every message, itself a message
(google/protobuf/descriptor.proto), so that field numbers need no copying and a new field of a new version shows.
"""

from __future__ import annotations

import functools
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import jaxlib

from hlo_verify.passes.read import proto_edits

FILES = ("xla/service/hlo.proto", "xla/xla_data.proto")
LIBRARY = "libjax_common.so"

# google/protobuf/descriptor.proto
_NAME = 1
_FILE_PACKAGE, _FILE_MESSAGES, _FILE_ENUMS, _FILE_SYNTAX = 2, 4, 5, 12
_MESSAGE_FIELDS, _MESSAGE_NESTED, _MESSAGE_ENUMS = 2, 3, 4
_FIELD_NUMBER, _FIELD_LABEL, _FIELD_TYPE, _FIELD_TYPE_NAME = 3, 4, 5, 6
_ENUM_VALUES, _ENUM_NUMBER = 2, 2
_REPEATED = 3
_DOUBLE, _FLOAT, _FIXED64, _FIXED32, _BOOL, _STRING, _MESSAGE, _BYTES = 1, 2, 6, 7, 8, 9, 11, 12
_SFIXED32, _SFIXED64 = 15, 16

_WIRES = {
    **dict.fromkeys((_DOUBLE, _FIXED64, _SFIXED64), 1),
    **dict.fromkeys((_STRING, _MESSAGE, _BYTES), 2),
    **dict.fromkeys((_FLOAT, _FIXED32, _SFIXED32), 5),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. `kind` is the full name of a message or enumeration; empty for other types."""

    name: str
    number: int
    type: int
    repeated: bool
    kind: str

    @property
    def is_message(self) -> bool:
        return self.type == _MESSAGE

    @property
    def is_text(self) -> bool:
        return self.type in (_STRING, _BYTES)

    @property
    def is_bool(self) -> bool:
        return self.type == _BOOL

    @property
    def wire(self) -> int:
        """The wire type of one value."""
        return _WIRES.get(self.type, 0)


@dataclass(frozen=True, slots=True)
class Schema:
    """Messages by full name (`.xla.HloModuleProto`), each a dictionary of fields by number; numbers of enumerations."""

    messages: Mapping[str, Mapping[int, Field]]
    enums: Mapping[str, tuple[int, ...]]


MODULE, COMPUTATION, INSTRUCTION = (f".xla.Hlo{name}Proto" for name in ("Module", "Computation", "Instruction"))


@functools.cache
def schema() -> Schema:
    """The schema of the installed jaxlib."""
    messages: dict[str, Mapping[int, Field]] = {}
    enums: dict[str, tuple[int, ...]] = {}
    with (Path(jaxlib.__file__).parent / LIBRARY).open("rb") as file:
        library = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for name in FILES:
            start = library.find(proto_edits.field_bytes(_NAME, name.encode()))
            if start < 0:
                raise LookupError(f"{LIBRARY} holds no description of {name}")
            _read_file(library[start : start + (1 << 20)], messages, enums)
        library.close()
    return Schema(messages, enums)


def _read_file(description: bytes, messages: dict[str, Mapping[int, Field]], enums: dict[str, tuple[int, ...]]) -> None:
    """Read a FileDescriptorProto, whose end is not known: the last of its fields is the syntax."""
    package = ""
    for number, _, payload, _ in proto_edits.fields_of(description):
        if number == _FILE_PACKAGE and payload is not None:
            package = f".{payload.decode()}"
        elif number == _FILE_MESSAGES and payload is not None:
            _read_message(payload, package, messages, enums)
        elif number == _FILE_ENUMS and payload is not None:
            _read_enum(payload, package, enums)
        elif number == _FILE_SYNTAX:
            return


def _read_message(
    description: bytes, scope: str, messages: dict[str, Mapping[int, Field]], enums: dict[str, tuple[int, ...]]
) -> None:
    name = f"{scope}.{_text(description, _NAME)}"
    fields = [_field(payload) for payload in _payloads(description, _MESSAGE_FIELDS)]
    messages[name] = {field.number: field for field in fields}
    for payload in _payloads(description, _MESSAGE_NESTED):
        _read_message(payload, name, messages, enums)
    for payload in _payloads(description, _MESSAGE_ENUMS):
        _read_enum(payload, name, enums)


def _field(description: bytes) -> Field:
    numbers = {number: values[0] for number, values in proto_edits.numbers_of(description).items()}
    return Field(
        _text(description, _NAME),
        numbers[_FIELD_NUMBER],
        numbers[_FIELD_TYPE],
        numbers.get(_FIELD_LABEL) == _REPEATED,
        _text(description, _FIELD_TYPE_NAME),
    )


def _read_enum(description: bytes, scope: str, enums: dict[str, tuple[int, ...]]) -> None:
    values = _payloads(description, _ENUM_VALUES)
    enums[f"{scope}.{_text(description, _NAME)}"] = tuple(
        proto_edits.numbers_of(value).get(_ENUM_NUMBER, [0])[0] for value in values
    )


def _payloads(message: bytes, field: int) -> Iterator[bytes]:
    return (
        payload for number, _, payload, _ in proto_edits.fields_of(message) if number == field and payload is not None
    )


def _text(message: bytes, field: int) -> str:
    return next(_payloads(message, field), b"").decode()
