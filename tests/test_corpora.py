"""Modules that others wrote, where the folder with them is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import custom_calls

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "corpora"
pytestmark = pytest.mark.skipif(not CORPORA.is_dir(), reason=f"{CORPORA} is not there")


@pytest.fixture
def _kernels() -> Iterator[None]:
    """Pallas kernels are functions of their operands."""
    hlo_verify.register_custom_call("tpu_custom_call")
    yield
    custom_calls.forget_custom_call("tpu_custom_call")


@pytest.mark.usefixtures("_kernels")
def test_ring_attention_of_maxtext() -> None:
    """A train step on 64 devices whose attention, forward and backward, is a ring of kernels in manual regions."""
    folder = CORPORA / "maxtext" / "llama3-8b_64_cp_ring_fsdp8_cp8"
    report = hlo_verify.verify(folder / "logical.hlo.pb.gz", folder / "partitioned.hlo.pb.gz", refute=False)
    assert report.verdict is hlo_verify.Verdict.PROVED
    assert any("tpu_custom_call" in assumption for assumption in report.assumptions)


@pytest.mark.parametrize(
    "name",
    [
        "NestedManual",
        "UnreducedDot",
        "SubgroupUnreducedDot",
        "TiledToSingleDevice",
        "LayoutConstraintCustomCallUnreduced",
    ],
)
def test_shardings_of_xlas_own_tests(name: str) -> None:
    folder = CORPORA / "xla_spmd"
    report = hlo_verify.verify(folder / f"{name}.prespmd.hlo.gz", folder / f"{name}.spmd.hlo.gz", refute=False)
    assert report.verdict is hlo_verify.Verdict.PROVED
