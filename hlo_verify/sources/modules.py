"""What a module may be given as: a path, the contents of a file, a JAX function, or a module that is read already."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load import conversion
from hlo_verify.sources import shardings_file

if TYPE_CHECKING:
    from hlo_verify.program.ir import Module


class Lowered(Protocol):
    """A lowered JAX function: what `jax.jit(f).lower(...)` returns."""

    def as_text(self, *, debug_info: bool = False) -> str: ...


class Traced(Protocol):
    """A traced JAX function: what `jax.jit(f).trace(...)` returns."""

    def lower(self, *, lowering_platforms: tuple[str, ...]) -> Any: ...


class Jitted(Protocol):
    """What `jax.jit(f)` returns."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...


Source: TypeAlias = "str | bytes | Path | Lowered | Traced | Module"


def contents_of(source: Source) -> bytes:
    """The contents of a module's file."""
    from hlo_verify.passes.load.load import read_file
    from hlo_verify.program.ir import Module

    if isinstance(source, Module):
        raise InputError("a witness holds both modules as files: pass paths or contents", Input.USAGE)
    contents = given_as(source)
    if isinstance(contents, Path):
        return read_file(contents)
    return contents.encode() if isinstance(contents, str) else contents


def module_of(source: Source, devices: int | None) -> Module:
    """The module, read; for so many devices where it does not say itself."""
    from hlo_verify.program.ir import Module

    if isinstance(source, Module):
        return source
    contents = given_as(source)
    if isinstance(contents, Path) and conversion.needed(contents):
        conversion.start()
    from hlo_verify.passes.load.load import load  # takes half a second, and the process starts meanwhile

    return load(contents, devices=devices)


def demanded_of_results(path: str | Path | None) -> shardings_file.Shardings | None:
    """What a shardings file says of results, of which it says something alone."""
    if path is None:
        return None
    found = shardings_file.read_shardings(path)
    if found.arguments:
        raise InputError(f"{path}: of arguments, shardings says where they lie, not results", Input.SHARDINGS_FILE)
    return found


def with_all_arguments(logical: Source, partitioned: Source) -> tuple[Source, Source]:
    """Two traced functions with all their arguments, used or not: `jax.jit` leaves out those that a function does not
    use, and the one may use others than the other. All else is given back as it is."""
    if not (_is_traced(logical) and _is_traced(partitioned)):
        return logical, partitioned
    return _with_all(logical), _with_all(partitioned)


def _is_traced(source: object) -> bool:
    return hasattr(source, "lower") and not (hasattr(source, "trace") or hasattr(source, "as_text"))


def _with_all(traced: Any) -> Any:
    """A traced function with `keep_unused`, which there is no other way to say once it is traced."""
    parameters = getattr(traced, "_params", None)
    if not isinstance(parameters, dict) or "keep_unused" not in parameters:
        return traced
    copied = copy(traced)
    copied._params, copied._lojax = {**parameters, "keep_unused": True}, None
    return copied


def program_of_ranks(sources: list[Source] | tuple[Source, ...]) -> Module:
    """The program of which each rank has a graph."""
    from hlo_verify.passes.load.merge_ranks import merged

    if not sources:
        raise InputError("the list of the ranks' graphs is empty", Input.USAGE)
    return merged([module_of(source, None) for source in sources])


def given_as(source: Source) -> str | bytes | Path:
    """A path or the contents of a file."""
    if isinstance(source, str):
        return source if "\n" in source else Path(source)
    if isinstance(source, bytes | Path):
        return source
    if not hasattr(source, "as_text") and hasattr(source, "lower"):
        if hasattr(source, "trace"):
            raise InputError(
                "not a module: a jitted function; pass it to hlo_verify.check with its arguments", Input.USAGE
            )
        source = source.lower(lowering_platforms=("cpu",))  # the XLA in jaxlib partitions for CPUs
    if hasattr(source, "as_text"):
        return str(source.as_text(debug_info=True))
    raise InputError(
        f"not a module: a {type(source).__name__}; pass a path, the module's text or bytes, or a lowered JAX function",
        Input.USAGE,
    )
