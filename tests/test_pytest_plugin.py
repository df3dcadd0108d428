"""The plugin of pytest, in a run of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from hlo_verify import checking
from hlo_verify import pytest_plugin as plugin
from hlo_verify.report import Verdict
from hlo_verify.shown import shown
from tests import programs

ROOT = Path(__file__).resolve().parents[1]

TESTS = """
import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec as P

MESH = AbstractMesh((4,), ("d",))
X = jax.ShapeDtypeStruct((16,), jnp.float32)


def by(reduce):
    return jax.shard_map(lambda x: reduce(x.sum(), "d"), mesh=MESH, in_specs=P("d"), out_specs=P())


def test_right(hlo_verify):
    assert hlo_verify.check(jnp.sum, by(lax.psum), X).devices == 4


@pytest.mark.parametrize("by_name", ["a/b"])
def test_wrong(hlo_verify, by_name):
    hlo_verify.check(jnp.sum, by(lax.psum), X)
    hlo_verify.check(jnp.sum, by(lax.pmean), X)


def test_late(hlo_verify):
    hlo_verify.check(jnp.sum, by(lax.psum), X, time_limit=1e-9)
"""

LINTED = """
WAITED = "HloModule m, is_scheduled=true\\nENTRY e {\\n  ROOT p = f32[4] parameter(0)\\n}\\n"
NEVER = WAITED.replace("ROOT p", "p").replace("\\n}", "\\n  ROOT s = (f32[4], f32[4], u32[]) copy-start(p)\\n}")


def test_clean(hlo_verify):
    assert hlo_verify.lint(WAITED).looked_at["instructions"] == 1


def test_defect(hlo_verify):
    hlo_verify.lint(NEVER)
"""


def run(folder: Path, *options: str, tests: str = TESTS) -> subprocess.CompletedProcess[str]:
    (folder / "test_them.py").write_text(tests)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "JAX_PLATFORMS": "cpu"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-p", "hlo_verify.pytest_plugin", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_a_failure_prints_the_report(tmp_path: Path) -> None:
    done = run(tmp_path, "--hlo-verify-dump", "kept")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 1 passed" in done.stdout
    assert "REFUTED  result  HV006: a constant factor is wrong" in done.stdout
    assert "UNKNOWN  0 of 1 result proved on 4 devices" in done.stdout
    assert "pytest_plugin.py" not in done.stdout  # the line at fault is the test's
    kept = {
        path.relative_to(tmp_path / "kept").as_posix() for path in (tmp_path / "kept").rglob("*.*") if path.is_file()
    }
    wrong = {f"test_them.py_test_wrong_a_b_/{check}" for check in range(2)}
    folders = {"test_them.py_test_right/0", "test_them.py_test_late/0", *wrong}
    assert kept == {f"{folder}/{n}" for folder in folders for n in ("logical.mlir", "partitioned.mlir", "report.txt")}
    assert "REFUTED" in (tmp_path / "kept/test_them.py_test_wrong_a_b_/1/report.txt").read_text()


def test_a_time_limit(tmp_path: Path) -> None:
    done = run(tmp_path, "--hlo-verify-time-limit", "0.000000001", "-k", "right")
    assert "1 failed" in done.stdout and "the time was up" in done.stdout
    done = run(tmp_path, "--hlo-verify-time-limit", "-1")
    assert done.returncode == 4 and "-1 is no number of seconds" in done.stderr


@pytest.mark.slow
def test_no_time_limit(tmp_path: Path) -> None:
    assert run(tmp_path, "--hlo-verify-time-limit", "0", "-k", "right").returncode == 0


def test_it_is_an_entry_point() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert list(points) == ["hlo_verify"]
    assert import_module(points["hlo_verify"]).Checker


def test_a_final_module_that_has_a_defect(tmp_path: Path) -> None:
    done = run(tmp_path, tests=LINTED)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "error[HV703] s: no copy-done waits for it" in done.stdout


def test_names_of_folders(tmp_path: Path) -> None:
    """They fit a file system, and those of two tests are two."""
    assert plugin._as_name("a/test_b.py::test_c[d-1]") == "a_test_b.py_test_c_d-1_"
    for letter in ("x", "\u03bb", "\U0001d49c", "\udc80"):
        one, other = (plugin._as_name(f"test_a[{letter * 300}{n}]") for n in (1, 2))
        assert one != other and one.startswith("test_a_")
        (tmp_path / one).mkdir()


def test_reports_are_kept_in_one_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever that of the system is."""
    given = replace(programs.report(Verdict.PROVED), compared="8 \u00d7 \u03bb \u2026 \udc80")
    monkeypatch.setattr(checking, "check", lambda *args, **kwargs: shown(given))
    written: list[str | None] = []
    write = Path.write_text

    def noted(path: Path, text: str, encoding: str | None = None, **rest: str) -> int:
        written.append(encoding)
        return write(path, text, encoding, **rest)

    monkeypatch.setattr(Path, "write_text", noted)
    plugin.Checker(tmp_path / "a", None).check(None)
    assert written == ["utf-8"] and "8 \u00d7 \u03bb" in (tmp_path / "a" / "0" / "report.txt").read_text("utf-8")
