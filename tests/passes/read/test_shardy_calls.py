"""A `shard_map` in HLO that Shardy has not seen yet is the region that it was lowered from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib.version
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import operations
from hlo_verify.report import Verdict
from hlo_verify.sources.dump_pairs import find_pairs
from hlo_verify.xla.partition import partition

pytestmark = pytest.mark.skipif(
    jaxlib.version.__version_info__ >= (0, 12), reason="regions are no calls in the HLO that this jaxlib writes"
)

MESH = AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def mapped(body: Callable[..., Any], taken: Any, given: Any, **options: Any) -> Any:
    return jax.shard_map(body, mesh=MESH, in_specs=taken, out_specs=given, check_vma=False, **options)


def two(a: jax.Array, b: jax.Array) -> Any:
    def body(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.psum(a @ b, "y"), jnp.tanh(a)

    return mapped(body, (P("x", "y"), P("y")), (P("x"), P("x", "y")))(a, b)


def one(a: jax.Array, b: jax.Array) -> Any:
    return mapped(lambda part: jax.lax.all_gather(part, "x", tiled=True) * 2.0, P("x"), P())(a) + b


def none(a: jax.Array, b: jax.Array) -> Any:
    return mapped(lambda: jnp.full((4, 8), jax.lax.axis_index("x"), jnp.float32), (), P("x"))() + a * b


def some_axes(a: jax.Array, b: jax.Array) -> Any:
    return mapped(lambda part: jax.lax.psum(part, "y"), P(None, "y"), P(), axis_names={"y"})(a) + b[:, :4]


def twice(a: jax.Array, b: jax.Array) -> Any:
    """The function of the region is called in two places."""
    double = mapped(lambda part: part * jax.lax.axis_size("x"), P("x"), P("x"))
    return double(double(a) + b)


PROGRAMS = (two, one, none, some_axes, twice)


def before_optimizations(function: Callable[..., Any], folder: Path) -> tuple[Path, Path]:
    """The dump of a program as XLA read it, with Shardy's calls in it; and of what devices run."""
    shapes = [jax.ShapeDtypeStruct((8, 8), jnp.float32)] * 2
    shardings = (NamedSharding(MESH, P("x")),) * 2
    traced = jax.jit(function, in_shardings=shardings).trace(*shapes)
    with partition(traced.lower(lowering_platforms=("cpu",)).as_text()) as job:
        made = job.wait()
        for file in made.annotated.parent.iterdir():
            if file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
    [pair], _ = find_pairs(folder)
    assert ".before_optimizations." in pair.logical.name
    return pair.logical, pair.partitioned


@pytest.mark.drawn(2)
@pytest.mark.parametrize("function", PROGRAMS)
def test_calls_become_regions(function: Callable[..., Any], tmp_path: Path) -> None:
    given, partitioned = before_optimizations(function, tmp_path)
    names = [op.name for op in operations(load(given).main)]
    assert names.count("sdy.manual_computation") == (2 if function is twice else 1)
    assert "xla.sdy.LocalToGlobalShape" not in str(load(given).mlir)
    [pair], _ = find_pairs(tmp_path)
    report = hlo_verify.verify(given, partitioned, annotated=pair.annotated)
    assert report.verdict is Verdict.PROVED


def test_the_shardings_of_the_calls_count(tmp_path: Path) -> None:
    given, partitioned = before_optimizations(two, tmp_path)
    text = given.read_text()
    taken = 'in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}, {\\"y\\"}]>'
    assert taken in text
    wrong = text.replace(taken, taken.replace('{\\"x\\"}, {\\"y\\"}', '{\\"y\\"}, {\\"x\\"}'))
    [pair], _ = find_pairs(tmp_path)
    assert hlo_verify.verify(wrong, partitioned, annotated=pair.annotated, refute=False).verdict is not Verdict.PROVED


def test_calls_in_another_form_stay_what_they_are(tmp_path: Path) -> None:
    """And mean nothing: a call that is not Shardy's own is not made a region."""
    given, _ = before_optimizations(two, tmp_path)
    text = given.read_text().replace("manual_computation_body", "something_else")
    names = [op.name for op in operations(load(text).main)]
    assert "sdy.manual_computation" not in names


@pytest.mark.parametrize("end", ["GlobalToLocalShape", "LocalToGlobalShape"])
def test_two_ends_of_different_axes_are_no_region(end: str, tmp_path: Path) -> None:
    given, _ = before_optimizations(two, tmp_path)
    axes = 'xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\", \\"y\\"}>"'
    lines = given.read_text().splitlines()
    assert any(end in line and axes in line for line in lines), lines
    changed = [line.replace(axes, axes.replace(', \\"y\\"', "")) if end in line else line for line in lines]
    names = [op.name for op in operations(load("\n".join(changed)).main)]
    assert "sdy.manual_computation" not in names
