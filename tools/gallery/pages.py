"""The pages about the cases, for the site and for who reads the repository."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hlo_verify.render.wrapping import wrapped
from tools.gallery.cases import CASES, Case
from tools.gallery.make import FILES, GRAPH, ISSUE, SCHEDULE

_SAID = {
    FILES["html"]: "the page, which is shown above",
    FILES["text"]: "text, as a file has it",
    FILES["json"]: "JSON, for programs ([what its fields mean](../../json.md))",
    FILES["sarif"]: "SARIF, for code hosts and editors",
    FILES["junit"]: "JUnit XML, for continuous integration",
    FILES["markdown"]: "Markdown, for the summary of a job or a comment",
    ISSUE: "the bug report, as `--issue xla` writes it",
    SCHEDULE: "the schedule as a picture (`--svg`)",
    GRAPH: "the graphs for Model Explorer, with what is known of their nodes beside it (`graph.*.json`)",
}

COLUMNS = 96
"""Of the terminal whose text a page shows."""

_FRAME = "width: 100%; height: 44rem; border: 1px solid #8888; border-radius: 6px"


def overview() -> str:
    """The first page of the gallery."""
    lines = [
        "# Gallery",
        "",
        "Five real cases, each in every format that a report has. The files are what one run of hlo-verify wrote, with "
        "the times and versions of the day; a test makes them anew on every change and compares verdicts, codes, "
        "source lines and sections.",
        "",
        "| case | verdict | |",
        "|---|---|---|",
    ]
    lines += [f"| [{case.title}]({case.name}/index.md) | {case.verdict} | {_first(case.about)} |" for case in CASES]
    lines += ["", "`python -m tools.gallery` makes them, `--check` says what is out of date.", ""]
    return "\n".join(lines)


def page(case: Case) -> str:
    """The page of a case whose files are there."""
    return "\n".join([f"# {case.title}", "", case.about, "", *_parts(case)]) + "\n"


def _parts(case: Case) -> Iterator[str]:
    program = case.folder / "program.py"
    if program.is_file():
        yield from ("```python", program.read_text().rstrip(), "```", "")
    yield from (f"    {shlex.join(('hlo-verify', *case.command))}", "")
    yield from (
        "## In a browser",
        "",
        "By `--format html -o report.html`, or `--open`; [by itself](report.html) it has more room.",
        "",
    )
    yield f'<iframe src="report.html" title="The page: {case.title}" loading="lazy" style="{_FRAME}"></iframe>'
    yield from (
        "",
        "## In a terminal",
        "",
        "```text",
        wrapped((case.folder / FILES["text"]).read_text().rstrip(), COLUMNS),
        "```",
        "",
    )
    yield from ("## Files", "")
    kept = [case.folder / name for name in _SAID if (case.folder / name).is_file()]
    yield from (f"- [{file.name}]({file.name}): {_SAID[file.name]}" for file in kept)
    pictures = sorted(case.folder.glob("picture-*.svg"))
    if pictures:
        links = ", ".join(f"[{file.name}]({file.name})" for file in pictures)
        yield f"- {links}: the page's pictures by themselves"
    inputs = [
        file
        for file in sorted(case.folder.iterdir())
        if file.suffix in (".mlir", ".hlo") or file.name.startswith("module")
    ]
    if inputs:
        yield f"- {', '.join(f'[{file.name}]({file.name})' for file in inputs)}: what was looked at"
    if not case.exported and not case.is_lint and case.inputs != "dump":
        command = f"hlo-verify export --model-explorer step.json {shlex.join(case.command)}"
        yield f"- `{command}` writes the graphs for Model Explorer: 2.9 MB, so they are not kept here"


def _first(about: str) -> str:
    return about.partition(". ")[0].partition(": ")[0].rstrip(".").replace("](../../", "](../")
