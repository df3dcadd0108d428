"""The commands of the documentation run as they stand, in a folder that has what they name; a list says of the others
why they do not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlo_verify import cli, schedules

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "lint").glob("*.md"))]

NOT_RUN = {
    r"^(python|docker|(venv/bin/)?pip|pytest)\b": "a tool with tests of its own, or installs something",
    r"\[--|…|\|": "a pattern of a command, or a pipe",
    r"^hlo-verify (lint )?(DUMP_DIR|DIR|.*tp[12]|.*rank\d|.*rank[ab])": "on folders of a reader, as tests/sources has",
    r"--assume|--approximation": "about arguments of a reader's program; tests/test_preconditions.py has such",
    r"--replay|--witness|mended": "needs what another command saved; tests/test_cli.py replays one",
    r"--ray": "needs a cluster; tests/test_cluster.py has one",
    r"--open|--watch": "opens a browser, or waits",
    r"^hlo-verify lint .*(\.\d\d\.|source\.|\.pb\.gz)": "on modules outside of the repository",
}
"""Commands that are not run, by what they look like, and why."""

STAND_INS = {
    "LOGICAL": "testdata/mlp_tp/logical.hlo.gz",
    "PARTITIONED": "testdata/mlp_tp/partitioned.hlo.gz",
    "one.mlir": "docs/gallery/wrong-axis/logical.mlir",
    "other.mlir": "docs/gallery/wrong-axis/partitioned.mlir",
    "reference.mlir": "docs/gallery/wrong-axis/logical.mlir",
    "with_shard_map.mlir": "docs/gallery/wrong-axis/partitioned.mlir",
    "step.mlir": "docs/gallery/dropped-pad/logical.mlir",
    "module.mlir": "docs/gallery/dropped-pad/logical.mlir",
    "decode_kv.txt": "docs/gallery/uneven-loop/module.txt",
    "decode_kv-buffer-assignment.txt": "docs/gallery/uneven-loop/module-buffer-assignment.txt",
    "h100.cond_inner_axis.hlo.gz": "testdata/scheduled/h100.cond_inner_axis.hlo.gz",
    "no_done.txt": "testdata/scheduled/h100.cond_inner_axis.thunks.txt.gz",
    "/tmp/dump": "docs/gallery/each-pass/dump",
}
"""What stands for a file that a page names."""

_COMMAND = re.compile(r"(?:hlo-verify|python|docker|pip|pytest) .*")


def shell_lines(text: str) -> Iterator[str]:
    """The lines of a page's blocks of a shell: fenced as such, with a prompt, or indented."""
    language: str | None = None
    for line in text.splitlines():
        if line.startswith("```"):
            language = line.removeprefix("```") if language is None else None
        elif language == "sh" or (language == "" and line.startswith("$ ")):
            yield line.removeprefix("$ ")
        elif language is None and line.startswith("    "):
            yield line.strip().removeprefix("$ ")


def commands() -> list[tuple[str, str]]:
    """The commands, each once, with the first page that has it."""
    found: dict[str, str] = {}
    for page in PAGES:
        for line in shell_lines(page.read_text()):
            if _COMMAND.match(line):
                for part in line.split(" &&"):
                    found.setdefault(part.partition(" #")[0].strip(), page.name)
    return [(page, command) for command, page in found.items()]


def reason(command: str) -> str:
    """Why a command is not run; empty if it is."""
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, command)), "")


RUN = [each for each in commands() if not reason(each[1])]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder as a reader may have one."""
    for name in ("testdata", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, stands in STAND_INS.items():
        if not name.startswith("/"):
            (tmp_path / name).symlink_to(ROOT / stands)
    schedule = schedules.with_transfers(schedules.interleaved_1f1b(4, 8, 2), late=True)
    (tmp_path / "interleaved.txt").write_text(str(schedule))
    monkeypatch.chdir(tmp_path)


@pytest.mark.drawn(5)
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("page", "command"), RUN, ids=lambda text: re.sub(r"\W+", "-", text)[:60])
def test_a_command_runs(page: str, command: str) -> None:
    given = [STAND_INS.get(word, word) for word in shlex.split(command)[1:]]
    if given[0] not in ("lint", "export"):
        given.append("--no-progress")
    assert cli.main(given) in (0, 1, 3), f"{page}: give its files a stand-in, or say why it is not run"


def test_no_reason_is_idle() -> None:
    assert len(RUN) > 10
    for pattern in NOT_RUN:
        assert any(re.search(pattern, command) for _, command in commands()), pattern
    assert all(any(name in command for _, command in RUN) for name in STAND_INS)
