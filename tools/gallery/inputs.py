"""Modules of the cases' programs, compiled by the XLA of this jaxlib in a child process.

What another jaxlib makes of them may be right: the modules are kept beside the programs, and remade on request alone.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.gallery.cases import ROOT, Case

CHILD = """
import sys
from pathlib import Path
import jax

path, into, kind = sys.argv[1:]
given = {}
exec(compile(Path(path).read_text(), path, "exec"), given)
for name, side in (("whole", "logical"), ("sharded", "partitioned")):
    if name in given and (name == "sharded" or kind == "pair"):
        function = jax.jit(given[name]) if kind == "pair" else given[name]
        lowered = function.trace(*given["args"]).lower(lowering_platforms=("cpu",))
        Path(into, f"{side}.mlir").write_text(lowered.as_text(debug_info=True))
        if kind in ("dump", "final"):
            lowered.compile()
"""
"""Runs a program of the gallery and writes what it is lowered to. Its lines are nobody's, in what JAX notes."""

DUMPING = "--xla_dump_hlo_as_text --xla_dump_large_constants=true"
DEVICES = "--xla_force_host_platform_device_count=8"


def remake(case: Case) -> None:
    """Compile the case's program and put its modules into its folder."""
    with tempfile.TemporaryDirectory() as scratch:
        into = Path(scratch)
        flags = DEVICES
        if case.inputs in ("dump", "final"):
            flags += f" --xla_dump_to={into / 'dump'} {DUMPING}"
        if case.inputs == "dump":
            flags += " --xla_dump_hlo_pass_re=.*"
        program = f"docs/gallery/{case.name}/program.py"
        environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": ""}
        child = [sys.executable, "-c", CHILD, program, scratch, case.inputs]
        subprocess.run(child, cwd=ROOT, env=environment, check=True, timeout=300)
        _keep(case, into)


def _keep(case: Case, made: Path) -> None:
    if case.inputs == "pair":
        for side in ("logical", "partitioned"):
            (case.folder / f"{side}.mlir").write_text((made / f"{side}.mlir").read_text())
    elif case.inputs == "partitioned":
        kept = made / "kept"
        command = [
            sys.executable,
            "-m",
            "hlo_verify",
            str(made / "partitioned.mlir"),
            "--keep",
            str(kept),
            "--no-progress",
        ]
        subprocess.run(command, cwd=ROOT, check=False, timeout=300, capture_output=True)
        for name in ("logical.mlir", "partitioned.hlo"):
            (case.folder / name).write_text((kept / name).read_text())
    elif case.inputs == "final":
        for file in (made / "dump").glob("*after_optimizations*"):
            rest = file.name.partition("after_optimizations")[2]
            if rest in (".txt", "-buffer-assignment.txt", "-buffer-assignment-values.txt"):
                (case.folder / f"module{rest}").write_text(file.read_text())
    elif case.inputs == "dump":
        folder = case.folder / "dump"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file in sorted((made / "dump").glob("module_*.txt")):
            if file.name.split(".")[2].isdigit() or file.name.endswith(".cpu_after_optimizations.txt"):
                (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
