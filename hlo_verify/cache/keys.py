"""By which content a verdict is found again: all that it may depend on, and nothing else."""

from __future__ import annotations

import sys
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

DECIDE = ("flatbuffers", "jax", "jaxlib", "ml_dtypes", "numpy", "python-flint", "z3-solver")
"""What hlo-verify leans on when it decides: another version of it is another tool."""

_PACKAGE = Path(__file__).resolve().parents[1]
_DIGEST_BYTES = 32


def key(*parts: str | bytes) -> bytes:
    """A digest of parts in their order. Parts are kept apart: ("ab", "c") is not ("a", "bc")."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()


@cache
def this_tool() -> str:
    """What decides here: the source of hlo-verify, by its content, Python, and the versions of what it leans on."""
    return key(_source(), sys.version, *(f"{name} {_version(name)}" for name in DECIDE)).hex()


def homes() -> list[Path]:
    """The folders of the package: the passes stand in another one in a checkout (docs/decisions/packaging.md)."""
    spec = find_spec("hlo_verify.passes")
    return [_PACKAGE, *map(Path, (spec and spec.submodule_search_locations) or ())]


def files_of_this_tool() -> dict[str, Path]:
    """Its files by name, such as `passes/prove/prove.py`, wherever it is installed."""
    files: dict[str, Path] = {}
    for home in map(Path.resolve, homes()):
        files |= {f"{home.name}/{path.relative_to(home).as_posix()}": path for path in home.rglob("*.py")}
    return files


def _source() -> bytes:
    files = files_of_this_tool()
    return key(*(part for name in sorted(files) for part in (name, files[name].read_bytes())))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
