"""The private entry points of jax and jaxlib that this project leans on, in one place.

They are looked up when this module is imported, so that an unsuitable jaxlib gives one
clear error instead of an AttributeError in the middle of a proof.
"""

from __future__ import annotations

import functools
from typing import Any

KNOWN_GOOD = "jaxlib 0.10.2 (Python 3.11) and jaxlib 0.12.0.1 (Python 3.12 and newer)"

try:
    from jax._src.interpreters.mlir import make_ir_context as _make_ir_context
    from jaxlib._hlo import HloModule as _HloModule
    from jaxlib._hlo import HloSharding as _HloSharding
    from jaxlib._hlo import hlo_module_from_text as _hlo_module_from_text
    from jaxlib._jax.mlir import hlo_to_stablehlo as _hlo_to_stablehlo
    from jaxlib.mlir import ir as _ir
    from jaxlib.mlir.dialects import sdy as _sdy
    from jaxlib.mlir.dialects import stablehlo as _stablehlo
    from jaxlib.version import __version__ as _version

    _hlo_module_from_proto = _HloModule.from_serialized_hlo_module_proto
    _hlo_module_to_proto = _HloModule.as_serialized_hlo_module_proto
    _named_to_tiled = _HloSharding.v3_to_v2_sharding
    _deserialize_portable_artifact = _stablehlo.deserialize_portable_artifact
    _ = _sdy.TensorShardingAttr, _sdy.MeshAttr, _stablehlo.ReplicaGroupMeshAxesAttr
except (ImportError, AttributeError) as error:
    try:
        from importlib.metadata import version

        _found = f"jax {version('jax')} with jaxlib {version('jaxlib')}"
    except Exception:
        _found = "no jaxlib at all"
    raise ImportError(
        f"hlo-verify reads modules through private entry points of jaxlib, and one of them is missing here ({error}).\n"
        f"Found {_found}; known to work: {KNOWN_GOOD}. Install one of those."
    ) from error

# The bindings' own types change from version to version: nothing here is checked against them.
ir: Any = _ir
sdy: Any = _sdy
stablehlo: Any = _stablehlo

__all__ = [
    "KNOWN_GOOD",
    "artifact_to_module",
    "hlo_sharding",
    "hlo_text_to_proto",
    "ir",
    "jaxlib_version",
    "make_context",
    "parse_module",
    "proto_to_stablehlo",
    "proto_to_text",
    "sdy",
    "shared_context",
    "stablehlo",
]


def jaxlib_version() -> str:
    return str(_version)


def make_context() -> Any:
    """An MLIR context with the dialects func, stablehlo, chlo, mhlo and sdy."""
    return _make_ir_context()


@functools.cache
def shared_context() -> Any:
    """One context for attributes that are read by themselves (a sharding's text)."""
    return make_context()


def parse_module(source: str | bytes, context: Any) -> Any:
    """An MLIR module from StableHLO text or bytecode. Raises `ir.MLIRError`."""
    with context:
        return ir.Module.parse(source)


def artifact_to_module(artifact: bytes, context: Any) -> Any:
    """An MLIR module from a StableHLO portable artifact. Raises ValueError."""
    messages: list[str] = []

    def keep(diagnostic: Any) -> bool:  # instead of a line on stderr
        messages.append(str(diagnostic.message))
        return True

    handler = context.attach_diagnostic_handler(keep)
    try:
        return _deserialize_portable_artifact(context, artifact)
    except Exception as error:
        raise ValueError("; ".join(messages) or str(error)) from error
    finally:
        handler.detach()


def hlo_text_to_proto(text: str) -> bytes:
    """A serialized HloModuleProto from HLO text. Raises an exception of jaxlib's."""
    return bytes(_hlo_module_to_proto(_hlo_module_from_text(text)))


def proto_to_text(proto: bytes) -> str:
    """HLO text from a serialized HloModuleProto. Raises an exception of jaxlib's."""
    return str(_hlo_module_from_proto(proto).to_string())


def proto_to_stablehlo(proto: bytes) -> bytes:
    """StableHLO bytecode from a serialized HloModuleProto; entry tuples come out flat.

    Shardings and source locations survive, the numbers of replicas and partitions do not.
    Raises an exception of jaxlib's.
    """
    return bytes(_hlo_to_stablehlo(proto))


def hlo_sharding(text: str) -> Any:
    """An HloSharding, no tuple's, in version 1 or 2, from text that `sharding_text.leaves` gave.

    Other text may abort the process; so do the methods of a tuple's sharding. Raises an exception of jaxlib's.
    """
    sharding = _HloSharding.from_string(text)
    return _named_to_tiled(sharding) if "mesh" in str(sharding) else sharding
