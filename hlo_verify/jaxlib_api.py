"""The private entry points of jaxlib that this project leans on, in one place.

They are looked up when this module is imported, so that an unsuitable jaxlib gives one clear error instead of an
AttributeError in the middle of a proof. jax itself, which takes longer to import than all else together, is not needed.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from hlo_verify.jaxlib_hlo import (
    KNOWN_GOOD,
    hlo_text_to_proto,
    jaxlib_version,
    proto_again,
    proto_to_stablehlo,
    proto_to_text,
    unsuitable,
)

try:
    from jaxlib._hlo import HloSharding as _HloSharding
    from jaxlib.mlir import ir as _ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdyMpmd
    from jaxlib.mlir.dialects import sdy as _sdy
    from jaxlib.mlir.dialects import stablehlo as _stablehlo

    _named_to_tiled = _HloSharding.v3_to_v2_sharding
    _deserialize_portable_artifact = _stablehlo.deserialize_portable_artifact
    _ = _sdy.TensorShardingAttr, _sdy.MeshAttr, _stablehlo.ReplicaGroupMeshAxesAttr
    _registers = (
        _sdy.register_dialect,
        _sdyMpmd.register_dialect,
        _mlirHlo.register_mhlo_dialect,
        _chlo.register_dialect,
        _stablehlo.register_dialect,
    )
    _register_upstream = _jax_mlir_ext.register_dialects
    _ThreadPool = _ir.ThreadPool
except (ImportError, AttributeError) as error:
    raise unsuitable(error) from error

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
    "is_artifact",
    "jaxlib_version",
    "make_context",
    "parse_module",
    "proto_again",
    "proto_to_stablehlo",
    "proto_to_text",
    "read_bytecode",
    "sdy",
    "shared_context",
    "stablehlo",
]


class _Context(_ir.Context):
    """A context that has no dialects of its own accord, as `ir.Context` has."""

    def __init__(self) -> None:
        super(_ir.Context, self).__init__()


@functools.cache
def _shared_by_contexts() -> tuple[Any, Any]:
    """The dialects of MLIR itself, such as func, and the threads that contexts use."""
    registry = _ir.DialectRegistry()
    _register_upstream(registry)
    return registry, _ThreadPool()


def make_context() -> Any:
    """An MLIR context with the dialects func, stablehlo, chlo, mhlo, sdy and mpmd, as `jax` makes it for itself."""
    context = _Context()
    registry, threads = _shared_by_contexts()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.set_thread_pool(threads)
    for register in _registers:
        register(context)
    return context


_RENEWED = 1000
"""So many attributes are read in one context, which forgets none."""

_read = itertools.count()


def shared_context() -> Any:
    """A context for attributes that are read by themselves (a sharding's text); one takes 10 ms to make."""
    return _context(next(_read) // _RENEWED)


@functools.lru_cache(maxsize=1)
def _context(number: int) -> Any:
    return make_context()


def parse_module(source: str | bytes, context: Any) -> Any:
    """An MLIR module from StableHLO text or bytecode. Raises `ir.MLIRError`."""
    with context:
        return ir.Module.parse(source)


def is_artifact(bytecode: bytes) -> bool:
    """Whether MLIR bytecode is a StableHLO portable artifact, by the name of what wrote it."""
    return bytecode[5:].startswith(b"StableHLO")


def read_bytecode(bytecode: bytes, context: Any) -> Any:
    """An MLIR module from bytecode, or from a StableHLO portable artifact. Raises `ir.MLIRError` or ValueError."""
    read = artifact_to_module if is_artifact(bytecode) else parse_module
    return read(bytecode, context)


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


def hlo_sharding(text: str) -> Any:
    """An HloSharding, no tuple's, in version 1 or 2, from text that `sharding_text.leaves` gave.

    Other text may abort the process; so do the methods of a tuple's sharding. Raises an exception of jaxlib's.
    """
    sharding = _HloSharding.from_string(text)
    return _named_to_tiled(sharding) if "mesh" in str(sharding) else sharding
