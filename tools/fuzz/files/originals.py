"""The modules of `testdata/` in every format that hlo-verify reads."""

from __future__ import annotations

import functools
import gzip
import io
from dataclasses import dataclass
from pathlib import Path

from hlo_verify import jaxlib_api
from hlo_verify.passes.load import load
from hlo_verify.passes.read import proto_edits

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
FORMATS = ("hlo", "proto", "wrapped", "mlir", "bytecode", "artifact")
"""`wrapped` is an HloProto around the HloModuleProto."""


@dataclass(frozen=True, slots=True)
class Original:
    """A module of a fixture: `logical.hlo.gz`, or one of those for the devices; and the other half of the pair."""

    path: Path
    other: Path

    @property
    def is_logical(self) -> bool:
        return self.path.name.startswith("logical")


@functools.cache
def originals(largest: int) -> tuple[Original, ...]:
    """Those of fixtures whose compressed files have at most so many bytes, in an order that stays."""
    found = []
    for logical in sorted(TESTDATA.glob("*/logical.hlo.gz")):
        for path in sorted(logical.parent.glob("*.hlo.gz")):
            other = logical.parent / "partitioned.hlo.gz" if path == logical else logical
            if max(path.stat().st_size, other.stat().st_size) <= largest:
                found.append(Original(path, other))
    return tuple(found)


@functools.cache
def contents(path: Path, form: str) -> bytes:
    """A module in a format."""
    text = gzip.decompress(path.read_bytes())
    if form == "hlo":
        return text
    serialized = jaxlib_api.hlo_text_to_proto(text.decode())
    if form == "proto":
        return serialized
    if form == "wrapped":
        return proto_edits.field_bytes(1, serialized)
    module = load.read(text).module
    if form == "mlir":
        return str(module.operation.get_asm(enable_debug_info=True)).encode()
    if form == "artifact":
        version = jaxlib_api.stablehlo.get_minimum_version()
        try:
            return bytes(jaxlib_api.stablehlo.serialize_portable_artifact_str(str(module), version))
        except Exception:  # it has operations that are not StableHLO's, or newer ones
            pass
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()
