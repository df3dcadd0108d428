"""Timelines of scheduled modules, from what the linter knows, and their picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.buffers import parse_assignment, parse_values
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter.lint import lint
from hlo_verify.linter.reading import read, text_of
from hlo_verify.linter.timeline import picture, timeline

SVG = "{http://www.w3.org/2000/svg}"
SCHEDULED = Path(__file__).resolve().parents[2] / "testdata" / "scheduled"

MODULE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  s = (f32[4], f32[4], u32[]) copy-start(p)
  a = f32[4] negate(p)
  d = f32[4] copy-done(s)
  b = f32[4] negate(a)
  c = f32[4] add(a, b)
  ROOT r = f32[4] add(c, d)
}
"""


def assignment(**places: int) -> str:
    lines = [f" value: <{n} {name} @0> (size=16,offset={at}): f32[4]" for n, (name, at) in enumerate(places.items())]
    return "\n".join(["BufferAssignment:", "allocation 7: size 64, preallocated-temp:", *lines, "", "Total: 0", ""])


def test_instructions_transfers_and_bytes() -> None:
    found = timeline(parse_hlo(MODULE), parse_assignment(assignment(a=0, b=16, c=32)))
    assert [span.name for span in found.instructions] == ["p", "s", "a", "d", "b", "c", "r"]
    assert [(span.kind, span.begin) for span in found.instructions][1:4] == [
        ("start or done", 2),
        ("compute", 3),
        ("start or done", 4),
    ]
    assert [(span.name, span.begin, span.end, span.kind) for span in found.transfers] == [("s", 2, 4, "move")]
    # a is kept from tick 3 to 6, b from 5 to 6, c from 6 to 7
    assert dict(found.memory) == {1: 0, 3: 16, 5: 32, 6: 48, 7: 16}
    assert not found.buffers and not any(span.at_fault for span in found.instructions)


def test_bytes_that_values_share_count_once() -> None:
    found = timeline(parse_hlo(MODULE), parse_assignment(assignment(a=0, b=8, c=32)))
    assert dict(found.memory)[5] == 24


def test_bytes_of_parameters_are_kept_throughout() -> None:
    given = assignment(a=0).replace("Total: 0", "allocation 8: size 16, parameter 0, shape |f32[4]|:\n\nTotal: 0")
    given = given.replace("\n\nallocation 8", "\nallocation 8")
    found = timeline(parse_hlo(MODULE), parse_assignment(given))
    assert dict(found.memory) == {1: 16, 3: 32, 7: 16}


def test_the_allocation_at_fault_is_drawn() -> None:
    given = assignment(a=0, b=8, c=32)
    findings = lint(MODULE, buffers=given).findings
    found = timeline(parse_hlo(MODULE), parse_assignment(given), findings=findings)
    assert found.allocation == "allocation 7"
    assert [(kept.name, kept.low, kept.high, kept.at_fault) for kept in found.buffers] == [
        ("a", 0, 16, True),
        ("b", 8, 24, True),
        ("c", 32, 48, True),
    ]
    root = ET.fromstring(picture(MODULE, given, None, findings))
    told = [each[0].text or "" for each in root.iter(f"{SVG}rect") if len(each)]
    assert "b: bytes 8 to 24, 5 to 6" in told
    assert "at fault" in [each.text for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["cpu8.swap_donated", "h100.cond_inner_axis", "v5e.pipeline_fwd", "v6e.cg_solve"])
def test_real_schedules(name: str) -> None:
    module, buffers, values = (SCHEDULED / f"{name}.{what}.gz" for what in ("hlo", "buffers.txt", "values.txt"))
    parsed, allocations = read(module).module, parse_assignment(text_of(buffers))
    found = timeline(parsed, allocations, parse_values(text_of(values)))
    assert found.memory and all(kept >= 0 for _, kept in found.memory)
    assert max(kept for _, kept in found.memory) <= sum(one.size for one in allocations)
    assert all(1 <= span.begin <= span.end <= found.ticks + 1 for span in (*found.instructions, *found.transfers))
    assert len(picture(module, buffers, values, ())) < 20_000


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = tmp_path / "drawn.svg"
    assert cli.main(["lint", str(SCHEDULED / "v6e.cg_solve.hlo.gz"), "--svg", str(drawn)]) == 0
    assert ET.fromstring(drawn.read_text()).tag == f"{SVG}svg"
    unscheduled = tmp_path / "m.txt"
    unscheduled.write_text(MODULE.replace(", is_scheduled=true", ""))
    assert cli.main(["lint", str(unscheduled), "--svg", str(drawn)]) == 2
    assert "not scheduled" in capsys.readouterr().err
    assert cli.main(["lint", str(unscheduled), str(unscheduled), "--svg", str(drawn)]) == 2
    assert "--svg goes with one module" in capsys.readouterr().err


def test_pages_have_the_picture_of_what_they_are_about(tmp_path: Path) -> None:
    page, module = tmp_path / "page.html", tmp_path / "m.txt"
    assert cli.main(["lint", str(SCHEDULED / "v6e.cg_solve.hlo.gz"), "--format", "html", "-o", str(page)]) == 0
    assert page.read_text().count('<svg xmlns="http://www.w3.org/2000/svg" class="hv-picture"') == 1
    module.write_text(MODULE.replace(", is_scheduled=true", ""))
    assert cli.main(["lint", str(module), "--format", "html", "-o", str(page)]) == 0
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="hv-picture"' not in page.read_text()
    module.write_text("0F0 0B0\n1F0 1B0\n")
    assert cli.main(["lint", "--pipeline", str(module), "--format", "html", "-o", str(page)]) == 0
    assert "2 ranks over 6 units of time" in page.read_text()


def test_a_module_without_a_schedule_has_no_timeline() -> None:
    with pytest.raises(InputError, match="not scheduled"):
        timeline(parse_hlo(MODULE.replace(", is_scheduled=true", "")))
