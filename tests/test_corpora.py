"""Modules that others wrote, where the folder with them is at hand."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify.diagnostics import Annotation

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "corpora"
pytestmark = pytest.mark.skipif(not CORPORA.is_dir(), reason=f"{CORPORA} is not there")


@pytest.mark.slow
def test_ring_attention_of_maxtext() -> None:
    """A train step on 64 devices whose attention, forward and backward, is a ring of kernels in manual regions."""
    folder = CORPORA / "maxtext" / "llama3-8b_64_cp_ring_fsdp8_cp8"
    report = hlo_verify.verify(folder / "logical.hlo.pb.gz", folder / "partitioned.hlo.pb.gz", refute=False)
    assert report.verdict is hlo_verify.Verdict.PROVED
    assert any("tpu_custom_call" in assumption for assumption in report.assumptions)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "name",
    [
        "gpt3-175b_512_fsdp64_tp8",
        "llama3-8b_16_fsdp16",
        "llama3-8b_16_fsdp4_tp4_unscanned",
        "mixtral-8x7b_64_dense_drop_ep8_tp2",
        "mixtral-8x7b_64_fsdp8_ep8",
        "cpu_deepseek2-16b_64_dense_fsdp8_ep8",
    ],
)
def test_train_steps_of_maxtext(name: str) -> None:
    """Rings of devices with their windows of an einsum, along one mesh axis or two; experts by sort and scatter, or by
    products with masks; layers one after another instead of a loop over them."""
    folder = CORPORA / "maxtext" / name
    report = hlo_verify.verify(folder / "logical.hlo.pb.gz", folder / "partitioned.hlo.pb.gz", refute=False)
    assert report.verdict is hlo_verify.Verdict.PROVED


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


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("whole", "rank", "said"),
    [
        ("llama_tp1_golden_result_0.hlo", "llama_tp2_golden_result.hlo", "arguments p4.5, p5.6: dimension 2 in 2"),
        ("gpt2_tp_1_n_layer_2.hlo", "gpt2_tp_2_n_layer_2.hlo", "argument p43.44: dimension 1 in 2, the last padded"),
        (
            "entangle_llama_tp1_layer1.pb",
            "entangle_llama_tp2_layer1.pb",
            "arguments p9.10[:, 0:2048], p9.10[:, 2048:2560], p9.10[:, 2560:3072], p10.11, p12.13, p13.14, p14.15, "
            "p16.17: dimension 1 in 2",
        ),
    ],
)
def test_graphs_of_neurons_tools(whole: str, rank: str, said: str, tmp_path: Path) -> None:
    """GPT-2's biases are added on both ranks: one of them holds zeros, so that they sum up to the whole."""
    folder = CORPORA / "neuron"
    is_gpt2 = whole.startswith("gpt2")
    results = None
    if is_gpt2:  # what it returns for debugging is not reduced yet
        results = tmp_path / "results.toml"
        results.write_text("[results]\n" + "".join(f'{n} = "{{unreduced}}"\n' for n in OPEN))
    report = hlo_verify.verify(folder / f"{whole}.gz", folder / f"{rank}.gz", refute=False, results=results)
    assert report.verdict is hlo_verify.Verdict.PROVED
    assert said in report.inferred
    summed = [line for line in report.inferred if "sum of what devices hold" in line]
    assert [line.split(":")[0] for line in summed] == (["arguments p18.19, p24.25, p34.35, p40.41"] if is_gpt2 else [])


OPEN = (50, 51, 52)


@pytest.mark.slow
def test_what_a_graph_of_neurons_returns_unreduced_is_to_be_asked_for() -> None:
    folder = CORPORA / "neuron"
    whole, rank = (folder / f"gpt2_tp_{n}_n_layer_2.hlo.gz" for n in (1, 2))
    report = hlo_verify.verify(whole, rank, refute=False)
    left = [result for result in report.results if result.verdict is not hlo_verify.Verdict.PROVED]
    assert [result.index for result in left] == list(OPEN)
    assert {result.code for result in left} == {Annotation.UNREDUCED_RESULT}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            r"= (f32\[4096,1,4\]\S*) all-reduce\((\S+ \S+)\), replica_groups=\{\{0,1\}\}, to_apply=\S+",
            r"= \1 copy(\2)",
            "missing",
        ),
        (r"constant\(1e-05\)", "constant(1e-04)", "RmsNorm"),
        (r"slice=\{\[0:1\], \[0:4\], \[0:2\], \[0:512\]\}", "slice={[0:1], [0:4], [0:2], [512:1024]}", ""),
    ],
    ids=["no all_reduce", "another epsilon", "another half of a head"],
)
def test_a_rank_of_neurons_that_is_wrong(old: str, new: str, says: str) -> None:
    folder = CORPORA / "neuron"
    text = gzip.decompress((folder / "llama_tp2_golden_result.hlo.gz").read_bytes()).decode()
    wrong = re.sub(old, new, text, count=1)
    assert wrong != text
    report = hlo_verify.verify(folder / "llama_tp1_golden_result_0.hlo.gz", wrong)
    if says:
        assert report.verdict is hlo_verify.Verdict.REFUTED
        return
    assert report.verdict is hlo_verify.Verdict.UNKNOWN  # it may be right with a head's elements in another order
    assert Annotation.GUESSED_PLACEMENT in {result.code for result in report.results}


def test_live_miscompiles() -> None:
    """A psum that shard_map does not ask for, and a start that XLA does not clamp when it splits the dimension."""
    folder = CORPORA / "live"
    for whole, part in (
        ("missing_psum_check_vma_false.logical.stablehlo.mlir", "missing_psum_check_vma_false.sharded.stablehlo.mlir"),
        ("xla49118_dus_clamp.sharded.stablehlo.mlir", "xla49118_dus_clamp.spmd.hlo"),
        ("xla49118_dus_clamp.logical.stablehlo.mlir", "xla49118_dus_clamp.spmd.hlo"),
    ):
        report = hlo_verify.verify(folder / f"{whole}.gz", folder / f"{part}.gz")
        assert report.verdict is hlo_verify.Verdict.REFUTED, (whole, part)


def test_a_live_miscompile_whose_result_nobody_places(tmp_path: Path) -> None:
    """The sum that is missing could be meant to be left open, until somebody says that it is not."""
    folder = CORPORA / "live"
    whole, part = (
        folder / f"missing_psum_check_vma_false.{half}.gz" for half in ("logical.stablehlo.mlir", "spmd.hlo")
    )
    (result,) = hlo_verify.verify(whole, part).results
    assert result.verdict is hlo_verify.Verdict.UNKNOWN and result.code is Annotation.UNREDUCED_RESULT
    path = tmp_path / "results.toml"
    path.write_text('[results]\n0 = "{replicated}"\n')
    assert hlo_verify.verify(whole, part, results=path).verdict is hlo_verify.Verdict.REFUTED
