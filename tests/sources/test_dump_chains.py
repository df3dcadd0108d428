"""Chains in a dump folder, by the names of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources.dump_chains import find_chains
from tests.sources.test_dump_pairs import GSPMD_GPU, NOISE, SHARDY_CPU, TPU, fill

CPU = (
    "module_0000.jit_f.0000.async-collective.after_pipeline-start.before_async-collective-replacer.txt",
    "module_0000.jit_f.0003.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt",
    "module_0000.jit_f.0004.spmd-cleanup.after_pipeline-start.before_dce.txt",
    "module_0000.jit_f.0006.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt",
    "module_0000.jit_f.0020.copy-insertion.after_adding_copies_to_resolve_interference.txt",
    "module_0000.jit_f.cpu_after_optimizations.txt",
)


def test_the_partitioned_half_begins_with_the_partitioner_s_own_clean_up(tmp_path: Path) -> None:
    [chain] = find_chains(fill(tmp_path, *CPU, "module_0000.jit_f.cpu_after_optimizations-buffer-assignment.txt"))
    assert tuple(dump.path.name for dump in chain.dumps) == CPU
    assert chain.partitioned == 2
    last = chain.dumps[-1]
    assert (last.step, last.pipeline, last.after) == (21, "end", "optimizations")
    assert [dump.pipeline for dump in chain.dumps[:2]] == ["async-collective", "spmd-partitioner"]


def test_what_another_compilation_left_at_the_same_step_is_looked_at_too(tmp_path: Path) -> None:
    other = "module_0000.jit_f.0004.spmd-cleanup.after_zero-sized-hlo-elimination.before_dce.txt"
    [chain] = find_chains(fill(tmp_path, *CPU, other))
    assert sorted(dump.path.name for dump in chain.dumps) == sorted((*CPU, other))
    assert [dump.step for dump in chain.dumps] == [0, 3, 4, 4, 6, 20, 21]


def test_a_chain_for_each_module(tmp_path: Path) -> None:
    chains = find_chains(fill(tmp_path, *SHARDY_CPU, *GSPMD_GPU, *TPU, *NOISE))
    assert [(chain.module, len(chain.dumps), chain.partitioned) for chain in chains] == [
        ("module_0000.jit_loss", 4, 2),
        ("module_0011.jit_train_step.cl_813921542", 2, 1),
        ("module_0806.pjit_train_step", 5, 2),
    ]


@pytest.mark.parametrize("ending", ["sm_8.0_gpu_after_optimizations.txt", "after_optimizations.hlo.gz"])
def test_the_end_as_other_compilers_name_it(tmp_path: Path, ending: str) -> None:
    [chain] = find_chains(fill(tmp_path, CPU[0], f"module_0000.jit_f.{ending}"))
    assert chain.dumps[-1].path.name.endswith(ending)
    assert chain.partitioned == 2  # nothing was partitioned


def test_the_end_of_a_module_whose_name_begins_alike(tmp_path: Path) -> None:
    other = [name.replace("jit_f", "jit_f.cl_1") for name in (CPU[0], CPU[-1])]
    chains = find_chains(fill(tmp_path, CPU[0], CPU[-1], *other))
    assert [[dump.path.name for dump in chain.dumps] for chain in chains] == [[CPU[0], CPU[-1]], other]


@pytest.mark.parametrize("names", [(), ("notes.txt",), CPU[:1], ("module_0000.jit_f.cpu_after_optimizations.txt",)])
def test_no_chain(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="xla_dump_hlo_pass_re") as caught:
        find_chains(fill(tmp_path, *names))
    assert caught.value.code is Input.NO_CHAIN_IN_FOLDER
