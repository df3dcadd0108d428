"""What the documentation shows is so: its blocks run, its commands take the options that they are given, links hold."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, PartitionSpec

import hlo_verify
from hlo_verify import options
from hlo_verify.linter import cli as lint_cli
from hlo_verify.passes.refute import refute

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN_ELSEWHERE = {"README.md": "tests/test_examples.py", "docs/first-verdict.md": "tests/test_first_verdict.py"}
RUN_ELSEWHERE |= {
    f"docs/findings/{page.name}": "tests/hunt/test_findings.py" for page in (ROOT / "docs/findings").glob("*")
}
RUN_ELSEWHERE |= {
    page.relative_to(ROOT).as_posix(): "tests/test_gallery.py" for page in (ROOT / "docs/gallery").rglob("*.md")
}
"""Pages whose blocks run where what they print is looked at more closely."""

PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*((?:hlo-verify|python -m) .*)$", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
FENCED = re.compile(r"^```(?:sh)?\n(.*?)^```|^(?: {4}.*\n)+", re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def surroundings() -> dict[str, Any]:
    """What a block may take as given: a function, a distributed one, and an argument."""
    names = {"jax": jax, "jnp": jnp, "partial": partial, "P": PartitionSpec, "hlo_verify": hlo_verify}
    part = PartitionSpec("d")
    split = jax.shard_map(jnp.tanh, mesh=AbstractMesh((2,), ("d",)), in_specs=part, out_specs=part)
    return {**names, "f": jnp.tanh, "g": split, "x": jax.ShapeDtypeStruct((4,), jnp.float32)}


def is_a_sketch(block: str) -> bool:
    """Whether a block leaves something out, or defines functions alone, whose bodies use what a reader has."""
    tree = ast.parse(block)
    dots = any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(tree))
    return dots or all(isinstance(node, ast.FunctionDef) for node in tree.body)


@pytest.mark.parametrize("page", [page for page in PAGES if PYTHON.search(page.read_text())], ids=name)
def test_blocks_of_python_run_and_print_what_is_shown(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refute, "is_small", lambda pair: False)  # XLA need not run them as well
    text, given = page.read_text(), surroundings()
    for number, block in enumerate(PYTHON.findall(text)):
        for used in re.findall(r"hlo_verify\.(\w+)", block):
            assert hasattr(hlo_verify, used) or importlib.util.find_spec(f"hlo_verify.{used}"), used
        if name(page) not in RUN_ELSEWHERE and not is_a_sketch(block):
            path = f"{page.stem}.py"
            exec(compile("\n" * (4 if number == 0 else 30) + block, path, "exec"), given)
    if name(page) not in RUN_ELSEWHERE:
        printed = re.sub(r"\S+\.py:\d+", "LINE", capsys.readouterr().out)
        for shown in OUTPUT.findall(text):
            assert re.sub(r"\S+\.py:\d+", "LINE", shown) in printed, printed


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_have_the_options_that_they_are_given(page: Path) -> None:
    known = {
        "hlo-verify": set(options.make_parser()._option_string_actions),
        "hlo-verify lint": set(lint_cli.make_parser()._option_string_actions),
    }
    for found in FENCED.finditer(page.read_text()):
        for command in COMMAND.findall(found[0].replace("\\\n", " ")):
            for part in command.split("&&"):
                words = part.split("#")[0].split("|")[0].split()
                if words[:2] == ["python", "-m"] and words[2].startswith(("tools", "benchmarks", "hlo_verify")):
                    assert importlib.util.find_spec(words[2]) is not None, part
                elif words[:1] == ["hlo-verify"] and words[1:2] not in (["cache"], ["export"]):
                    program = "hlo-verify lint" if words[1:2] == ["lint"] else "hlo-verify"
                    assert set(OPTION.findall(" ".join(words))) <= known[program], part


def test_links_lead_somewhere() -> None:
    """Within the repository; mkdocs looks at the site's, and at anchors."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)\s#]+)[^)\s]*\)", page.read_text()):
            assert (page.parent / target).exists(), f"{name(page)}: {target}"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the site is built where it can be: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert ended.returncode == 0, ended.stderr[-2000:]
    for made in ("index.html", "codes/HV002.html", "examples/megatron_mlp.py.html", "decisions/plans.html"):
        assert (tmp_path / "site" / made).is_file(), made
