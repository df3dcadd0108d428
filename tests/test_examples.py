"""The examples run and end with success, from any folder."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hlo_verify import NotProvedError, Verdict
from hlo_verify.passes.refute import refute
from tools import picture

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
COMMANDS = {
    **{
        name: [sys.executable, EXAMPLES / f"{name}.py"]
        for name in (
            "annotated_jit",
            "batch_statistics",
            "shard_map_reference",
            "fsdp_optax",
            "gpipe",
            "kv_cache",
            "megatron_attention",
            "megatron_mlp",
            "mixture_of_experts",
            "one_forward_one_backward",
            "pipeline_plan",
            "ring_attention",
            "sequence_parallel",
            "summa",
            "ulysses",
            "vocabulary_loss",
            "zero",
        )
    },
    "dump_folder": ["sh", EXAMPLES / "dump_folder.sh"],
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_example_succeeds(name: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "",
        "HLO_VERIFY_CACHE_DIR": "",
    }
    if name in ("fsdp_optax", "zero"):
        pytest.importorskip("optax")
    done = subprocess.run(COMMANDS[name], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PROVED" in done.stdout


def test_the_first_program_of_the_readme_is_refuted() -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    with pytest.raises(NotProvedError, match="the factor is 1/8 where 1 is expected") as raised:
        exec(program, {})
    assert raised.value.report.verdict is Verdict.REFUTED


def test_the_picture_of_the_readme_shows_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m tools.picture` draws it anew."""
    monkeypatch.setattr(refute, "is_small", lambda pair: False)  # XLA need not run them as well
    drawn = html.unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", picture.PICTURE.read_text())))
    seen = "".join(drawn.split())
    told = re.sub(r"\x1b\[[\d;]*m", "", picture.report())
    for line in told.splitlines():
        if not line.startswith(("  replayed", "Assumed")):
            assert "".join(line.split())[:80] in seen, line
