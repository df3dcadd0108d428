"""A module in any form, as what a device runs: HLO text as it is, a serialized HloModuleProto (or HloProto) as text,
and what XLA has not partitioned yet (StableHLO with shardings or `shard_map`, HLO with annotations) as the XLA in
jaxlib partitions it, with the shardings that it has then."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.module import Computation, HloModule
from hlo_verify.hlo.shapes import Array, leaves
from hlo_verify.hlo.shardings import Shardings, each
from hlo_verify.hlo.text import parse_hlo

if TYPE_CHECKING:
    from hlo_verify.sources.modules import Source

_HLO = re.compile(r"\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*HloModule\b", re.DOTALL)
_MLIR = re.compile(r"\s*(?://[^\n]*\n\s*)*(?:module\b|#\w|func\.func\b|\"builtin\.module\"|!\w)")
_GLOBAL = re.compile(r'custom_call_target="(?:Sharding|SPMDFullToShardShape|SPMDShardToFullShape|xla\.sdy\.\w+)"')
_BYTECODE = b"ML\xefR"


@dataclass(frozen=True, slots=True)
class Read:
    """A module; `shardings` of its parameters and results where XLA partitioned it here."""

    module: HloModule
    shardings: Shardings | None = None


def read(given: Source) -> Read:
    """A module from a path, a text, bytes, or what JAX lowered or traced. Raises InputError."""
    contents = _contents(given)
    text = _hlo_text(contents)
    if text is None:
        return _partitioned(contents)
    module = parse_hlo(text)
    is_of_many = int(module.header.get("num_partitions", "1")) > 1
    return _partitioned(contents) if is_of_many and _GLOBAL.search(text) else Read(module)


def as_it_is(given: Source) -> HloModule:
    """A module of HLO, partitioned or not. Raises InputError."""
    text = _hlo_text(_contents(given))
    if text is None:
        raise InputError("the module is StableHLO, and HLO is asked for", Input.NOT_A_MODULE)
    return parse_hlo(text)


def annotated_shardings(module: HloModule) -> Shardings:
    """How a module's own text says that its parameters and results lie; empty texts where it does not."""
    return Shardings(tuple(_of_parameters(module.entry)), _of_results(module.entry))


def _hlo_text(contents: str | bytes) -> str | None:
    """A module as HLO text; None of StableHLO."""
    text = contents if isinstance(contents, str) else _decoded(contents)
    if text is not None:
        return None if _MLIR.match(text) and not _HLO.match(text) else text
    assert isinstance(contents, bytes)
    if contents.startswith(_BYTECODE):
        return None
    from hlo_verify.passes.load import conversion  # reading HLO text needs none of these
    from hlo_verify.passes.load.load import exported_module
    from hlo_verify.passes.read.proto_edits import module_of

    if exported_module(contents) is not None:
        return None
    try:
        return conversion.proto_to_text(module_of(contents))
    except conversion.ConversionError as error:
        raise InputError(f"jaxlib does not read this module: {error}", Input.DAMAGED) from error


def is_partitioned(path: Path) -> bool:
    """Whether a file is read as it is. Raises InputError for one that cannot be read."""
    contents = _file(path)
    text = _decoded(contents)
    return not contents.startswith(_BYTECODE) if text is None else not (_MLIR.match(text) or _GLOBAL.search(text))


def text_of(given: str | Path) -> str:
    """A file's text, or a text as it is. Raises InputError for what is neither."""
    contents = given if isinstance(given, str) and "\n" in given else _file(Path(given))
    text = contents if isinstance(contents, str) else _decoded(contents)
    if text is None:
        raise InputError(f"{given} is no text: give the file as XLA prints it", Input.NOT_A_MODULE)
    return text


def _contents(given: Source) -> str | bytes:
    if isinstance(given, str) and "\n" in given:
        return given
    if isinstance(given, str | Path):
        return _file(Path(given))
    if isinstance(given, bytes):
        return given
    from hlo_verify.sources.modules import contents_of

    return contents_of(given)


def _file(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror or error}", Input.UNREADABLE).within(str(path)) from error
    try:
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is a damaged gzip file: {error}", Input.DAMAGED) from error


def _decoded(data: bytes) -> str | None:
    """A text; None of what holds other bytes than texts do."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _partitioned(contents: str | bytes) -> Read:
    """What the XLA in jaxlib makes of a module, and how it takes parameters and results to lie."""
    from hlo_verify.xla.partition import partition

    with partition(contents) as job:
        made = job.wait()
        annotated = parse_hlo(made.annotated.read_text())
        module = parse_hlo(made.partitioned.read_text())
    return Read(module, annotated_shardings(annotated))


def _of_parameters(entry: Computation) -> Iterator[str]:
    """The shardings of all arrays among the parameters; an empty text where one is not known."""
    for _, parameter in sorted(entry.parameters.items()):
        yield from _said(parameter.attributes.get("sharding"), sum(1 for _ in leaves(parameter.shape)))


def _of_results(entry: Computation) -> tuple[str, ...]:
    root = entry.root
    if root is None:
        return ()
    said = root.attributes.get("sharding")
    if said is None and root.opcode == "tuple" and all(isinstance(one.shape, Array) for one in root.sources):
        return tuple(one.attributes.get("sharding", "") for one in root.sources)
    return tuple(_said(said, sum(1 for _ in leaves(root.shape))))


def _said(text: str | None, count: int) -> list[str]:
    found = each(text) if text else [""]
    return found * count if len(found) == 1 else found
