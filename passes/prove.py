"""Pass 5, prove: every result of the partitioned module is its shard of the logical result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from hlo_verify.errors import InputError
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Module
from hlo_verify.ops.control import LoopBook
from hlo_verify.ops.values import Context, Value, position_var, positions
from hlo_verify.passes.interpret import run
from hlo_verify.passes.lineage import lineage, local_argument, placements
from hlo_verify.passes.stages import Stages
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.sharding import Sharding, replicated
from hlo_verify.solver import cases
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Tensor, tensor

Progress = Callable[[int, int], None]

ASSUMPTIONS = (
    "real arithmetic: no rounding, conversions between floating-point types are the identity",
    "no NaN",
    "reducers are applied in any order",
)


def prove(logical: Module, partitioned: Module, *, progress: Progress | None = None) -> Report:
    """Compare the modules result by result."""
    started = time.perf_counter()
    devices = device_count(logical, partitioned)
    device = expr.var("d", "", devices)
    arguments = [
        tensor("argument", name, kind.dtype, kind.shape)
        for name, kind in zip(logical.argument_names, logical.main.argument_types, strict=True)
    ]
    loops = LoopBook(placements(device))
    stages = Stages(device)
    plain = Context(None, 1, 1, run, loops=loops, mesh=device, observe=stages.record_logical)
    wanted = run(logical.main, [_whole(a) for a in arguments], plain)
    replicas = partitioned.replicas
    local = Context(
        device, devices // replicas, replicas, run, side="partitioned", loops=loops, observe=stages.record_partitioned
    )
    if is_global(partitioned):
        local = replace(local, device=None, mesh=device)
        found = run(partitioned.main, _same(arguments, partitioned), local)
        placed = [replicated(kind.rank, devices) for kind in partitioned.result_types]
    else:
        shards = [
            local_argument(a, s, kind, device, a.name)
            for a, s, kind in zip(
                arguments, _argument_shardings(logical, partitioned), partitioned.main.argument_types, strict=True
            )
        ]
        found = run(partitioned.main, shards, local)
        placed = _result_shardings(logical, partitioned)
    results = []
    for n, name in enumerate(logical.result_names):
        results.append(_compare(n, name, wanted[n], found[n], placed[n], device))
    return Report(
        logical.name,
        tuple(results),
        ASSUMPTIONS,
        devices,
        time.perf_counter() - started,
        unsupported=tuple(f"{k}: {v}" for k, v in {**plain.unsupported, **local.unsupported}.items()),
    )


def is_global(module: Module) -> bool:
    """Whether a module is itself global, its devices' work done in manual regions (a lowered shard_map)."""
    return any(op.name == "sdy.manual_computation" for op in module.main.ops)


def _same(arguments: list[Tensor], partitioned: Module) -> list[Value]:
    if len(arguments) != len(partitioned.main.argument_types):
        raise InputError(_COUNT.format("argument", len(arguments), len(partitioned.main.argument_types)))
    for argument, kind in zip(arguments, partitioned.main.argument_types, strict=True):
        if argument.shape != kind.shape:
            raise InputError(
                f"argument {argument.name} is {list(argument.shape)} in the logical module and {list(kind.shape)} in "
                "the other, which is global (its work is done in manual regions): they are not a pair"
            )
    return [_whole(a) for a in arguments]


_COUNT = "the logical module has {1} {0}s and the partitioned one {2}: they are not a pair"


def _result_shardings(logical: Module, partitioned: Module) -> list[Sharding]:
    if len(logical.result_names) != len(partitioned.result_shardings):
        raise InputError(_COUNT.format("result", len(logical.result_names), len(partitioned.result_shardings)))
    shardings = []
    for n, name in enumerate(logical.result_names):
        sharding = logical.result_shardings[n] or partitioned.result_shardings[n]
        if sharding is None:
            raise InputError(f"result {name} has no sharding in either module; give one with --shardings")
        shardings.append(sharding)
    return shardings


def device_count(logical: Module, partitioned: Module) -> int:
    """The number of devices that both modules agree on."""
    partitions = partitioned.partitions or logical.partitions
    if partitions is None:
        raise InputError("neither module says for how many partitions it is; give --devices N")
    return partitions * partitioned.replicas


def _whole(argument: Tensor) -> Value:
    from hlo_verify.ir import TensorType

    kind = TensorType(argument.shape, argument.dtype)
    return Value(kind, algebra.read(argument, positions(argument.shape)))


def _argument_shardings(logical: Module, partitioned: Module) -> list[Sharding]:
    if len(logical.argument_names) != len(partitioned.argument_names):
        raise InputError(_COUNT.format("argument", len(logical.argument_names), len(partitioned.argument_names)))
    shardings = []
    for n, name in enumerate(logical.argument_names):
        sharding = logical.argument_shardings[n] or partitioned.argument_shardings[n]
        if sharding is None:
            raise InputError(f"argument {name} has no sharding in either module; give one with --shardings")
        shardings.append(sharding)
    return shardings


def _compare(n: int, name: str, wanted: Value, found: Value, sharding: Sharding, device: Var) -> Result:
    where = lineage(wanted.shape, sharding, device)
    if where.shape != found.shape:
        raise InputError(f"result {name}: shards are {found.shape}, expected {where.shape}")
    mapping: dict[Var, Index] = {
        position_var(k, size): e
        for k, (size, e) in enumerate(zip(wanted.shape, where.indices, strict=True))
        if size > 1
    }
    expected = algebra.substitute(wanted.term, mapping)
    if found.term is expected:
        return Result(n, name, Verdict.PROVED)
    if cases.equal(found.term, expected, where.inside):
        return Result(n, name, Verdict.PROVED)
    return Result(n, name, Verdict.UNKNOWN, f"found {found.term!r}\n  expected {expected!r}")
