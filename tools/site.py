"""What the documentation's site has beside docs/: the README as its first page, the examples, and a page for each code.

A hook of MkDocs (mkdocs.yml). The files of docs/ are read in the repository too, so that links in them are as they are
there; here those that leave docs/ lead to the pages that stand for it, and what has no page is named without a link.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!https?:|#)([^)\s]+)\)")
HEADING = re.compile(r"^### (HV\d+): (.*)$", re.MULTILINE)
DIRECTORIES = {"examples": "examples/index.md", "docs/decisions": "decisions/index.md", "docs/lint": "lint.md"}


def pages() -> Iterator[tuple[str, str]]:
    """Pages that are made, by where they stand under docs/."""
    yield "index.md", _moved((ROOT / "README.md").read_text(), "README.md", "index.md")
    yield "changelog.md", _moved((ROOT / "CHANGELOG.md").read_text(), "CHANGELOG.md", "changelog.md")
    yield from _examples()
    yield from _codes()
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    lines = [f"- [{_title(path.read_text())}]({path.name})" for path in decisions]
    yield "decisions/index.md", "# Decisions\n\nWhy things are as they are.\n\n" + "\n".join(lines) + "\n"


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ").strip()


def _examples() -> Iterator[tuple[str, str]]:
    lines = []
    for path in sorted((ROOT / "examples").glob("*.*")):
        if path.suffix not in (".py", ".sh"):
            continue
        text, language = path.read_text(), {".py": "python", ".sh": "sh"}[path.suffix]
        first = re.search(r'"""(.+?)(?:\n|""")' if language == "python" else r"^# (.+)$", text, re.MULTILINE)
        says = first[1].strip() if first else ""
        lines.append(f"- [{path.name}]({path.name}.md): {says}")
        yield f"examples/{path.name}.md", f"# {path.name}\n\n```{language}\n{text}```\n"
    lines = ["# Examples", "", "Each runs by itself, in seconds, and has a mistake that is caught.", "", *lines, ""]
    yield "examples/index.md", "\n".join(lines)


def _codes() -> Iterator[tuple[str, str]]:
    """A page for each code, as docs/codes.md has it."""
    text = (ROOT / "docs" / "codes.md").read_text()
    starts = [*HEADING.finditer(text)]
    for at, found in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        said = re.sub(r"^## .*", "", text[found.end() : end], flags=re.MULTILINE | re.DOTALL)
        yield f"codes/{found[1]}.md", f"# {found[1]}: {found[2]}\n{said}\n[All codes](../codes.md)\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links that hold on the site."""
    path = page.file.src_uri
    if path == "codes.md":
        return HEADING.sub(r"### [\1](codes/\1.md): \2", markdown)
    return markdown if page.file.generated_by else _moved(markdown, f"docs/{path}", path)


def _moved(text: str, path: str, to: str) -> str:
    """A file's text whose links hold where it is put; `path` is where it stands in the repository."""

    def link(found: re.Match[str]) -> str:
        says, (target, _, anchor) = found[1], found[2].partition("#")
        here = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        there = _page(here)
        if there is None:
            return says if says.startswith("`") else f"`{says}`"
        way = posixpath.relpath(there, posixpath.dirname(to) or ".")
        return f"[{says}]({way}{'#' + anchor if anchor else ''})"

    return LINK.sub(link, text).replace("](docs/", "](")


def _page(path: str) -> str | None:
    """The page that stands for a file or folder of the repository."""
    if path in DIRECTORIES:
        return DIRECTORIES[path]
    if path == "README.md":
        return "index.md"
    if path == "CHANGELOG.md":
        return "changelog.md"
    if path.startswith("examples/"):
        return f"{path}.md" if (ROOT / path).is_file() else None
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None
