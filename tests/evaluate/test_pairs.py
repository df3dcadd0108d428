"""Full-size pairs, evaluated on all their devices: the partitioned module agrees with the logical one, no twin does."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import hlo_verify.evaluate
from hlo_verify.evaluate import Blocks, Difference, difference, evaluate, index_limits, random_argument, shards
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module

ROOT = Path(__file__).resolve().parents[2]
NOISE = 1e-11
"""What rounding may make of a difference, relative to the largest element."""

NAMES = (
    "mlp_2d mlp_zero3 mlp_accumulate embedding_gather_scatter encoder_uneven gspmd_encoder_uneven "
    "shardmap_fsdp shardmap_megatron_mlp shardmap_vocab_xent"
).split()


def arguments(module: Module, generator: np.random.Generator) -> list[Blocks]:
    return [
        random_argument(
            kind.shape,
            kind.dtype,
            generator,
            tiles=None if sharding is None else sharding.tiles,
            integers=limit or 8,
            detail=4,
        )
        for kind, sharding, limit in zip(
            module.main.argument_types, module.argument_shardings, index_limits(module), strict=True
        )
    ]


def differences(logical: Module, partitioned: Module, seed: int) -> list[Difference | None]:
    """Of every result; everything must be known."""
    generator = np.random.default_rng(seed)
    given = arguments(logical, generator)
    wholes = evaluate(logical, given, 1)
    devices = (partitioned.partitions or 1) * partitioned.replicas
    is_global = any(op.name == "sdy.manual_computation" for op in partitioned.main.ops)
    if not is_global:
        placed = zip(given, logical.argument_shardings, partitioned.argument_shardings, strict=True)
        given = [shards(a, s or t, devices, generator) for a, s, t in placed if s is not None or t is not None]
    parts = evaluate(partitioned, given, 1 if is_global else devices)
    assert not wholes.unknown and not parts.unknown
    found = []
    for n, (whole, part) in enumerate(zip(wholes.results, parts.results, strict=True)):
        sharding = logical.result_shardings[n] or partitioned.result_shardings[n]
        assert whole is not None and part is not None and sharding is not None
        found.append(difference(whole, part, sharding))
    return found


def differs(found: Difference | None) -> bool:
    return found is not None and found.relative > NOISE


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", NAMES)
def test_pair_agrees_and_no_twin_does(name: str) -> None:
    folder = ROOT / "testdata" / name
    logical = load(next(folder.glob("logical.*")))
    good = load(next(folder.glob("partitioned.*")))
    assert not any(map(differs, differences(logical, good, 0)))
    for path in sorted(folder.glob("broken_*")):
        twin = load(path)
        assert any(any(map(differs, differences(logical, twin, seed))) for seed in range(4)), path.name


ALLOWED = (
    "hlo_verify.evaluate",
    "hlo_verify.program.ir",
    "hlo_verify.program.element_types",
    "hlo_verify.program.sharding",
    "hlo_verify.program.mesh",
    "hlo_verify.program.library_calls",
    "hlo_verify.program.op_families",
    "hlo_verify.program.preconditions",
    "hlo_verify.program.allowed_values",
    "hlo_verify.diagnostics.errors",
    "hlo_verify.diagnostics",
    "numpy",
)


def test_nothing_is_shared_with_the_prover() -> None:
    for path in Path(hlo_verify.evaluate.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.split(".")[0]
                known = root not in ("hlo_verify", "numpy", "scipy", "jax", "jaxlib", "ml_dtypes", "z3")
                assert known or name.startswith(ALLOWED), f"{path.name} imports {name}"
