"""The files of a case: one run of hlo-verify, its pictures, and the page about them."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

from hlo_verify import cli
from hlo_verify.render.pictures import STYLE
from tools.gallery.cases import ROOT, Case

FILES = {
    "html": "report.html",
    "text": "report.txt",
    "json": "report.json",
    "sarif": "report.sarif",
    "junit": "report.junit.xml",
    "markdown": "summary.md",
}
"""A file for each format."""

ISSUE, GRAPH, SCHEDULE = "issue.md", "graph.json", "schedule.svg"

_PICTURE = re.compile(r'<div class="picture">(<svg .*?</svg>)', re.DOTALL)


def make(case: Case, folder: Path) -> None:
    """Write the reports of a case into `folder`. The working directory is that of the repository."""
    more = [f"{format_}={folder / name}" for format_, name in FILES.items()]
    arguments = [*case.command, *(word for report in more for word in ("--report", report))]
    if case.is_lint:
        arguments += ["--svg", str(folder / SCHEDULE)]
    if case.issue:
        arguments += ["--issue", case.issue]
    with contextlib.chdir(ROOT):
        _run([*arguments, *(("-o", str(folder / ISSUE)) if case.issue else ())])
        if case.exported:
            _run(["export", "--model-explorer", str(folder / GRAPH), *case.exported])
    page = (folder / FILES["html"]).read_text()
    for number, picture in enumerate(_pictures(page), 1):
        (folder / f"picture-{number}.svg").write_text(picture)


def _run(arguments: list[str]) -> None:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        status = cli.main(arguments)
    if status not in (0, 1, 3):
        raise SystemExit(f"hlo-verify {' '.join(arguments)} ended with {status}")


def _pictures(page: str) -> Iterator[str]:
    """The pictures of a page, each as a file of its own."""
    for picture in _PICTURE.findall(page):
        end = picture.index(">") + 1
        yield f"{picture[:end]}<style>{STYLE}</style>{picture[end:]}\n"
