"""What XLA distributes over few devices is looked at device by device too: right pairs are in tests/pairs, and these
are wrong ones, one word or number away. The evaluator, which shares nothing with it, refutes each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.passes.diagnose import examine
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.session import Session

PAIRS = Path(__file__).parents[3] / "pairs"
TESTDATA = Path(__file__).parents[4] / "testdata"

WRONG = [
    ("pooling_gradient_of_uneven_windows", "compare GE, %arg1, %arg2", "compare GT, %arg1, %arg2"),
    ("pooling_gradient_of_uneven_windows", "[[0, 0], [2, 1], [1, 2], [3, 3]]", "[[0, 0], [1, 1], [2, 2], [3, 3]]"),
    ("pooling_gradient_of_uneven_windows", "concatenate %14, %13, %16", "concatenate %13, %14, %16"),
    ("pooling_gradient_of_uneven_windows", "window_dimensions = array<i64: 3>", "window_dimensions = array<i64: 2>"),
    ("choice_at_a_place_of_windows", "compare LE, %arg1, %arg2", "compare GE, %arg1, %arg2"),
    ("uneven_shards_by_table", "dense<[0, 0, 0, 0, 1, 1, 1, 2]>", "dense<[1, 0, 0, 0, 1, 1, 1, 2]>"),
    ("uneven_shards_by_table", "[[4, 1], [6, 3], [1, 5]]", "[[4, 1], [6, 3]]"),
    ("sums_of_windows_across_shards", "[[1, 0], [2, 1]]", "[[2, 0], [1, 1]]"),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("pair", "before", "after"), WRONG)
def test_wrong_ones_are_not_proved(pair: str, before: str, after: str) -> None:
    logical, right = PAIRS / pair / "logical.mlir", (PAIRS / pair / "partitioned.mlir").read_text()
    wrong = right.replace(before, after, 1)
    if before.count("[") > after.count("["):  # a pair is left out
        wrong = wrong.replace("tensor<3x2xi64>", "tensor<2x2xi64>", 1)
    assert wrong != right
    assert hlo_verify.verify(logical, wrong, refute=False).verdict is Verdict.UNKNOWN
    assert hlo_verify.verify(logical, wrong).verdict is Verdict.REFUTED


def test_how_much_is_looked_at_is_limited() -> None:
    folder = PAIRS / "choice_at_a_place_of_windows"
    pair = load(folder / "logical.mlir"), load(folder / "partitioned.mlir", devices=8)
    assert prove(*pair).verdict is Verdict.PROVED
    session = Session(replace(Limits(), small_operations_apart=100))
    assert prove(*pair, session=session).verdict is Verdict.UNKNOWN
    assert "small_operations_apart" in session.spent().limits


greatest = partial(lax.associative_scan, jnp.maximum)
"""Prefix maxima."""


def recurrent(x: jax.Array) -> jax.Array:
    """The gelu of a linear recurrence whose factors are values of the same array."""

    def join(first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return first[0] * second[0], second[0] * first[1] + second[1]

    return jax.nn.gelu(lax.associative_scan(join, (jax.nn.sigmoid(x), x))[1])


def scanned(keep: Path, scan: Callable[[jax.Array], jax.Array] = greatest) -> hlo_verify.Report:
    """The report on an associative scan that XLA splits over four devices."""
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("x"))
    jitted = jax.jit(scan, in_shardings=split, out_shardings=split)
    lowered = jitted.trace(jax.ShapeDtypeStruct((16,), jnp.float32)).lower(lowering_platforms=("cpu",))
    return hlo_verify.verify(lowered, refute=False, keep=keep)


def test_what_comes_out_in_pieces_is_looked_at_by_device_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deciding = examine.walk_deciding
    monkeypatch.setattr(examine, "walk_deciding", None)
    report = scanned(tmp_path)
    assert report.verdict is Verdict.PROVED
    assert report.results[0].by_device
    monkeypatch.setattr(examine, "walk_deciding", deciding)
    annotated, right = ((tmp_path / f"{name}.hlo").read_text() for name in ("annotated", "partitioned"))
    wrong = right.replace("source_target_pairs={{1,0},{2,1},{3,2}}", "source_target_pairs={{1,0},{3,1},{2,2}}", 1)
    assert wrong != right
    assert hlo_verify.verify(annotated, wrong, refute=False).verdict is Verdict.UNKNOWN


def test_powers_of_what_comes_out_in_pieces(tmp_path: Path) -> None:
    report = scanned(tmp_path, recurrent)
    assert report.verdict is Verdict.PROVED
    assert report.results[0].by_device
    annotated, right = ((tmp_path / f"{name}.hlo").read_text() for name in ("annotated", "partitioned"))
    wrong = right.replace("source_target_pairs={{1,0},{2,1},{3,2}}", "source_target_pairs={{1,0},{3,1},{2,2}}", 1)
    assert wrong != right
    limits = replace(Limits(), wrong_work=Limits().wrong_work // 10, wrong_operation_work=0)
    assert hlo_verify.verify(annotated, right, refute=False, limits=limits).verdict is Verdict.PROVED
    assert hlo_verify.verify(annotated, wrong, refute=False, limits=limits).verdict is Verdict.UNKNOWN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "twin"), [("conv_batch", "broken_local_statistics"), ("moe_top2", "broken_missing_scale")]
)
def test_sums_over_devices_of_a_wrong_module_have_an_end(name: str, twin: str) -> None:
    """A sum of eight devices' statistics, put together piece by piece, took minutes: it is begun, and ended."""
    folder, limits = TESTDATA / name, replace(Limits(), wrong_work=4 * Limits().wrong_work)
    report = hlo_verify.verify(folder / "logical.hlo.gz", folder / f"{twin}.hlo.gz", refute=False, limits=limits)
    assert report.verdict is Verdict.UNKNOWN
    spent = next(result.spent for result in report.results if result.spent is not None)
    assert "small_terms_apart" in spent.limits
