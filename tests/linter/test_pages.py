"""The pages of docs/lint: each check has one, with the same headings, and every code stands on one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlo_verify.diagnostics import CODES

DOCS = Path(__file__).parents[2] / "docs"
INDEX = DOCS / "lint.md"
PAGES = sorted(path for path in (DOCS / "lint").glob("*.md") if path.name != "measured.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_a_check_proves_assumes_and_cannot_see_and_shows_a_finding(page: Path) -> None:
    text = page.read_text()
    proves, *others = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert proves in ("What it proves", "What it says")
    assert others == ["What it assumes", "What it cannot see", "A real finding"]
    finding = text.split("## A real finding")[1]
    assert re.search(r"^    \$ ", finding, re.MULTILINE) and re.search(r"(?:error|warning)\[HV\d+\]", finding)


def test_every_code_has_a_page() -> None:
    ranges = [(int(low), int(high or low)) for low, high in re.findall(r"HV(\d+)(?: to HV(\d+))?", INDEX.read_text())]
    codes = [code for code in CODES if code.startswith(("HV5", "HV6", "HV7", "HV8"))]
    assert codes
    assert [code for code in codes if not any(low <= int(code[2:]) <= high for low, high in ranges)] == []


@pytest.mark.parametrize("page", [INDEX, *sorted((DOCS / "lint").glob("*.md"))], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link
