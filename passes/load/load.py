"""From a file's contents to a module, whatever they are: told apart by content, never by name.

StableHLO text and bytecode, StableHLO portable artifacts, `jax.export` artifacts, HLO text,
serialized HloModuleProto and HloProto, each plain or gzipped. jaxlib does all the reading.
"""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hlo_verify import jaxlib_api
from hlo_verify.collector import seldom_collecting
from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.canonicalize import bits
from hlo_verify.passes.canonicalize.device_count import infer_devices
from hlo_verify.passes.canonicalize.entry import Entry, canonicalize
from hlo_verify.passes.load import conversion, float_jumps, narrowed
from hlo_verify.passes.load.conversion import ConversionError
from hlo_verify.passes.read import (
    all_to_all_groups,
    bitcasts,
    decompositions,
    expand,
    fields,
    high_products,
    kernel_layouts,
    mixed_precision,
    proto_edits,
    shardy_calls,
)
from hlo_verify.program import sharding_text
from hlo_verify.program.depth import deeply
from hlo_verify.program.ir import Module, TensorType, operations
from hlo_verify.program.sharding import Sharding, parse_sharding, same

ACCEPTED = (
    "StableHLO text or bytecode, a StableHLO portable artifact, a jax.export artifact, "
    "HLO text (HloModule …) or a serialized HloModuleProto, plain or gzipped"
)


@dataclass(frozen=True, slots=True)
class Source:
    """A module as MLIR, with what only the file around it says."""

    module: Any
    partitions: int | None = None
    replicas: int | None = None
    notes: tuple[str, ...] = ()
    """What reading it took for granted."""


@deeply
def load(
    source: str | bytes | Path, *, devices: int | None = None, written_out: Collection[str] = frozenset()
) -> Module:
    """The module in a file, or in text or bytes given directly.

    A `str` is text where it has several lines, else a path. `devices` is the number of
    devices (partitions times replicas), for a module that does not say it. Functions that are to be `written_out`
    (`read.decompositions`) are. Raises `InputError` for everything that cannot be read, with what is wrong, where, and
    what to do.
    """
    path = ""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        path = str(source)
        contents = read_file(Path(source))
    else:
        contents = source.encode() if isinstance(source, str) else source
    try:
        with seldom_collecting():
            found = read(contents)
            if written_out:
                found = replace(found, notes=(*found.notes, *decompositions.write_out(found.module, written_out)))
            return build(found, canonicalize(found.module, path), devices, path)
    except InputError as error:
        if not path:
            raise
        raise error.within(path) from error
    except RecursionError:
        raise
    except (RuntimeError, UnicodeDecodeError) as error:  # the bindings met a string that is none
        raise InputError(f"{path or 'the module'}: damaged ({error}); fetch or make it again", Input.DAMAGED) from error


def with_devices(module: Module, devices: int) -> Module:
    """The module on `devices` devices (partitions times replicas), where it did not say how many.

    A module for one device says nothing of a mesh, so it too can be had on several.
    Raises `InputError` where it says another number.
    """
    partitions = _settle(module.partitions, module.replicas, devices, module.path or module.name)
    spread = {each: each.spread(partitions) for each in (*module.argument_shardings, *module.result_shardings) if each}
    arguments, results = (
        tuple(spread[sharding] if sharding else None for sharding in shardings)
        for shardings in (module.argument_shardings, module.result_shardings)
    )
    return replace(module, argument_shardings=arguments, result_shardings=results, partitions=partitions)


def _settle(partitions: int | None, replicas: int, devices: int, module: str = "the module") -> int:
    """The number of partitions of a module on `devices` devices, given what it says itself."""
    if partitions is None or (partitions, replicas) == (1, 1):
        partitions = devices // replicas
    if partitions * replicas != devices:
        counts = f"{partitions} partitions" + (f" and {replicas} replicas" if replicas > 1 else "")
        raise InputError(f"{module} is for {counts}, not for {devices} devices", Input.OTHER_DEVICES)
    return partitions


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file", Input.UNREADABLE) from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a folder; pass a file in it", Input.UNREADABLE) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})", Input.UNREADABLE
        ) from error


def read(contents: bytes) -> Source:
    """The module in a file's contents. Raises `InputError`."""
    if contents[:2] == b"\x1f\x8b":
        try:
            contents = gzip.decompress(contents)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"the gzip file is damaged or cut short ({error}); fetch or make it again", Input.DAMAGED
            ) from error
    if not contents.strip():
        raise InputError(f"the file is empty; expected {ACCEPTED}", Input.NOT_A_MODULE)
    source = _read_plain(contents)
    if any(name in contents for name in expand.NAMES):
        source = replace(source, notes=(*source.notes, *expand.expand(source.module)))
    return source


def _read_plain(contents: bytes) -> Source:
    if contents[:4] == _BYTECODE:
        return read_bytecode(contents)
    text = as_text(contents)
    return read_binary(contents) if text is None else read_text(text)


_BYTECODE = b"ML\xefR"
_COMMENTS = re.compile(r"(?:\s+|//[^\n]*(?:\n|$))*")
_MLIR_START = re.compile(r"(builtin\.)?module\b|\"builtin\.module\"|#\w|!\w|func\.func\b|sdy\.mesh\b|\{-#")


def as_text(contents: bytes) -> str | None:
    """The contents as text, without a byte order mark, or None where they are binary."""
    if any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in contents[:4096]):
        return None
    try:
        return contents.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        # A multi-byte character that the end of the file cuts in two is still text.
        return contents[: error.start].decode() if error.reason == "unexpected end of data" else None


def read_text(text: str) -> Source:
    start = _COMMENTS.match(text)
    begin = start.end() if start else 0
    if text.startswith("HloModule", begin):
        return read_hlo_text(text[begin:])
    if _MLIR_START.match(text, begin):
        return read_mlir(text)
    shown = text[begin : begin + 60].splitlines()[0] if text[begin:] else ""
    raise InputError(f"not a module: the text begins with {shown!r}; expected {ACCEPTED}", Input.NOT_A_MODULE)


def read_mlir(source: str | bytes) -> Source:
    if isinstance(source, str) and "__elided__" in source:
        raise InputError(
            "the text leaves out the values of large constants (__elided__); "
            "print the module again without --mlir-elide-elementsattrs-if-larger "
            "and --mlir-elide-resource-strings-if-larger",
            Input.ELIDED_CONSTANTS,
        )
    try:
        return Source(jaxlib_api.parse_module(source, jaxlib_api.make_context()))
    except Exception as error:
        raise InputError(
            f"not valid StableHLO (jaxlib {jaxlib_api.jaxlib_version()}): {_first_lines(error)}; "
            "is the file complete, and was it written by a version that this jaxlib can read?",
            Input.DAMAGED,
        ) from error


def read_bytecode(contents: bytes) -> Source:
    """MLIR bytecode, or a portable artifact, which is bytecode of the versioned dialect."""
    try:
        conversion.check_bytecode(contents)
        return Source(jaxlib_api.read_bytecode(contents, jaxlib_api.make_context()))
    except InputError:
        raise
    except Exception as error:
        artifact = jaxlib_api.is_artifact(contents)
        what = "not a StableHLO portable artifact" if artifact else "not valid StableHLO"
        raise InputError(
            f"{what} that jaxlib {jaxlib_api.jaxlib_version()} can read: {_first_lines(error)}; is the file complete, "
            "and was it written by a version that this jaxlib can read?",
            Input.DAMAGED,
        ) from error


def read_hlo_text(text: str) -> Source:
    if "constant({...})" in text:
        raise InputError(
            "the HLO text leaves out the values of large constants, printed as {...}; "
            "dump it again with --xla_dump_large_constants=true in XLA_FLAGS, or dump protos (--xla_dump_hlo_as_proto)",
            Input.ELIDED_CONSTANTS,
        )
    if not re.search(r"^ENTRY\b", text, re.MULTILINE):
        raise InputError("the HLO text has no ENTRY computation: it is cut short; dump it again", Input.DAMAGED)
    # AWS Neuron's tools print a default that XLA's parser does not accept.
    text, unspecified = re.subn(r",\s*api_version=API_VERSION_UNSPECIFIED\b", "", text)
    notes = ("api_version=API_VERSION_UNSPECIFIED of custom calls is left out: it says nothing",) if unspecified else ()
    header = text[: text.find("\n")]
    sharding_text.check_all(text)
    try:
        serialized = conversion.text_to_proto(text)
    except ConversionError as error:
        raise InputError(
            f"not valid HLO text (jaxlib {jaxlib_api.jaxlib_version()}): {_first_lines(error)}; is the file complete? "
            "Text of another XLA version may not parse: dump protos instead (--xla_dump_hlo_as_proto)",
            Input.DAMAGED,
        ) from error
    partitions, replicas = _header(header, "num_partitions"), _header(header, "replica_count")
    source = from_proto(serialized, ordered=" device_ids=" in text, text=text)
    return replace(source, partitions=partitions, replicas=replicas, notes=notes)


def _header(header: str, key: str) -> int | None:
    found = re.search(rf"\b{key}=(\d+)", header)
    return int(found[1]) if found else None


def read_binary(contents: bytes) -> Source:
    exported = exported_module(contents)
    return from_proto(proto_edits.module_of(contents)) if exported is None else read_bytecode(exported)


def exported_module(contents: bytes) -> bytes | None:
    """The module in a `jax.export` artifact, a FlatBuffer that holds it as a vector of bytes; None in anything else.

    jax's own reader needs a package that jax does not install.
    """
    start = contents.find(_BYTECODE, 8)
    length = int.from_bytes(contents[start - 4 : start], "little") if start > 0 else 0
    root = int.from_bytes(contents[:4], "little")
    return contents[start : start + length] if length and root < len(contents) >= start + length else None


def from_proto(serialized: bytes, *, ordered: bool = True, text: str | None = None) -> Source:
    """A module from a serialized HloModuleProto, or from its text as well. Raises `InputError`.

    `ordered` says that the meshes of replica groups may have an order of devices of their own.
    """
    given, has_high_products = serialized, high_products.has(serialized)
    try:
        if ordered:
            serialized = proto_edits.name_device_orders(serialized)
        serialized = bitcasts.mark(serialized)
        serialized = fields.carry_over(kernel_layouts.demand_layouts(all_to_all_groups.write_out(serialized)))
        if has_high_products:
            serialized = high_products.name(serialized)
        try:
            source = _converted(serialized)
        except InputError:
            of_one_type = mixed_precision.write_out(serialized)
            if of_one_type == serialized:
                raise
            source = _converted(of_one_type)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"not a module that jaxlib {jaxlib_api.jaxlib_version()} can read: {_first_lines(error)}; "
            f"expected {ACCEPTED}",
            Input.DAMAGED,
        ) from error
    if has_high_products:
        high_products.write_out(source.module)
    if shardy_calls.NAME in given:
        shardy_calls.write_out(source.module)
    if bitcasts.BITCAST in given:
        plain = bitcasts.is_plain(conversion.proto_to_text(given) if text is None else text)
        bitcasts.write_out(source.module, plain=plain)
    return source


def _converted(serialized: bytes) -> Source:
    try:
        bytecode = conversion.proto_to_stablehlo(serialized)
    except ConversionError as error:
        if "frontend attributes" not in str(error):
            raise
        bytecode = conversion.proto_to_stablehlo(proto_edits.without_parameter_frontend_attributes(serialized))
    return read_mlir(bytecode)


def _first_lines(error: Exception, count: int = 3) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:count])[:400]


def build(source: Source, entry: Entry, devices: int | None, path: str) -> Module:
    """The module, with its number of devices settled and its shardings placed on them. Raises `InputError`."""
    partitions = entry.attributes.get("num_partitions", source.partitions)
    replicas = entry.attributes.get("num_replicas", source.replicas)
    if partitions is None or _says_less(entry, partitions, replicas):
        partitions, replicas = infer_devices(entry.main, entry.sharding_texts, entry.meshes, replicas, devices)
    if devices is not None:
        partitions = _settle(partitions, replicas or 1, devices)

    unplaced: dict[tuple[str, int], str] = {}
    places: Places = {}

    def placed(
        which: str, names: tuple[str, ...], texts: tuple[tuple[str, ...], ...], types: tuple[TensorType, ...]
    ) -> tuple[Sharding | None, ...]:
        found = []
        for n, (name, said, type_) in enumerate(zip(names, texts, types, strict=True)):
            sharding, left = _place(f"{which} {name} ({type_})", said, type_.rank, partitions, places)
            if left:
                unplaced[which, n] = left
            found.append(sharding)
        return tuple(found)

    module = Module(
        name=entry.name,
        main=entry.main,
        argument_names=entry.argument_names,
        result_names=entry.result_names,
        result_types=entry.result_types,
        argument_shardings=placed(
            "argument", entry.argument_names, entry.argument_shardings, entry.main.argument_types
        ),
        result_shardings=placed("result", entry.result_names, entry.result_shardings, entry.result_types),
        unplaced=unplaced,
        partitions=partitions,
        replicas=replicas or 1,
        path=path,
        notes=(*source.notes, *bits.notes(entry.main)),
        mlir=source.module,
    )
    return narrowed.marked(float_jumps.marked(module))


def _says_less(entry: Entry, partitions: int, replicas: int | None) -> bool:
    """Whether a module with manual regions over several devices says that it is for one, as JAX writes where there are
    no devices (`AbstractMesh`): the regions' mesh knows better."""
    if partitions != 1 or replicas not in (None, 1) or all(mesh.size == 1 for mesh in entry.meshes):
        return False
    return any(op.name == "sdy.manual_computation" for op in operations(entry.main))


Places = dict[tuple[tuple[str, ...], int], tuple[Sharding | None, str]]
"""What annotations of a tensor of so many dimensions say, each read once: a module has a handful of them, and each is a
table of all devices."""


def _place(
    what: str, texts: tuple[str, ...], rank: int, devices: int | None, places: Places
) -> tuple[Sharding | None, str]:
    """The placement that annotations say, and the text of one that says none. Raises `InputError` where they differ."""
    if (texts, rank) not in places:
        places[texts, rank] = _read_place(what, texts, rank, devices)
    return places[texts, rank]


def _read_place(what: str, texts: tuple[str, ...], rank: int, devices: int | None) -> tuple[Sharding | None, str]:
    found: list[Sharding] = []
    left = ""
    for text in texts:
        try:
            sharding = parse_sharding(text, [rank], devices)[0]
        except InputError as error:
            raise error.within(what) from error
        if sharding is None:
            left = text
        else:
            found.append(sharding)
    if not all(same(found[0], other) for other in found) or (found and left and "unknown" not in left):
        raise InputError(
            f"{what}: the module places it in two ways: {' and '.join(texts)}; leave one out", Annotation.CONTRADICTION
        )
    return (found[0] if found else None), left
