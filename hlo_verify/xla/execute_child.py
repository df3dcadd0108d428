"""The child process of `hlo_verify.xla.execute`: compile modules with XLA and run them on its virtual CPU devices.

`python -m hlo_verify.xla.execute_child DESCRIPTOR DEVICES` answers requests (contents, replicas, arguments, per
device, logical, devices) on the connection that the descriptor is with (results, ""), or with ([], message).

A module that every device runs is made the body of one manual region over all devices, so that XLA itself gives
`partition_id`, channels and groups their meaning. Replica groups that are written as axes of a mesh are spelled out as
lists first: XLA's conversion from StableHLO loses the order of a mesh's devices.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax._src.sharding_impls import GSPMDSharding
from jax.extend.backend import get_backend
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.canonicalize.attributes import Attributes
from hlo_verify.passes.canonicalize.dense import numpy_dtype
from hlo_verify.passes.canonicalize.entry import entry_function
from hlo_verify.passes.canonicalize.inline import Builder
from hlo_verify.passes.load.load import read

Array = npt.NDArray[Any]

_KEPT = 16
"""Compiled modules that are kept for another run."""
_LAPACK = b"lapack_"
"""What names of its calls begin with, in any form of a module."""
_PROGRAM, _MESH, _AXIS = "hlo_verify_program", "hlo_verify_devices", "hlo_verify_device"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module that can be run on devices; `types` are those of its arguments, without the dimension for devices."""

    executable: Any
    devices: tuple[Any, ...]
    types: tuple[Any, ...]
    is_global: bool

    def placement(self, sharding: Any) -> Any:
        return GSPMDSharding(self.devices, sharding)


class Runner:
    """Compiles for as many of this process's devices as it is asked to, and runs."""

    def __init__(self, devices: int) -> None:
        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]  # or 64 bits are placed as 32
        self.devices = jax.devices()[:devices]
        self.compiled: dict[tuple[int, int | None, bytes], Compiled] = {}

    def run(
        self,
        contents: bytes,
        replicas: int | None,
        arguments: Sequence[Array],
        per_device: bool,
        logical: bool,
        count: int,
    ) -> list[Array]:
        """See `hlo_verify.xla.execute.Executor.run`. Raises whatever jaxlib raises."""
        devices = self.devices[: 1 if logical else count]
        key = len(devices), replicas, hashlib.sha256(contents).digest()
        found = self.compiled.pop(key, None) or compile_module(contents, replicas, devices)
        self.compiled[key] = found
        if len(self.compiled) > _KEPT:
            del self.compiled[next(iter(self.compiled))]
        check_arguments(found, arguments, 1 if found.is_global else len(devices))
        if found.is_global:
            return self._run_global(found, arguments, per_device)
        stacked = NamedSharding(Mesh(np.array(devices), (_AXIS,)), P(_AXIS))  # type: ignore[no-untyped-call]
        return self._run(found, [jax.device_put(argument, stacked) for argument in arguments])

    def _run(self, compiled: Compiled, placed: Sequence[Any]) -> list[Array]:
        """Buffer d of each argument is (1, *local shape), which is what device d takes."""
        results = compiled.executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        return [np.concatenate([np.asarray(shard) for shard in result]) for result in results]

    def _run_global(self, compiled: Compiled, arguments: Sequence[Array], per_device: bool) -> list[Array]:
        executable = compiled.executable
        taken, given = executable.get_parameter_shardings(), executable.get_output_shardings()
        placed = [jax.device_put(a[0], compiled.placement(s)) for a, s in zip(arguments, taken, strict=True)]
        results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        shards = [[np.asarray(shard) for shard in result] for result in results]
        found = [(each, places_of(each, compiled.placement(s))) for each, s in zip(shards, given, strict=True)]
        if not per_device:
            return [join(*each) for each in found]
        return [array for each, places in found for array in (np.stack(each), starts_of(places, each[0].ndim))]


@dataclass(frozen=True, slots=True)
class Places:
    """Where the shards of a result lie in the whole, as XLA placed them: of its shape, a slice for each dimension of
    each device. What does not divide a dimension lies past its end."""

    shape: tuple[int, ...]
    slices: tuple[tuple[slice, ...], ...]


def places_of(shards: Sequence[Array], placement: Any) -> Places:
    rank = shards[0].ndim
    tiles = placement._hlo_sharding.tile_assignment_dimensions()[:rank] if placement._hlo_sharding.is_tiled() else []
    shape = tuple(n * tile for n, tile in zip(shards[0].shape, tiles or [1] * rank, strict=True))
    return Places(shape, tuple(placement.devices_indices_map(shape).values()))


def join(shards: Sequence[Array], places: Places) -> Array:
    """The whole, (1, *shape), made of what each device holds; of those that hold the same shard, the first counts."""
    whole = np.empty(places.shape, shards[0].dtype)
    for place, shard in zip(places.slices[::-1], shards[::-1], strict=True):
        whole[place] = shard
    return whole[None]


def starts_of(places: Places, rank: int) -> Array:
    """Where each device's shard starts along each dimension, (devices, rank)."""
    starts = [[each.start or 0 for each in place] for place in places.slices]
    return np.array(starts, np.int64).reshape(len(places.slices), rank)


def check_arguments(compiled: Compiled, arguments: Sequence[Array], count: int) -> None:
    """XLA compares no more than sizes in bytes. Raises ValueError."""
    if len(arguments) != len(compiled.types):
        raise ValueError(f"the module takes {len(compiled.types)} arguments, not {len(arguments)}")
    for n, (argument, type_) in enumerate(zip(arguments, compiled.types, strict=True)):
        shape, dtype = (count, *type_.shape), numpy_dtype(type_.dtype)
        if argument.shape != shape or argument.dtype != dtype:
            raise ValueError(f"argument {n} is {argument.dtype}{argument.shape}, the module takes {dtype}{shape}")


# Compilation


def compile_module(contents: bytes, replicas: int | None, devices: Sequence[Any]) -> Compiled:
    """The module on all of the devices, ready to run. Raises `InputError`, or what jaxlib raises."""
    source = read(contents)
    if _LAPACK in contents:
        find_lapack()
    module, count = source.module, len(devices)
    builder = Builder(module)
    main = entry_function(builder).operation
    replicas = replicas or source.replicas or builder.attributes.of(module.operation).get("num_replicas", 1)
    types = builder.flat_types(main.attributes["function_type"].value.inputs)
    is_global, shardy = find_regions(module.operation)
    replicas = 1 if count == 1 else replicas
    partitions = count // replicas
    if replicas not in (1, count):  # jaxlib makes arrays of such results only where they are all alike
        raise ValueError(f"{replicas} replicas of {partitions} partitions on {count} devices cannot be run")
    with module.context, ir.Location.unknown():
        spell_out_groups(module.operation, builder.attributes)
        if not is_global:
            strip(module)
            wrap(module, main, partitions)
    options = make_options(replicas, partitions)
    build = options.executable_build_options
    build.use_spmd_partitioning, build.use_shardy_partitioner = partitions > 1, shardy or not is_global
    if is_global:
        build.allow_spmd_sharding_propagation_to_parameters = placed_nowhere(main, "arg_attrs", "inputs")
        build.allow_spmd_sharding_propagation_to_output = placed_nowhere(main, "res_attrs", "results")
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    executable = get_backend().compile_and_load(buffer.getvalue(), _jax.DeviceList(tuple(devices)), options)
    return Compiled(executable, tuple(devices), types, is_global)


@functools.cache
def find_lapack() -> None:
    """Have jaxlib look up LAPACK's routines, as it does when JAX lowers the first call to one: without, XLA is ended by
    a signal where a module calls them."""
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(1, dtype=np.float32))


def make_options(replicas: int, partitions: int) -> Any:
    options: Any = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = replicas, partitions
    numbers = np.arange(replicas * partitions).reshape(replicas, partitions)
    options.device_assignment = _jax.DeviceAssignment.create(numbers)
    return options


def placed_nowhere(main: Any, key: str, side: str) -> list[bool]:
    """Whether each argument, or result, is without a sharding, so that XLA may choose one."""
    count = len(getattr(main.attributes["function_type"].value, side))
    if key not in main.attributes:
        return [True] * count
    return [not any(name in given for name in _SHARDINGS) for given in main.attributes[key]]


# Edits of the module

_SHARDINGS = ("sdy.sharding", "mhlo.sharding")
_ANNOTATIONS = (*_SHARDINGS, "sdy.sharding_rule", "mhlo.frontend_attributes", "arg_attrs", "res_attrs")
_MARKS = ("Sharding", "xla.sdy.FuncResultSharding")
"""Custom calls that are the identity on what they annotate."""


def walk(operation: Any) -> Iterator[Any]:
    """The operations inside, innermost first, then the operation itself; each may be erased when it comes."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                yield from walk(inner.operation)
    yield operation


def find_regions(module: Any) -> tuple[bool, bool]:
    """Whether there are manual regions in the module, and whether they are Shardy's."""
    shardy = marked = False
    for operation in walk(module):
        shardy |= operation.name == "sdy.manual_computation"
        marked |= operation.name == "stablehlo.custom_call" and call_target(operation) == "SPMDFullToShardShape"
    return shardy or marked, shardy


def call_target(operation: Any) -> str:
    return str(operation.attributes["call_target_name"].value)


def spell_out_groups(module: Any, attributes: Attributes) -> None:
    """Write replica groups that are axes of a mesh as lists of devices."""
    for operation in walk(module):
        if "replica_groups" in operation.attributes:
            groups = operation.attributes["replica_groups"]
            if not isinstance(groups, ir.DenseElementsAttr):
                operation.attributes["replica_groups"] = ir.DenseElementsAttr.get(attributes.groups(groups))


def strip(module: Any) -> None:
    """Take away everything that is about shardings."""
    for name in list(module.operation.attributes):
        if name.startswith("mhlo."):
            del module.operation.attributes[name]
    for operation in walk(module.operation):
        if operation.name == "sdy.return":  # goes with what it ends
            continue
        if operation.name == "sdy.named_computation":
            _put_in_place(operation)
            continue
        if operation.name.startswith("sdy.") or (
            operation.name == "stablehlo.custom_call" and call_target(operation) in _MARKS
        ):
            _drop(operation)
            continue
        for name in _ANNOTATIONS:
            if name in operation.attributes:
                del operation.attributes[name]


def _drop(operation: Any) -> None:
    """Erase an operation that passes its operand on, or that gives nothing. Raises ValueError for any other."""
    results, operands = list(operation.results), list(operation.operands)
    if len(results) > 1 or (results and (len(operands) != 1 or results[0].type != operands[0].type)):
        raise ValueError(f"{operation.name} is not supported in what a device runs")
    if results:
        results[0].replace_all_uses_with(operands[0])
    operation.erase()


def _put_in_place(operation: Any) -> None:
    """Put what an operation with one region computes in the place of the operation."""
    (block,) = operation.regions[0].blocks
    for argument, operand in zip(block.arguments, operation.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *inner, last = list(block.operations)
    for each in inner:
        each.operation.move_before(operation)
    for result, value in zip(operation.results, last.operands, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


def wrap(module: Any, main: Any, partitions: int) -> None:
    """A new @main around the old one, whose arguments and results have a leading dimension for partitions."""
    signature = main.attributes["function_type"].value
    main.attributes["sym_name"] = ir.StringAttr.get(_PROGRAM)
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    wrapper = ir.Module.parse(wrapper_text(list(signature.inputs), list(signature.results), partitions))
    for added in list(wrapper.body.operations):
        if added.operation.name == "sdy.mesh" or added.attributes["sym_name"].value == "main":
            added.operation.detach_from_parent()
            ir.InsertionPoint.at_block_begin(module.body).insert(added)
    module.operation.verify()


def wrapper_text(inputs: Sequence[Any], results: Sequence[Any], partitions: int) -> str:
    """The text of `wrap`'s function; without a manual region for one partition."""
    shards, wholes = ([leading(type_, n) for type_ in inputs] for n in (1, partitions))
    shard_results, whole_results = ([leading(type_, n) for type_ in results] for n in (1, partitions))
    types = f"({commas(inputs)}) -> ({commas(results)})"
    lines = [f"%x{n} = stablehlo.reshape %s{n} : ({shards[n]}) -> {type_}" for n, type_ in enumerate(inputs)]
    outputs = f"%r:{len(results)} = " if results else ""
    lines += [f"{outputs}func.call @{_PROGRAM}({numbered('%x', inputs)}) : {types}"]
    lines += [f"%y{n} = stablehlo.reshape %r#{n} : ({k}) -> {shard_results[n]}" for n, k in enumerate(results)]
    body, last = "\n    ".join(lines), f"return {numbered('%y', results)} : {commas(shard_results)}"
    declared = f"func.func private @{_PROGRAM}{types}\n"
    inner = commas(f"%s{n}: {type_}" for n, type_ in enumerate(shards))
    if partitions == 1:
        return f"{declared}func.func @main({inner}) -> ({commas(shard_results)}) {{\n{body}\n{last}\n}}"
    taken, given = ([along_devices(type_) for type_ in group] for group in (inputs, results))
    placed_wholes, placed_results = (
        [f"{type_} {{sdy.sharding = #sdy.sharding{s}}}" for type_, s in zip(group, shardings, strict=True)]
        for group, shardings in ((wholes, taken), (whole_results, given))
    )
    outer = commas(f"%a{n}: {type_}" for n, type_ in enumerate(placed_wholes))
    return f"""{declared}sdy.mesh @{_MESH} = <["{_AXIS}"={partitions}]>
func.func @main({outer}) -> ({commas(placed_results)}) {{
  %m:{len(results)} = sdy.manual_computation({numbered("%a", inputs)})
    in_shardings=[{commas(taken)}] out_shardings=[{commas(given)}] manual_axes={{"{_AXIS}"}} ({inner}) {{
    {body}
    sdy.{last}
  }} : ({commas(wholes)}) -> ({commas(whole_results)})
  return {numbered("%m#", results)} : {commas(whole_results)}
}}"""


def leading(type_: Any, count: int) -> str:
    """A tensor type with one more dimension in front. Raises ValueError for what is no tensor."""
    if not isinstance(type_, ir.RankedTensorType):
        raise ValueError(f"an argument or result of type {type_} is not supported")
    return f"tensor<{'x'.join(map(str, (count, *type_.shape)))}x{type_.element_type}>"


def along_devices(type_: Any) -> str:
    """The sharding, along the dimension in front, of a tensor of type `type_` with one more there."""
    return f'<@{_MESH}, [{{"{_AXIS}"}}{", {}" * type_.rank}]>'


def commas(parts: Iterable[Any]) -> str:
    return ", ".join(map(str, parts))


def numbered(prefix: str, each: Sequence[Any]) -> str:
    return commas(f"{prefix}{n}" for n in range(len(each)))


# The process


def leave_with_parent(parent: int) -> None:
    """End the process when its parent is gone, whatever XLA waits for."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main(descriptor: int, devices: int) -> None:
    connection: Any = Connection(descriptor)
    threading.Thread(target=leave_with_parent, args=(os.getppid(),), daemon=True).start()
    runner = Runner(devices)
    connection.send("ready")
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            reply: tuple[list[Array], str] = (runner.run(*request), "")
        except Exception as error:
            reply = ([], " ".join(str(error).split())[:2000] or type(error).__name__)
        connection.send(reply)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
