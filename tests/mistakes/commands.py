"""Mistakes on the command line, and in files."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from hlo_verify import cli
from tests.mistakes.common import Program
from tests.support.pairs import LOGICAL, PARTIAL, SUMMED, module

ONE = module("%x: tensor<8xf32>", "tensor<8xf32>", "    return %x : tensor<8xf32>", devices=1)
OTHER = module("%x: tensor<4xf32>, %y: tensor<2xf32>", "tensor<4xf32>", "    return %x : tensor<4xf32>")
FORTY = LOGICAL.replace("num_partitions = 4", "num_partitions = 8").replace("[4]<=[4]", "[8]<=[8]")
SPEC = LOGICAL.replace("devices=[4]", "devices=[4,1]")
ELIDED = (
    "HloModule jit_step, entry_computation_layout={()->f32[64]{0}}, num_partitions=4\n\n"
    "ENTRY %main () -> f32[64] {\n  ROOT %c = f32[64]{0} constant({...})\n}\n"
)
PYTHON = "import jax\n\nprint(jax.devices())\n"
JAXPR = "{ lambda ; a:f32[8]. let b:f32[] = reduce_sum[axes=(0,)] a in (b,) }\n"
FILES = {
    "logical.mlir": LOGICAL,
    "partial.mlir": PARTIAL,
    "partitioned.mlir": SUMMED,
    "one.mlir": ONE,
    "other.mlir": OTHER,
    "eight.mlir": FORTY,
    "spec.mlir": SPEC,
    "elided.txt": ELIDED,
    "train.py": PYTHON,
    "jaxpr.txt": JAXPR,
    "empty.mlir": "",
    "cut.mlir": SUMMED[: len(SUMMED) // 2],
    "config.json": '{"layers": 2}\n',
    "no_toml.toml": "x = P('d')\n",
    "no_argument.toml": '[mesh]\nd = 4\n[arguments]\ny = ["d"]\n',
    "no_axis.toml": '[mesh]\nd = 4\n[arguments]\narg0 = ["data"]\n',
    "no_table.toml": 'x = ["d"]\n',
    "too_long.toml": '[mesh]\nd = 4\n[results]\n0 = ["d"]\n',
}


def told(*arguments: str) -> Program:
    """A command line over those files, each by its name."""

    def run(folder: Path) -> object:
        for name, text in FILES.items():
            if name in arguments:
                (folder / name).write_text(text)
        out, err = io.StringIO(), io.StringIO()
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(stdout), contextlib.chdir(folder):
            try:
                status = cli.main(list(arguments))
            except SystemExit as exit_:
                status = int(exit_.code or 0)
        stdout.flush()
        out.write(stdout.buffer.getvalue().decode())  # type: ignore[attr-defined]
        return f"$ hlo-verify {' '.join(arguments)}\n{out.getvalue()}{err.getvalue()}exit status {status}"

    return run


def project(text: str, *arguments: str) -> Program:
    """The same in a project with such a pyproject.toml."""

    def run(folder: Path) -> object:
        (folder / "pyproject.toml").write_text(text)
        return told(*arguments)(folder)

    return run


MISTAKES: dict[str, Program] = {
    "file_that_is_not_there": told("step.mlir"),
    "option_that_there_is_not": told("logical.mlir", "--device", "four"),
    "format_that_there_is_not": told("logical.mlir", "--format", "yaml"),
    "folder_without_dumps": told("."),
    "empty_file": told("empty.mlir"),
    "program_for_a_module": told("train.py"),
    "jaxpr_for_a_module": told("jaxpr.txt"),
    "json_for_a_module": told("logical.mlir", "config.json"),
    "module_that_is_cut_off": told("logical.mlir", "cut.mlir"),
    "modules_in_another_order": told("partitioned.mlir", "logical.mlir"),
    "one_module_twice": told("logical.mlir", "logical.mlir"),
    "modules_of_other_programs": told("logical.mlir", "other.mlir"),
    "modules_for_other_devices": told("eight.mlir", "partitioned.mlir"),
    "module_for_one_device": told("one.mlir"),
    "module_that_is_partitioned": told("partitioned.mlir"),
    "sharding_of_another_rank": told("spec.mlir", "partitioned.mlir"),
    "constants_that_are_left_out": told("elided.txt"),
    "all_reduce_forgotten": told("logical.mlir", "partial.mlir"),
    "shardings_file_that_is_not_there": told("logical.mlir", "partitioned.mlir", "--shardings", "shardings.toml"),
    "shardings_that_are_no_toml": told("logical.mlir", "partitioned.mlir", "--shardings", "no_toml.toml"),
    "shardings_of_no_argument": told("logical.mlir", "partitioned.mlir", "--shardings", "no_argument.toml"),
    "shardings_over_no_axis": told("logical.mlir", "partitioned.mlir", "--shardings", "no_axis.toml"),
    "shardings_without_a_table": told("logical.mlir", "partitioned.mlir", "--shardings", "no_table.toml"),
    "shardings_of_another_rank": told("logical.mlir", "partitioned.mlir", "--shardings", "too_long.toml"),
    "assumption_that_cannot_be_read": told("logical.mlir", "partitioned.mlir", "--assume", "x > 0"),
    "assumption_of_no_argument": told("logical.mlir", "partitioned.mlir", "--assume", "tokens in [0, 32)"),
    "replay_of_no_witness": told("--replay", "logical.mlir"),
    "witness_without_a_folder": told("logical.mlir", "partial.mlir", "--witness", "bugs/one.witness"),
    "each_pass_of_a_file": told("--each-pass", "logical.mlir"),
    "code_that_there_is_not": told("--explain", "HV042"),
    "lint_of_a_program": told("lint", "train.py"),
    "lint_of_no_file": told("lint", "nowhere.txt"),
    "lint_of_no_code": told("lint", "elided.txt", "--select", "HVX"),
    "cache_that_does_something_else": told("cache", "delete"),
    "project_with_an_unknown_setting": project("[tool.hlo-verify]\ncolour = 'never'\n", "logical.mlir", "partial.mlir"),
    "project_with_a_wrong_setting": project("[tool.hlo-verify]\nformat = 'xml'\n", "logical.mlir", "partial.mlir"),
    "project_with_a_module_missing": project(
        "[tool.hlo-verify.custom-calls]\n'my.norm' = 'kernels.norm:rms'\n", "logical.mlir", "partitioned.mlir"
    ),
}
