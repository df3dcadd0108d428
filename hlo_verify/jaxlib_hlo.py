"""The private entry points of jaxlib that read HLO; those that read MLIR take four times as long to import."""

from __future__ import annotations

KNOWN_GOOD = "jaxlib 0.10.2 (Python 3.11) and jaxlib 0.12.0.1 (Python 3.12 and newer)"


def unsuitable(error: Exception) -> ImportError:
    """What is said of a jaxlib that lacks an entry point."""
    try:
        from importlib.metadata import version

        found = f"jax {version('jax')} with jaxlib {version('jaxlib')}"
    except Exception:
        found = "no jaxlib at all"
    return ImportError(
        f"hlo-verify reads modules through private entry points of jaxlib, and one of them is missing here ({error}).\n"
        f"Found {found}; known to work: {KNOWN_GOOD}. Install one of those."
    )


try:
    from jaxlib._hlo import HloModule as _HloModule
    from jaxlib._hlo import hlo_module_from_text as _hlo_module_from_text
    from jaxlib._jax.mlir import hlo_to_stablehlo as _hlo_to_stablehlo
    from jaxlib.version import __version__ as _version

    _hlo_module_from_proto = _HloModule.from_serialized_hlo_module_proto
    _hlo_module_to_proto = _HloModule.as_serialized_hlo_module_proto
except (ImportError, AttributeError) as error:
    raise unsuitable(error) from error


def jaxlib_version() -> str:
    return str(_version)


def hlo_text_to_proto(text: str) -> bytes:
    """A serialized HloModuleProto from HLO text. Raises an exception of jaxlib's."""
    return bytes(_hlo_module_to_proto(_hlo_module_from_text(text)))


def proto_again(proto: bytes) -> bytes:
    """A serialized HloModuleProto as XLA writes it after reading it. Raises an exception of jaxlib's."""
    return bytes(_hlo_module_to_proto(_hlo_module_from_proto(proto)))


def proto_to_text(proto: bytes) -> str:
    """HLO text from a serialized HloModuleProto. Raises an exception of jaxlib's."""
    return str(_hlo_module_from_proto(proto).to_string())


def proto_to_stablehlo(proto: bytes) -> bytes:
    """StableHLO bytecode from a serialized HloModuleProto; entry tuples come out flat.

    Shardings and source locations survive, the numbers of replicas and partitions do not.
    Raises an exception of jaxlib's.
    """
    return bytes(_hlo_to_stablehlo(proto))
