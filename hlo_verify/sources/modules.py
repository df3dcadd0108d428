"""What a module may be given as: a path, the contents of a file, a JAX function, or a module that is read already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load import conversion
from hlo_verify.sources import shardings_file

if TYPE_CHECKING:
    from hlo_verify.program.ir import Module


class Lowered(Protocol):
    """A lowered or compiled JAX function: what `jax.jit(f).lower(...)` returns."""

    def as_text(self) -> str: ...


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
    if devices is None and not is_file(source):
        from hlo_verify.traced import stages

        devices = stages.devices_of(source)
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
    if found.arguments or found.assumed:
        raise InputError(
            f"{path}: what there is to say of arguments, shardings says, not results", Input.SHARDINGS_FILE
        )
    return found


def with_all_arguments(logical: Source, partitioned: Source) -> tuple[Source, Source]:
    """Two functions of JAX with the same arguments in their modules: `jax.jit` leaves out those that a function does
    not use, and the one may use others than the other. All else is given back as it is.

    Raises `InputError` where it is too late: of functions that are lowered already.
    """
    if any(is_file(source) or _is_read(source) for source in (logical, partitioned)):
        return logical, partitioned  # without importing JAX, which takes as long as a small proof
    from hlo_verify.traced import stages

    first, second = stages.stage_of(logical), stages.stage_of(partitioned)
    if first is None or second is None:
        return logical, partitioned
    return cast("tuple[Lowered | Traced, Lowered | Traced]", stages.with_equal_arguments(first, second))


def _is_read(source: object) -> bool:
    """Whether a module is given as one that is read already."""
    from hlo_verify.program.ir import Module

    return isinstance(source, Module)


def is_file(source: object) -> bool:
    """Whether a module is given as a path, or as the contents of a file."""
    return isinstance(source, str | bytes | Path)


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
    from hlo_verify.traced import stages

    stage = stages.stage_of(source)
    if stage is not None:
        return stages.contents(stage)
    if callable(source):
        kind = "a jitted function" if hasattr(source, "lower") else "a function"
        raise InputError(f"not a module: {kind}; pass it to hlo_verify.check with its arguments", Input.USAGE)
    raise InputError(
        f"not a module: a {type(source).__name__}; pass a path, the module's text or bytes, or a lowered JAX function",
        Input.USAGE,
    )
