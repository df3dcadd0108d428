"""docs/gallery is what hlo-verify writes today, but for times, versions and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.gallery.cases import CASES, GALLERY, Case
from tools.gallery.make import FILES, GRAPH, ISSUE, SCHEDULE, make
from tools.gallery.pages import overview, page
from tools.gallery.structure import structure

LARGEST = 2_000_000
"""Bytes of the gallery."""


def name(case: Case) -> str:
    return case.name


@pytest.mark.drawn(2)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_case_is_what_is_written_today(case: Case, tmp_path: Path) -> None:
    make(case, tmp_path)
    for made in sorted(tmp_path.iterdir()):
        kept = case.folder / made.name
        assert kept.is_file(), f"python -m tools.gallery has not written {made.name}"
        assert structure(kept) == structure(made), made.name


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_case_has_every_format(case: Case) -> None:
    wanted = {*FILES.values(), "index.md"} | ({ISSUE} if case.issue else set()) | ({GRAPH} if case.exported else set())
    wanted |= {SCHEDULE} if case.is_lint else {"picture-1.svg"} if case.verdict == "REFUTED" else set()
    assert wanted <= {file.name for file in case.folder.iterdir()}
    assert case.verdict in (case.folder / FILES["text"]).read_text()


@pytest.mark.parametrize("case", CASES, ids=name)
def test_structure_sees_another_verdict_and_another_line(case: Case, tmp_path: Path) -> None:
    for kept in case.folder.iterdir():
        if kept.name not in (*FILES.values(), ISSUE):
            continue
        text = kept.read_text()
        for said, other in (("REFUTED", "PROVED"), (".py:1", ".py:9"), ("HV0", "HV1"), ("HV613", "HV612")):
            (tmp_path / kept.name).write_text(text.replace(said, other))
            if said in text and kept.suffix != ".sarif":  # which has paths and lines apart
                assert structure(tmp_path / kept.name) != structure(kept), (kept.name, said)


def test_pages_are_about_the_files() -> None:
    assert (GALLERY / "index.md").read_text() == overview()
    for case in CASES:
        assert (case.folder / "index.md").read_text() == page(case)


def test_the_gallery_is_small() -> None:
    assert sum(file.stat().st_size for file in GALLERY.rglob("*") if file.is_file()) < LARGEST
