"""The pages of docs/findings: their programs run as they stand, and print what the page says, or XLA has mended it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.hunt.known import KNOWN

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "findings").glob("*.md"))
_PROGRAM = re.compile(r"```python\n(.*?)```", re.S)
_PRINTED = re.compile(r"```text\n(whole .*?)```", re.S)
_SEEN = re.compile(r"^jaxlib (.*?), (?:no report|reported)", re.M)
_REPORT = re.compile(r"```text\n(REFUTED .*?)```", re.S)
_ELSEWHERE = re.compile(r"jaxlib [\d.]+|\d+ virtual|inputs .*|witness .*|there .*")
HEAD = "REFUTED  result  HV"
"""Of what is told in a report; before it stands a line that ends where a terminal does."""

RUN = """
import contextlib, io, sys
for path in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(open(path).read(), path, "exec"), {})
    print(said.getvalue() + "----", flush=True)
"""

CHECK = """
import hlo_verify

try:
    print(hlo_verify.check(sharded, *args))
except hlo_verify.InputError:
    pass
"""


def _programs() -> list[tuple[str, str]]:
    return [(page.stem, text) for page in PAGES for text in _PROGRAM.findall(page.read_text())]


def _run(arguments: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each program prints, all run in one child: they take the same virtual devices."""
    folder = tmp_path_factory.mktemp("findings")
    (folder / "run.py").write_text(RUN)
    paths = []
    for number, (_, text) in enumerate(_programs()):
        paths.append(folder / f"{number}.py")
        paths[-1].write_text(text)
    return _run([str(folder / "run.py"), *map(str, paths)]).split("----\n")[:-1]


@pytest.mark.drawn(3)
@pytest.mark.parametrize("number", range(len(_programs())), ids=lambda n: f"{_programs()[n][0]}-{n}")
def test_a_program_prints_what_its_page_says(number: int, printed: list[str]) -> None:
    page, text = _programs()[number]
    document = (ROOT / "docs" / "findings" / f"{page}.md").read_text()
    seen = _SEEN.search(document)
    assert seen is not None and text.count("print(") <= 3
    assert len(printed) == len(_programs())
    whole, sharded = printed[number].splitlines()
    if whole.removeprefix("whole  ") == sharded.removeprefix("sharded"):
        installed = importlib.metadata.version("jaxlib")
        assert installed not in seen[1], f"the page says that jaxlib {installed} has the defect"
        pytest.skip(f"jaxlib {installed} has mended it")
    if "except" not in text:  # what a module of wrong shape makes of memory is not told twice
        assert printed[number] in _PRINTED.findall(document)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page.stem for page in PAGES])
def test_a_report_is_the_one_of_the_page(page: str, tmp_path: Path) -> None:
    """But for the witness's numbers."""
    document = (ROOT / "docs" / "findings" / f"{page}.md").read_text()
    found = []
    for number, text in enumerate(_PROGRAM.findall(document)):
        program = tmp_path / str(number) / "program.py"
        program.parent.mkdir()
        program.write_text(text + CHECK)
        said = _run([str(program)]).replace(f"{program.parent}/", "")
        if HEAD in said:
            found.append(_told(said[said.index(HEAD) :].partition("\n\nCompared")[0]))
    assert found == [_told(text) for text in _REPORT.findall(document)]


def _told(report: str) -> str:
    return _ELSEWHERE.sub("", report).strip()


def test_known_causes_have_their_pages() -> None:
    assert {cause.page for cause in KNOWN if cause.page} == {page.stem for page in PAGES}
    index = (ROOT / "docs" / "findings.md").read_text()
    assert all(f"findings/{page.name}" in index for page in PAGES)
