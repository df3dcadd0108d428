"""Every pair in `testdata/` is proved, and no broken twin is.

What a folder holds and how it was made is in its manifest; `python -m tools.fixtures` makes them.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
import pytest

import hlo_verify

ROOT = Path(__file__).resolve().parents[1]
TESTDATA = ROOT / "testdata"
NAMES = sorted(path.parent.name for path in TESTDATA.glob("*/manifest.json"))


@cache
def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TESTDATA / name / "manifest.json").read_text())
    return found


DEAR = ("conv_spatial", "encoder_uneven", "gspmd_encoder_uneven", "transformer_train_512")
"""Pairs that take as long as twenty of the others. Halos, padding and layers that repeat are in smaller ones too."""

DEAR_TWINS = (*DEAR, "conv", "transformer", "gspmd_transformer", "shardmap_vocab_xent/broken_off_by_one")
"""Twins of these as well: their parts are in other twins, of blocks and of small modules."""


def priced(name: str, file: str = "") -> Any:
    """A case that is slow where it takes long."""
    is_dear = f"{name}/{file}".startswith(DEAR_TWINS) if file else name in DEAR
    return pytest.param(*filter(None, (name, file)), marks=[pytest.mark.slow] if is_dear else [])


TWINS = [priced(name, twin["file"]) for name in NAMES for twin in manifest(name)["broken"]]


def locations(report: hlo_verify.Report) -> set[str]:
    """Every source line that the report points at."""
    return {result.finding.location for result in report.results if result.finding is not None}


@pytest.mark.parametrize("name", [priced(name) for name in NAMES])
def test_good_pair_is_proved(name: str) -> None:
    folder = TESTDATA / name
    report = hlo_verify.verify(folder / manifest(name)["logical"], folder / manifest(name)["partitioned"])
    unproved = [result for result in report.results if result.verdict != hlo_verify.Verdict.PROVED]
    assert not unproved
    assert report.verdict == manifest(name)["expect"]


SMALL = ("embedding_", "gspmd_mlp", "mlp_", "shardmap_fsdp", "shardmap_megatron", "shardmap_vocab")
"""Modules that are evaluated in a second or two, and so refuted in passing; the others only take longer."""


KINDS = {
    "halos and padding": ("conv", "encoder", "masks"),
    "blocks": ("attention", "moe"),
    "networks": ("transformer",),
}
"""Of the others, which are broken in the same ways: what fixtures of a kind have in their names."""


def kind(name: str, file: str) -> str:
    """Small modules are of a kind of their own."""
    kinds = (kind for kind, names in KINDS.items() if any(each in name for each in names))
    return name if name.startswith(SMALL) else next(kinds)


@pytest.mark.drawn(1, each=kind)
@pytest.mark.parametrize(("name", "file"), TWINS)
def test_broken_twin_is_not_proved(name: str, file: str) -> None:
    """No broken twin is proved, and the report names the line that was broken; where that is quick, it is refuted."""
    folder = TESTDATA / name
    (twin,) = (twin for twin in manifest(name)["broken"] if twin["file"] == file)
    is_small = name.startswith(SMALL)
    report = hlo_verify.verify(folder / manifest(name)["logical"], folder / file, refute=is_small)
    assert report.verdict == (hlo_verify.Verdict.REFUTED if is_small else hlo_verify.Verdict.UNKNOWN), twin["what"]
    assert locations(report), "no source line at all"
    assert twin["source"] in locations(report), twin["what"]


@pytest.mark.parametrize("name", NAMES)
def test_folder_is_whole(name: str) -> None:
    """The manifest names every file and only those; texts are complete and say nothing of the machine."""
    folder, described = TESTDATA / name, manifest(name)
    files = [described["logical"], described["partitioned"], *(twin["file"] for twin in described["broken"])]
    assert sorted([*files, "manifest.json"]) == sorted(path.name for path in folder.iterdir())
    assert described["broken"]
    texts = {file: gzip.decompress((folder / file).read_bytes()).decode() for file in files}
    assert len(set(texts.values())) == len(texts)
    for file, text in texts.items():
        assert "{...}" not in text, file
        assert str(ROOT) not in text and "site-packages" not in text, file


@pytest.mark.parametrize("name", NAMES)
def test_twin_names_a_line_that_exists(name: str) -> None:
    for twin in manifest(name)["broken"]:
        file, _, line = twin["source"].rpartition(":")
        assert (ROOT / file).read_text().splitlines()[int(line) - 1].strip(), twin["file"]


def test_every_fixture_of_the_catalogue_is_there() -> None:
    script = "from tools.fixtures.catalogue import FIXTURES; print(*FIXTURES)"
    names = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert sorted(names.split()) == NAMES


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["mlp_dp", "shardmap_fsdp"])
def test_remaking_gives_the_same_text(name: str, tmp_path: Path) -> None:
    versions = manifest(name)["versions"]
    if (versions["jax"], versions["jaxlib"]) != (jax.__version__, jaxlib.__version__):
        pytest.skip(f"made with jax {versions['jax']}, this is {jax.__version__}")
    command = [sys.executable, "-m", "tools.fixtures", name, "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for file in sorted(path.name for path in (TESTDATA / name).glob("*.gz")):
        remade, kept = (gzip.decompress((folder / name / file).read_bytes()) for folder in (tmp_path, TESTDATA))
        assert remade == kept, file
