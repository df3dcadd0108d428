"""Drawings of schedules as SVG."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.schedules import draw, dualpipe, gpipe, one_f_one_b, parse, run, svg, zb_h1
from hlo_verify.schedules.schedule import Schedule

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    "schedule",
    [gpipe(2, 2), one_f_one_b(3, 4), zb_h1(4, 8), dualpipe(4, 8)],
    ids=["gpipe", "1f1b", "zb", "dualpipe"],
)
def test_every_computation_has_a_box_when_it_runs(schedule: Schedule) -> None:
    timeline = run(schedule)
    assert timeline is not None
    root = ElementTree.fromstring(svg(schedule))
    boxes = list(root.iter(f"{SVG}g"))
    assert len(boxes) == sum(len(row) for row in timeline.ranks)
    labels = sorted(box.findtext(f"{SVG}text") or "" for box in boxes)
    assert labels == sorted(str(action) for row in timeline.ranks for _, action in row)
    by_row: dict[str, list[tuple[float, float]]] = {}
    for box in boxes:
        rectangle = box.find(f"{SVG}rect")
        assert rectangle is not None
        left = float(rectangle.get("x", "0"))
        by_row.setdefault(rectangle.get("y", ""), []).append((left, left + float(rectangle.get("width", "0"))))
    for row in by_row.values():
        row.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(row))


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schedule, picture = tmp_path / "schedule.txt", tmp_path / "schedule.svg"
    schedule.write_text("0F0 0B0\n1F0 1B0\n")
    assert draw(parse(schedule.read_text()))
    assert cli.main(["lint", "--pipeline", str(schedule), "--svg", str(picture)]) == 0
    assert ElementTree.fromstring(picture.read_text()).tag == f"{SVG}svg"
    assert cli.main(["lint", "--pipeline", str(schedule), str(schedule), "--svg", str(picture)]) == 2
    assert "with --pipeline and one schedule" in capsys.readouterr().err


def test_what_never_ends_has_no_picture() -> None:
    with pytest.raises(InputError, match="waits forever"):
        svg(parse("1F0 0F0\n1B0 0B0\n"))
