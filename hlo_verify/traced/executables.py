"""What the backend made of a function, as the executable that runs has it: its module, and where its arrays lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.traced.stages import contents, devices_of

Placements = tuple[tuple[str, ...], tuple[str, ...]]
"""Where arguments and results lie, in the order of the module: texts of HloShardings."""

_DUMPS: dict[str, str | bool] = {"xla_dump_hlo_pass_re": "spmd|shardy|sharding", "xla_dump_large_constants": True}
"""Options of a compilation that writes the module around XLA's partitioner."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was lowered, and the module that runs: `text` is that of it without source lines, which two runs of a
    program have alike."""

    lowered: jax.stages.Lowered
    proto: bytes
    text: str
    devices: int
    backend: str
    """Its name and version."""
    placements: Placements | None


def identity_of(compiled: jax.stages.Compiled) -> Any:
    """One object for all calls that run the same executable; it may be referred to weakly."""
    inner: Any = compiled
    return inner._executable


def made(lowered: jax.stages.Lowered, compiled: jax.stages.Compiled) -> Made:
    """What became of a function. Raises `InputError` where that is not one module."""
    from jaxlib._hlo import HloPrintOptions

    inner: Any = lowered
    if inner._lowering.compile_args["mut"]:
        raise InputError(
            "the function writes to references (jax.new_ref), which are no results of it, and are not followed: take "
            "and return arrays in their place",
            Input.UNSUPPORTED_MODULE,
        )
    proto = contents(compiled)
    assert isinstance(proto, bytes)
    options: Any = HloPrintOptions()
    options.print_metadata, options.print_large_constants = False, True
    executable: Any = compiled.runtime_executable()
    text = str(executable.hlo_modules()[0].to_string(options))
    backend = f"{executable.client.platform} {executable.client.platform_version}"
    return Made(lowered, proto, text, devices_of(compiled) or 1, backend, _placements(lowered, compiled))


def _placements(lowered: jax.stages.Lowered, compiled: jax.stages.Compiled) -> Placements | None:
    """Where XLA puts what the module takes and returns.

    None where that is more than the function takes, so that positions differ (tokens of ordered effects, constants,
    references), or where devices are not in one order.
    """
    inner: Any = lowered
    told, lowering = inner._lowering.compile_args, inner._lowering
    taken, returned = (jax.tree.leaves(each) for each in (compiled.input_shardings, compiled.output_shardings))
    if told["ordered_effects"] or told["mut"] or lowering.const_args:
        return None
    if len({tuple(sharding._device_assignment) for sharding in (*taken, *returned)}) > 1:
        return None
    pairs = (told["global_in_avals"], taken), (told["global_out_avals"], returned)
    if any(len(avals) != len(shardings) for avals, shardings in pairs):
        return None
    arguments, results = (tuple(map(_text, avals, shardings)) for avals, shardings in pairs)
    return arguments, results


def _text(aval: Any, sharding: Any) -> str:
    """A sharding as XLA writes it, of the array that the module has: keys of random numbers are arrays of numbers."""
    dimensions = aval.ndim
    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        of: Any = jax.ShapeDtypeStruct
        dimensions = jax.eval_shape(jax.random.key_data, of(aval.shape, aval.dtype)).ndim
    return str(sharding._to_xla_hlo_sharding(dimensions))


def dump(lowered: jax.stages.Lowered, folder: str) -> bool:
    """Have the backend compile once more and write what its partitioner was given and made; whether it did."""
    try:
        lowered.compile(compiler_options={"xla_dump_to": folder, **_DUMPS})
    except Exception:  # a backend without these options: there is nothing to read then
        return False
    return any(Path(folder).iterdir())
