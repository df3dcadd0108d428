"""Pairing of the files in a dump folder, by the names that XLA's compilers give them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources.dump_pairs import Pair, find_pairs, parse_names

SHARDY_CPU = (
    "module_0000.jit_loss.0001.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt",
    "module_0000.jit_loss.0002.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt",
)
GSPMD_GPU = (
    "module_0806.pjit_train_step.0026.spmd-partitioner.after_sharding-propagation.before_spmd-partitioning.txt",
    "module_0806.pjit_train_step.0032.spmd-partitioner.after_spmd-partitioning.before_collective-permute-motion.txt",
)
TPU = (
    "module_0011.jit_train_step.cl_813921542.0007.spmd.after_shardy-xla.before_tpu-spmd-partitioning.hlo.pb.gz",
    "module_0011.jit_train_step.cl_813921542.0008.spmd.after_tpu-spmd-partitioning.before_pipeline-end.hlo.pb.gz",
)
NOISE = (
    "module_0000.jit_loss.before_optimizations.txt",
    "module_0000.jit_loss.0000.spmd-partitioner.after_conditional-canonicalizer.before_shardy-xla.txt",
    "module_0000.jit_loss.cpu_after_optimizations.txt",
    "module_0000.jit_loss.cpu_after_optimizations-buffer-assignment.txt",
    "module_0000.jit_loss.debug_options",
    "module_0806.pjit_train_step.0018.spmd-simplify.after_reshape-mover.before_constant_folding.txt",
    "module_0806.pjit_train_step.0031.spmd-cleanup.after_flatten-call-graph.before_pipeline-end.txt",
    "module_0806.pjit_train_step.0033.optimization.after_pipeline-start.before_topk-splitter.txt",
)


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_bytes(b"HloModule m")
    return folder


@pytest.mark.parametrize("names", [SHARDY_CPU, GSPMD_GPU, TPU])
def test_the_names_of_each_compiler_are_paired(tmp_path: Path, names: tuple[str, str]) -> None:
    [pair], incomplete = find_pairs(fill(tmp_path, *names, *NOISE))
    assert around(pair) == names
    assert incomplete == []


def around(pair: Pair) -> tuple[str, str]:
    """What the partitioner was given and what it made of it."""
    return (pair.annotated or pair.logical).name, pair.partitioned.name


def test_the_logical_side_is_the_earliest_that_there_is(tmp_path: Path) -> None:
    """As the program was lowered; else before XLA's passes; else the first dump that there is."""
    fill(tmp_path, *SHARDY_CPU, *NOISE)
    lowered = tmp_path / "module_0000.jit_loss" / "module.mlir"
    lowered.parent.mkdir()
    lowered.write_text("module {}")
    for earliest in (lowered, tmp_path / NOISE[0], tmp_path / NOISE[1]):
        [pair], _ = find_pairs(tmp_path)
        assert (pair.logical, around(pair)) == (earliest, SHARDY_CPU)
        earliest.unlink()
    [pair], _ = find_pairs(tmp_path)
    assert (pair.logical.name, pair.annotated) == (SHARDY_CPU[0], None)


def test_pairs_are_matched_by_module_and_ordered(tmp_path: Path) -> None:
    pairs, incomplete = find_pairs(fill(tmp_path, *TPU, *SHARDY_CPU, *GSPMD_GPU, *NOISE))
    assert list(map(around, pairs)) == [SHARDY_CPU, TPU, GSPMD_GPU]
    assert [p.module for p in pairs] == [
        "module_0000.jit_loss",
        "module_0011.jit_train_step.cl_813921542",
        "module_0806.pjit_train_step",
    ]
    assert incomplete == []


def test_a_module_partitioned_twice_gives_two_pairs(tmp_path: Path) -> None:
    again = [name.replace("0001.spmd", "0007.spmd").replace("0002.spmd", "0009.spmd") for name in SHARDY_CPU]
    pairs, _ = find_pairs(fill(tmp_path, *SHARDY_CPU, *again))
    assert [(p.logical.name, p.partitioned.name, p.annotated) for p in pairs] == [(*SHARDY_CPU, None), (*again, None)]


def test_steps_are_numbers_not_text(tmp_path: Path) -> None:
    later = [name.replace("0001.spmd", "9999.spmd").replace("0002.spmd", "10000.spmd") for name in SHARDY_CPU]
    [pair], _ = find_pairs(fill(tmp_path, *later))
    assert (pair.logical.name, pair.partitioned.name) == tuple(later)


def test_a_pass_that_changed_nothing_is_not_dumped(tmp_path: Path) -> None:
    """Then the module before the partitioner carries the name of the propagation pass."""
    before = "module_0001.jit_f.0003.spmd-partitioner.after_shardy-xla.before_some-pass.txt"
    after = "module_0001.jit_f.0004.spmd-partitioner.after_spmd-partitioning.before_pipeline-end.txt"
    [pair], _ = find_pairs(fill(tmp_path, before, after))
    assert (pair.logical.name, pair.partitioned.name) == (before, after)


@pytest.mark.parametrize("gzipped", [False, True])
def test_text_is_preferred_unless_its_constants_are_left_out(tmp_path: Path, gzipped: bool) -> None:
    before, after = (name.removesuffix(".txt") for name in SHARDY_CPU)
    for name in (before, after):
        fill(tmp_path, f"{name}.hlo.pb")
    ending = ".txt.gz" if gzipped else ".txt"
    for name, text in ((before, b"HloModule m\n c = s32[512] constant({...})"), (after, b"HloModule m")):
        (tmp_path / f"{name}{ending}").write_bytes(gzip.compress(text) if gzipped else text)
    [pair], _ = find_pairs(tmp_path)
    assert (pair.logical.name, pair.partitioned.name) == (f"{before}.hlo.pb", f"{after}{ending}")


def test_what_keep_leaves_is_a_pair(tmp_path: Path) -> None:
    [pair], _ = find_pairs(fill(tmp_path, "logical.hlo", "partitioned.hlo"))
    assert (pair.logical.name, pair.annotated, pair.partitioned.name) == ("logical.hlo", None, "partitioned.hlo")
    [pair], _ = find_pairs(fill(tmp_path, "annotated.hlo"))
    assert (pair.logical.name, pair.annotated) == ("logical.hlo", tmp_path / "annotated.hlo")


def test_half_a_pair_is_reported_and_the_others_are_found(tmp_path: Path) -> None:
    pairs, incomplete = find_pairs(fill(tmp_path, *SHARDY_CPU, GSPMD_GPU[0], TPU[1]))
    assert [p.module for p in pairs] == ["module_0000.jit_loss"]
    messages = dict(incomplete)
    assert "the one after it is missing" in messages["module_0806.pjit_train_step"]
    assert "the one before it is missing" in messages["module_0011.jit_train_step.cl_813921542"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "is empty: run the program with XLA_FLAGS="),
        (NOISE, "no module from before and after the SPMD partitioner"),
        (SHARDY_CPU[:1], "the one after it is missing"),
        (SHARDY_CPU[1:], "the one before it is missing"),
    ],
)
def test_a_folder_without_a_pair_is_an_error(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match="--xla_dump_hlo_pass_re=") as raised:
        find_pairs(fill(tmp_path, *names))
    assert said in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the folder"):
        find_pairs(tmp_path / "nowhere")


def test_names_that_are_no_dumps_are_left_out(tmp_path: Path) -> None:
    assert parse_names(tmp_path, ["notes.txt", "a.0001.b.txt", "x.0001.p.after_q.before_r.ll", ".after_x.txt"]) == []
