"""The child process of `partition`: read a module, and have XLA partition it under the parent's XLA_FLAGS.

`python -m hlo_verify.xla.partition_child FOLDER MODULE [DEVICES]` writes `error` to FOLDER, the code and message for
the user, where it cannot go on. A file `shardings` in FOLDER (pickled by the parent)
holds shardings to put on the module first. The parent ends it once XLA has dumped what it is after.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.canonicalize import entry
from hlo_verify.passes.load import load
from hlo_verify.program.depth import deeply
from hlo_verify.program.ir import Module
from hlo_verify.sources.dump_pairs import dump_flags
from hlo_verify.sources.shardings_file import Shardings
from hlo_verify.xla.annotate import annotate
from hlo_verify.xla.partition import MAX_DEVICES

_LOWER = (
    "lower it with shardings over a mesh (jax.jit(f, in_shardings=..., out_shardings=...)), give them with "
    "--shardings FILE"
)
_SHARDY = re.compile(r"\bsdy\.(sharding|manual_computation|reshard)|xla\.sdy\.")
_GSPMD = re.compile(r"\bmhlo\.sharding\b|@Sharding\b|@SPMDFullToShardShape\b")


def main(folder: Path, path: Path, devices: int | None) -> int:
    try:
        _partition(folder, path, devices)
    except InputError as error:
        (folder / "error").write_text(json.dumps({"code": error.code, "message": str(error)}))
        return 1
    return 0


@deeply
def _partition(folder: Path, path: Path, devices: int | None) -> None:
    contents = load.read_file(path)
    source = load.read(contents)
    if (folder / "shardings").is_file():
        _annotate(load.read(contents), source, pickle.loads((folder / "shardings").read_bytes()), devices)
    bytecode, shardy = _bytecode(source.module), uses_shardy(source.module)
    module = load.build(source, entry.canonicalize(source.module), devices, str(path))
    _check(module)
    _compile(bytecode, module, shardy)


def _annotate(copy: load.Source, source: load.Source, given: Shardings, devices: int | None) -> None:
    """Put shardings on the source; `copy` is for reading alone, which rewrites a module."""
    text = _text(source.module)
    shardy = bool(_SHARDY.search(text)) or (not _GSPMD.search(text) and _are_specs(given))
    module = load.build(copy, entry.canonicalize(copy.module), None, "")
    if devices is not None and given.devices not in (None, devices):
        raise InputError(f"{given.path} is for {given.devices} devices, not for {devices}", Input.OTHER_DEVICES)
    annotate(source.module, given.apply(module), given, shardy)


def _are_specs(given: Shardings) -> bool:
    return not any(isinstance(entry, str) for entry in (*given.arguments.values(), *given.results.values()))


def _text(module: Any) -> str:
    return str(module.operation.get_asm(large_elements_limit=16))


def _check(module: Module) -> None:
    count = module.partitions
    if count is None or count == 1:
        known = "does not say for how many devices it is" if count is None else "is for one device"
        raise InputError(
            f"the module {known}, so there is nothing to partition: {_LOWER}, or pass the partitioned module too",
            Input.NOTHING_TO_PARTITION,
        )
    if count * module.replicas > MAX_DEVICES:
        raise InputError(
            f"the module is for {count * module.replicas} devices, and XLA's CPU client partitions for "
            f"{MAX_DEVICES} at most: compile the program with {dump_flags('DIR')} where it runs, and pass DIR",
            Input.TOO_MANY_DEVICES,
        )


def _bytecode(module: Any) -> bytes:
    """Taken before anything rewrites the module."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def uses_shardy(module: Any) -> bool:
    """Whether JAX lowered the module for Shardy, not for GSPMD.

    A mesh alone says nothing: replica groups have them too.

    Raises `InputError` for a module without any sharding: every device would compute all of it.
    """
    text = _text(module)
    if _SHARDY.search(text):
        return True
    if _GSPMD.search(text):
        return False
    raise InputError(
        f"the module has no sharding annotations, so there is nothing to partition: {_LOWER}, or pass the partitioned "
        "module too",
        Input.NOTHING_TO_PARTITION,
    )


def _compile(bytecode: bytes, module: Module, shardy: bool) -> None:
    """Compile for `module.partitions` devices, on a client with one: devices matter to XLA only once the module is
    compiled and loaded, and a client with many takes a second to make.

    Results and arguments without a sharding are left to XLA, as JAX does. Raises `InputError` for whatever XLA raises;
    where it got past the partitioner (it always fails to load for devices that are not there), the parent has ended
    this process or takes no notice.
    """
    from jaxlib import xla_client

    assert module.partitions is not None
    client: Any = xla_client.make_cpu_client(num_devices=1)
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = module.replicas, module.partitions
    build = options.executable_build_options
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, shardy
    build.debug_options.xla_backend_optimization_level = 0
    build.allow_spmd_sharding_propagation_to_parameters = [s is None for s in module.argument_shardings]
    build.allow_spmd_sharding_propagation_to_output = [s is None for s in module.result_shardings]
    try:
        client.compile_and_load(bytecode, client.devices(), options)
    except Exception as error:
        said = " ".join(str(error).split())[:600]
        hint = "if it is partitioned already, pass the logical module before it"
        raise InputError(f"XLA does not partition the module; {hint}. XLA says: {said}", Input.XLA_REFUSES) from error


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if sys.argv[3] else None))
